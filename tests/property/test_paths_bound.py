"""The bound by disjoint paths: against the optimum of small networks, and on networks whose best orders are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.least_io_oracle import least_io
from oracles.random_networks import dags
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from cython_ext.edges.exact import least_order
from cython_ext.edges.matching import largest_matching
from hwmodel.fastmemory.iomodel import count_io
from reorder.edges.bounds.bounds import chained, lower_bound, theorem_1
from reorder.edges.bounds.paths import joined_paths, reloaded
from reorder.order import order
from traces.generators.networks import uniform_layers
from traces.networks.network import Network


def layers_of(chosen: list[list[list[int]]], width: int) -> Network:
    """chosen: by layer, by target the sources in the layer before."""
    pairs = [
        (k * width + s, (k + 1) * width + t)
        for k, layer in enumerate(chosen)
        for t, sources in enumerate(layer)
        for s in sorted(set(sources))
    ]
    s, t = zip(*pairs, strict=True)
    outputs = [v for v in range(width * (len(chosen) + 1)) if v in t and v not in s]
    return Network(s, t, width * (len(chosen) + 1), range(width), outputs)


def butterfly(levels: int) -> Network:
    """FFT on 2^levels points."""
    n = 1 << levels
    return layers_of([[[t, t ^ (1 << k)] for t in range(n)] for k in range(levels)], n)


@st.composite
def woven(draw: st.DrawFn, most: int) -> Network:
    """Layers of one width whose targets have two sources each, their own among them: as many paths as neurons."""
    width = draw(st.integers(3, 4))
    layers = draw(st.integers(1, max(1, most // (2 * width))))
    other = st.lists(st.integers(0, width - 1), min_size=width, max_size=width)
    return layers_of([[[t, s] for t, s in enumerate(draw(other))] for _ in range(layers)], width)


def proved(network: Network, memory: int) -> int:
    live = reloaded(joined_paths(network, np.inf), memory - 1)
    return chained(live) + chained({run: values for run, values in live.items() if run[0] > 0})


@given(st.lists(st.lists(st.integers(0, 11), max_size=6), max_size=14))
def test_as_many_are_matched_as_can_be(targets: list[list[int]]) -> None:
    rows = [sorted(set(row)) for row in targets]
    start = np.cumsum([0, *map(len, rows)])
    matched = largest_matching(start, np.array([t for row in rows for t in row], np.int32), 12)
    taken = [int(t) for t in matched if t >= 0]
    assert len(set(taken)) == len(taken)
    assert all(t == -1 or t in row for row, t in zip(rows, matched, strict=True))
    graph = csr_array((np.ones(start[-1], bool), [t for row in rows for t in row], start), (len(rows), 12))
    assert len(taken) == int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())


@settings(max_examples=25, deadline=None)
@given(st.one_of(woven(10), dags(max_neurons=7, max_connections=9)), st.integers(3, 4))
def test_no_order_and_no_evictions_do_better(network: Network, memory: int) -> None:
    assert theorem_1(network) + proved(network, memory) <= least_io(network, memory)


@settings(max_examples=60, deadline=None)
@given(woven(18), st.integers(3, 4), st.integers(0, 2))
def test_no_order_does_better_under_a_policy(network: Network, memory: int, policy: int) -> None:
    w = network.n_connections
    bound = theorem_1(network) + proved(network, memory)
    assert bound <= lower_bound(network, memory).total
    ends = network.sources.astype(np.int32), network.targets.astype(np.int32)
    outputs = network.is_output.view(np.uint8)
    edges, _, _ = least_order(
        *ends, network.n_neurons, outputs, memory, policy, lower_bound(network, memory).total - w, 10**6
    )
    assert edges is None, "an order below the bound"


def test_four_points() -> None:
    """4 paths of which 2 fit: 2 values are read again, and the optimum is no more than twice as far away."""
    network = butterfly(2)
    assert proved(network, 3) == 2
    assert reloaded(joined_paths(network, np.inf), 2) == {(0, 1): 0, (0, 2): 2, (1, 2): 0}


@pytest.mark.parametrize(
    ("points", "memory", "least", "known"), [(6, 12, 95, 122), (7, 40, 139, 182), (8, 100, 215, 229)]
)
def test_fft(points: int, memory: int, least: int, known: int) -> None:
    network = butterfly(points)
    found = lower_bound(network, memory)
    assert found.argument == "paths" and least <= found.extra <= known
    counted = count_io(network, order(network, "components", memory=memory), memory=memory)
    assert found.total <= counted.total


@settings(max_examples=20, deadline=None)
@given(st.integers(4, 12), st.integers(2, 5), st.floats(0.15, 0.6), st.integers(3, 8), st.integers(0, 99))
def test_searched_orders_are_not_below_it(width: int, layers: int, density: float, memory: int, seed: int) -> None:
    network = uniform_layers([width] * layers, density, seed=seed)
    counts = count_io(network, order(network, "auto", memory=memory, time_limit_s=0.02), memory=memory)
    live = reloaded(joined_paths(network, np.inf), memory - 1)
    assert counts.reads_neurons - network.touched.sum() >= chained(live)
    assert counts.writes_live >= chained({run: values for run, values in live.items() if run[0] > 0})
    assert counts.total >= lower_bound(network, memory).total


def test_an_output_that_is_also_a_source_carries_no_path() -> None:
    """Its write may be one that Theorem 1 counts."""
    network = butterfly(3)
    middle = range(8, 16)
    also = Network(network.sources, network.targets, network.n_neurons, range(8), [*middle, *network.outputs])
    assert proved(network, 3) > proved(also, 3) == 0


def test_what_takes_too_long_is_left_out() -> None:
    some = joined_paths(butterfly(5), 3e6)
    assert 0 < len(some) < len(joined_paths(butterfly(5), np.inf))
    assert joined_paths(butterfly(5), 1e3) == {}
    assert lower_bound(butterfly(5), 12, 1 << 10).argument == "theorem-1"
