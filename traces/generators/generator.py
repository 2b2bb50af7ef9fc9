"""The registry of network generators, and how large what they make may be.

Parameters and defaults come from the functions' own signatures.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy.typing as npt

from traces.base.checks import whole_number
from traces.base.errors import InputError
from traces.base.memory import claim
from traces.base.registry import Registry
from traces.networks.network import MAX_CONNECTIONS, MAX_NEURONS, Network

Function = TypeVar("Function", bound=Callable[..., Network])

GENERATORS: Registry[Callable[..., Network]] = Registry(
    "network generator", "edgewatt.generators", folder="traces.generators"
)


def generator(function: Function) -> Function:
    """Register a function under its name (with dashes), its first line as summary and its arguments as parameters."""
    summary = (inspect.getdoc(function) or "").split("\n")[0].rstrip(".")
    name = function.__name__.replace("_", "-")
    GENERATORS.register(name, summary=summary, parameters=_parameters(function), module=function.__module__)(function)
    return function


def _as_list(hint: Any) -> Any:
    if hint == npt.ArrayLike:
        return list[int]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Sequence:
        return list[_as_list(arguments[0])]  # type: ignore[misc]
    if origin in (typing.Union, type(int | None)):
        return typing.Union[tuple(map(_as_list, arguments))]  # noqa: UP007 - built at run time
    return hint


class _Checked:
    """Parameters that are checked before a network is made: what `density` and `widths` mean everywhere."""

    def __post_init__(self) -> None:
        density, widths = (getattr(self, name, None) for name in ("density", "widths"))
        if density is not None:
            check_density(density)
        if widths is not None:
            check_widths(widths)


def _parameters(function: Callable[..., Network]) -> type:
    hints = typing.get_type_hints(function)
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "name":
            continue
        hint = _as_list(hints[name])
        if parameter.default is inspect.Parameter.empty:
            fields.append((name, hint))
        else:
            fields.append((name, hint, dataclasses.field(default=parameter.default)))
    name = f"{function.__name__}_parameters"
    return dataclasses.make_dataclass(name, fields, bases=(_Checked,), frozen=True, kw_only=True)


_CONNECTION, _NEURON = 120, 180  # bytes of memory at the most while one is made, measured on every generator


def check_size(n_neurons: int, n_connections: int) -> None:
    if n_connections > MAX_CONNECTIONS or n_neurons > MAX_NEURONS:
        raise InputError(f"{n_neurons} neurons and {n_connections} connections are too many to be held")
    claim(_CONNECTION * n_connections + _NEURON * n_neurons, "generate", f"a network of {n_connections} connections")


def check_density(density: float) -> None:
    if not 0 < density <= 1:
        raise InputError(f"density is above 0 and at most 1, not {density}")


def check_widths(widths: Sequence[int]) -> list[int]:
    if len(widths) < 2:
        raise InputError(f"a network needs at least two layers of neurons, not {len(widths)}")
    return [at_least(f"widths[{number}]", width, 1) for number, width in enumerate(widths)]


def at_least(what: str, value: int, least: int) -> int:
    return whole_number(value, what, least, MAX_NEURONS)


def checked_seed(seed: int) -> int:
    return whole_number(seed, "seed", 0)
