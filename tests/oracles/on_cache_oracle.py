"""Counts of an order on a line cache, one access after another, and the memory rows opened: the obvious way."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence


def on_cache(
    sources: Sequence[int],
    targets: Sequence[int],
    order: Sequence[int],
    elements: Sequence[tuple[int, int]],
    rows: tuple[int, int, int],
    cache: tuple[int, int, int],
    memory: tuple[int, int],
    access_bytes: int,
) -> list[int]:
    """Return fills, write-backs, line loads, line stores and rows opened under LRU; arguments as of OnCache."""
    line_bytes, n_sets, ways = cache
    sets: list[OrderedDict[int, bool]] = [OrderedDict() for _ in range(n_sets)]
    opened: dict[int, int] = {}
    counts = [0, 0, 0, 0, 0]

    def to_memory(line: int) -> None:
        row = line * line_bytes // memory[0]
        if opened.get(row % memory[1]) != row:
            opened[row % memory[1]] = row
            counts[4] += 1

    def access(address: int, size: int, store: bool) -> None:
        for start in range(address, address + size, access_bytes):
            end = min(start + access_bytes, address + size)
            for line in range(start // line_bytes, (end - 1) // line_bytes + 1):
                counts[3 if store else 2] += 1
                lines = sets[line % n_sets]
                if line not in lines:
                    counts[0] += 1
                    if len(lines) == ways:
                        old, dirty = lines.popitem(last=False)
                        if dirty:
                            counts[1] += 1
                            to_memory(old)
                    to_memory(line)
                    lines[line] = False
                lines[line] |= store
                lines.move_to_end(line)

    first, pitch, row_bytes = rows
    held_source = held_target = -1
    for k, edge in enumerate(order):
        s, t = sources[edge], targets[edge]
        for address, bits in elements:
            access(address + k * bits // 8, (bits + 7) // 8, False)
        if s != held_source:
            access(first + s * pitch, row_bytes, False)
        if t != held_target:
            access(first + t * pitch, row_bytes, False)
        ends = k + 1 == len(order) or targets[order[k + 1]] != t
        if ends:
            access(first + t * pitch, row_bytes, True)
        held_source, held_target = s, -1 if ends else t
    for lines in sets:  # from the latest to the oldest, set by set
        for line, dirty in reversed(lines.items()):
            if dirty:
                counts[1] += 1
                to_memory(line)
    return counts
