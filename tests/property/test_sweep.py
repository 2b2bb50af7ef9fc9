"""Sweeps and what they stand on: coordinates, orders along a rank, opens that fit their slots."""

import heapq
import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags

from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.base import check_order
from reorder.edges.sweep import WAYS
from reorder.learning.networks import local_network
from reorder.order import order
from reorder.search.intervals import Items
from reorder.search.spectrum import coordinates
from traces.generators.networks import random_layered
from traces.work.network import Network


@settings(max_examples=80, deadline=None)
@given(dags(), st.integers(0, 2**32 - 1))
def test_orders_along_any_rank_are_topological(network: Network, seed: int) -> None:
    rank = np.random.default_rng(seed).permutation(network.n_neurons)
    items = Items(network)
    orders = {name: check_order(network, make(items, rank)) for name, make in WAYS.items()}
    targets = network.targets[orders["follow"]].tolist()
    assert len(set(targets)) == 1 + sum(a != b for a, b in itertools.pairwise(targets))  # one run each
    used_up = orders["push"]
    sources = network.sources[used_up].tolist()
    assert len(set(sources)) == 1 + sum(a != b for a, b in itertools.pairwise(sources))  # once each


@settings(max_examples=80, deadline=None)
@given(dags(), st.integers(1, 6))
def test_opens_are_the_latest_that_fit(network: Network, slots: int) -> None:
    items = Items(network)
    n = len(items.items)
    edges = np.arange(network.n_connections)
    state = items.state_of(edges, slots)
    position = np.empty(len(edges), np.int64)
    position[edges] = np.arange(len(edges))
    first = np.minimum.reduceat(position[items.edges], items.start[:-1])
    wish = np.empty(n, np.int64)
    wish[np.argsort(first)] = np.arange(n)
    waiting: list[tuple[int, int]] = []
    next_drop = n - 1
    for rank in range(n - 1, -1, -1):
        while next_drop >= 0 and next_drop + slots - 1 >= rank:
            heapq.heappush(waiting, (-int(wish[state.drops[next_drop]]), int(state.drops[next_drop])))
            next_drop -= 1
        assert heapq.heappop(waiting)[1] == state.opens[rank]


def test_coordinates_find_the_picture() -> None:
    network = local_network(16, [3, 3, 3], 0.8, seed=2)
    items = Items(network)
    found = coordinates(items)
    assert found is not None and (found == coordinates(Items(network))).all()
    apart = np.linalg.norm(found[network.sources] - found[network.targets], axis=1)
    rng = np.random.default_rng(1)
    others = np.linalg.norm(found[rng.permutation(network.sources)] - found[network.targets], axis=1)
    assert np.median(apart) < 0.25 * np.median(others)


def test_random_layers_have_no_coordinates_and_little_time_is_spent_on_them() -> None:
    assert coordinates(Items(random_layered(4, 300, 0.1, seed=1))) is None
    network = random_layered(3, 100, 0.2, seed=1)
    assert order(network, "sweep", memory=30).parameters["way"] == "none"


def test_convolutions_with_room_for_a_front_reach_the_bound() -> None:
    network = local_network(14, [3, 4, 4], 0.7, seed=5)
    widest = 4 * 14 * 14
    found = order(network, "sweep", memory=widest // 2 + 100)
    assert count_io(network, found, memory=widest // 2 + 100).total == io_bounds(network).lower_total
    assert found.parameters["way"] in WAYS
