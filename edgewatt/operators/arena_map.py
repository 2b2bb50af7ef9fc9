"""Maps of arenas: of a schedule, of buffers in a file; how figures are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reorder.operators.arena.banks import BankedPlacement, place_in_banks
from reorder.operators.arena.base import Placement
from reorder.operators.arena.files import NamedBuffers
from reorder.operators.schedule.arena import lifetimes, traffic
from reorder.operators.schedule.operator_problem import OperatorProblem
from reorder.operators.schedule.schedule import Schedule
from traces.base.errors import InputError, MissingExtraError
from traces.base.files import whole_file

if TYPE_CHECKING:  # most schedules are not drawn
    from edgewatt.operators.bank_file import Memories
    from edgewatt.pages.arena import ArenaMap, BankShown

SUFFIXES = (".svg", ".png", ".html")


def of_schedule(result: Schedule, placed: BankedPlacement | None = None) -> ArenaMap:
    """Return the map of a schedule's buffers; placed: where they are in several banks, None for its own arena."""
    from edgewatt.pages.arena import ArenaMap, BankShown

    problem = OperatorProblem(result.graph)
    buffers, numbers = lifetimes(problem, problem.check_order(result.order))
    one = placed is None
    return ArenaMap(
        f"{result.graph.name}: arena of {result.graph.n_nodes} operators",
        [result.graph.buffers[b] for b in numbers.tolist()],
        buffers.lower,
        buffers.upper,
        buffers.size,
        result.offsets[numbers] if placed is None else placed.offset,
        np.zeros(buffers.count, np.int64) if placed is None else placed.bank,
        (BankShown("arena", result.arena_bytes),) if one else _banks(placed),
        result.names,
    )


def buffers_of(result: Schedule) -> list[dict[str, Any]]:
    """Return a schedule's buffers as `edgewatt arena` reads them; size, offset and traffic in bytes."""
    problem = OperatorProblem(result.graph)
    buffers, numbers = lifetimes(problem, problem.check_order(result.order))
    columns = {
        "lower": buffers.lower, "upper": buffers.upper, "size": buffers.size,
        "offset": result.offsets[numbers], "traffic": traffic(problem)[numbers],
    }  # fmt: skip
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    names = (result.graph.buffers[b] for b in numbers.tolist())
    return [{"id": name, **dict(zip(columns, row, strict=True))} for name, row in zip(names, rows, strict=True)]


def in_banks(result: Schedule, memories: Memories, alignment: int, deadline: float | None = None) -> BankedPlacement:
    """Place a schedule's buffers in several banks; each is as dear as the bytes its writers and readers move."""
    problem = OperatorProblem(result.graph)
    buffers, numbers = lifetimes(problem, problem.check_order(result.order), alignment)
    place = {result.graph.buffers[b]: k for k, b in enumerate(numbers.tolist())}
    places = {name: place[tensor.buffer] for name, tensor in result.graph.tensors.items()}
    pinned = memories.numbered("tensor", places, buffers.size.tolist())
    return place_in_banks(buffers, memories.banks, traffic=traffic(problem)[numbers], pinned=pinned, deadline=deadline)


def of_file(given: NamedBuffers, placed: Placement | BankedPlacement, title: str, capacity: int | None) -> ArenaMap:
    """Return the map of buffers from a file."""
    from edgewatt.pages.arena import ArenaMap, BankShown

    b = given.buffers
    several = isinstance(placed, BankedPlacement)
    bank = placed.bank if isinstance(placed, BankedPlacement) else np.zeros(b.count, np.int64)
    shown = _banks(placed) if several else (BankShown("arena", placed.height, capacity),)  # type: ignore[union-attr, arg-type]
    return ArenaMap(title, given.names, b.lower, b.upper, b.size, placed.offset, bank, shown)


def _banks(placed: BankedPlacement | None) -> tuple[BankShown, ...]:
    from edgewatt.pages.arena import BankShown

    assert placed is not None
    return tuple(
        BankShown(bank.name, height, bank.size_bytes) for bank, height in zip(placed.banks, placed.heights, strict=True)
    )


def write_page(shown: ArenaMap, path: str | Path) -> None:
    """Write the page."""
    from edgewatt.pages.arena import arena_page

    with whole_file(path) as stream:
        stream.write(arena_page(shown).encode("utf-8", "backslashreplace"))


def draw_map(shown: ArenaMap, path: str | Path) -> None:
    """Write the map as a figure: .svg, .png or .html. Needs the extra `report`."""
    from edgewatt.pages.arena import arena_figure

    write_figure(lambda: arena_figure(shown), shown.title, path)


def write_figure(spec: Callable[[], dict[str, Any]], title: str, path: str | Path) -> None:
    """Write a Vega-Lite figure; the suffix (.svg, .png or .html, self-contained) chooses the form.

    Raises InputError for another suffix; needs the extra `report`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: a figure is written as {', '.join(SUFFIXES)}, not {suffix or 'without a suffix'!r}")
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("vl-convert-python", "report") from error
    made = spec()
    if suffix == ".svg":
        data = vl_convert.vegalite_to_svg(made).encode()
    elif suffix == ".png":
        data = vl_convert.vegalite_to_png(made, scale=2)
    else:
        from edgewatt.pages.report import drawing

        data = drawing(title, made).encode("utf-8", "backslashreplace")
    with whole_file(path) as stream:
        stream.write(data)
