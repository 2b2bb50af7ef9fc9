"""The same moves with fewer accesses: stretches that meet at a shared neuron, and sources that are brought together.

A step reads its source's row unless the step before used it, and its target's row at the start of a run. Inside a
stretch of one target (or of one source) the order is free, so neighbours can end and begin with the neuron that both
have. And where rows share a burst of the memory, those of a tile's sources are worth fetching one after another.
"""

from __future__ import annotations

import numpy as np

from reorder.edges.machine.shape import Int64Array
from reorder.edges.search.base_orders import sorted_by
from traces.networks.network import Network


def linked(network: Network, edges: Int64Array, by: str) -> Int64Array:
    """Return an order (int64[W]) whose stretches of one target (by 'targets'; or 'sources') are permuted inside, so
    that half at least of those that can begin with the source (target) with which the one before ends. It stays
    topological. O(W log W)."""
    own, other = network.targets[edges], network.sources[edges]
    if by == "sources":
        own, other = other, own
    stretch = np.cumsum(np.concatenate(([0], own[1:] != own[:-1])))
    key = stretch * network.n_neurons + other
    at = np.argsort(key, kind="stable")
    ahead = np.minimum(np.searchsorted(key[at], key + network.n_neurons), len(edges) - 1)
    last = np.flatnonzero(key[at[ahead]] == key + network.n_neurons)  # those whose neuron the next stretch has too
    if not len(last):
        return edges
    # One link for each pair of neighbours: its lowest neuron behind even stretches, its highest behind odd ones, so
    # that a stretch seldom begins and ends with the same connection.
    odd = stretch[last] % 2
    last = last[np.lexsort((np.where(odd, -other[last], other[last]), stretch[last]))]
    last = last[np.concatenate(([True], stretch[last][1:] != stretch[last][:-1]))]
    first = at[ahead[last]]
    alone = np.bincount(stretch)[stretch[last]] == 1
    for parity in (1, 0):  # an odd stretch gives its link up, an even one if the odd one before keeps its own
        clash = ~alone & np.isin(last, first) & (stretch[last] % 2 == parity)
        last, first, alone = last[~clash], first[~clash], alone[~clash]
    rank = np.ones(len(edges), np.int64)
    rank[first], rank[last] = 0, 2
    return edges[sorted_by(stretch, rank)]


def warm_tiles(network: Network, edges: Int64Array, targets: int) -> Int64Array:
    """Return an order by tiles of sources, target by target (int64[W]), in which each tile begins with one connection
    of each source that its first `targets` targets have, by source: what shares a burst is fetched together."""
    s, t = network.sources[edges], network.targets[edges]
    depth = network.depth[t]
    new = np.concatenate(([True], (np.diff(t) < 0) | (np.diff(depth) != 0)))
    tile = np.cumsum(new) - 1
    run = np.cumsum(np.concatenate(([True], np.diff(t) != 0)))
    early = np.flatnonzero(run - run[new][tile] < targets)
    _, chosen = np.unique(tile[early] * network.n_neurons + s[early], return_index=True)
    head = np.zeros(len(edges), bool)
    head[early[chosen]] = True
    return edges[sorted_by(tile, ~head, np.where(head, s, 0))]
