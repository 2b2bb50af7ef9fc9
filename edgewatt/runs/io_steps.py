"""The steps of the I/O model: counts of an order, the bounds of its network, and how far the counts are from them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from edgewatt.runs.model import Before, Point, PointFastMemory
from traces.base.progress import Progress

_BOUND_WORK = 1 << 30  # operations that a bound beyond Theorem 1 may take: about a second


def count_io(point: Point, before: Before, progress: Progress | None) -> dict[str, Any]:
    """Return the I/Os of the order, Theorem 1's bounds, and the I/Os at the other memory sizes of the curve."""
    from hwmodel.fastmemory.iomodel import io_bounds, io_curve

    network, memory = before["network"], _memory(point)
    sizes = sorted({memory.size, *memory.curve})
    curve = io_curve(network, before["tuple_order"]["edges"], sizes, memory.policy, memory.pinning)
    counted = {counts.memory: counts for counts in curve}
    io = counted[memory.size]
    return {
        "io": {**asdict(io), "reads": io.reads, "writes": io.writes, "total": io.total},
        "bounds": asdict(io_bounds(network)),
        "io_curve": [[size, counted[size].reads, counted[size].writes] for size in sizes] if memory.curve else [],
    }


def best_bound(point: Point, before: Before, progress: Progress | None) -> dict[str, Any]:
    """Return the best lower bound on the I/Os of the network, and the argument it comes from."""
    from reorder.edges.bounds.bounds import lower_bound

    bound = lower_bound(before["network"], _memory(point).size, _BOUND_WORK)
    return {"best_bound": {"total": bound.total, "argument": bound.argument}}


def two_optimal_io(point: Point, before: Before, progress: Progress | None) -> dict[str, Any]:
    """Return the I/Os of the 2-optimal order, which gaps are measured from."""
    from hwmodel.fastmemory import iomodel
    from reorder.order import order

    memory = _memory(point)
    given: dict[str, Any] = {"memory": memory.size, "policy": memory.policy, "pinning": memory.pinning}
    network = before["network"]
    return {"total": iomodel.count_io(network, order(network, "two-optimal", **given), **given).total}


def gaps(point: Point, before: Before, progress: Progress | None) -> dict[str, Any]:
    """Return which part of the way from the 2-optimal order to the bounds is left (1: none gained, 0: at the bound)."""
    from hwmodel.fastmemory.iomodel import gap

    counted, bound, base = before["io"], before["best_bound"]["best_bound"], before["two_optimal"]["total"]
    total = counted["io"]["total"]
    return {
        "gap": gap(total, base, counted["bounds"]["lower_total"]),
        "gap_to_best_bound": gap(total, base, bound["total"]),
    }


def _memory(point: Point) -> PointFastMemory:
    assert point.order is not None
    return point.order.fast_memory
