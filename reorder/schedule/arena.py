"""Placing the buffers of an order in one arena (all offsets are multiples of 64 bytes)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reorder.schedule.problem import Problem
from traces.base.errors import unknown_name
from traces.work.opgraph import OpGraph

ALLOCATORS = {
    "linear": (0, "place when written, release after the last use, best fit (TensorFlow Lite 2017-2019)"),
    "size-best-fit": (1, "all lifetimes known, largest first, smallest gap that fits"),
    "size-first-fit": (2, "all lifetimes known, largest first, lowest gap that fits"),
}


def allocator_rule(allocator: str) -> int:
    """Return the kernel's number of an allocator; InputError with a suggestion for an unknown name."""
    if allocator not in ALLOCATORS:
        raise unknown_name("allocator", allocator, ALLOCATORS)
    return ALLOCATORS[allocator][0]


@dataclass(frozen=True, eq=False)
class Arena:
    """n_bytes: highest end ever. offsets: int64[buffers], in the order of `OpGraph.buffers`."""

    n_bytes: int
    offsets: npt.NDArray[np.int64]


def arena(graph: OpGraph | Problem, order: npt.ArrayLike | None = None, allocator: str = "linear") -> Arena:
    """Lay out the buffers of an order (default: the file's own).

    linear: at each step the new buffers are placed in the smallest gap (raw length; ties: the lowest) in which they fit
    at a multiple of 64, else behind the highest live buffer; then buffers after their last use are released.
    size-best-fit, size-first-fit: by decreasing size (ties: first step, then first writer), each among those already
    placed whose lifetimes overlap its own. Graph inputs are ordinary buffers; outputs live to the end.
    """
    problem = graph if isinstance(graph, Problem) else Problem(graph)
    problem.check_room_for_arena()
    steps = problem.check_order(np.arange(problem.graph.n_nodes) if order is None else order)
    top, offsets = problem.costs.arena(steps, allocator_rule(allocator))
    return Arena(int(top), offsets)
