"""What the papers' studies count, against every order of small graphs and networks."""

from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import schedule_oracle as oracle
from oracles.random_graphs import graphs
from oracles.random_networks import dags

from papers.studies.eon import ready_at_once
from papers.studies.serenity_orders import count_orders, count_products, least_orders
from traces.networks.network import Network
from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor

pytestmark = pytest.mark.application


@settings(deadline=None)
@given(graphs(most=6))
def test_every_order_of_a_graph_is_counted_by_its_peak(graph: OpGraph) -> None:
    before = [oracle.predecessors(graph, v) for v in range(graph.n_nodes)]
    alike: Counter[int] = Counter()
    drawn: Counter[int] = Counter()

    def go_on(order: list[int], weight: Fraction) -> None:
        ready = [v for v in range(graph.n_nodes) if v not in order and before[v] <= set(order)]
        if not ready:
            alike[oracle.peak(graph, order)] += 1
            drawn[oracle.peak(graph, order)] += weight  # type: ignore[assignment]
        for v in ready:
            go_on([*order, v], weight / len(ready))

    go_on([], Fraction(1))
    orders, shares = count_orders(graph)
    assert orders == sum(alike.values())
    assert shares.keys() == alike.keys()
    for peak, (share, weight) in shares.items():
        assert share == pytest.approx(alike[peak] / orders)
        assert weight == pytest.approx(float(drawn[peak]))


@settings(deadline=None)
@given(graphs(most=5), st.integers(0, 9))
def test_orders_of_least_peak_are_drawn_alike(graph: OpGraph, seed: int) -> None:
    """Each as often as any other: 40 draws an order, and all within six standard deviations of it."""
    peaks: dict[tuple[int, ...], int] = {}
    for order in permutations(range(graph.n_nodes)):
        if all(oracle.predecessors(graph, v) <= {*order[:k]} for k, v in enumerate(order)):
            peaks[order] = oracle.peak(graph, list(order))
    least = {order for order, peak in peaks.items() if peak == min(peaks.values())}
    n = 40 * len(least)
    total, drawn = least_orders(graph, min(peaks.values()), n, seed)
    found = Counter(map(tuple, drawn))
    assert total == len(least) and found.keys() <= least
    assert all(abs(found[order] - 40) <= 6 * 40**0.5 for order in least)


@settings(deadline=None)
@given(dags(max_neurons=6, max_connections=7), st.integers(0, 9))
def test_ready_connections_are_those_whose_source_is_done(network: Network, seed: int) -> None:
    def ready(done: frozenset[int]) -> list[int]:
        open_ = {int(network.targets[e]) for e in range(network.n_connections) if e not in done}
        return [e for e in range(network.n_connections) if e not in done and int(network.sources[e]) not in open_]

    reachable, most = {frozenset[int]()}, 0
    while reachable:
        most = max(most, *(len(ready(done)) for done in reachable))
        reachable = {done | {e} for done in reachable for e in ready(done)}
    runs = [ready_at_once(network, np.random.default_rng([seed, k])) for k in range(60)]
    assert {start for start, _ in runs} == {len(ready(frozenset()))}
    assert len(ready(frozenset())) <= max(longest for _, longest in runs) <= most


def test_a_convolution_multiplies_each_weight_at_each_place() -> None:
    def tensor(name: str, *shape: int) -> Tensor:
        return Tensor(name, shape, prod(shape), name, "uint8")

    nodes = [
        Operator("image", INPUT, (), (tensor("image", 1, 7, 7, 2),)),
        Operator("conv", "CONV_2D", ("image",), (tensor("conv", 1, 5, 5, 4),), ("w", "b")),
        Operator("deep", "DEPTHWISE_CONV_2D", ("conv",), (tensor("deep", 1, 5, 5, 4),), ("d",)),
        Operator("both", "CONCATENATION", ("conv", "deep"), (tensor("both", 1, 5, 5, 8),)),
    ]
    sizes = {"w": (4, 3, 3, 2), "b": (4,), "d": (1, 3, 3, 4)}
    graph = OpGraph("small", nodes, ["both"], constants={name: np.zeros(size) for name, size in sizes.items()})
    each = 25 * (4 * 3 * 3 * 2 + 3 * 3 * 4)
    assert count_products(graph) == {"weights": 72 + 36, "biases": 4, "multiply_adds": each, "written": 100 + 100}
