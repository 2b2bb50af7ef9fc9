"""Orders along a rank of all neurons: smooth coordinates, and numberings of the graph.

Along a rank, outputs are computed one after another with all that they need (pull), inputs are used up one after
another with all that this finishes (push), or targets are computed as their last input comes by (follow). All need room
for the front of the sweep only, not for a layer: what layer fusion in compilers does with tiles and line buffers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.edges.topological as kernel
from cython_ext.edges.geometry import latest_of_sources, used_up
from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.bounds.bounds import least_objective
from reorder.edges.search.base_orders import grouped, sorted_by, two_optimal_order
from reorder.edges.search.budget import Best, Budget, Scorer
from reorder.edges.search.intervals import Items
from reorder.edges.search.locality import neuron_coordinates
from reorder.edges.search.plans import plan_search
from traces.base.errors import unknown_name
from traces.networks.network import Int64Array, Network


def pull(items: Items, rank: Int64Array) -> Int64Array:
    """Return the order that computes outputs by rank, each with what it needs, sources by rank."""
    network = items.network
    s, t = network.sources, network.targets
    start, edges = grouped(network, t, sorted_by(t, rank[s]))
    ends = np.flatnonzero((network.in_degree > 0) & ((network.out_degree == 0) | network.is_output))
    return kernel.depth_first(s, ends[np.argsort(rank[ends], kind="stable")], start, edges)


def push(items: Items, rank: Int64Array) -> Int64Array:
    """Return the order that uses up inputs by rank, and whatever finishes at once."""
    network = items.network
    s, t = network.sources, network.targets
    start, edges = grouped(network, s, sorted_by(rank[t]))
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


COORDINATES_US = 0.3  # a connection: what it takes to look for locality (measured at 1e7)
SLANTS = (0.0, 1 / 16, 1 / 8)  # of the second coordinate against the first, both from 0 to 1 by rank


def sweep_ranks(items: Items) -> Iterator[tuple[dict[str, Any], Int64Array]]:
    """Yield (its slant, int64[N]): ranks of neurons along straight sweeps over the network; none without locality."""
    positions = neuron_coordinates(items)
    if positions is None:
        return
    y, x = (rank_by(positions[:, k]) / max(1, len(positions) - 1) for k in range(2))
    for slant in SLANTS:
        yield {"slant": slant}, rank_by(y + slant * x)


@ORDERINGS.register(
    "sweep",
    summary="crosses layers along smooth coordinates of the whole network; for convolutions and other local networks",
    portfolio=1.7,
    effort=0.3,
    only_local=True,
)
def sweep(network: Network, task: Task, parameters: None) -> Ordering:
    """Return the best of some sweeps under the objective; two-optimal without locality, or time to look for it."""
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    searches = task.prepared is not None or budget.left() > COORDINATES_US * 1e-6 * network.n_connections
    if searches:
        items = Items.of(network, task)
        least = least_objective(network, task)
        alone = task.prepared is None  # a portfolio makes plans of its own, and slants are worth little without them
        offer_along(items, best, least, itertools.islice(sweep_ranks(items), None if alone else 1))
        plans = plan_search(items, task.memory) if alone else None
        if plans is not None:
            plans.fused(best, lambda tried: budget.over or best.value <= least)
    if best.edges is None:
        best.offer(two_optimal_order(network), slant=0.0, way="none")
    return best.ordering("sweep", best.parameters, budget.over or not searches)


SLOW = 0.4  # with what it takes to find coordinates
SLICE_SHARES = {"min": (1.0,), "lru": (0.48, 0.9), "rr": (0.4, 0.8)}  # of M - 4 values, in a slice of one depth
COORDINATE_NOISE = 0.995  # share of connections that reach no further than a slice leans for a depth; others wait


def leaning(items: Items, values: int) -> Int64Array:
    """Return int64[W]: slices across all depths that hold so many values of each, one after another, depth by depth.

    A slice leans by as much as connections reach along the first coordinate (time skewing, Wonnacott 2000), so that it
    needs nothing of later ones; of earlier ones it needs what reaches over the cut.
    """
    network, positions = items.network, neuron_coordinates(items)
    assert positions is not None
    s, t, depth = network.sources, network.targets, network.depth
    touched = np.flatnonzero(network.touched)
    by_position = touched[np.lexsort((positions[touched, 0], depth[touched]))]
    width = np.bincount(depth[touched])
    relative = np.zeros(network.n_neurons)
    at = depth[by_position]
    relative[by_position] = (np.arange(len(by_position)) - (np.cumsum(width) - width)[at]) / width[at]
    reach = np.maximum(0, relative[s] - relative[t]) / (depth[t] - depth[s])
    lean = relative + float(np.quantile(reach, COORDINATE_NOISE)) * depth
    number = np.floor(lean * int(width.max()) / values).astype(np.int64)
    by_depth = sorted_by(depth[t])
    for level in np.split(by_depth, np.flatnonzero(np.diff(depth[t[by_depth]])) + 1):
        np.maximum.at(number, t[level], number[s[level]])
    rank = rank_by(relative)
    return sorted_by(number[t], depth[t], rank[t], rank[s])


@ORDERINGS.register(
    "slices",
    summary="slices that lean across all depths, for stencils and convolutions along a line",
    portfolio=1.65,
    effort=SLOW,
    only_local=True,
)
def slices(network: Network, task: Task, parameters: None) -> Ordering:
    """Return the best of a few widths of slices; two-optimal without locality."""
    best = Best(Scorer(network, task), Budget(task.time_limit_s), task)
    items = Items.of(network, task)
    if neuron_coordinates(items) is None:
        best.offer(two_optimal_order(network))
    else:
        for share in SLICE_SHARES[task.policy]:
            for spare in (4, 8):
                if best.edges is None or best.has_time:
                    best.offer(leaning(items, max(1, round(share * (task.memory - spare)))))
    return best.ordering("slices", {}, best.budget.over)


@dataclass(frozen=True)
class RcmParameters:
    """way: pull, push or follow; None: the best of them."""

    way: str | None = None

    def __post_init__(self) -> None:
        if self.way is not None and self.way not in WAYS:
            raise unknown_name("way", self.way, WAYS)


def rcm_rank(network: Network) -> Int64Array:
    """Return int64[N]: each neuron's reverse Cuthill-McKee number (Cuthill and McKee 1969; George 1971). O(W log d)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    s, t, n = network.sources, network.targets, network.n_neurons
    ends = (np.concatenate((s, t)), np.concatenate((t, s)))
    both_ways = coo_array((np.ones(2 * len(s), np.int8), ends), (n, n)).tocsr()
    rank = np.empty(n, np.int64)
    rank[reverse_cuthill_mckee(both_ways, symmetric_mode=True)] = np.arange(n)
    return rank


@ORDERINGS.register(
    "rcm",
    summary="along reverse Cuthill-McKee numbers of the whole network, directions ignored",
    parameters=RcmParameters,
    effort=4,
)
def rcm(network: Network, task: Task, parameters: RcmParameters) -> Ordering:
    """Sweep over the network as a breadth-first search from its edge meets it."""
    best = Best(Scorer(network, task), Budget(task.time_limit_s), task)
    ranks: list[tuple[dict[str, Any], Int64Array]] = [({}, rcm_rank(network))]
    offer_along(Items.of(network, task), best, least_objective(network, task), ranks, parameters.way)
    return best.ordering("rcm", best.parameters, best.budget.over)
