"""The same moves with fewer accesses: fewer runs, stretches that meet at a shared neuron, sources brought together."""

from __future__ import annotations

import numpy as np

import cython_ext.iomodel.counts as iomodel
from reorder.edges.machine.surrogate import Int64Array, MachineShape
from reorder.edges.search.base_orders import sorted_by
from traces.networks.network import Network


def gathered(network: Network, edges: Int64Array, shape: MachineShape, by: str) -> Int64Array:
    """Return an order (int64[W]) in which each target (by 'targets'; or source, by 'sources') has the fewest stretches
    that its residencies in `edges` under the shape's memory, policy and pinning allow. O(W log W).

    A connection may stand wherever both of its values are resident, its source is complete and its target's sum is not
    yet used. No more values are resident at a time than before, so MIN loads no more rows (it may write some more). The
    fewest runs that meet all these intervals of positions: always wait for the one that ends first.
    """
    first, last = windows(network, edges, shape)
    own = (network.targets if by == "targets" else network.sources)[edges]
    at = sorted_by(own, last)
    before, position, points = -1, -1, []
    for neuron, begin, end in zip(own[at].tolist(), first[at].tolist(), last[at].tolist(), strict=True):
        if neuron != before or begin > position:
            before, position = neuron, end
        points.append(position)
    point = np.empty(len(edges), np.int64)
    point[at] = points
    return edges[sorted_by(point, own)]


def windows(network: Network, edges: Int64Array, shape: MachineShape) -> tuple[Int64Array, Int64Array]:
    """Return the first and the last position (int64[W] each) at which each connection of the order may stand."""
    sources, targets = network.sources[edges], network.targets[edges]
    w, n = len(edges), network.n_neurons
    step, neuron, kind = iomodel.moves(
        sources.astype(np.int32), targets.astype(np.int32), n, network.is_output.view(np.uint8), shape.memory,
        iomodel.POLICY_CODES[shape.policy], iomodel.PINNING_CODES[shape.pinning],
    )  # fmt: skip
    loaded = kind == iomodel.LOAD
    positions = np.tile(np.arange(w), 2)
    owner = np.concatenate((sources, targets))
    at = sorted_by(owner, positions)
    owner, position = owner[at], positions[at]
    begins = np.isin(owner * (w + 1) + position, neuron[loaded].astype(np.int64) * (w + 1) + step[loaded])
    begins[1:] |= owner[1:] != owner[:-1]
    begins[:1] = True
    stay = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], 2 * w) - 1
    first, last = np.empty(2 * w, np.int64), np.empty(2 * w, np.int64)
    first[at], last[at] = position[starts][stay], position[ends][stay]
    complete = np.full(n, -1, np.int64)
    np.maximum.at(complete, targets, np.arange(w))
    return (
        np.maximum(np.maximum(first[:w], first[w:]), complete[sources] + 1),
        np.minimum(np.minimum(last[:w], last[w:]), complete[targets]),
    )


def linked(network: Network, edges: Int64Array, by: str) -> Int64Array:
    """Return an order (int64[W]) whose stretches of one target (by 'targets'; or 'sources') are permuted inside, so
    that half at least of those that can begin with the source (target) with which the one before ends. It stays
    topological. O(W log W).

    A step reads its source's row unless the step before used it, and its target's row at the start of a run.
    """
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


def source_first_tiles(network: Network, edges: Int64Array, targets: int) -> Int64Array:
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
