"""Placing the buffers of an operator order in one arena."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from reorder.operators.arena.base import ALLOCATORS, Buffers, Placement, PlacementTask, check_alignment
from reorder.operators.schedule.operator_problem import OperatorProblem, Order
from traces.operators.opgraph import OpGraph

ALIGNMENT = 64


def lifetimes(
    problem: OperatorProblem, order: Order, alignment: int = ALIGNMENT
) -> tuple[Buffers, npt.NDArray[np.int64]]:
    """Return the buffers of an order in the order in which they are first written, and their numbers in the graph.

    A buffer is live from the step of its first writer to the step of its last user, outputs to the end.
    """
    n_buffers = len(problem.graph.buffers)
    lower, upper = np.full(n_buffers, -1, np.int64), np.zeros(n_buffers, np.int64)
    numbers: list[int] = []
    rows = problem.buffer_rows
    for step, v in enumerate(order.tolist()):
        for b in rows["writes"][v]:
            if lower[b] < 0:
                lower[b] = step
                numbers.append(b)
        for b in rows["touches"][v]:
            upper[b] = step + 1
    upper[problem.retained != 0] = len(order)
    by = np.array(numbers, np.int64)
    return Buffers(lower[by], upper[by], problem.graph.buffer_bytes[by].astype(np.int64), alignment), by


def traffic(problem: OperatorProblem) -> npt.NDArray[np.int64]:
    """int64[buffers]: bytes that operators move in each: its size for every operator that writes it or reads it.

    An operator that adds to what others wrote before reads the buffer too.
    """
    touched = [b for row in problem.buffer_rows["touches"] for b in row]
    moved = np.bincount(touched, minlength=len(problem.graph.buffers))
    writers = np.array([len(problem.graph.writers[name]) for name in problem.graph.buffers], np.int64)
    return (moved + writers - 1) * problem.graph.buffer_bytes


def own_alignment(graph: OpGraph) -> int:
    """Return the largest power of two, at most ALIGNMENT, of which every buffer's size is a multiple.

    At it no byte is lost to rounding, so the peak itself is a height that an arena may have.
    """
    return math.gcd(ALIGNMENT, *graph.buffer_bytes.tolist())


def arena(
    graph: OpGraph | OperatorProblem,
    order: npt.ArrayLike | None = None,
    allocator: str = "linear",
    *,
    alignment: int = ALIGNMENT,
    task: PlacementTask | None = None,
) -> Placement:
    """Lay out the buffers of an order (default: the file's own) by one of reorder.operators.arena.base.ALLOCATORS.

    Graph inputs are ordinary buffers; outputs live to the end. Offsets are in the order of `OpGraph.buffers`.
    """
    check_alignment(alignment)
    problem = graph if isinstance(graph, OperatorProblem) else OperatorProblem(graph)
    problem.check_room_for_arena()
    buffers, numbers = lifetimes(problem, problem.check_order(order), alignment)
    entry = ALLOCATORS[allocator]
    placed = entry.item.place(buffers, task or PlacementTask(), entry.make_parameters({}))
    return replace(placed, offset=placed.offset[np.argsort(numbers)])
