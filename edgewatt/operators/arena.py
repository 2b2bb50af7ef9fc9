"""Buffers in an arena or in banks: placed, and maps of them and of a schedule's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from edgewatt.config.kinds import origins_of
from edgewatt.config.loading import validate
from edgewatt.config.sections import section_for
from edgewatt.operators.words import bank_summary, describe_banks, describe_placement
from edgewatt.pages.arena import ArenaMap, BankShown, arena_page
from reorder.operators.arena.allocate import allocate
from reorder.operators.arena.banks import Bank, BankedPlacement, place_in_banks
from reorder.operators.arena.base import Buffers, Placement
from reorder.operators.arena.files import read_buffers, write_placement
from reorder.operators.schedule.arena import lifetimes, traffic
from reorder.operators.schedule.operator_problem import OperatorProblem
from reorder.operators.schedule.schedule import Schedule
from traces.base.document import read_document
from traces.base.errors import InputError, unknown_name
from traces.base.files import whole_file
from traces.base.progress import left_of
from traces.base.schema import Section


def of_schedule(result: Schedule, placed: BankedPlacement | None = None) -> ArenaMap:
    problem = OperatorProblem(result.graph)
    buffers, numbers = lifetimes(problem, problem.check_order(result.order))
    title = f"{result.graph.name}: arena of {result.graph.n_nodes} operators"
    names = [result.graph.buffers[b] for b in numbers.tolist()]
    one = Placement(result.offsets[numbers], result.arena_bytes, 0)
    return arena_map(title, names, buffers, one if placed is None else placed, steps=result.names)


def buffers_of(result: Schedule) -> list[dict[str, Any]]:
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
    problem = OperatorProblem(result.graph)
    buffers, numbers = lifetimes(problem, problem.check_order(result.order), alignment)
    number_of = {result.graph.buffers[b]: k for k, b in enumerate(numbers.tolist())}
    index = {name: number_of[tensor.buffer] for name, tensor in result.graph.tensors.items()}
    pinned = memories.numbered("tensor", index, buffers.size.tolist())
    return place_in_banks(buffers, memories.banks, traffic=traffic(problem)[numbers], pinned=pinned, deadline=deadline)


def arena_map(
    title: str,
    names: Sequence[str],
    buffers: Buffers,
    placed: Placement | BankedPlacement,
    capacity: int | None = None,
    steps: Sequence[str] | None = None,
) -> ArenaMap:
    if isinstance(placed, BankedPlacement):
        bank, heights = placed.bank, zip(placed.banks, placed.heights, strict=True)
        shown = [BankShown(each.name, height, each.size_bytes) for each, height in heights]
    else:
        bank, shown = np.zeros(buffers.count, np.int64), [BankShown("arena", placed.height, capacity)]
    return ArenaMap(title, names, buffers.lower, buffers.upper, buffers.size, placed.offset, bank, shown, steps)


def write_page(shown: ArenaMap, path: str | Path) -> None:
    with whole_file(path) as stream:
        stream.write(arena_page(shown).encode("utf-8", "backslashreplace"))


_BANK = section_for(Bank, name="BankSection", extra=(("source", str, ""),))


class BankFile(Section):
    """`banks`: a list of name, mb_per_s (10^6 bytes per second), size_bytes (left out: no limit) and source.

    `pinned`: names of tensors (of `arena`: ids of buffers) and the bank that each must be in.
    """

    banks: Annotated[list[_BANK], Field(min_length=1)]  # type: ignore[valid-type]
    pinned: Annotated[dict[str, str], Field(default_factory=dict)]


@dataclass(frozen=True)
class Memories:
    """banks: in the file's order. pinned: name of a tensor or buffer -> name of its bank. path: of the file."""

    banks: list[Bank]
    pinned: Mapping[str, str]
    path: str

    def numbered(self, what: str, index: Mapping[str, int], sizes: Sequence[int]) -> dict[int, str]:
        rooms = {bank.name: bank.size_bytes for bank in self.banks}
        bank_of: dict[int, str] = {}
        for name, bank in self.pinned.items():
            if name not in index:
                raise InputError(f"{self.path}: pinned: {unknown_name(what, name, index)}")
            if bank not in rooms:
                raise InputError(f"{self.path}: pinned: {name!r}: {unknown_name('bank', bank, rooms)}")
            room, number = rooms[bank], index[name]
            if room is not None and sizes[number] > room:
                raise InputError(f"{self.path}: pinned: {name!r} has {sizes[number]} bytes, {bank!r} has {room}")
            if bank_of.setdefault(number, bank) != bank:
                raise InputError(
                    f"{self.path}: pinned: {name!r} shares its memory with a tensor in {bank_of[number]!r}: "
                    f"it cannot be in {bank!r}"
                )
        return bank_of


def read_banks(path: str | Path) -> Memories:
    bank_file = validate(BankFile, read_document(path))
    banks = [Bank(b.name, b.mb_per_s, b.size_bytes) for b in bank_file.banks]  # type: ignore[attr-defined]
    return Memories(banks, bank_file.pinned, str(path))


@dataclass(frozen=True, eq=False)
class PlacedBuffers:
    """fits: the capacity is met, or none was given. summary: all as plain data. words: to be said."""

    fits: bool
    summary: dict[str, Any]
    words: list[str]


def place_buffers(
    file: str,
    *,
    capacity: int | None = None,
    alignment: int | None = None,
    allocator: str = "exact",
    banks: str | None = None,
    time_limit_s: float | None = None,
    output: str | None = None,
    page: str | None = None,
) -> PlacedBuffers:
    """Place the buffers of a file, in one arena or in the banks of a YAML list; write and draw what is asked for."""
    left = left_of(time_limit_s)
    given = read_buffers(file, alignment)
    b = given.buffers
    summary: dict[str, Any] = {"file": file, "buffers": b.count, "allocator": allocator, "alignment": b.alignment}
    summary |= {"capacity": capacity, "load": b.load, **origins_of({"allocators": [allocator]})}
    rounded = f", each rounded up to {b.alignment}" if b.alignment > 1 else ""
    words, names, fits = [f"{b.count} buffers, {b.load:,} B live at once at most{rounded}"], None, True
    how: dict[str, Any] = {"alignment": b.alignment, "time_limit_s": left(), "allocator": allocator}
    if banks is not None:
        memories = read_banks(banks)
        ids = {name: i for i, name in enumerate(given.names)}
        pinned = {**given.pinned, **memories.numbered("buffer", ids, b.size.tolist())}
        how |= {"banks": memories.banks, "traffic": given.traffic, "pinned": pinned}
        placed = allocate(b.lower, b.upper, b.size, capacity=capacity, **how)
        names = placed.names
        words += describe_banks(placed)
        summary |= {**bank_summary(placed), "bank": dict(zip(given.names, names, strict=True))}
    else:
        placed = allocate(b.lower, b.upper, b.size, capacity=capacity, **how)
        fits = capacity is None or placed.height <= capacity
        words.append(describe_placement(placed.height, placed.lower_bound, capacity))
        summary |= {"fits": fits, "height": placed.height, "lower_bound": placed.lower_bound, "proved": placed.proved}
        summary |= {"nodes": placed.nodes, "truncated": placed.truncated}
    if output is not None and fits:
        write_placement(given, placed.offset, output, names)
    if page is not None:
        write_page(arena_map(f"{Path(file).name}: {b.count} buffers", given.names, b, placed, capacity), page)
    summary["offsets"] = dict(zip(given.names, placed.offset.tolist(), strict=True))
    return PlacedBuffers(fits, summary, words)
