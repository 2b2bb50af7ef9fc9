"""Orders that follow from the network's shape alone: what people do without thinking of I/Os."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.edges.topological as kernel
from reorder.base import METHODS, Ordering, Task
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


@METHODS.register("two-optimal", summary="target by target in topological order (Theorem 1's upper bound under MIN)")
def two_optimal(network: Network, task: Task, parameters: None) -> Ordering:
    """Sort by topological rank of target, target, source (proof of Theorem 1, Gleinig et al. 2023)."""
    return Ordering(by_target(network, topological_rank(network)), "two-optimal")


@METHODS.register("layerwise", summary="layer after layer, target by target, as sparse matrix products do")
def layerwise(network: Network, task: Task, parameters: None) -> Ordering:
    """Sort by depth of target, target, source. The same as two-optimal on layered networks."""
    return Ordering(by_target(network, network.depth), "layerwise")


@METHODS.register("by-source", summary="source by source: each value is used up at once, partial sums are scattered")
def by_source(network: Network, task: Task, parameters: None) -> Ordering:
    """Sort by depth of source, source, target."""
    s, t = network.sources, network.targets
    return Ordering(sorted_by(network.depth[s], s, t), "by-source")


@METHODS.register("random-topological", summary="uniform among the ready connections, again and again (seeded)")
def random_topological(network: Network, task: Task, parameters: None) -> Ordering:
    """Draw each connection uniformly from those whose source is done."""
    start, edges = grouped(network.sources, np.arange(network.n_connections), network.n_neurons)
    rng = np.random.default_rng(task.seed)
    order = kernel.random_topological(network.targets, network.in_degree, start, edges, rng)
    return Ordering(order, "random-topological", seed=task.seed)


@METHODS.register("depth-first", summary="demand from the outputs: what an output needs is computed when it is needed")
def depth_first(network: Network, task: Task, parameters: None) -> Ordering:
    """Compute each output in turn, each of its sources when its connection's turn comes (ascending ids)."""
    s, t, n = network.sources, network.targets, network.n_neurons
    start, edges = grouped(t, sorted_by(t, s), n)
    ends = np.flatnonzero((network.in_degree > 0) & (network.out_degree == 0) & ~network.is_output)
    roots = np.concatenate((np.sort(network.outputs), ends))
    return Ordering(kernel.depth_first(s, roots, start, edges), "depth-first")
