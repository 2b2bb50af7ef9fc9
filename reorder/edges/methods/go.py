"""GO, graph ordering of neurons (Wei et al. 2016; Kamatar 2023, Algorithm 2), made an order of connections.

GO places next the neuron with the most connections to, and common sources with, the last `window` neurons placed. It
knows no direction of time, so connections follow it only within a depth: target by target in GO's order, sources too.
"""

from __future__ import annotations

import numpy as np

from cython_ext.edges.greedy import go_ranks
from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.methods.ego import WindowParameters
from reorder.edges.search.base_orders import grouped, sorted_by
from reorder.edges.search.budget import Budget
from traces.networks.network import Network


@ORDERINGS.register(
    "go",
    summary="neurons with common sources near each other, layer after layer (Wei et al. 2016)",
    parameters=WindowParameters,
    effort=1.2,
)
def go(network: Network, task: Task, parameters: WindowParameters) -> Ordering:
    """Sort by depth of target, GO's rank of target, GO's rank of source. When time is up, the rest as numbered."""
    n, s, t = network.n_neurons, network.sources, network.targets
    window = min(task.memory if parameters.window is None else parameters.window, n)
    own = np.arange(network.n_connections)
    budget = Budget(task.time_limit_s)

    def go_on(placed: int) -> bool:
        if task.progress is not None:
            task.progress(placed, n, "")
        return not budget.over

    placed = go_ranks(s, t, *grouped(s, own, n), *grouped(t, own, n), window, go_on)
    rank = np.full(n, -1, np.int64)
    rank[placed] = np.arange(len(placed))
    rank[rank < 0] = np.arange(len(placed), n)
    edges = sorted_by(network.depth[t], rank[t], rank[s])
    return Ordering(edges, "go", {"window": window}, truncated=len(placed) < n)
