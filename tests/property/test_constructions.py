"""Constructions by structure against slow ones: components, subtrees, values that live, windows that slide."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import rows_oracle
from oracles.random_networks import dags

from cython_ext.edges.rows import fewest_at_a_time
from edgewatt.prune.mask import memory_mask
from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.base import check_order
from reorder.edges.methods.components import by_components
from reorder.order import order
from traces.generators.networks import compact_growth
from traces.networks.network import Network


def by_layers(sizes: list[int], pairs: list[tuple[int, int]], seed: int) -> Network:
    """Return a layered network with shuffled numbers inside each layer. pairs: ids counted through all layers."""
    rng, first = np.random.default_rng(seed), np.concatenate(([0], np.cumsum(sizes)))
    number = np.concatenate([at + rng.permutation(n) for at, n in zip(first, sizes, strict=False)])
    ends = number[np.array(pairs)]
    ends = ends[np.lexsort(ends.T)]
    outputs = np.arange(first[-2], first[-1])
    return Network(ends[:, 0], ends[:, 1], n_neurons=int(first[-1]), inputs=np.arange(sizes[0]), outputs=outputs)


def fft(levels: int, seed: int) -> Network:
    n = 1 << levels
    pairs = [(k * n + j, (k + 1) * n + i) for k in range(levels) for i in range(n) for j in (i, i ^ (1 << k))]
    return by_layers([n] * (levels + 1), pairs, seed)


def recursive(network: Network, edges: list[int], narrow: int) -> list[int]:
    """Return components of ranges of depths cut in halves, by repeated flooding."""
    s, t, depth = network.sources, network.targets, network.depth
    found: list[int] = []
    while edges:
        reached, piece = {int(s[edges[0]])}, []
        while True:
            more = [e for e in edges if e not in piece and (int(s[e]) in reached or int(t[e]) in reached)]
            if not more:
                break
            piece += more
            reached |= {int(x) for e in more for x in (s[e], t[e])}
        edges = [e for e in edges if e not in piece]
        piece.sort(key=lambda e: (depth[t[e]], t[e], s[e]))
        depths = [int(depth[t[e]]) for e in piece]
        low, high = min(depths), max(depths)
        widest = max(len({int(t[e]) for e in piece if depth[t[e]] == d}) for d in set(depths))
        if low == high or widest <= narrow:
            found += piece
            continue
        cut = low + max(1, min(high - low, int((high - low + 1) * 0.5 + 0.5)))
        found += recursive(network, [e for e in piece if depth[t[e]] < cut], narrow)
        found += recursive(network, [e for e in piece if depth[t[e]] >= cut], narrow)
    return found


@given(dags(), st.integers(0, 3))
@settings(deadline=None, max_examples=60)
def test_components_are_those_of_flooding(network: Network, narrow: int) -> None:
    s, t, depth = network.sources, network.targets, network.depth
    base = sorted(range(len(s)), key=lambda e: (depth[t[e]], t[e], s[e]))
    edges = by_components(network, 0.5, narrow, 0)
    check_order(network, edges)
    assert edges.tolist() == recursive(network, base, narrow)
    check_order(network, by_components(network, 0.67, narrow, 2))


@pytest.mark.parametrize(("levels", "memory"), [(6, 18), (8, 34)])
def test_components_are_the_recursion_of_an_fft(levels: int, memory: int) -> None:
    """Halves of the levels, each in blocks that fit: what lies between the halves is written and read once."""
    network = fft(levels, seed=3)
    extra = count_io(network, order(network, "components", memory=memory), memory=memory).total
    assert extra - io_bounds(network).lower_total <= 2 << levels


@given(st.integers(0, 50), st.integers(2, 4))
@settings(deadline=None, max_examples=20)
def test_heaviest_subtrees_first_need_sethi_and_ullmans_registers(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    parent = [-1]
    front = [0]
    while len(parent) < 60:
        v = front.pop(int(rng.integers(len(front))))
        for _ in range(int(rng.integers(2, most + 1))):
            front.append(len(parent))
            parent.append(v)
    n = len(parent)

    def needs(v: int) -> int:
        below = sorted((needs(c) for c in range(n) if parent[c] == v), reverse=True)
        return 1 if not below else max(2, below[0], below[1] + 1)

    leaves = [v for v in range(n) if v not in parent]
    network = Network(np.arange(1, n), np.array(parent[1:]), n_neurons=n, inputs=leaves, outputs=[0])
    edges = order(network, "sethi-ullman", memory=3)
    memory = needs(0) + 1
    assert count_io(network, edges, memory=memory).total == io_bounds(network).lower_total


@pytest.mark.parametrize("m_g", [12, 40])
def test_least_live_needs_no_more_than_growth_did(m_g: int) -> None:
    grown = compact_growth(m_g, 300, 4, seed=m_g)
    number = np.random.default_rng(1).permutation(grown.n_neurons)
    ends = np.stack((number[grown.sources], number[grown.targets]))
    at = np.lexsort(ends)
    network = Network(*ends[:, at], grown.n_neurons, inputs=number[grown.inputs], outputs=number[grown.outputs])
    found = order(network, "least-live", memory=m_g)
    assert count_io(network, found, memory=m_g).total == io_bounds(network).lower_total


@pytest.mark.parametrize(("n", "hidden", "width", "degree"), [(60, 200, 14, 6), (96, 300, 40, 12)])
def test_windows_that_slide_are_found(n: int, hidden: int, width: int, degree: int) -> None:
    """Hidden neurons read and feed neurons inside one window of both layers; M holds both windows and what streams."""
    rng, pairs = np.random.default_rng(2), []
    for h in range(hidden):
        first = round(h * (n - width) / (hidden - 1))
        pairs += [(first + int(x), n + h) for x in rng.choice(width, degree, replace=False)]
        pairs += [(n + h, n + hidden + first + int(x)) for x in rng.choice(width, degree, replace=False)]
    network, memory = by_layers([n, hidden, n], pairs, 5), 2 * width + 3
    bound = io_bounds(network).lower_total
    found = count_io(network, order(network, "windows", memory=memory), memory=memory).total - bound
    assert found == 0


@pytest.mark.parametrize(
    ("widths", "memory", "density"),
    [
        ((64, 256, 128, 256, 10), 71, 0.05),  # a window over half of the inputs
        ((64, 128, 128, 128, 128, 128, 128, 10), 84, 0.1),  # over two thirds of them
        ((64, 256, 128, 256, 64), 77, 0.05),  # over inputs and over outputs
        ((81, 267, 97), 72, 0.35),  # both over one hidden layer
    ],
)
def test_a_network_pruned_for_a_memory_meets_the_bound_whatever_its_neurons_are_called(
    widths: tuple[int, ...], memory: int, density: float
) -> None:
    mask = memory_mask(widths, memory=memory, density=density)
    network = by_layers(list(widths), list(zip(mask.network.sources, mask.network.targets, strict=True)), 3)
    found = count_io(network, order(network, "windows", memory=memory), memory=memory).total
    assert mask.proved and found == mask.bound


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 8)), max_size=40), st.booleans())
def test_rows_are_those_of_the_oracle(pairs: list[tuple[int, int]], moved: bool) -> None:
    group, item = (np.array([pair[k] for pair in pairs], np.int32) for k in (0, 1))
    found = fewest_at_a_time(group, item, 10, 9, lambda: False, moved)
    assert found.tolist() == rows_oracle.fewest_at_a_time(pairs, 9, moved)


def test_rows_of_more_items_than_a_word_has_bits() -> None:
    """A path of items with shuffled numbers: each shares a group with the next; a row along it has fewest there."""
    number = np.random.default_rng(3).permutation(150).astype(np.int32)
    group, item = np.repeat(np.arange(149, dtype=np.int32), 2), np.stack((number[:-1], number[1:]), axis=1).ravel()
    row = fewest_at_a_time(group, item, 149, 150, lambda: False)
    assert np.abs(np.diff(np.argsort(number)[row])).max() == 1
    cut = fewest_at_a_time(group, item, 149, 150, lambda: True)
    assert sorted(cut.tolist()) == list(range(150))


def test_without_windows_no_more_is_moved_than_row_by_row() -> None:
    rng = np.random.default_rng(1)
    pairs = [(int(a), 40 + b) for b in range(40) for a in rng.choice(40, 8, replace=False)]
    network = by_layers([40, 40], pairs, 1)
    found, plain = (order(network, method, memory=10) for method in ("windows", "two-optimal"))
    assert count_io(network, found, memory=10).total <= count_io(network, plain, memory=10).total


@pytest.mark.parametrize(
    ("stay", "stream", "seed"), [((12, 9, 7), (60, 40), 0), ((5, 20), (200,), 1), ((8, 8, 8, 8), (30, 30, 30), 2)]
)
def test_layers_that_stay_whole_beside_layers_that_stream_meet_the_bound(
    stay: tuple[int, ...], stream: tuple[int, ...], seed: int
) -> None:
    """Any connections, any numbers of neurons: two layers stay, one neuron streams, one place is the connection's."""
    rng = np.random.default_rng(seed)
    widths = [width for pair in zip(stay, (*stream, 0), strict=True) for width in pair if width]
    first = np.cumsum([0, *widths])
    ends = [  # each neuron is fed by the first one before it at least, so that it is at the depth of its layer
        np.argwhere((rng.random((a, b)) < 0.5) | (np.arange(a)[:, None] == 0)) + np.array([first[k], first[k + 1]])
        for k, (a, b) in enumerate(pairwise(widths))
    ]
    s, t = np.concatenate(ends).T
    network = Network(
        s, t, n_neurons=int(first[-1]), inputs=np.arange(widths[0]), outputs=np.arange(first[-2], first[-1])
    )
    memory = max(a + b for a, b in pairwise(stay)) + 2
    found = order(network, "windows", memory=memory)
    check_order(network, found.edges)
    assert count_io(network, found, memory=memory).total == io_bounds(network).lower_total
