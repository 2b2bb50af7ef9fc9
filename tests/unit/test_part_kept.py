"""Tiles between which part of a layer stays, against loops, and what they save."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags

from hwmodel.fastmemory.iomodel import count_io
from reorder.base import check_order
from reorder.order import order
from traces.generators.networks import uniform_layers
from traces.networks.network import Network


def loops(widths: list[int], size: int) -> list[tuple[int, int]]:
    """Return (source, target) of a dense chain's connections: tiles of each layer, with what is begun ahead of it."""
    first = np.concatenate(([0], np.cumsum(widths))).tolist()
    layers = [list(range(a, b)) for a, b in itertools.pairwise(first)]
    ahead = [layer[: len(layer) % size] if len(layer) >= 2 * size else [] for layer in layers]
    ahead = [few if k > 1 and 4 * len(few) <= size else [] for k, few in enumerate(ahead)] + [[]]
    found: list[tuple[int, int]] = []
    for k, (before, layer) in enumerate(itertools.pairwise(layers), 1):
        rest = [v for v in layer if v not in ahead[k]]
        tiles = -(-len(rest) // size)
        cut = [[v for j, v in enumerate(rest) if j * tiles // len(rest) == one] for one in range(tiles)]
        for number, tile in enumerate([ahead[k], *cut]):
            if number:
                found += [(s, t) for s in reversed(before) for t in tile]
            found += [(s, t) for s in reversed(tile) for t in ahead[k + 1]]
    return found


@pytest.mark.parametrize("widths", [[7, 9, 8], [5, 13, 13, 13], [9, 17, 2, 9, 9], [4]])
@pytest.mark.parametrize("size", [4, 8, 20])
def test_the_order_is_a_nest_of_loops(widths: list[int], size: int) -> None:
    network = uniform_layers([*widths, 3], 1.0, seed=0)
    edges = order(network, "part-kept", memory=size + 2).edges
    pairs = zip(network.sources[edges].tolist(), network.targets[edges].tolist(), strict=True)
    assert list(pairs) == loops([*widths, 3], size)


@settings(deadline=None)
@given(dags(), st.integers(1, 5))
def test_any_network_has_such_an_order(network: Network, targets: int) -> None:
    check_order(network, order(network, "part-kept", memory=5, targets=targets).edges)


def test_what_stays_is_not_written() -> None:
    """Dense layers of 20, M = 18: tiles of 10, so 6 of 17 values are free, and 6 of each hidden layer stay unwritten.

    Going to and fro loads as little, but writes all 20, as MIN keeps those used last.
    """
    network = uniform_layers([20] * 4, 1.0, seed=0)
    kept, turning = (count_io(network, order(network, name, memory=18), memory=18) for name in ("part-kept", "tiles"))
    assert kept.reads_neurons == turning.reads_neurons
    assert (kept.writes_live, turning.writes_live) == (2 * (20 - 6), 2 * 20)


def test_targets_beyond_full_tiles_are_begun_ahead() -> None:
    """Of 41 neurons 1 is beyond two tiles of 20: three tiles of 14 load more of their sources."""
    network = uniform_layers([41] * 4, 1.0, seed=0)
    totals = [
        count_io(network, order(network, "part-kept", memory=22, **targets), memory=22).total
        for targets in ({}, {"targets": 14})
    ]
    assert totals[0] < totals[1]
