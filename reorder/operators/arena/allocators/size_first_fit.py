"""size-first-fit: all lifetimes known, the largest buffer first, each in the lowest gap that fits."""

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


class SizeFirstFit(Allocator):
    """By decreasing size (ties: start of life, then number)."""

    rule = 2

    def place(self, buffers: Buffers, task: PlacementTask, parameters: None) -> Placement:
        """See Allocator. O(n^2)."""
        return place_in_sequence(buffers, by_size(buffers), best=False, deadline=task.deadline)


ALLOCATORS.register("size-first-fit", summary="all lifetimes known, largest first, lowest gap that fits")(
    SizeFirstFit()
)
