"""Slow, obvious arena placement: the least height over all ways to stack the buffers one after another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from reorder.operators.arena.base import Buffers

Buffer = tuple[int, int, int]  # lower, upper (half-open), size


def overlap(a: Buffer, b: Buffer) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def height_of(buffers: Buffers, offset: np.ndarray) -> int:
    """Return the height of a placement: offsets are aligned, and no two buffers that are live together share a byte."""
    assert offset.shape == (buffers.count,) and (offset >= 0).all() and not (offset % buffers.alignment).any()
    rows = zip(*(a.tolist() for a in (buffers.lower, buffers.upper, buffers.size, offset)), strict=True)
    live: list[tuple[int, ...]] = []
    for new in sorted(row for row in rows if row[2]):
        live = [row for row in live if row[1] > new[0]]
        for row in live:
            assert row[3] + row[2] <= new[3] or new[3] + new[2] <= row[3], (row, new)
        live.append(new)
    return int((offset + buffers.size).max(initial=0))


def least_height(buffers: Sequence[Buffer], alignment: int = 1) -> int:
    """Every placement can be pushed down until each buffer rests on the ground or on another one that it overlaps;
    placed by ascending offset, each lies at the highest (aligned) end of those before it that it overlaps."""
    best = sum(-(-size // alignment) * alignment for _, _, size in buffers)
    for order in permutations([b for b in buffers if b[2]]):
        ends: list[tuple[Buffer, int]] = []
        height = 0
        for b in order:
            at = max((end for other, end in ends if overlap(b, other)), default=0)
            at = -(-at // alignment) * alignment
            ends.append((b, at + b[2]))
            height = max(height, at + b[2])
            if height >= best:
                break
        else:
            best = height
    return best
