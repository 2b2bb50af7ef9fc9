"""Orders and ranks that follow from a network's shape alone: keys to sort by, and what the outputs ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.edges.topological as kernel
from cython_ext.edges.intervals import grouped as kernel_grouped
from cython_ext.network.graph import is_valid
from traces.networks.network import Int64Array, Network


def sorted_by(*keys: npt.NDArray[Any]) -> Int64Array:
    """Return the permutation that sorts by the first key, ties by the second, and so on. Keys are small integers."""
    combined = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        span = int(key.max()) + 1 if len(key) else 1
        if int(combined.max(initial=0)) * span >= 2**62:
            return np.lexsort(keys[::-1])
        combined = combined * span + key
    if (combined[:-1] <= combined[1:]).all():
        return np.arange(len(combined))
    if int(combined.max()) < 1 << 16:  # NumPy sorts so few values by counting
        return np.argsort(combined.astype(np.uint16), kind="stable")
    index = len(combined).bit_length()
    if int(combined.max()) >= 1 << (62 - index):
        return np.argsort(combined, kind="stable")
    # NumPy sorts integers with vectors, ten times as fast as it sorts by them
    combined = combined << index | np.arange(len(combined))
    combined.sort()
    return combined & ((1 << index) - 1)


def by_target(network: Network, rank: Int64Array) -> Int64Array:
    """Return the connections grouped by target in the order of `rank` (int64[N], ties by id), sources ascending."""
    dense = np.empty(len(rank), np.int32)
    dense[np.argsort(rank, kind="stable")] = np.arange(len(rank), dtype=np.int32)
    return kernel.by_target(network.ends, dense)


def rank_in_depth(network: Network) -> tuple[Int64Array, Int64Array]:
    """Return (int64[N], int64[depths]): the place of each neuron among those of its depth, by id; their number."""
    width = np.bincount(network.depth)
    rank = np.empty(network.n_neurons, np.int64)
    rank[np.argsort(network.depth, kind="stable")] = np.arange(len(rank)) - np.repeat(np.cumsum(width) - width, width)
    return rank, width


def grouped(network: Network, ends: Int64Array, order: Int64Array | None = None) -> tuple[Int64Array, Int64Array]:
    """Return (start int64[N + 1], edges int64[W]): the connections by one end, in `order` (None: as they are)."""
    start = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=network.n_neurons))))
    first = None if order is None else order.astype(np.int32)
    return start, kernel_grouped(ends.astype(np.int32), network.n_neurons, first).astype(np.int64)


def two_optimal_order(network: Network) -> Int64Array:
    """Return the order by topological rank of target, target, source (proof of Theorem 1, Gleinig et al. 2023).

    The rank is the depth where each connection goes one deeper, else the ids where they are topological: those of a
    network that was grown or built layer by layer say more than depth, which scatters its skips.
    """
    one_deeper, higher = kernel.goes_down(network.ends, network.depth)
    return by_target(network, network.depth if one_deeper or not higher else np.arange(network.n_neurons))


def demanded_order(network: Network, heaviest_first: bool = False) -> Int64Array:
    """Return the order that computes each output in turn, each source when its connection's turn comes.

    Sources come by number, or `heaviest_first`: by the values that computing them holds at once.
    """
    edges = by_target(network, np.arange(network.n_neurons))
    start = np.concatenate(([0], np.cumsum(network.in_degree)))
    if heaviest_first:
        needs = kernel.registers(network.sources, np.argsort(network.depth, kind="stable"), start, edges)
        lighter = int(needs.max(initial=0)) - needs
        edges = edges[sorted_by(network.targets[edges], lighter[network.sources[edges]].astype(np.int64))]
    ends = np.flatnonzero((network.in_degree > 0) & (network.out_degree == 0) & ~network.is_output)
    roots = np.concatenate((np.sort(network.outputs), ends))
    return kernel.depth_first(network.sources, roots, start, edges)


def outputs_early(network: Network, edges: Int64Array) -> Int64Array:
    """Return a topological order (int64[W]) with each connection into an output as soon as its source is free. O(W).

    Outputs that others read stay where they are.
    """
    moved = network.is_output & (network.out_degree == 0)
    return kernel.early_outputs(network.ends, edges, moved.view(np.uint8))


def own_is_topological(network: Network) -> bool:
    """Whether the network's own order of connections may be processed as it is."""
    return is_valid(network.ends, None, network.n_neurons)
