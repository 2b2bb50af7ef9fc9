"""The natural orders against their definitions, and all methods on any network."""

import itertools
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags
from oracles.reference_networks import reorder_counts, reorder_network

from cython_ext.edges.topological import goes_down
from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.base import ORDERINGS
from reorder.edges.search.base_orders import by_target, sorted_by
from reorder.order import order
from traces.base.errors import InputError
from traces.networks.network import Network

NATURAL = ("two-optimal", "layerwise", "by-source", "random-topological", "depth-first")


@settings(max_examples=60, deadline=None)
@given(dags())
def test_sort_keys(network: Network) -> None:
    s, t, depth = network.sources.tolist(), network.targets.tolist(), network.depth.tolist()
    found = {name: order(network, name, memory=3).edges.tolist() for name in NATURAL}
    edges = range(len(s))
    assert found["layerwise"] == sorted(edges, key=lambda e: (depth[t[e]], t[e], s[e]))
    assert found["by-source"] == sorted(edges, key=lambda e: (depth[s[e]], s[e], t[e]))
    targets = [t[e] for e in found["two-optimal"]]
    assert len({*targets}) == 1 + sum(a != b for a, b in itertools.pairwise(targets))  # one run each
    assert count_io(network, found["two-optimal"], memory=3).total <= io_bounds(network).upper_total

    demanded: list[int] = []

    def demand(neuron: int) -> None:
        for e in sorted((e for e in edges if t[e] == neuron), key=lambda e: s[e]):
            if e not in demanded:
                demand(s[e])
                demanded.append(e)

    for output in sorted(network.outputs.tolist()):
        demand(output)
    assert found["depth-first"][: len(demanded)] == demanded


@given(
    st.integers(1, 60).flatmap(
        lambda n: st.lists(st.tuples(*(st.integers(0, span) for span in (5, 2**20, 2**40))), min_size=n, max_size=n)
    ),
    st.integers(1, 3),
)
def test_sorting_by_keys_is_lexicographic_and_stable(rows: list[tuple[int, int, int]], count: int) -> None:
    keys = np.array(rows, np.int64).T[:count]
    assert sorted_by(*keys).tolist() == sorted(range(len(rows)), key=lambda k: rows[k][:count])
    assert sorted_by(*(key[:0] for key in keys)).tolist() == []
    assert sorted_by(*(key[sorted_by(*keys)] for key in keys)).tolist() == list(range(len(rows)))


@given(dags(), st.randoms(use_true_random=False))
def test_connections_by_any_rank_of_their_targets(network: Network, random: random.Random) -> None:
    s, t = network.sources.tolist(), network.targets.tolist()
    rank = np.array([random.randrange(4) for _ in range(network.n_neurons)])
    edges = by_target(network, rank)
    assert edges.tolist() == sorted(range(len(s)), key=lambda e: (rank[t[e]], t[e], s[e]))
    stored = network.in_order(edges)
    assert by_target(stored, rank).tolist() == list(range(len(s)))
    deeper = all(network.depth[b] == network.depth[a] + 1 for a, b in zip(s, t, strict=True))
    assert goes_down(network.ends, network.depth) == (deeper, all(a < b for a, b in zip(s, t, strict=True)))


@pytest.mark.parametrize("wrong", [-(2**31), -1, 3, 2**31 - 1])
@pytest.mark.parametrize("place", range(6))
def test_connections_of_neurons_that_are_not_there_are_refused(wrong: int, place: int) -> None:
    ends = np.array([[0, 1], [1, 2], [0, 2]], np.int32)
    assert goes_down(ends, np.arange(3)) == (False, True)
    ends.flat[place] = wrong
    with pytest.raises(ValueError, match="neurons that are there"):
        goes_down(ends, np.arange(3))


def test_two_optimal_is_the_reference_start(reference: Path) -> None:
    for row in reorder_counts(reference):
        network, best = reorder_network(reference, row["name"])
        ask = {"memory": int(row["M"]), "policy": row["policy"].lower(), "pinning": row["pinning"]}
        assert count_io(network, **ask).total == int(row["initial_total"])
        start = order(network, "two-optimal", memory=3)
        if row["policy"] == "MIN" or "compact_growth" not in row["name"]:  # grown: sources stand in order of growth
            assert count_io(network, start, **ask).total == int(row["initial_total"])
        if row["pinning"] == "literal":
            assert count_io(network, best[ask["policy"]], **ask).total == int(row["best_known_total"])


def test_layered_orders_agree() -> None:
    rng = np.random.default_rng(5)
    label = rng.permutation(30)
    pairs = [(a, b) for layer in (0, 10) for a in range(layer, layer + 10) for b in range(layer + 10, layer + 20)]
    s, t = label[np.array(pairs)].T
    network = Network(s, t, n_neurons=30, inputs=label[:10], outputs=label[20:])
    assert (order(network, "two-optimal", memory=3).edges == order(network, "layerwise", memory=3).edges).all()


def test_random_topological_is_uniform_among_ready_and_seeded() -> None:
    network = Network([0, 0, 0, 1], [1, 2, 3, 4], n_neurons=5, inputs=[0], outputs=[2, 3, 4])
    orders = [order(network, "random-topological", memory=3, seed=seed).edges.tolist() for seed in range(2000)]
    again = [order(network, "random-topological", memory=3, seed=seed).edges.tolist() for seed in range(5)]
    assert again == orders[:5]
    first = np.bincount([o[0] for o in orders], minlength=4)
    assert first[3] == 0 and (abs(first[:3] - 2000 / 3) < 5 * np.sqrt(2000 * 2 / 9)).all()
    after_0 = np.bincount([o[1] for o in orders if o[0] == 0], minlength=4)  # 1, 2 and 3 are ready then
    n = after_0.sum()
    assert after_0[0] == 0 and (abs(after_0[1:] - n / 3) < 5 * np.sqrt(n * 2 / 9)).all()


def test_bad_requests() -> None:
    network = Network([0], [1], n_neurons=2, inputs=[0], outputs=[1])
    for method in {*ORDERINGS} - {"file", "eon"}:  # they need a path
        assert order(network, method, memory=3).edges.tolist() == [0]
    with pytest.raises(InputError, match=r"unknown ordering 'two-optimum' \(did you mean 'two-optimal'"):
        order(network, "two-optimum", memory=3)
    with pytest.raises(InputError, match="memory is 2"):
        order(network, "layerwise", memory=2)
    with pytest.raises(InputError, match="time_limit_s is 0"):
        order(network, "layerwise", memory=3, time_limit_s=0)
    with pytest.raises(InputError, match="seed must be"):
        order(network, "layerwise", memory=3, seed=-1)
    with pytest.raises(InputError, match="'layerwise' has no parameter 'windw'"):
        order(network, "layerwise", memory=3, windw=4)
