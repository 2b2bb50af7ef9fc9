"""`allocate`: where buffers with fixed lifetimes go in one arena."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.operators.arena.banks import Bank, place_in_banks
from reorder.operators.arena.base import ALLOCATORS, Buffers, PlacementTask
from traces.base.errors import InputError, shown


def allocate(
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    size: npt.ArrayLike,
    *,
    capacity: int | None = None,
    alignment: int = 1,
    time_limit_s: float | None = None,
    allocator: str = "exact",
    banks: Sequence[Bank] | None = None,
    traffic: npt.ArrayLike | None = None,
    pinned: Mapping[int, str] | None = None,
    **parameters: Any,
) -> Any:
    """Place buffers so that none that are live together share a byte.

    lower, upper: whole numbers [n]; buffer i is live from lower[i] up to, not including, upper[i]. size: bytes [n].
    capacity: any placement no higher will do; None: as low as can be. alignment: every offset is a multiple of it.
    time_limit_s: stop then with the best found; without it the number of steps (`nodes` of allocator 'exact')
    decides and the result is the same on every run. allocator: of `edgewatt list allocators`; parameters: its own.

    Returns a Placement: offset (int64[n] bytes), height, lower_bound (no placement is lower), proved (the two are
    equal). Where a capacity cannot be met, lower_bound says whether that is proved: it is then above the capacity.

    With banks (arena.banks.Bank: name, mb_per_s, size_bytes) each buffer gets a bank and an offset in it so
    that all traffic takes least, and a BankedPlacement is returned. traffic: bytes [n] read and written in each buffer
    (None: twice its size). pinned: buffer -> name of its bank.

    Raises InputError naming the buffer whose lifetime or size cannot be, or which no bank can hold.
    """
    buffers = Buffers.of(lower, upper, size, alignment)
    if banks is None and not (traffic is None and pinned is None):
        raise InputError("traffic and pinned belong to banks: name the banks too")
    if banks is not None and capacity is not None:
        raise InputError("banks and capacity exclude each other: give each bank its size_bytes")
    if capacity is not None and (
        isinstance(capacity, bool) or not isinstance(capacity, int | np.integer) or capacity < 0
    ):
        raise InputError(f"capacity is {shown(capacity)}: a number of bytes of at least 0")
    if time_limit_s is not None and not time_limit_s > 0:
        raise InputError(f"time_limit_s must be above 0, not {time_limit_s}")
    entry = ALLOCATORS[allocator]
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    own = entry.make_parameters(parameters)
    if banks is not None:
        if not entry.item.fills_banks:
            able = ", ".join(repr(name) for name, each in ALLOCATORS.loadable().items() if each.item.fills_banks)
            raise InputError(f"banks are filled by allocator {able}, not {shown(allocator)}")
        return place_in_banks(buffers, banks, traffic=traffic, pinned=pinned, deadline=deadline, **parameters)
    return entry.item.place(buffers, PlacementTask(None if capacity is None else int(capacity), deadline), own)
