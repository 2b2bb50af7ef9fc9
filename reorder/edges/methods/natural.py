"""Orders that follow from the network's shape alone: what people do without thinking of I/Os."""

from __future__ import annotations

import numpy as np

import cython_ext.edges.topological as kernel
from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import (
    by_target,
    demanded_order,
    grouped,
    outputs_early,
    own_is_topological,
    sorted_by,
    two_optimal_order,
)
from reorder.edges.search.budget import Best, Budget, Scorer
from traces.networks.network import Network


@ORDERINGS.register(
    "two-optimal",
    summary="target by target in topological order (Theorem 1's upper bound under MIN)",
    portfolio=0,
    whole_rows=True,
    effort=0.02,
)
def two_optimal(network: Network, task: Task, parameters: None) -> Ordering:
    """Sort by topological rank of target, target, source (proof of Theorem 1, Gleinig et al. 2023)."""
    return Ordering(two_optimal_order(network), "two-optimal")


@ORDERINGS.register(
    "layerwise", summary="layer after layer, target by target, as sparse matrix products do", whole_rows=True
)
def layerwise(network: Network, task: Task, parameters: None) -> Ordering:
    """Sort by depth of target, target, source. The same as two-optimal on layered networks."""
    return Ordering(by_target(network, network.depth), "layerwise")


@ORDERINGS.register("by-source", summary="source by source: each value is used up at once, partial sums are scattered")
def by_source(network: Network, task: Task, parameters: None) -> Ordering:
    """Sort by depth of source, source, target."""
    s, t = network.sources, network.targets
    return Ordering(sorted_by(network.depth[s], s, t), "by-source")


@ORDERINGS.register("random-topological", summary="uniform among the ready connections, again and again (seeded)")
def random_topological(network: Network, task: Task, parameters: None) -> Ordering:
    """Draw each connection uniformly from those whose source is done."""
    start, edges = grouped(network, network.sources)
    rng = np.random.default_rng(task.seed)
    order = kernel.random_topological(network.targets, network.in_degree, start, edges, rng)
    return Ordering(order, "random-topological", seed=task.seed)


@ORDERINGS.register(
    "depth-first",
    summary="demand from the outputs: what an output needs is computed when it is needed",
    portfolio=0.46,
    effort=0.02,
)
def depth_first(network: Network, task: Task, parameters: None) -> Ordering:
    """Compute each output in turn, each of its sources when its connection's turn comes (ascending ids)."""
    return Ordering(demanded_order(network), "depth-first")


@ORDERINGS.register(
    "sethi-ullman",
    summary="demand from the outputs, of each neuron's sources the one first whose subtree needs most values at once",
    portfolio=0.45,
    effort=0.03,
    suits=lambda network: network.n_connections <= 2 * network.n_neurons,
)
def sethi_ullman(network: Network, task: Task, parameters: None) -> Ordering:
    """Compute each output in turn, the heaviest subtree first (Sethi and Ullman 1970): least memory on trees."""
    return Ordering(demanded_order(network, heaviest_first=True), "sethi-ullman")


@ORDERINGS.register(
    "least-live",
    summary="next the neuron that uses up most values for good; reaches the bound on networks grown for the memory",
    portfolio=0.48,
    effort=0.08,
)
def least_live(network: Network, task: Task, parameters: None) -> Ordering:
    """Keep few values live: minimal I/Os on networks grown for the memory, whatever their numbers. O(W log W)."""
    start, edges = grouped(network, network.sources)
    rank = np.empty(network.n_neurons, np.int64)
    rank[kernel.least_live(network.ends, network.in_degree, start, edges)] = np.arange(network.n_neurons)
    best = Best(Scorer(network, task), Budget(task.time_limit_s), task)
    edges = by_target(network, rank)
    for made in (edges, outputs_early(network, edges)):
        best.offer(made)
    return best.ordering("least-live", {}, False)


@ORDERINGS.register(
    "early-outputs",
    summary="the file's order, but what an output needs is added up as soon as nothing else needs it",
    effort=0.02,
)
def early_outputs(network: Network, task: Task, parameters: None) -> Ordering:
    """Move each connection into an output right after its source's last other use (or after the source is done).

    The base is the network's own order, two-optimal where that is not topological. An output costs one place in fast
    memory from its first connection on; each source leaves its place as early as it can. A network grown for memory
    M_g then often runs with minimal I/Os in a memory somewhat smaller than M_g (Gleinig et al. 2023, Figure 3). An
    output that others read stays where it is. O(W).
    """
    base = np.arange(network.n_connections) if own_is_topological(network) else two_optimal_order(network)
    return Ordering(outputs_early(network, base), "early-outputs")
