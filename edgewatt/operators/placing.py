"""Buffers of a file placed in an arena or in banks, for `edgewatt arena`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewatt.config.kinds import origins_of
from edgewatt.operators.arena_map import draw_map, of_file, write_page
from edgewatt.operators.bank_file import read_banks
from edgewatt.operators.words import bank_summary, banks_in_words, placement_in_words
from reorder.operators.arena.allocate import allocate
from reorder.operators.arena.files import read_buffers, write_placement


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
    figure: str | None = None,
) -> PlacedBuffers:
    """Place the buffers of a file, in one arena or in the banks of a YAML list; write and draw what is asked for.

    output: written only where the capacity is met.
    """
    given = read_buffers(file, alignment)
    b = given.buffers
    summary: dict[str, Any] = {"file": file, "buffers": b.count, "allocator": allocator, "alignment": b.alignment}
    summary |= {"capacity": capacity, "load": b.load, **origins_of({"allocators": [allocator]})}
    words, names, fits = [f"{b.count} buffers, {b.load:,} B live at once at most"], None, True
    how: dict[str, Any] = {"alignment": b.alignment, "time_limit_s": time_limit_s, "allocator": allocator}
    placed: Any
    if banks is not None:
        memories = read_banks(banks)
        ids = {name: i for i, name in enumerate(given.names)}
        pinned = {**given.pinned, **memories.numbered("buffer", ids, b.size.tolist())}
        placed = allocate(
            b.lower, b.upper, b.size, banks=memories.banks, capacity=capacity, traffic=given.traffic, pinned=pinned,
            **how,
        )  # fmt: skip
        names = placed.names
        words += banks_in_words(placed)
        summary |= {**bank_summary(placed), "bank": dict(zip(given.names, names, strict=True))}
    else:
        placed = allocate(b.lower, b.upper, b.size, capacity=capacity, **how)
        fits = capacity is None or placed.height <= capacity
        words.append(placement_in_words(placed.height, placed.lower_bound, capacity))
        summary |= {"fits": fits, "height": placed.height, "lower_bound": placed.lower_bound, "proved": placed.proved}
        summary |= {"nodes": placed.nodes, "truncated": placed.truncated}
    if output is not None and fits:
        write_placement(given, placed.offset, output, names)
    if page is not None or figure is not None:
        shown = of_file(given, placed, f"{Path(file).name}: {b.count} buffers", capacity)
        if page is not None:
            write_page(shown, page)
        if figure is not None:
            draw_map(shown, figure)
    summary["offsets"] = dict(zip(given.names, placed.offset.tolist(), strict=True))
    return PlacedBuffers(fits, summary, words)
