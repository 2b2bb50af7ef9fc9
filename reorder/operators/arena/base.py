"""Buffers with lifetimes, placements of them, and the registry of allocators."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.arena.arena as kernel
from traces.base.checks import as_array
from traces.base.errors import InputError, shown
from traces.base.registry import Registry

Int64Array = npt.NDArray[np.int64]
MAX_BYTES = 2**62


def check_alignment(alignment: int) -> None:
    if isinstance(alignment, bool) or not isinstance(alignment, int | np.integer) or not 0 < alignment <= 2**30:
        raise InputError(f"alignment is {shown(alignment)}: a whole number of bytes from 1 to 2^30")


@dataclass(frozen=True, eq=False)
class Buffers:
    """Buffers to place, int64[n] each: buffer i has size[i] bytes and is live from lower[i] up to, not at, upper[i].

    alignment: every offset is a multiple of it.
    """

    lower: Int64Array
    upper: Int64Array
    size: Int64Array
    alignment: int = 1

    @classmethod
    def of(cls, lower: npt.ArrayLike, upper: npt.ArrayLike, size: npt.ArrayLike, alignment: int = 1) -> Buffers:
        """Check and convert. Raises InputError naming the buffer whose lifetime or size cannot be."""
        arrays = []
        for name, given in (("lower", lower), ("upper", upper), ("size", size)):
            array = as_array(given, name)
            if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
                raise InputError(f"{name}: a list of whole numbers is wanted, not {array.dtype} of shape {array.shape}")
            if array.dtype == np.uint64 and array.size and int(array.max()) > MAX_BYTES:
                raise InputError(f"{name}: {int(array.max())} is more than 2^62")
            arrays.append(np.ascontiguousarray(array, np.int64))
        low, up, sizes = arrays
        if not len(low) == len(up) == len(sizes):
            raise InputError(f"{len(low)} lower, {len(up)} upper, {len(sizes)} sizes: one of each per buffer is wanted")
        check_alignment(alignment)
        for i in np.flatnonzero(up <= low)[:1].tolist():
            raise InputError(f"buffer {i}: live from {low[i]} to {up[i]}: upper must be above lower")
        for i in np.flatnonzero(sizes < 0)[:1].tolist():
            raise InputError(f"buffer {i}: a size of {sizes[i]} bytes: sizes are at least 0")
        if sum(int(s) + int(alignment) for s in sizes.tolist()) > MAX_BYTES:
            raise InputError("the buffers are too large to place in one arena of 2^62 bytes")
        return cls(low, up, sizes, int(alignment))

    @property
    def count(self) -> int:
        return len(self.size)

    @cached_property
    def load(self) -> int:
        """Largest sum of the sizes of buffers that are live together, rounded up to the alignment but for one of them.

        No placement is lower: of the buffers live at one time, all but the highest end where another may begin.
        """
        if not self.count:
            return 0
        rounded = -(-self.size // self.alignment) * self.alignment
        change = np.concatenate((rounded, -rounded))
        at = np.concatenate((self.lower, self.upper))
        by = np.lexsort((change, at))  # at equal times the ends come first
        sums = change[by].cumsum()
        if self.alignment == 1 or not (rounded - self.size).any():
            return int(sums.max())
        best, spare = 0, np.where(self.size > 0, rounded - self.size, 0)
        for k in np.argsort(-sums, kind="stable").tolist():
            if sums[k] <= best:
                break
            t = at[by[k]]
            best = max(best, int(sums[k] - spare[(self.lower <= t) & (t < self.upper)].max(initial=0)))
        return best


@dataclass(frozen=True)
class PlacementTask:
    """How far a placement is sought. capacity: stop at the first placement that is no higher; None: as low as can be.

    deadline: value of time.monotonic() at which to stop; None: the number of steps alone decides.
    """

    capacity: int | None = None
    deadline: float | None = None


@dataclass(frozen=True, eq=False)
class Placement:
    """offset: int64[n] bytes. height: highest end. lower_bound: no placement is lower.

    nodes: placements of one buffer that were tried. truncated: a time limit ended the search.
    """

    offset: Int64Array
    height: int
    lower_bound: int
    nodes: int = 0
    truncated: bool = False

    @property
    def proved(self) -> bool:
        return self.height == self.lower_bound


class Allocator(ABC):
    """A member of ALLOCATORS: an object with `place`.

    rule: the number under which the compiled search over operator orders knows it (cython_ext/schedule/cost.h), None
    where it must be called for each order. fills_banks: whether it places buffers in several memories (banks), too.
    """

    rule: int | None = None
    fills_banks: bool = False

    @abstractmethod
    def place(self, buffers: Buffers, task: PlacementTask, parameters: Any) -> Placement:
        """Place the buffers."""


ALLOCATORS: Registry[Allocator] = Registry(
    "allocator", "edgewatt.allocators", folder="reorder.operators.arena.allocators", instances_of=Allocator
)


def place_in_sequence(
    buffers: Buffers, sequence: Int64Array, *, best: bool, deadline: float | None = None
) -> Placement:
    """Place buffers one after another, each in the smallest (or, not best, lowest) gap that fits. O(n^2).

    deadline: value of time.monotonic(); what is left then goes above all others.
    """

    def late() -> bool:
        return deadline is not None and time.monotonic() > deadline

    order = np.ascontiguousarray(sequence, np.int64)
    height, offset, cut = kernel.fit(buffers.lower, buffers.upper, buffers.size, order, buffers.alignment, best, late)
    return Placement(offset, int(height), buffers.load, truncated=cut)


def by_size(buffers: Buffers) -> Int64Array:
    """int64[n]: the largest first; ties by start, then number."""
    return np.lexsort((buffers.lower, -buffers.size)).astype(np.int64)
