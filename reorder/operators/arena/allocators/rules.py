"""Allocators that place one buffer after another by a rule, and never move it again."""

from __future__ import annotations

import numpy as np

from reorder.operators.arena.base import (
    ALLOCATORS,
    Allocator,
    Buffers,
    Placement,
    PlacementTask,
    by_size,
    place_in_sequence,
)


class Linear(Allocator):
    """By start of life (ties: number), each in the smallest gap between those live then, or behind the highest."""

    rule = 0

    def place(self, buffers: Buffers, task: PlacementTask, parameters: None) -> Placement:
        return place_in_sequence(buffers, np.argsort(buffers.lower, kind="stable"), best=True, deadline=task.deadline)


class BySize(Allocator):
    """By decreasing size (ties: start of life, then number), each in the smallest (or, not best, lowest) gap."""

    def __init__(self, rule: int, best: bool) -> None:
        self.rule, self.best = rule, best

    def place(self, buffers: Buffers, task: PlacementTask, parameters: None) -> Placement:
        return place_in_sequence(buffers, by_size(buffers), best=self.best, deadline=task.deadline)


ALLOCATORS.register(
    "linear", summary="place when written, release after the last use, best fit (TensorFlow Lite 2017-2019)"
)(Linear())
ALLOCATORS.register("size-best-fit", summary="all lifetimes known, largest first, smallest gap that fits")(
    BySize(rule=1, best=True)
)
ALLOCATORS.register("size-first-fit", summary="all lifetimes known, largest first, lowest gap that fits")(
    BySize(rule=2, best=False)
)
