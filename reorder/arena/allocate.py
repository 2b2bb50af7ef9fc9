"""`allocate`: where buffers with fixed lifetimes go in one arena."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.arena.base import ALLOCATORS, Buffers, Placement, PlacementTask
from traces.base.errors import InputError


def allocate(
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    size: npt.ArrayLike,
    *,
    capacity: int | None = None,
    alignment: int = 1,
    time_limit_s: float | None = None,
    allocator: str = "exact",
    **parameters: Any,
) -> Placement:
    """Place buffers so that none that are live together share a byte.

    lower, upper: whole numbers [n]; buffer i is live from lower[i] up to, not including, upper[i]. size: bytes [n].
    capacity: any placement no higher will do; None: as low as can be. alignment: every offset is a multiple of it.
    time_limit_s: stop then with the best found; without it work units alone decide (`nodes` of allocator 'exact') and
    the result is the same on every run. allocator: of `edgewatt list allocators`; parameters: its own.

    Returns a Placement: offset (int64[n] bytes), height, lower_bound (no placement is lower), proved (the two are
    equal). Where a capacity cannot be met, lower_bound says whether that is proved: it is then above the capacity.
    Raises InputError naming the buffer whose lifetime or size cannot be.
    """
    buffers = Buffers.of(lower, upper, size, alignment)
    if capacity is not None and (
        isinstance(capacity, bool) or not isinstance(capacity, int | np.integer) or capacity < 0
    ):
        raise InputError(f"capacity is {capacity!r}: a number of bytes of at least 0")
    if time_limit_s is not None and not time_limit_s > 0:
        raise InputError(f"time_limit_s must be above 0, not {time_limit_s}")
    entry = ALLOCATORS[allocator]
    own = entry.make_parameters(parameters)
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    return entry.item.place(buffers, PlacementTask(None if capacity is None else int(capacity), deadline), own)
