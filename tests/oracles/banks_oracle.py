"""Slow, obvious choice of banks: every assignment, each bank placed by exhaustive search."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tests.oracles.arena_oracle import Buffer, least_height


def least_time(
    buffers: Sequence[Buffer],
    traffic: Sequence[int],
    banks: Sequence[tuple[float, int | None]],  # ns per byte, size
    alignment: int = 1,
    pinned: dict[int, int] | None = None,
) -> float | None:
    """Return the least time over all assignments that fit, None where none does."""
    best = None
    for choice in product(range(len(banks)), repeat=len(buffers)):
        if any(choice[i] != k for i, k in (pinned or {}).items()):
            continue
        cost = sum(banks[k][0] * t for k, t in zip(choice, traffic, strict=True))
        if best is not None and cost >= best:
            continue
        parts = [[b for b, at in zip(buffers, choice, strict=True) if at == k] for k in range(len(banks))]
        if all(
            room is None or least_height(part, alignment) <= room for part, (_, room) in zip(parts, banks, strict=True)
        ):
            best = cost
    return best
