"""The bound by stretches of reads: its parts against brute force, the whole against all orders and evictions."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.least_io_oracle import least_io
from oracles.random_networks import dags
from oracles.theory import dense_layers

from hwmodel.fastmemory.iomodel import count_io
from reorder.edges.bounds import windows
from reorder.edges.bounds.bounds import chained, expansion_extra, lower_bound, sparse_extra, stay_costs, theorem_1
from reorder.order import order
from traces.generators.networks import random_layered, uniform_layers
from traces.networks.network import Network


@st.composite
def dense(draw: st.DrawFn, most: int) -> Network:
    """Layers with nearly all connections, at most `most` of them: there the argument has something to say."""
    widths = draw(st.lists(st.integers(2, 5), min_size=2, max_size=3).filter(
        lambda w: sum(a * b for a, b in itertools.pairwise(w)) <= most
    ))  # fmt: skip
    return uniform_layers(widths, draw(st.sampled_from((0.7, 1.0))), seed=draw(st.integers(0, 99)))


@settings(max_examples=15, deadline=None)
@given(st.one_of(dense(9), dags(max_neurons=7, max_connections=9)), st.integers(3, 4))
def test_no_order_and_no_evictions_do_better(network: Network, memory: int) -> None:
    proved = theorem_1(network) + chained(windows.windows_reads(network, memory, np.inf, {}))
    assert proved <= lower_bound(network, memory).total or memory > 3
    assert proved <= least_io(network, memory)


def orders(network: Network) -> list[list[int]]:
    """Every topological order of the connections."""
    s, t = network.sources.tolist(), network.targets.tolist()
    before = [{j for j in range(len(s)) if t[j] == a} for a in s]
    return [
        list(one)
        for one in itertools.permutations(range(len(s)))
        if all(before[k] <= set(one[:place]) for place, k in enumerate(one))
    ]


@settings(max_examples=12, deadline=None)
@given(st.one_of(dense(6), dags(max_neurons=6, max_connections=6)), st.sampled_from(("lru", "rr")))
def test_no_order_does_better_under_lru_and_rr(network: Network, policy: str) -> None:
    least = min(count_io(network, one, memory=3, policy=policy).total for one in orders(network))
    assert lower_bound(network, 3).total <= least


def test_a_source_stays_under_rr_while_the_pointer_passes_it_over() -> None:
    """So distances between reads bound nothing: with 3 slots, C reads to both sides, ten targets would take two."""
    star = Network([0] * 10, range(1, 11), 11, [0], range(1, 11))
    assert count_io(star, memory=4, policy="rr").reads_neurons == 11


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(2, 5), min_size=2, max_size=4), st.floats(0.2, 1.0), st.integers(0, 99))
def test_no_neurons_have_more_connections_among_each_other(widths: list[int], density: float, seed: int) -> None:
    network = uniform_layers(widths, density, seed=seed)
    across = (network.depth[network.targets] - network.depth[network.sources]) % 2 == 1
    sources, targets = network.sources[across], network.targets[across]
    touched = np.unique(np.concatenate((sources, targets)))
    degree = np.bincount(np.concatenate((sources, targets)), minlength=network.n_neurons)
    for k, sides in enumerate(windows._sides(network, 0, len(widths))):
        weight = (degree[sources] * degree[targets]) ** (0.0 if k < 2 else -0.5)
        assert sides.weight == pytest.approx(weight.sum()) and sides.neurons == len(touched)
        values = [sides.most(v) for v in range(len(touched) + 2)]
        assert (np.diff(values) >= -1e-9).all(), "a search by halves relies on it"
        for v in range(2, len(touched) + 1):
            some = list(itertools.islice(itertools.combinations(touched.tolist(), v), 300))
            chosen = np.zeros((len(some), network.n_neurons), bool)
            chosen[np.arange(len(some))[:, None], some] = True
            assert ((chosen[:, sources] & chosen[:, targets]) @ weight).max() <= values[v] + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(2, 40), min_size=2, max_size=5), st.floats(0.05, 1.0), st.integers(0, 99))
def test_nothing_spreads_more_than_its_spread(widths: list[int], density: float, seed: int) -> None:
    network = uniform_layers(widths, density, seed=seed)
    depth = network.depth
    across = (depth[network.targets] - depth[network.sources]) % 2 == 1
    s, t = network.sources[across], network.targets[across]
    odd = depth[s] % 2 == 1
    matrix = np.zeros((network.n_neurons, network.n_neurons))
    matrix[np.where(odd, t, s), np.where(odd, s, t)] = 1
    rows, columns = np.flatnonzero(matrix.any(axis=1)), np.flatnonzero(matrix.any(axis=0))
    additive, flat = matrix[np.ix_(rows, columns)], matrix[np.ix_(rows, columns)]
    for g, h in itertools.product(np.unique(depth[rows]), np.unique(depth[columns])):
        at = np.ix_(depth[rows] == g, depth[columns] == h)
        part = matrix[np.ix_(rows, columns)][at]
        additive[at] = part - part.mean(axis=0) - part.mean(axis=1, keepdims=True) + part.mean()
        flat[at] = part - part.mean()
    found = windows._sides(network, 0, int(depth.max()) + 1)
    for sides, rest in zip(found[:2], (additive, flat), strict=True):
        largest = float(np.linalg.svd(rest, compute_uv=False)[0])
        assert largest <= sides.spread <= 1.001 * largest + 1e-2


def test_a_layer_with_all_connections() -> None:
    network = dense_layers([4, 4])
    assert windows.windows_reads(network, 3, np.inf, {}) == {(0, 1): 9}, "two reads for the first, one for each other"
    assert lower_bound(network, 3).argument == "windows"


@pytest.mark.parametrize(("memory", "least"), [(30, 1000), (60, 600)])
def test_wide_layers_are_read_again_and_again(memory: int, least: int) -> None:
    network = uniform_layers([256, 1024, 256], 0.1, seed=1)
    found = lower_bound(network, memory)
    assert found.argument == "windows" and found.extra >= least
    expansion = int(*expansion_extra(network, memory, stay_costs(network)[None]))
    assert found.extra > 2 * max(sparse_extra(network, memory), expansion)
    learned = order(network, "learned", memory=memory)
    assert found.total <= count_io(network, learned, memory=memory).total
    assert windows.windows_reads(network, memory, 1e6, {}) == {}, "where it takes too long it is left out"


def test_segments_of_neighbouring_layers_add_up() -> None:
    """A value between two layers is read again as a target and as a source: 1,179 where they could not share it."""
    assert lower_bound(random_layered(4, 500, 0.05, seed=1), 20).extra >= 1990


def test_the_default_work_is_enough_for_a_transformer_layer() -> None:
    found = lower_bound(uniform_layers([1024, 4096, 1024], 0.02, seed=1), 100)
    assert found.argument == "windows" and found.extra > 1000


def test_a_chain_has_as_many_runs_as_neurons_and_none_is_looked_at_without_work() -> None:
    n = 1_000_000
    chain = Network(np.arange(n - 1), np.arange(1, n), n, [0], [n - 1])
    assert chain.depth[-1] == n - 1  # found once, kept
    before = time.process_time()
    assert windows.windows_reads(chain, 8, 1e6, {}) == {}
    assert time.process_time() - before < 1  # 3 s where every run was looked at
