"""Connections into an output are used as soon as their source is free of everything else."""

from __future__ import annotations

import numpy as np

import cython_ext.edges.topological as kernel
from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import own_is_topological, two_optimal_order
from traces.networks.network import Network


def _has_hidden(network: Network) -> bool:
    """Whether an output has a source that something else made: from inputs alone there is nothing to be early for."""
    return bool((network.in_degree[network.sources[network.is_output[network.targets]]] > 0).any())


@ORDERINGS.register(
    "early-outputs",
    summary="the file's order, but what an output needs is added up as soon as nothing else needs it",
    portfolio=1.6,
    suits=_has_hidden,
)
def early_outputs(network: Network, task: Task, parameters: None) -> Ordering:
    """Move each connection into an output right after its source's last other use (or after the source is done).

    The base is the network's own order, two-optimal where that is not topological. An output costs one place in fast
    memory from its first connection on; each source leaves its place as early as it can. A network grown for memory
    M_g then often runs with minimal I/Os in a memory somewhat smaller than M_g (Gleinig et al. 2023, Figure 3). An
    output that others read stays where it is. O(W).
    """
    base = np.arange(network.n_connections) if own_is_topological(network) else two_optimal_order(network)
    moved = network.is_output & (network.out_degree == 0)
    return Ordering(kernel.early_outputs(network.ends, base, moved.view(np.uint8)), "early-outputs")
