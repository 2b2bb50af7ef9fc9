"""size-best-fit: all lifetimes known, the largest buffer first, each in the smallest gap that fits."""

from __future__ import annotations

from reorder.operators.arena.base import (
    ALLOCATORS,
    Allocator,
    Buffers,
    Placement,
    PlacementTask,
    by_size,
    place_in_sequence,
)


class SizeBestFit(Allocator):
    """By decreasing size (ties: start of life, then number)."""

    rule = 1

    def place(self, buffers: Buffers, task: PlacementTask, parameters: None) -> Placement:
        """See Allocator. O(n^2)."""
        return place_in_sequence(buffers, by_size(buffers), best=True, deadline=task.deadline)


ALLOCATORS.register("size-best-fit", summary="all lifetimes known, largest first, smallest gap that fits")(
    SizeBestFit()
)
