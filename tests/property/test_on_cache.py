"""The kernel behind orders for caches: its counts, its moves, and what it adds up to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cython_ext.annealing.on_cache import COUNTS, OnCache
from edgewatt.evaluation.machine_cost import MachineCost
from edgewatt.orders.order_comparison import machine_of
from hwmodel.machine import CacheSpec, Machine
from hwmodel.replay import replay
from reorder.base import check_order
from reorder.order import order
from tests.oracles.on_cache_oracle import on_cache
from traces.generators.networks import random_layered, uniform_layers
from traces.layout.settings import Layout
from traces.networks.network import Network
from traces.trace.build import build_trace


@st.composite
def problems(draw: st.DrawFn) -> tuple[Network, dict, tuple[str, int]]:
    widths = draw(st.lists(st.integers(2, 9), min_size=2, max_size=4))
    network = uniform_layers(widths, draw(st.floats(0.3, 1.0)), seed=draw(st.integers(0, 99)))
    pitch, line = draw(st.sampled_from([4, 16, 64, 256])), draw(st.sampled_from([16, 64]))
    shape = {
        "elements": draw(st.sampled_from([[(0, 64)], [(0, 16), (4096, 32)], [(64, 4)]])),
        "rows": (8192, pitch, draw(st.integers(1, pitch))),
        "cache": (line, draw(st.sampled_from([1, 2, 4])), draw(st.integers(1, 5))),
        "memory": (draw(st.sampled_from([64, 1024])), draw(st.sampled_from([1, 4]))),
        "access_bytes": draw(st.sampled_from([16, 64])),
    }
    method = draw(st.sampled_from(["random-topological", "two-optimal", "depth-first"]))
    return network, shape, (method, draw(st.integers(0, 9)))


def edges_of(network: Network, asked: tuple[str, int]) -> np.ndarray:
    return order(network, asked[0], memory=5, seed=asked[1]).edges


def kernel(network: Network, shape: dict, edges: np.ndarray, seed: int = 0) -> OnCache:
    return OnCache(
        network.sources.astype(np.int32), network.targets.astype(np.int32), network.n_neurons, edges, seed=seed, **shape
    )


@given(problems())
def test_counts_are_the_oracles(problem: tuple) -> None:
    network, shape, asked = problem
    edges = edges_of(network, asked)
    expected = on_cache(network.sources.tolist(), network.targets.tolist(), edges.tolist(), **shape)
    assert kernel(network, shape, edges).counts.tolist() == expected


@given(problems(), st.integers(0, 2**31), st.floats(0, 3))
def test_moves_keep_the_order_topological_and_the_counts_true(problem: tuple, seed: int, heat: float) -> None:
    network, shape, asked = problem
    edges = edges_of(network, asked)
    search = kernel(network, shape, edges, seed)
    search.weigh(np.array([3.0, 2.0, 0.5, 0.25, 0.0]))  # rows opened are not compared when a change has died out
    search.run(300, heat + 1e-9, 1e-9, 20)
    check_order(network, search.order)
    kept = search.value
    search.recount()
    assert search.value == pytest.approx(kept)
    assert kernel(network, shape, search.order).counts.tolist() == search.counts.tolist()


@given(problems(), st.data())
def test_a_swap_changes_the_value_by_what_it_says(problem: tuple, data: st.DataObject) -> None:
    network, shape, asked = problem
    edges = edges_of(network, asked)
    search = kernel(network, shape, edges)
    search.weigh(np.array([1.0, 1.0, 0.0, 0.0, 0.0]))
    before = search.value
    i, j, k = sorted(data.draw(st.integers(0, network.n_connections)) for _ in range(3))
    change = search.swap(i, j, k)
    if i == j or j == k:
        assert change is None
    elif change is None:
        assert set(network.targets[edges[i:j]]) & set(network.sources[edges[j:k]])
    else:
        search.recount()
        assert search.value == pytest.approx(before + change)


@pytest.mark.parametrize("policy", ["lru", "plru", "fifo", "srrip"])
@pytest.mark.parametrize(("lanes", "layout"), [(1, "tuples"), (1, "csr"), (16, "tuples"), (64, "coo")])
def test_counts_are_those_of_the_replay(policy: str, lanes: int, layout: str) -> None:
    network = random_layered(3, 60, 0.2, seed=5)
    machine = Machine(caches=(CacheSpec(4096, 64, 4, policy=policy),), part="lpddr4-3200", encoder="raw")
    judge = MachineCost(network, machine_of(machine), Layout(kind=layout, lanes=lanes), "bytes", "replay")
    edges = order(network, "two-optimal", memory=50).edges
    shape = judge.shape().cache
    assert shape is not None
    counts = dict(zip(COUNTS, shape.kernel(network, edges).counts.tolist(), strict=True))
    found = replay(build_trace(network, edges, layout=judge.layout, batch=lanes), judge.machine)
    cache = found.caches[0]
    if layout != "csr":  # row pointers are not among the counts
        assert counts["loads"] + counts["stores"] == cache.hits + cache.misses
        assert counts["fills"] * 64 == found.read_bytes
        assert counts["writebacks"] * 64 == found.written_bytes
    else:
        assert counts["fills"] * 64 == pytest.approx(found.read_bytes, rel=0.05)
