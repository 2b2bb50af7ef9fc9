"""Orders made without search: the file's, Kahn's algorithm with a queue or a stack, greedy."""

from __future__ import annotations

import numpy as np

from reorder.operators.schedule.operator_problem import OperatorProblem, Order


def file_order(problem: OperatorProblem) -> Order:
    return np.arange(problem.graph.n_nodes, dtype=np.int32)


def kahn(problem: OperatorProblem, *, stack: bool = False) -> Order:
    """Kahn's algorithm: the ready operators wait in a queue (breadth first) or on a stack (depth first).

    The schedule of TensorFlow Lite and the hard budget of Ahn et al. 2020, Algorithm 2; ties in file order.
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
    return min(simple_orders(problem), key=lambda order: int(problem.costs.peak(order)))
