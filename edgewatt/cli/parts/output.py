"""What every command shares for its output: tables for people, JSON for programs, progress for the patient."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from traces.base.errors import InputError

if TYPE_CHECKING:
    from traces.base.progress import Progress


def plain(value: object) -> str:
    """Return text for a terminal: control characters, which names in files may hold, are shown and not obeyed."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in str(value))


def say(text: object, *, err: bool = False) -> None:
    """Print lines of what may hold names from files, broken between words at the width of the terminal; what goes on
    is indented as far. What is written to a file or pipe of errors is one line each, for programs that look for it."""
    import typer

    typer.echo("\n".join(_folded(text)) if not err or sys.stderr.isatty() else plain(text), err=err)


def tell_notes(notes: Sequence[str], files: tuple[str, ...]) -> None:
    for note in notes:  # several files name their own
        say(note if note.startswith(files) else f"{files[0]}: {note}", err=True)


def _folded(text: object) -> list[str]:
    return [part for line in plain(text).split("\n") for part in wrapped(line, line[: len(line) - len(line.lstrip())])]


def terminal_width() -> int:
    return shutil.get_terminal_size((80, 24)).columns


def wrapped(text: str, indent: str = "") -> list[str]:
    """Return a text in lines no wider than the terminal; a number stays with its unit, what follows is indented."""
    width = terminal_width()
    if len(text) <= width:
        return [text]
    bound = _UNIT.sub("\\1\N{NO-BREAK SPACE}\\2", text)
    lines = textwrap.wrap(bound, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


_UNIT = re.compile(r"([0-9]) (%|[pnµmkMGT]?[JsBW]\b|KiB|MiB)")


def put(console: Any, text: object = "", *, style: str | None = None) -> None:
    """Print a line of what may hold names from files on a console of Rich's, as `say` does."""
    console.print("\n".join(_folded(text)), style=style, markup=False)


def show_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None, numeric: Sequence[str] = (),
    groups: Sequence[str] = (), names: int = 1,
) -> None:  # fmt: skip
    """Print a table; columns named in `numeric` are right-aligned; colour only on a terminal.

    It is no wider than the terminal: texts wrap first, then columns go on in further tables, each with the first ones
    (`names`). groups: a heading for each row, printed where it changes.
    """
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    cells = [["" if cell is None else plain(cell).replace("\n", " ") for cell in row] for row in rows]
    for line in wrapped(plain(title)) if title else ():
        put(console, line, style="bold")
    made = [_Column(plain(name), [row[k] for row in cells], name in numeric) for k, name in enumerate(columns)]
    for piece in _fitted(made, terminal_width(), names):
        put(console)
        for line in piece.lines([column.head for column in piece.columns]):
            put(console, line, style="bold")
        put(console, "─" * piece.width)
        for k in range(len(cells)):
            if groups and (not k or groups[k] != groups[k - 1]):
                put(console, groups[k], style="bold cyan")
            for line in piece.lines([column.cells[k] for column in piece.columns]):
                put(console, line)
    put(console)


LEAST_TEXT = 16  # columns that a text is not made narrower than


class _Column:
    def __init__(self, head: str, cells: list[str], numeric: bool) -> None:
        self.head, self.cells, self.adjust = head, cells, str.rjust if numeric else str.ljust
        words = max(map(len, head.split()), default=0)
        self.width = max([words, *map(len, cells)])
        self.least = self.width if numeric else min(self.width, max(words, LEAST_TEXT))


class _Piece:
    def __init__(self, columns: list[_Column], room: int) -> None:
        self.columns = columns
        self.widths = [column.width for column in columns]
        gaps = 2 * (len(columns) - 1)
        while sum(self.widths) + gaps > room:
            spare = [width - column.least for width, column in zip(self.widths, columns, strict=True)]
            widest = max(range(len(columns)), key=lambda k: (spare[k] > 0, self.widths[k]))
            if spare[widest] <= 0:
                break
            self.widths[widest] -= 1
        self.width = min(sum(self.widths) + gaps, room)

    def lines(self, cells: list[str]) -> list[str]:
        parts = [textwrap.wrap(cell, width, break_on_hyphens=False) or [""]
                 for cell, width in zip(cells, self.widths, strict=True)]  # fmt: skip
        return [
            "  ".join(
                column.adjust(part, width)
                for part, width, column in zip(line, self.widths, self.columns, strict=True)
            ).rstrip()
            for line in zip_longest(*parts, fillvalue="")
        ]  # fmt: skip


def _fitted(columns: list[_Column], room: int, names: int) -> list[_Piece]:
    groups: list[list[_Column]] = [columns[:names]]
    for column in columns[names:]:
        if sum(each.least + 2 for each in [*groups[-1], column]) - 2 > room and len(groups[-1]) > names:
            groups.append(columns[:names])
        groups[-1].append(column)
    return [_Piece(group, room) for group in groups]


def write_json(value: Any, file: str | None) -> bool:
    """Write `value` as JSON to a file (complete or not at all) or, for '-', to standard output.

    An iterator is written as a list, value by value: memory holds one of them. Returns True when standard output was
    taken, so that the caller prints nothing else there.
    """
    if file is None:
        return False

    def text(part: Any) -> str:
        return json.dumps(part, indent=2, sort_keys=False, allow_nan=False)

    def pieces() -> Iterator[str]:
        if not isinstance(value, Iterator):
            yield text(value) + "\n"
            return
        before = "[\n"
        for each in value:
            yield before + textwrap.indent(text(each), "  ")
            before = ",\n"
        yield "\n]\n" if before == ",\n" else "[]\n"

    if file == "-":
        sys.stdout.writelines(pieces())
        return True
    from traces.base.files import whole_file

    with whole_file(file) as stream:
        stream.writelines(piece.encode() for piece in pieces())
    return False


@contextmanager
def resumable() -> Iterator[None]:
    """End a command that keeps what is finished with status 130 on Ctrl-C, and say that it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("edgewatt: interrupted; finished work is kept: run the same command to continue\n")
        sys.exit(130)


@contextmanager
def progress(label: str) -> Iterator[Progress]:
    """Yield a callable (done, total, text): a bar on a terminal, a plain line every ten seconds otherwise (stderr)."""
    if not sys.stderr.isatty():
        yield _plain_progress(label)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(plain(label), total=None, note="")

        def update(done: int, total: int | None, text: str = "") -> None:
            bar.update(task, completed=done, total=total, note=plain(text))

        yield update


def _plain_progress(label: str, every_s: float = 10.0) -> Progress:
    last = time.monotonic()

    def update(done: int, total: int | None, text: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every_s:
            last = now
            share = f" ({100 * done / total:.0f} %)" if total else ""
            sys.stderr.write(plain(f"{label}: {done}{f' of {total}' if total else ''}{share} {text}").rstrip() + "\n")
            sys.stderr.flush()

    return update


def show_order(result: dict[str, Any]) -> None:
    names = list(result["orders"])
    labels = {
        "reads": "reads",
        "writes": "writes",
        "total": f"I/Os ({result['policy']}, {result['pinning']})",
        "io_min": "I/Os under MIN",
        "io_lru": "I/Os under LRU",
        "io_lru_pin_both": "I/Os under LRU, pin_both",
        "io_rr": "I/Os under RR",
        "io_rr_pin_both": "I/Os under RR, pin_both",
        "runs": "runs",
        "objective": "objective",
        "least_memory_without_extra": "least M without extra I/Os",
    }
    rows = [(label, *(f"{result['orders'][name][key]:,g}" if isinstance(result["orders"][name][key], float)
                      else f"{result['orders'][name][key]:,}" for name in names))
            for key, label in labels.items()]  # fmt: skip
    show_table(("M = " + str(result["memory"]), *names), rows, title=result["network"], numeric=names)

    def gap(value: float | None) -> str:
        return "none (two-optimal is at the bound)" if value is None else f"{100 * value:.1f} %"

    say(f"bounds: {result['lower_bound']:,} = W + N + S, at most {result['upper_bound']:,} (Theorem 1)")
    say(f"best lower bound: {result['best_lower_bound']:,} ({result['best_lower_bound_argument']})")
    say(f"gap: {gap(result['gap'])} to W + N + S, {gap(result['gap_to_best_bound'])} to the best lower bound")
    if result["proved_optimal"]:
        search = result["best_lower_bound_argument"] == "search"
        evicts = f"under {result['policy'].upper()}" if search else "whatever is evicted"
        say(f"proved optimal: it meets the bound, so no order has fewer I/Os, {evicts}")
    if result["isolated_neurons"]:
        say(f"isolated neurons (in none of the figures): {result['isolated_neurons']}")
    if result["parameters"].get("interrupted"):
        say("interrupted: this is the best order that the search had found")
    elif result["truncated"]:
        steps = f" after {result['curve'][-1][0]:,} steps" if result["curve"] else ""
        say(f"cut: the time limit ended the search{steps}; more time may find more, and another run may differ")


def split_parameter(text: str, form: str = "NAME=VALUE, for instance iterations=100000") -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"--set {text}: write {form}")
    return name, value


def parameters_of(given: Iterable[str], *form: str) -> dict[str, Any]:
    return {name: read_value(value) for name, value in (split_parameter(text, *form) for text in given)}


def read_value(text: str) -> Any:
    """Read a YAML value from the command line; 1e-3 is the number it looks like."""
    from traces.base.document import ConfigError, parse_document

    try:
        return parse_document(text or "~", "").data
    except ConfigError as error:
        raise InputError(f"{text!r} cannot be read as a value ({error.problems[0][1]})") from error
