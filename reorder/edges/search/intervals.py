"""Residency intervals: the model behind the constructions and the search (docs/concepts/reordering-engine.md).

Every neuron with incoming connections (an *item*) is resident in fast memory once, from its open to its drop, at most P
items at once. A state is two permutations of the items; cython_ext/residency/residency.h says what it costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.edges.intervals import carried, grouped, in_groups, latest_opens
from cython_ext.residency.residency import _Residency
from reorder.base import Task
from reorder.edges.search.budget import Budget
from traces.networks.network import Int64Array, Network

Int32Array = npt.NDArray[np.int32]

SPARSE, FEW = 20, 7  # connections per item; measured on random layered networks


@dataclass(frozen=True, eq=False)
class IntervalState:
    """Two permutations of the items (int32[n] each): in order of opening and in order of dropping."""

    opens: Int32Array
    drops: Int32Array
    slots: int


def _places(ids: Int64Array, n: int) -> Int32Array:
    """Return int32[n]: where each of n neurons is among `ids`, -1 where it is not."""
    positions = np.full(n, -1, np.int32)
    positions[ids] = np.arange(len(ids), dtype=np.int32)
    return positions


class Items:
    """A network seen as n items (topologically numbered) fed by sources. Memory and time linear in the connections.

    items, sources: int64 neuron ids, by depth, ties by id.
    start: int32[n + 1], where the group of each item begins among `edges`, and W.
    depth: int32[n], of the items.
    own: int32[n], the position in `sources` of each item, -1 without outgoing connections; item: the inverse.
    sorting_s: what sorting the connections by source took: how fast the machine is, at this size.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.sorting_s = 0.0
        self.known: dict[Any, IntervalState] = {}  # constructed states, so that a portfolio makes each once
        self.facts: dict[str, Any] = {}  # about the network, that take long to find out
        self.orders: list[Int64Array] = []  # of connections, from which a search may start as well
        self.least = math.inf  # the objective of the best order that a portfolio has
        self.planned = False  # whether those are plans that suit the network better than what the search makes itself
        by_depth = np.argsort(network.depth, kind="stable")
        self.items: Int64Array = by_depth[network.in_degree[by_depth] > 0]
        self.sources: Int64Array = by_depth[network.out_degree[by_depth] > 0]
        self._item_of, self._source_of = (_places(ids, network.n_neurons) for ids in (self.items, self.sources))
        self.depth: Int32Array = network.depth[self.items].astype(np.int32)
        self.own: Int32Array = self._source_of[self.items]
        self.item: Int32Array = self._item_of[self.sources]
        self.start: Int32Array = np.concatenate(([0], np.cumsum(network.in_degree[self.items]))).astype(np.int32)

    @classmethod
    def of(cls, network: Network, task: Task) -> Items:
        """Return the items of a network; where a portfolio has made them for the task, those."""
        return cls(network) if task.prepared is None else task.prepared

    @cached_property
    def edges(self) -> Int64Array:
        """int64[W]: the connections grouped by item; the group of item v is start[v] to start[v + 1]."""
        return grouped(self._item_of[self.network.targets], len(self.items)).astype(np.int64)

    @cached_property
    def source(self) -> Int32Array:
        """int32[W]: the source (position in `sources`) of each of `edges`."""
        return self._source_of[self.network.sources[self.edges]]

    @cached_property
    def target(self) -> Int32Array:
        """int32[W]: the item of each of `edges`."""
        return np.repeat(np.arange(len(self.items), dtype=np.int32), np.diff(self.start))

    @cached_property
    def in_sources(self) -> Int32Array:
        """int32[W]: the positions of `edges` by source, within a source by item."""
        source, sorting = self.source, Budget()
        order: Int32Array = grouped(source, len(self.sources))
        self.sorting_s = sorting.spent()
        return order

    @cached_property
    def by_source(self) -> tuple[Int64Array, Int32Array]:
        """(start int64[n_sources + 1], target int32[W]): the targets of each source, ascending."""
        counts = np.bincount(self.source, minlength=len(self.sources))
        return np.concatenate(([0], np.cumsum(counts))), self.target[self.in_sources]

    @cached_property
    def edges_by_source(self) -> Int32Array:
        """int32[W]: the connections by source, within a source by item."""
        return self.edges.astype(np.int32)[self.in_sources]

    @cached_property
    def lane(self) -> Int32Array:
        """int32[W]: where each of `edges` is among `by_source`."""
        lane = np.empty(len(self.source), np.int32)
        lane[self.in_sources] = np.arange(len(lane), dtype=np.int32)
        return lane

    @property
    def sparse(self) -> bool:
        """Whether there are so few connections per item that random swaps find less than guided ones."""
        return self.network.n_connections <= SPARSE * len(self.items)

    @property
    def few(self) -> bool:
        """Whether there are so few that a hot start finds less."""
        return self.network.n_connections <= FEW * len(self.items)

    def search(self, slots: int, seed: int = 0, wide: bool = False, still: bool = False) -> _Residency:
        """Return a kernel object over these items with `slots` slots, without a state yet.

        still: it is asked for costs and stages alone and cannot anneal; `lane` is not made for it.
        """
        start, target = self.by_source
        lane = None if still else self.lane
        ends = self.own, self.item, self.depth, start, target
        return _Residency(self.start, self.source, lane, *ends, slots, seed, wide)

    def decode(self, search: _Residency, delay: int = 0) -> Int64Array:
        """Return the edge order int64[W] of the search's state: every connection at its stage, by source.

        delay: stages by which neurons open later than the state lets them. Under LRU and RR a source lingers for a
        while after it was loaded; who opens within that time still finds it, and holds a slot for less long.
        """
        stages = search.stages()  # by source
        if delay:
            opened, finished, _ = search.intervals
            rank = np.empty(len(self.items), np.int64)
            rank[search.state()[0]] = np.arange(1, len(self.items) + 1)
            later = np.minimum(finished, np.maximum(opened, rank - search.slots + delay + 1))
            stages = np.maximum(stages, later.astype(np.int32)[self.by_source[1]])
        return in_groups(self.edges_by_source, stages, len(self.items) + 2)

    def carried(self, search: _Residency) -> Int64Array:
        """Return the edge order int64[W] of the search's state.

        The last source of a stage may stay and be the first one of the next.
        """
        start, target = self.by_source
        n = len(self.items)
        opened, finish, drop = (stages.astype(np.int32) for stages in search.intervals)
        release = np.where(self.item >= 0, drop[self.item], np.int32(0))
        keys = carried(start, opened[target], finish[target], release, n)
        return in_groups(self.edges_by_source, keys, 4 * (n + 1))

    def state_of(self, order: Int64Array, slots: int) -> IntervalState:
        """Return the state nearest to an edge order: opens by first, drops by last use as a target.

        Opens that would need more than `slots` residents are put off: scheduled backwards, each rank is given to the
        neuron that opened last among those whose drop allows it.
        """
        drops, wish = self._ends(order)
        return IntervalState(latest_opens(drops, wish, slots), drops, slots)

    def _ends(self, order: Int64Array) -> tuple[Int32Array, Int32Array]:
        """Return the items (int32[n]) in order of their last use as a target, and the rank of each by its first one.

        Kept for `orders`, of which states with several numbers of slots are made.
        """
        kept: dict[int, tuple[Int32Array, Int32Array]] = self.facts.setdefault("ends", {})
        if id(order) in kept:
            return kept[id(order)]
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        at = position[self.edges]
        n = len(self.items)
        wish = np.empty(n, np.int32)
        wish[np.argsort(np.minimum.reduceat(at, self.start[:-1]))] = np.arange(n)
        drops = np.argsort(np.maximum.reduceat(at, self.start[:-1])).astype(np.int32)
        if any(order is one for one in self.orders):
            kept[id(order)] = drops, wish
        return drops, wish
