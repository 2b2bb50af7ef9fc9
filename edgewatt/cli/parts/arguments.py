"""Arguments of commands, and what is checked of every command: no output replaces an input, a wrong file is named.

A command declares which of its options name files it writes (`writes`) and what it reads (`reads`). Where it fails and
a file is of another kind, the message says what the file is and which command takes it (`recognition`).
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import typer

Function = TypeVar("Function", bound=Callable[..., Any])

_MOST_BYTES = 1 << 22  # of a configuration that is looked through for the files it names
_STORE = ("records", "failures", "sweeps", "stages")  # folders of results; beside them a page may lie


def written(text: str) -> str:
    """Return the name of a file or folder that the command writes: the parser by which such options are known."""
    return named(text)


def named(text: str) -> str:
    """Refuse an empty name: that of a shell's variable which is not set would be the current folder."""
    if not text:
        raise typer.BadParameter("an empty name: name a file or a folder")
    return text


def writes(help: str, *names: str, default: Any = None, metavar: str = "FILE") -> Any:
    """Return an option that names a file or folder the command writes."""
    return typer.Option(default, *names, metavar=metavar, parser=written, help=help)


def json_option(what: str = "the result") -> Any:
    """Return the option of a command that writes what it says as JSON too."""
    return writes(f"Write {what} as JSON ('-': standard output).", "--json")


class CommandGroup(typer.Typer):
    """A group of commands; one that writes files has ``--force``, without which it refuses to write what it reads."""

    def command(self, name: str | None = None, **more: Any) -> Callable[[Function], Function]:
        """As Typer's own; examples of the docstring are printed as they may be pasted, in lines of 80 columns."""

        def decorate(function: Function) -> Function:
            options = {"help": with_examples(inspect.getdoc(function) or ""), **more}
            super(CommandGroup, self).command(name, **options)(_guarded(function))
            return function

        return decorate


MOST_COLUMNS = 76  # of an example; the help indents it


def with_examples(text: str) -> str:
    """Return a help text in which each paragraph that is an example stands by itself and is not wrapped in words."""
    parts = []
    for part in re.split(r"\n\n|\n(?=Example:)", text):
        words = " ".join(part.split())
        call = words.removeprefix("Example:").strip()
        parts.append(f"\b\nExample:  {_pasted(call)}" if call.startswith(("edgewatt ", "python ")) else part)
    return "\n\n".join(parts)


def _pasted(call: str) -> str:
    """Break a command before options, so that a shell takes the lines as one."""
    lines: list[str] = []
    for piece in re.split(r" (?=--?[a-zA-Z])", call):
        room = MOST_COLUMNS - (len("Example:  ") if len(lines) < 2 else 4) - 2
        if lines and len(lines[-1]) + 1 + len(piece) <= room:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return " \\\n    ".join(lines)


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with its outputs checked, and an option for doing it all the same."""
    function = _explained(function)
    signature = inspect.signature(function)
    outputs = [p.name for p in signature.parameters.values() if getattr(p.default, "parser", None) is written]
    if not outputs:
        return function

    own = "force" in signature.parameters  # what it replaces is more than its inputs

    @functools.wraps(function)
    def run(**values: Any) -> Any:
        force = values["force"] if own else values.pop("force")
        _check({name: values[name] for name in outputs}, [v for k, v in values.items() if k not in outputs], force)
        return function(**values)

    if own:
        return run

    option = typer.Option(False, "--force", help="Allow an output to replace an input file.")
    parameter = inspect.Parameter("force", inspect.Parameter.KEYWORD_ONLY, default=option, annotation=bool)
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*(p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values()), parameter]
    )
    run.__annotations__ = {**function.__annotations__, "force": bool}
    return run


def _explained(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that, where it fails on a file of a kind that it does not read, says what the file is."""
    parameters = inspect.signature(function).parameters.values()
    inputs = {p.name: p.default.parser for p in parameters if isinstance(getattr(p.default, "parser", None), Reads)}
    if not inputs:
        return function

    @functools.wraps(function)
    def run(**values: Any) -> Any:
        from traces.base.errors import InputError

        try:
            return function(**values)
        except InputError as error:
            from edgewatt.cli.parts.recognition import explain

            for name, reads in inputs.items():
                if message := explain(values[name], str(error), reads.expected, reads.kinds):
                    raise InputError(message) from error
            raise

    return run


def _check(outputs: Mapping[str, Any], given: Iterable[Any], force: bool) -> None:
    named = [str(path) for path in outputs.values() if path and str(path) != "-"]
    there = [path for path in named if _exists(path)]
    if len({os.path.realpath(path) for path in named}) < len(named):
        from traces.base.errors import InputError

        raise InputError(f"{named[0]}: two outputs have this name: give each a file of its own")
    if there and not force:
        from traces.base.files import refuse_inputs

        inputs = list(_files(given))
        for path in there:
            refuse_inputs(path, inputs)


def _exists(path: Any) -> bool:
    try:
        return Path(str(path)).is_file()  # a device or a pipe is not an input that would be lost
    except (OSError, ValueError):
        return False


def _files(values: Iterable[Any]) -> Iterator[Path]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _files(value)
        if not isinstance(value, (str, Path)) or not str(value):
            continue
        try:
            path = Path(value)
            if path.is_file():
                yield path
                if path.suffix in (".yaml", ".yml"):
                    yield from _named_in(path)
            elif path.is_dir():
                yield from _inside(path)
        except (OSError, ValueError):
            continue


def _inside(folder: Path) -> Iterator[Path]:
    if (folder / "records").is_dir():
        for name in _STORE:
            yield from (folder / name).rglob("*")
    else:
        yield from (path for path in folder.iterdir() if path.is_file())


def _named_in(path: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the files that a configuration names; one that cannot be read is the command's own to complain of."""
    from traces.base.document import parse_document

    try:
        if path.stat().st_size > _MOST_BYTES:
            return
        data = parse_document(path.read_text("utf-8"), str(path)).data
    except (OSError, ValueError):
        return
    for text in _texts(data):
        try:
            named = path.parent / text
            if text and named.is_file():
                yield named
                if named.suffix in (".yaml", ".yml") and depth < 4:
                    yield from _named_in(named, depth + 1)
        except (OSError, ValueError):
            continue


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, (dict, list)):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _texts(value)


NETWORKS = ("network", "matrix", "weights", "model")
CONFIGURATIONS = ("configuration", "sweep")


class Reads:
    """The parser of an argument or option that names what a command reads.

    expected: in words, with the article. kinds: of `recognition.KINDS`. to: the type that the command is given.
    """

    def __init__(self, expected: str, kinds: Iterable[str], to: type) -> None:
        self.expected, self.kinds, self.to = expected, frozenset(kinds), to
        self.__name__ = to.__name__.lower()  # what the help shows as the type

    def __call__(self, text: str) -> Any:
        return self.to(text)


def reads(expected: str, *kinds: str, to: type = str) -> Reads:
    """Declare what an argument may be."""
    return Reads(expected, kinds, to)


def size_of(text: str) -> int:
    """Return bytes of an option such as ``--size 8KiB``."""
    from traces.base.errors import InputError
    from traces.base.units import size_in_bytes

    try:
        return size_in_bytes(text)
    except InputError as error:
        raise typer.BadParameter(str(error)) from error


def shapes_of(given: list[str]) -> dict[str, list[int]]:
    """Return the shapes of options such as ``--shape image=1x3x224x224``, by name."""
    shapes = {}
    for text in given:
        name, equals, sizes = text.rpartition("=")
        sides = sizes.replace(",", "x").split("x")
        if not equals or not name or not all(side.isascii() and side.isdigit() for side in sides):
            raise typer.BadParameter(
                f"{text!r} is not of the form NAME=SIZES, such as image=1x3x224x224", param_hint="--shape"
            )
        shapes[name] = [int(side[:12]) for side in sides]
    return shapes


MACHINE = reads("a machine", "system")
PART = reads("a memory part", "part")


def names_of(what: str) -> Callable[[str], list[str]]:
    """Return a completion of the names that `edgewatt list WHAT` shows."""

    def complete(incomplete: str) -> list[str]:
        from edgewatt.catalogue import catalogue

        return [entry["name"] for entry in catalogue(what) if entry["name"].startswith(incomplete.lower())]

    return complete


def kinds(incomplete: str) -> list[str]:
    """Complete what `edgewatt list` can list."""
    from edgewatt.catalogue import lists

    return [name for name in (*lists(), "schema") if name.startswith(incomplete)]
