"""size-first-fit: all lifetimes known, the largest buffer first, each in the lowest gap that fits."""

from reorder.operators.arena.base import ALLOCATORS, BySize

ALLOCATORS.register("size-first-fit", summary="all lifetimes known, largest first, lowest gap that fits")(
    BySize(rule=2, best=False)
)
