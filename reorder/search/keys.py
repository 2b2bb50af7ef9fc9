"""Orders and ranks that follow from a network's shape alone: keys to sort by, and what the outputs ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.edges.topological as kernel
from traces.work.network import Network

Int64Array = npt.NDArray[np.int64]


def sorted_by(*keys: npt.NDArray[Any]) -> Int64Array:
    """Return the permutation that sorts by the first key, ties by the second, and so on. Keys are small integers."""
    combined = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        span = int(key.max()) + 1 if len(key) else 1
        if int(combined.max(initial=0)) * span >= 2**62:
            return np.lexsort(keys[::-1])
        combined = combined * span + key
    return np.argsort(combined, kind="stable")


def by_target(network: Network, rank: Int64Array) -> Int64Array:
    """Return the connections grouped by target in the order of `rank` (int64[N], ties by id), sources ascending."""
    return sorted_by(rank[network.targets], network.targets, network.sources)


def topological_rank(network: Network) -> Int64Array:
    """Return int64[N], with ties: depth where each connection goes one deeper, else the ids where they are topological.

    The ids of a network that was grown or built layer by layer say more than depth, which scatters its skips.
    """
    s, t, depth = network.sources, network.targets, network.depth
    if (depth[t] == depth[s] + 1).all() or not (s < t).all():
        return depth
    return np.arange(network.n_neurons)


def grouped(keys: Int64Array, order: Int64Array, n: int) -> tuple[Int64Array, Int64Array]:
    """Return (start int64[n + 1], edges): the connections in `order`, regrouped by the neuron `keys` names."""
    start = np.concatenate(([0], np.cumsum(np.bincount(keys, minlength=n))))
    return start, order[np.argsort(keys[order], kind="stable")]


def two_optimal_order(network: Network) -> Int64Array:
    """Return the order by topological rank of target, target, source (proof of Theorem 1, Gleinig et al. 2023)."""
    return by_target(network, topological_rank(network))


def demanded_order(network: Network) -> Int64Array:
    """Return the order that computes each output in turn, each source when its connection's turn comes."""
    s, t, n = network.sources, network.targets, network.n_neurons
    start, edges = grouped(t, sorted_by(t, s), n)
    ends = np.flatnonzero((network.in_degree > 0) & (network.out_degree == 0) & ~network.is_output)
    roots = np.concatenate((np.sort(network.outputs), ends))
    return kernel.depth_first(s, roots, start, edges)


def own_is_topological(network: Network) -> bool:
    """Whether the network's own order of connections may be processed as it is."""
    position = np.arange(network.n_connections)
    last_in = np.full(network.n_neurons, -1, np.int64)
    np.maximum.at(last_in, network.targets, position)
    return bool((last_in[network.sources] < position).all())
