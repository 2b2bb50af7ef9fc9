"""The least value of an objective, over all orders."""

from __future__ import annotations

from reorder.base import Task
from reorder.limits.bounds import lower_bound
from reorder.search.objectives import make_objective
from traces.work.network import Network

QUICK = 1 << 24  # operations (reorder.limits.bounds) that a bound worth stopping at may take: some milliseconds


def least_objective(network: Network, task: Task) -> float:
    """Return a bound on the objective of every order: one run per computed neuron, and the I/O bound of each memory."""
    objective = make_objective(task.objective)
    io = sum(
        weight * lower_bound(network, memory, QUICK).total
        for weight, _, _, memory in (term.within(task) for term in objective.io)
    )
    return objective.runs * int((network.in_degree > 0).sum()) + io
