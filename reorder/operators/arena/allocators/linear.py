"""linear: buffers are placed as they come alive, in the smallest gap (TensorFlow Lite 2017-2019)."""

from __future__ import annotations

import numpy as np

from reorder.operators.arena.base import ALLOCATORS, Allocator, Buffers, Placement, PlacementTask, place_in_sequence


class Linear(Allocator):
    """By start of life (ties: number), each in the smallest gap between those live then, or behind the highest."""

    rule = 0

    def place(self, buffers: Buffers, task: PlacementTask, parameters: None) -> Placement:
        """See Allocator. O(n^2)."""
        return place_in_sequence(buffers, np.argsort(buffers.lower, kind="stable"), best=True, deadline=task.deadline)


ALLOCATORS.register(
    "linear", summary="place when written, release after the last use, best fit (TensorFlow Lite 2017-2019)"
)(Linear())
