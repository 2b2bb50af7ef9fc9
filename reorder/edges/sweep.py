"""Sweeps: orders that cross layers along the network's own smooth coordinates, for networks with locality.

Along a rank of the neurons, outputs are computed one after another with all that they need (pull), inputs are used up
one after another with all that this finishes (push), or targets are computed as their last input comes by (follow). All
need room for the front of the sweep only, not for a layer: what layer fusion in compilers does with tiles and line
buffers, here without knowing the shape of the layers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import cython_ext.edges.topological as kernel
from cython_ext.edges.geometry import latest_of_sources, used_up
from reorder.base import ORDERINGS, Ordering, Task
from reorder.limits.objective import least_objective
from reorder.search.budget import Best, Budget, Scorer
from reorder.search.intervals import Items
from reorder.search.keys import grouped, sorted_by, two_optimal_order
from reorder.search.spectrum import coordinates
from reorder.search.strips import plan_search
from traces.work.network import Network

Int64Array = npt.NDArray[np.int64]

SLANTS = (0.0, 1 / 16, 1 / 8)  # of the second coordinate against the first, both from 0 to 1 by rank


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


def ranks(items: Items) -> Iterator[tuple[float, Int64Array]]:
    """Yield (slant, int64[N]): ranks of neurons along straight sweeps over the network; none without locality."""
    found = coordinates(items)
    if found is None:
        return
    n = len(found)
    place = np.empty((n, 2))
    for k in range(2):
        place[np.argsort(found[:, k], kind="stable"), k] = np.arange(n) / max(1, n - 1)
    for slant in SLANTS:
        rank = np.empty(n, np.int64)
        rank[np.argsort(place[:, 0] + slant * place[:, 1], kind="stable")] = np.arange(n)
        yield slant, rank


WAYS = {"pull": pull, "push": push, "follow": follow}


@ORDERINGS.register(
    "sweep",
    summary="crosses layers along smooth coordinates of the whole network; for convolutions and other local networks",
    portfolio=1.7,
    start=True,
)
def sweep(network: Network, task: Task, parameters: None) -> Ordering:
    """Return the best of some sweeps under the objective; two-optimal where the network has no locality."""
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    items = Items.of(network, task)
    least = least_objective(network, task)
    for slant, rank in ranks(items):
        for name, make in WAYS.items():
            if best.edges is not None and (budget.over or best.value <= least):
                break
            best.work += 1
            best.offer(make(items, rank), slant=slant, way=name)
    plans = plan_search(items)
    if plans is not None:
        # in a portfolio plans go on with the search, so half of the time is left to the other constructions
        ends = (task.time_limit_s or math.inf) / (1 if task.prepared is None else 2)
        plans.alike(best, lambda tried: budget.spent() >= ends or best.value <= least)
    if best.edges is None:
        best.offer(two_optimal_order(network), slant=0.0, way="none")
    return best.ordering("sweep", best.found, budget.over)
