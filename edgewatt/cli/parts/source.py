"""The options by which every command reads a network: how its files are read, and how much of them stays."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from edgewatt.cli.parts.arguments import shapes_of
from edgewatt.cli.parts.output import tell_notes

if TYPE_CHECKING:
    from edgewatt.config.source import NetworkFiles
    from traces.networks.network import Network

CONFIGURED = (".yaml", ".yml", ".json")


def _option(name: str, help: str, metavar: str | None = None, *, many: bool = False) -> Any:
    return typer.Option([] if many else None, f"--{name}", metavar=metavar, help=help)


_MANY = list[str]
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "names": (
        _MANY,
        _option("names", "Read these tensors or operators only: names or patterns.", "TENSOR", many=True),
    ),
    "density": (float, _option("density", "Keep this share of the weights, heaviest first.", "SHARE")),
    "scope": (
        str,
        _option("scope", "With --density: rank weights over all layers (global, default) or in each (layer)."),
    ),
    "activation": (str, _option("activation", "Activation of hidden neurons (default: the file's, or relu).")),
    "orientation": (
        str,
        _option("orientation", "Orientation of matrices: rows-are-outputs (default) or rows-are-inputs."),
    ),
    "image": (str, _option("image", "Size of the input image, to unroll convolutions of safetensors.", "HxW")),
    "window": (
        _MANY,
        _option("window", "Stride, padding, dilation and pool of a convolution.", "TENSOR:stride=2,...", many=True),
    ),
    "shape": (
        _MANY,
        _option("shape", "Shape of an .onnx model's input, such as image=1x3x224x224.", "NAME=SIZES", many=True),
    ),
}


def takes_source(
    argument: str = "network", kind: Any = list[str]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of a network source; its `argument` (`kind` in the shell) is a `NetworkFiles` then.

    Options that the command has itself stay its own.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        added = {name: made for name, made in _OPTIONS.items() if name not in signature.parameters}

        @functools.wraps(function)
        def run(**values: Any) -> Any:
            given = {name: values.pop(name) for name in added}
            files = values[argument]
            if files is not None:
                values[argument] = _source(files if isinstance(files, list) else [files], given)
            return function(**values)

        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=each)
            for name, (each, option) in added.items()
        ]
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values()]
        run.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        run.__annotations__ = {
            **function.__annotations__,
            argument: kind,
            **{name: each for name, (each, _) in added.items()},
        }
        return run

    return decorate


def _source(files: Sequence[Any], given: dict[str, Any]) -> NetworkFiles:
    from pathlib import Path

    from edgewatt.config.source import NetworkFiles
    from traces.base.errors import InputError
    from traces.base.resources import network_file

    named = {name: value for name, value in given.items() if value not in (None, [])}
    if named and Path(files[0]).suffix in CONFIGURED:
        name = next(iter(named))
        raise InputError(f"{files[0]}: --{name} goes with a network; a configuration says it under 'network:'")
    read: dict[str, Callable[[Any], Any]] = {
        "image": read_image,
        "windows": read_windows,
        "shapes": shapes_of,
        "names": tuple,
    }
    named = {{"window": "windows", "shape": "shapes"}.get(name, name): value for name, value in named.items()}
    return NetworkFiles(
        tuple(network_file(str(file)) for file in files),
        **{k: read[k](v) if k in read else v for k, v in named.items()},
    )


def network_of(source: NetworkFiles, command: str) -> Network:
    loaded = source.network(command)
    tell_notes(loaded.notes, source.files)
    return loaded


def read_image(text: str) -> tuple[int, ...]:
    """Read height x width, as 32x32, or channels first, as 3x32x32."""
    from traces.base.checks import is_whole
    from traces.base.errors import InputError

    sides = text.lower().split("x")
    if len(sides) not in (2, 3) or not all(is_whole(side) and len(side) < 10 for side in sides):
        raise InputError(f"--image {text!r}: write height x width, as 32x32 (or channels first, 3x32x32)")
    return tuple(int(side) for side in sides)


def read_windows(given: Sequence[str]) -> dict[str, dict[str, int]]:
    """Read TENSOR:stride=2,padding=1 for each tensor."""
    from traces.base.checks import is_whole
    from traces.base.errors import InputError

    windows: dict[str, dict[str, int]] = {}
    for text in given:
        name, _, values = text.rpartition(":")
        pairs = [value.partition("=") for value in values.split(",")]
        if not name or not all(key and is_whole(number) and len(number) < 10 for key, _, number in pairs):
            raise InputError(f"--window {text!r}: write TENSOR:stride=2,padding=1 (also dilation and pool)")
        windows[name] = {key.strip(): int(number) for key, _, number in pairs}
    return windows
