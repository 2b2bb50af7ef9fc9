"""Allocators that place one buffer after another by a rule, and never move it again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reorder.operators.arena.base import (
    ALLOCATORS,
    Allocator,
    Buffers,
    Int64Array,
    Placement,
    PlacementTask,
    by_size,
    place_in_sequence,
)


class ByRule(Allocator):
    """Each in the smallest (or, not best, lowest) gap between those live then, or behind the highest."""

    def __init__(self, rule: int, sequence: Callable[[Buffers], Int64Array], best: bool) -> None:
        self.rule, self.sequence, self.best = rule, sequence, best

    def place(self, buffers: Buffers, task: PlacementTask, parameters: None) -> Placement:
        return place_in_sequence(buffers, self.sequence(buffers), best=self.best, deadline=task.deadline)


def by_start(buffers: Buffers) -> Int64Array:
    return np.argsort(buffers.lower, kind="stable")


ALLOCATORS.register(
    "linear", summary="place when written, release after the last use, best fit (TensorFlow Lite 2017-2019)"
)(ByRule(0, by_start, best=True))
ALLOCATORS.register("size-best-fit", summary="all lifetimes known, largest first, smallest gap that fits")(
    ByRule(1, by_size, best=True)
)
ALLOCATORS.register("size-first-fit", summary="all lifetimes known, largest first, lowest gap that fits")(
    ByRule(2, by_size, best=False)
)
