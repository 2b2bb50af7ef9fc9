"""The least value of an objective, over all orders."""

from __future__ import annotations

from reorder.base import Task
from reorder.edges.bounds.bounds import lower_bound
from reorder.edges.search.objectives import make_objective
from traces.networks.network import Network

# Operations (edges.bounds.bounds) that a bound worth stopping at may take: at most, and per second of a time limit,
# some 2 % of it where BLAS threads wait for each other on busy cores.
QUICK, PER_SECOND = 1 << 24, 1 << 20


def least_objective(network: Network, task: Task) -> float:
    """Return a bound on the objective of every order: one run per computed neuron, and the I/O bound of each memory.

    Better I/O bounds than Theorem 1's only where they take little of the task's time.
    """
    objective = make_objective(task.objective)
    work = QUICK if task.time_limit_s is None else min(QUICK, int(PER_SECOND * task.time_limit_s))
    io = sum(
        weight * lower_bound(network, memory, work).total
        for weight, _, _, memory in (term.within(task) for term in objective.io)
    )
    return objective.runs * int((network.in_degree > 0).sum()) + io
