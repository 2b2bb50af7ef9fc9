"""size-best-fit: all lifetimes known, the largest buffer first, each in the smallest gap that fits."""

from reorder.operators.arena.base import ALLOCATORS, BySize

ALLOCATORS.register("size-best-fit", summary="all lifetimes known, largest first, smallest gap that fits")(
    BySize(rule=1, best=True)
)
