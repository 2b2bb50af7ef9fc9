"""Orders for LRU that use early what would go too soon."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from local_networks import local_network
from oracles import recency_oracle
from oracles.random_networks import dags

from cython_ext.residency.recency import refreshed
from hwmodel.fastmemory.iomodel import count_io
from reorder.base import Task, check_order
from reorder.edges.search.budget import Best, Budget, Scorer
from reorder.edges.search.edge_moves import horizons, offer_refreshed
from reorder.edges.search.intervals import Items
from reorder.edges.search.plans import plan_search
from reorder.order import order
from traces.networks.network import Network


def ends(network: Network, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return network.sources[edges].astype(np.int32), network.targets[edges].astype(np.int32)


@settings(max_examples=150, deadline=None)
@given(dags(), st.integers(3, 12), st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_orders_are_those_of_the_definition(network: Network, memory: int, horizon: int, seed: int) -> None:
    edges = order(network, "random-topological", memory=memory, seed=seed).edges
    sources, targets = ends(network, edges)
    places = refreshed(sources, targets, network.n_neurons, memory, horizon)
    assert places.tolist() == recency_oracle.refreshed(sources.tolist(), targets.tolist(), memory, horizon)
    assert check_order(network, edges[places]) is not None


def test_orders_of_sources_with_many_targets_are_those_of_the_definition() -> None:
    sources, targets = (ends.astype(np.int32) for ends in np.divmod(np.random.default_rng(5).permutation(800), 100))
    targets += 8
    places = refreshed(sources, targets, 108, 60, 800)
    assert places.tolist() == recency_oracle.refreshed(sources.tolist(), targets.tolist(), 60, 800)
    assert not np.array_equal(places, np.arange(800))


def test_no_horizon_and_room_for_all_leave_an_order_as_it_is() -> None:
    network = local_network(10, [3, 3], 0.6, seed=4)
    edges = order(network, "two-optimal", memory=30).edges
    for memory, horizon in ((30, 0), (network.n_neurons + 1, 500)):
        places = refreshed(*ends(network, edges), network.n_neurons, memory, horizon)
        assert np.array_equal(places, np.arange(len(edges)))


def test_what_is_not_there_is_refused() -> None:
    one = np.zeros(1, np.int32)
    for sources, targets, n, memory, horizon in (
        (one, one[:0], 2, 3, 1), (one, one + 2, 2, 3, 1), (one - 1, one, 2, 3, 1), (one, one + 1, 2, 2, 1),
        (one, one + 1, 2, 3, -1),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            refreshed(sources, targets, n, memory, horizon)


def test_lru_loses_less_along_strips() -> None:
    """Convolutions in strips: far fewer I/Os above the bound with values kept, and plans find that by themselves."""
    network = local_network(16, [4, 4, 4], 0.6, seed=11)
    memory = 70
    task = Task(memory, "lru")
    best = Best(Scorer(network, task), Budget(None), task)
    search = plan_search(Items(network), memory)
    assert search is not None
    search.fused(best, lambda tried: False)
    plain = min(value for plan, value in search.values.items() if not any(group.horizon for group in plan))
    least = network.n_connections + network.n_neurons + len(network.outputs)
    assert best.value - least < 0.97 * (plain - least)
    assert best.value == count_io(network, best.edges, memory=memory, policy="lru").total


def test_refreshed_orders_are_offered_for_as_long_as_that_pays() -> None:
    network = local_network(16, [4, 4], 0.6, seed=2)
    task = Task(60, "lru")
    best = Best(Scorer(network, task), Budget(None), task)
    edges = order(network, "two-optimal", memory=60).edges
    before = best.offer(edges)
    value, chosen = offer_refreshed(best, network, edges)
    of = {
        k: best.score(edges[refreshed(*ends(network, edges), network.n_neurons, 60, k)])
        for k in (horizons(network, 60)[0], max(1, chosen // 2), chosen, 2 * chosen)
    }
    assert best.value == value == of[chosen] == min(of.values()) < before
    assert offer_refreshed(best, network, edges, first=chosen) == (value, chosen)
