"""Orders along a rank of the neurons: outputs are pulled, inputs are pushed, or targets follow their last input.

All need room for the front of the sweep only, not for a layer: what layer fusion in compilers does with tiles and line
buffers, whatever the rank is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.edges.topological as kernel
from cython_ext.edges.geometry import latest_of_sources, used_up
from reorder.edges.search.base_orders import grouped, sorted_by
from reorder.edges.search.budget import Best
from reorder.edges.search.intervals import Items
from traces.base.errors import unknown_name

Int64Array = npt.NDArray[np.int64]


def pull(items: Items, rank: Int64Array) -> Int64Array:
    """Return the order that computes outputs by rank, each with what it needs, sources by rank."""
    network = items.network
    s, t, n = network.sources, network.targets, network.n_neurons
    start, edges = grouped(t, sorted_by(t, rank[s]), n)
    ends = np.flatnonzero((network.in_degree > 0) & ((network.out_degree == 0) | network.is_output))
    return kernel.depth_first(s, ends[np.argsort(rank[ends], kind="stable")], start, edges)


def push(items: Items, rank: Int64Array) -> Int64Array:
    """Return the order that uses up inputs by rank, and whatever finishes at once."""
    network = items.network
    s, t, n = network.sources, network.targets, network.n_neurons
    start, edges = grouped(s, sorted_by(rank[t]), n)
    first = np.flatnonzero((network.in_degree == 0) & (network.out_degree > 0))
    return used_up(t, network.in_degree, first[np.argsort(rank[first], kind="stable")], start, edges)


def follow(items: Items, rank: Int64Array) -> Int64Array:
    """Return the order target by target, each as soon as the last input that it depends on has come by rank.

    Values come and go in the order of the sweep, so round robin and LRU evict nearly what MIN does.
    """
    network = items.network
    key = latest_of_sources(items.start, items.source, items.item, rank[items.sources])
    of_neuron = np.zeros(network.n_neurons, np.int64)
    of_neuron[items.items] = key
    s, t = network.sources, network.targets
    return sorted_by(of_neuron[t], network.depth[t], rank[t], rank[s])


WAYS: dict[str, Callable[[Items, Int64Array], Int64Array]] = {"pull": pull, "push": push, "follow": follow}


def check_way(way: str | None) -> None:
    """Refuse a way that is not known; None stands for all of them."""
    if way is not None and way not in WAYS:
        raise unknown_name("way", way, WAYS)


def rank_by(*keys: npt.NDArray[Any]) -> Int64Array:
    """Return int64[N]: the place of each neuron when sorted by the first key, ties by the second, and so on, by id."""
    rank = np.empty(len(keys[0]), np.int64)
    rank[np.lexsort(keys[::-1])] = np.arange(len(rank))
    return rank


def offer_along(
    items: Items, best: Best, least: float, ranks: Iterable[tuple[dict[str, Any], Int64Array]], way: str | None = None
) -> None:
    """Offer the orders along (what it is, rank int64[N]) by one way or all, until time is up or `least` is met."""
    for named, rank in ranks:
        for name in WAYS if way is None else (way,):
            if best.edges is not None and (best.budget.over or best.value <= least):
                return
            best.work += 1
            best.offer(WAYS[name](items, rank), **named, way=name)
