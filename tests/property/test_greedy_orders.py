"""EGO and GO against their listings, step by step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags

from cython_ext.edges import greedy
from reorder.edges.methods.greedy import finished_by_depth
from reorder.order import order
from traces.base.errors import InputError
from traces.generators.networks import random_layered
from traces.networks.network import Network


def plain_ego(network: Network, window: int) -> list[int]:
    """Algorithm 3 with a priority per connection, changed one by one."""
    s, t = network.sources.tolist(), network.targets.tolist()
    k1 = [-int(network.in_degree[u]) for u in s]
    k2 = [0] * len(s)
    queue, order = set(range(len(s))), []

    def contribute(edge: int, sign: int) -> None:
        for other in queue:
            k2[other] += sign * ((s[other] == s[edge]) + (t[other] == t[edge]) + (s[other] == t[edge]))

    while queue:
        edge = min(queue, key=lambda e: (-k1[e], -k2[e], e))
        queue.remove(edge)
        order.append(edge)
        contribute(edge, 1)
        for other in queue:
            k1[other] += s[other] == t[edge]
        if len(order) > window:
            contribute(order[-1 - window], -1)
    return order


def plain_go(network: Network, window: int) -> list[int]:
    """Algorithm 2 on neurons."""
    edges = list(zip(network.sources.tolist(), network.targets.tolist(), strict=True))
    priority = dict.fromkeys(range(network.n_neurons), 0)
    order: list[int] = []

    def relate(x: int, sign: int) -> None:
        for a, b in edges:
            if a == x and b in priority:
                priority[b] += sign
            if b == x:
                if a in priority:
                    priority[a] += sign
                for c, d in edges:
                    if c == a and d in priority:
                        priority[d] += sign

    while priority:
        x = min(priority, key=lambda neuron: (-priority[neuron], neuron))
        del priority[x]
        order.append(x)
        relate(x, 1)
        if len(order) > window:
            relate(order[-1 - window], -1)
    return order


@settings(max_examples=80, deadline=None)
@given(dags(), st.integers(1, 12))
def test_ego_is_its_listing(network: Network, window: int) -> None:
    assert order(network, "ego", memory=3, window=window).edges.tolist() == plain_ego(network, window)


@settings(max_examples=60, deadline=None)
@given(dags(), st.integers(1, 8))
def test_go_is_its_listing(network: Network, window: int) -> None:
    rank = {neuron: place for place, neuron in enumerate(plain_go(network, window))}
    s, t, depth = network.sources.tolist(), network.targets.tolist(), network.depth.tolist()
    expected = sorted(range(len(s)), key=lambda e: (depth[t[e]], rank[t[e]], rank[s[e]]))
    assert order(network, "go", memory=3, window=window).edges.tolist() == expected


def test_a_time_limit_still_gives_a_whole_order() -> None:
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random((400, 400)) < 0.5)
    network = Network(pairs[:, 0], pairs[:, 1] + 400, n_neurons=800, inputs=range(400), outputs=range(400, 800))
    found = order(network, "ego", memory=50, time_limit_s=1e-6)
    assert found.truncated and len(found.edges) == len(pairs)
    assert not order(network, "ego", memory=50).truncated


def test_bad_window() -> None:
    network = Network([0], [1], n_neurons=2, inputs=[0], outputs=[1])
    for method in ("ego", "go"):
        with pytest.raises(InputError, match="window must be a whole number of at least 1"):
            order(network, method, memory=3, window=0)


@settings(max_examples=150, deadline=None)
@given(dags(), st.integers(1, 12), st.integers(0, 3))
def test_hubs_change_nothing_but_the_time(network: Network, window: int, degree: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "HUBS", 0)
        patch.setattr(greedy, "LEAST_HUB", degree)
        found = order(network, "ego", memory=3, window=window)
    assert found.edges.tolist() == plain_ego(network, window)


def test_a_hub_costs_a_logarithm() -> None:
    fan = lambda k: Network(  # noqa: E731
        np.r_[np.arange(k), np.full(k, k)], np.r_[np.full(k, k), k + 1 + np.arange(k)], 2 * k + 1,
        np.arange(k), k + 1 + np.arange(k),
    )  # fmt: skip
    found = order(fan(50_000), "ego", memory=100)  # some 0.04 s; looking through the hub took half a minute
    assert found.edges.tolist() == list(range(100_000))


def test_a_limit_too_short_to_begin_leaves_ego_the_order_by_depth() -> None:
    network = random_layered(3, 60, 0.2, seed=3)
    found = order(network, "ego", memory=50, time_limit_s=1e-6)
    depth = network.depth[network.targets]
    keys = list(zip(depth.tolist(), network.targets.tolist(), network.sources.tolist(), strict=True))
    assert found.truncated and [keys[k] for k in found.edges] == sorted(keys)
    # a prefix is kept, and the rest follows it the same way
    begun = order(network, "ego", memory=50).edges[:100]
    edges = finished_by_depth(network, begun)
    rest = [keys[k] for k in edges[100:]]
    assert (edges[:100] == begun).all() and sorted(edges.tolist()) == list(range(len(keys))) and rest == sorted(rest)
