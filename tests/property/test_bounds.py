"""Bounds are below the truth: network bounds against all orders."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.least_io_oracle import least_io
from oracles.random_networks import dags
from oracles.reference_networks import reorder_network
from oracles.theory import dense_layers

from cython_ext.network.graph import core_numbers
from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.base import Task
from reorder.edges.bounds import bounds
from reorder.edges.bounds.bounds import (
    cores,
    expansion_extra,
    least_objective,
    lower_bound,
    sparse_extra,
    stay_costs,
    trees_extra,
)
from reorder.order import order
from traces.generators.networks import random_layered, uniform_layers
from traces.networks.network import Network


@settings(max_examples=25, deadline=None)
@given(dags(max_neurons=7, max_connections=9), st.integers(3, 4))
def test_network_bounds_are_below_the_truth(network: Network, memory: int) -> None:
    assert lower_bound(network, memory).total <= least_io(network, memory)


def skipping() -> Network:
    s, t = zip(*[(a, b) for a in range(3) for b in range(3, 6)] + [(3, 6), (4, 6), (5, 6)], strict=True)
    return Network(s, t, n_neurons=7, inputs=range(3), outputs=[6])


@pytest.mark.parametrize(
    ("network", "memory"),
    [(dense_layers([4, 3]), 3), (dense_layers([3, 3, 1]), 3), (dense_layers([2, 3, 2]), 3), (skipping(), 4)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_network_bounds_on_dense_networks(network: Network, memory: int) -> None:
    """Here both arguments have something to say."""
    truth, base = least_io(network, memory), io_bounds(network).lower_total
    found = lower_bound(network, memory)
    assert base <= found.total <= truth
    if memory == 3:
        assert found.extra > 0 and sparse_extra(network, memory) > 0
    for extra in (sparse_extra(network, memory), int(*expansion_extra(network, memory, stay_costs(network)[None]))):
        assert base + extra <= truth


def test_expansion_alone_proves_something_true() -> None:
    network = dense_layers([4, 4])
    extra = int(*expansion_extra(network, 3, stay_costs(network)[None]))
    assert extra > 0
    assert io_bounds(network).lower_total + extra <= count_io(network, memory=3).total


@st.composite
def trees(draw: st.DrawFn, most: int) -> Network:
    """Every neuron but the first feeds one of those before it."""
    parents = draw(st.lists(st.integers(0, 3), min_size=2, max_size=most))
    targets = [max(0, k - parent) for k, parent in enumerate(parents)]
    leaves = sorted({*range(1, len(targets) + 1)} - {*targets})
    return Network(range(1, len(targets) + 1), targets, len(targets) + 1, leaves, [0])


@settings(max_examples=40, deadline=None)
@given(st.one_of(trees(10), dags(max_neurons=8, max_connections=9)))
def test_trees_are_below_the_truth(network: Network) -> None:
    assert io_bounds(network).lower_total + trees_extra(network, 3) <= least_io(network, 3)


@settings(max_examples=40, deadline=None)
@given(trees(300), st.integers(3, 6))
def test_no_order_of_a_tree_is_below_its_bound(network: Network, memory: int) -> None:
    found = count_io(network, order(network, "sethi-ullman", memory=memory), memory=memory).total
    assert io_bounds(network).lower_total + trees_extra(network, memory) <= found


def test_a_binary_tree_that_does_not_fit_by_one() -> None:
    """2^k leaves take k + 1 slots; with k, of the two halves of the whole one value is written and read again."""
    n = 63
    tree = Network(range(1, n), [(k - 1) // 2 for k in range(1, n)], n, range(31, n), [0])
    assert [trees_extra(tree, memory) for memory in (7, 6, 5)] == [0, 2, 4]
    found = lower_bound(tree, 6)
    assert found.argument == "trees"
    assert found.total == count_io(tree, order(tree, "sethi-ullman", memory=6), memory=6).total


def test_cores_by_peeling() -> None:
    network = Network(
        [0, 0, 0, 1, 1, 2, 3], [1, 2, 3, 2, 3, 3, 4], n_neurons=6, inputs=[0], outputs=[4]
    )  # K4 with a tail, and an isolated neuron
    assert cores(network).tolist() == [3, 3, 3, 3, 1, 0]


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 20), st.integers(0, 60), st.integers(0, 2**32 - 1))
def test_cores_are_what_peeling_one_by_one_leaves(n: int, w: int, seed: int) -> None:
    ends = np.random.default_rng(seed).integers(0, n, (2, w))
    beside: list[list[int]] = [[] for _ in range(n)]
    for a, b in ends.T.tolist():
        beside[a].append(b)
        beside[b].append(a)
    core, level, left = [0] * n, 0, set(range(n))
    while left:
        degree = {u: sum(v in left for v in beside[u]) for u in left}
        u = min(left, key=degree.__getitem__)
        level = max(level, degree[u])
        core[u] = level
        left.remove(u)
    assert core_numbers(ends[0], ends[1], n).tolist() == core


def test_a_bound_worth_stopping_at_takes_little_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Singular values of small dense layers took 0.4 s before a search of one second began."""

    def too_long(*_: object) -> int:
        raise AssertionError("singular values for a search of a second")

    monkeypatch.setattr(bounds, "expansion_extra", too_long)
    network = random_layered(4, 170, 0.1, seed=1)
    for limit in (0.001, 1.0):
        assert least_objective(network, Task(100, time_limit_s=limit)) == io_bounds(network).lower_total
    with pytest.raises(AssertionError, match="singular"):
        least_objective(network, Task(100))
    deep = uniform_layers([8] * 2000, 1.0, seed=1)  # many small pairs take long as well
    assert least_objective(deep, Task(100)) == io_bounds(deep).lower_total


def test_the_baseline(reference: Path) -> None:
    network, best = reorder_network(reference, "ffnn_4x500_d10_s1")
    found = lower_bound(network, 100)
    assert found.argument == "paths" and found.extra > 600
    assert found.total <= count_io(network, best["min"], memory=100).total
    compact, order = reorder_network(reference, "compact_growth_mg300")
    assert lower_bound(compact, 300).extra == 0
    assert count_io(compact, order["min"], memory=300).total == lower_bound(compact, 300).total
