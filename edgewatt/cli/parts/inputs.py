"""What a command reads: declared at its arguments, as ``typer.Argument(..., parser=reads("a record", "record"))``.

Where a command fails and the file is of another kind, the message says what the file is and which command takes it
(`recognition`, which loads only then).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

NETWORKS = ("network", "matrix", "weights", "model")
CONFIGURATIONS = ("configuration", "sweep")


class Reads:
    """The parser of an argument or option that names what a command reads.

    wanted: in words, with the article. kinds: of `recognition.KINDS`. to: the type that the command is given.
    """

    def __init__(self, wanted: str, kinds: Iterable[str], to: type) -> None:
        self.wanted, self.kinds, self.to = wanted, frozenset(kinds), to
        self.__name__ = to.__name__.lower()  # what the help shows as the type

    def __call__(self, text: str) -> Any:
        return self.to(text)

    def explain(self, given: Any, said: str) -> str | None:
        """Return better words for an error where a file given is of another kind, or is not there but its like is.

        given: the argument's value, or a list of values. said: the error's message.
        """
        from edgewatt.cli.parts.recognition import beside, kind_of, told

        for each in given if isinstance(given, list | tuple) else (given,):
            if not isinstance(each, str | Path) or not str(each):
                continue
            kind = kind_of(Path(each))
            if kind is not None and kind not in self.kinds:
                return told(str(each), kind, self.wanted)
            if f"{each}: no such" in said and "did you mean" not in said and (near := beside(Path(each))):
                return f"{said} (did you mean {near!r}?)"
        return None


def reads(wanted: str, *kinds: str, to: type = str) -> Reads:
    """Declare what an argument may be."""
    return Reads(wanted, kinds, to)


def size_of(text: str) -> int:
    """Return bytes of an option such as ``--size 8KiB``."""
    from traces.base.errors import InputError
    from traces.base.units import size_in_bytes

    try:
        return size_in_bytes(text)
    except InputError as error:
        raise typer.BadParameter(str(error)) from error


MACHINE = reads("a machine", "system")
PART = reads("a memory part", "part")


def refuse_other_kinds(wanted: str, kinds: Iterable[str], file: str) -> None:
    """Raise InputError for a file that is surely something else, before anything is read."""
    from traces.base.errors import InputError

    if said := reads(wanted, *kinds).explain(file, ""):
        raise InputError(said)
