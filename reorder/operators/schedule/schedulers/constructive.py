"""Orders made without search: Kahn's algorithm with a queue or a stack, greedy, random."""

from __future__ import annotations

import numpy as np

from reorder.operators.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.operators.schedule.operator_problem import OperatorProblem, Order


def file_order(problem: OperatorProblem) -> Order:
    """Return the order of the file."""
    return np.arange(problem.graph.n_nodes, dtype=np.int32)


def kahn(problem: OperatorProblem, *, stack: bool = False) -> Order:
    """Kahn's algorithm: the ready operators wait in a queue (breadth first) or on a stack (depth first).

    Operators without predecessors enter in file order; the successors of each operator follow, in file order, as their
    last predecessor goes. This is the schedule of TensorFlow Lite and the hard budget of Ahn et al. 2020, Algorithm 2.
    """
    order: Order = problem.compiled.kahn(stack)
    return order


def greedy(problem: OperatorProblem) -> Order:
    """Always run the ready operator that leaves the fewest live bytes (ties: smaller transient, then file order).

    What an operator adds changes only when a buffer that it shares is first written or has one user left, so candidates
    wait in a heap and are weighed again then. O(edges x log).
    """
    order: Order = problem.compiled.greedy()
    return order


def simple_orders(problem: OperatorProblem) -> list[Order]:
    """Return the file's order, both of Kahn's and the greedy one."""
    return [file_order(problem), kahn(problem), kahn(problem, stack=True), greedy(problem)]


def best_simple_order(problem: OperatorProblem) -> Order:
    """Return the one of `simple_orders` of least peak, the first of equals."""
    return min(simple_orders(problem), key=lambda order: int(problem.costs.peak(order)))


@SCHEDULERS.register("file", summary="the order of the file")
def _file(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    return SearchResult.of(problem, file_order(problem))


@SCHEDULERS.register("greedy", summary="always the ready operator that leaves the fewest live bytes")
def _greedy(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    return SearchResult.of(problem, greedy(problem))


@SCHEDULERS.register("kahn-fifo", summary="Kahn's algorithm with a queue, as TensorFlow Lite orders operators")
def _kahn_fifo(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    return SearchResult.of(problem, kahn(problem))


@SCHEDULERS.register("kahn-lifo", summary="Kahn's algorithm with a stack")
def _kahn_lifo(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    return SearchResult.of(problem, kahn(problem, stack=True))
