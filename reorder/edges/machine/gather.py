"""Fewer runs with the same rows moved: connections wait until others of their target can follow them.

A value is in fast memory from a load (or its first access) to the last access before the next load. A connection may
stand at any place at which both of its values are there, its source is complete and its target's sum is not yet used.
No more values are there at a time than before, so MIN loads no more rows (it may write some more). The fewest runs of a
target that meet all these stretches of places are found by always waiting for the one that ends first, as intervals are
stabbed with the fewest points.
"""

from __future__ import annotations

import numpy as np

import cython_ext.iomodel.counts as iomodel
from reorder.edges.machine.shape import Int64Array, MachineShape
from reorder.edges.search.base_orders import sorted_by
from traces.networks.network import Network


def gathered(network: Network, edges: Int64Array, shape: MachineShape, by: str) -> Int64Array:
    """Return an order (int64[W]) in which each target (by 'targets'; or source, by 'sources') has the fewest stretches
    that its residencies in `edges` under the shape's memory, policy and pinning allow. O(W log W)."""
    first, last = windows(network, edges, shape)
    own = (network.targets if by == "targets" else network.sources)[edges]
    at = sorted_by(own, last)
    before, place, points = -1, -1, []
    for neuron, begin, end in zip(own[at].tolist(), first[at].tolist(), last[at].tolist(), strict=True):
        if neuron != before or begin > place:
            before, place = neuron, end
        points.append(place)
    point = np.empty(len(edges), np.int64)
    point[at] = points
    return edges[sorted_by(point, own)]


def windows(network: Network, edges: Int64Array, shape: MachineShape) -> tuple[Int64Array, Int64Array]:
    """Return the first and the last place (int64[W] each) at which each connection of the order may stand."""
    sources, targets = network.sources[edges], network.targets[edges]
    w, n = len(edges), network.n_neurons
    step, neuron, kind = iomodel.moves(
        sources.astype(np.int32), targets.astype(np.int32), n, network.is_output.view(np.uint8), shape.memory,
        iomodel.POLICY_CODES[shape.policy], iomodel.PINNING_CODES[shape.pinning],
    )  # fmt: skip
    loaded = kind == iomodel.LOAD
    places = np.tile(np.arange(w), 2)
    owner = np.concatenate((sources, targets))
    at = sorted_by(owner, places)
    owner, place = owner[at], places[at]
    begins = np.isin(owner * (w + 1) + place, neuron[loaded].astype(np.int64) * (w + 1) + step[loaded])
    begins[1:] |= owner[1:] != owner[:-1]
    begins[:1] = True
    stay = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], 2 * w) - 1
    first, last = np.empty(2 * w, np.int64), np.empty(2 * w, np.int64)
    first[at], last[at] = place[starts][stay], place[ends][stay]
    complete = np.full(n, -1, np.int64)
    np.maximum.at(complete, targets, np.arange(w))
    return (
        np.maximum(np.maximum(first[:w], first[w:]), complete[sources] + 1),
        np.minimum(np.minimum(last[:w], last[w:]), complete[targets]),
    )
