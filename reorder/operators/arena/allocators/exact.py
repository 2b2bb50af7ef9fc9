"""exact: the least height, proved where the search ends in time (reorder.operators.arena.exact_search)."""

from __future__ import annotations

from reorder.operators.arena.base import ALLOCATORS, Allocator, Buffers, Placement, PlacementTask
from reorder.operators.arena.exact_search import ExactParameters, place


class ExactPlacement(Allocator):
    """Rules first, then a search over canonical placements."""

    fills_banks = True

    def place(self, buffers: Buffers, task: PlacementTask, parameters: ExactParameters) -> Placement:
        return place(buffers, task, parameters)


ALLOCATORS.register(
    "exact", summary="the least height by search over canonical placements (default)", parameters=ExactParameters
)(ExactPlacement())
