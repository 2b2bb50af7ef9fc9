"""Tile orders against nested loops, and the best simple blocking."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags

import edgewatt as ew
from edgewatt.orders.ordering import machine_cost_for
from hwmodel.fastmemory.iomodel import count_io
from reorder.base import check_order
from reorder.edges.methods.tiles import Tile, best_tile, nearby_tiles, tile_choices
from reorder.order import order
from traces.generators.networks import uniform_layers
from traces.networks.network import Network

NETWORKS = Path(__file__).parents[2] / "configs" / "examples" / "networks"


def nested_loops(network: Network, tile: Tile) -> list[int]:
    """Return the order as loops over layers, tiles, targets and sources would visit the connections."""
    edges = {(int(s), int(t)): k for k, (s, t) in enumerate(zip(network.sources, network.targets, strict=True))}
    layers = [np.flatnonzero(network.depth == d).tolist() for d in range(int(network.depth.max()) + 1)]

    def cut(layer: list[int], size: int) -> list[list[int]]:
        """Cut into ceil(n / size) tiles; neuron k lies in tile k * tiles // n."""
        tiles = -(-len(layer) // size)
        return [[v for k, v in enumerate(layer) if k * tiles // len(layer) == one] for one in range(tiles)]

    found = []
    for depth in range(1, len(layers)):
        targets = cut(layers[depth], tile.targets)
        parts = [cut(layer, tile.sources) for layer in layers[:depth]]
        sources = [
            [v for part in parts for v in (part[k] if k < len(part) else [])] for k in range(max(map(len, parts)))
        ]
        outer, inner = (targets, sources) if tile.outer == "targets" else (sources, targets)
        for number, one in enumerate(outer):
            for other in inner if number % 2 else inner[::-1]:
                ts, ss = (one, other) if tile.outer == "targets" else (other, one)
                found += [edges[s, t] for t, s in itertools.product(ts, sorted(ss)) if (s, t) in edges]
    return found


@given(dags(), st.integers(1, 5), st.integers(1, 5), st.sampled_from(["targets", "sources"]))
@settings(deadline=None)
def test_a_tile_is_a_nest_of_loops(network: Network, targets: int, sources: int, outer: str) -> None:
    tile = Tile(targets, sources, outer)
    edges = tile.order(network)
    check_order(network, edges)
    if len(np.unique(network.sources * network.n_neurons + network.targets)) == len(edges):
        visited = nested_loops(network, tile)
        assert sorted(visited) == sorted(edges.tolist())
        found = [(network.depth[network.targets[e]], e) for e in edges.tolist()]
        assert [d for d, _ in found] == sorted(d for d, _ in found)
        assert edges.tolist() == visited


@pytest.mark.parametrize("policy", ["min", "lru", "rr"])
def test_the_best_tile_is_at_most_the_least_of_the_choices_and_of_those_near_it(policy: str) -> None:
    network = uniform_layers([60, 80, 40], 0.4, seed=3)

    def cost(edges: np.ndarray) -> float:
        return count_io(network, edges, memory=24, policy=policy).total

    found = best_tile(network, 24, cost, policy=policy)
    near = [tile for times in (2.0, 1.3) for tile in nearby_tiles(found.tile, 80, times)]
    assert found.value == cost(found.edges)
    assert found.value <= min(cost(tile.order(network)) for tile in (*near, *tile_choices(24, policy)))
    assert found.edges.tolist() == found.tile.order(network).tolist()
    first = best_tile(network, 24, cost, policy=policy, over=lambda: True)
    assert first.tile == tile_choices(24, policy)[0]


def test_row_by_row_is_a_blocking() -> None:
    """Message passing on a graph, where no larger tile is as good: beyond blocking an order saved more than in all."""
    rng = np.random.default_rng(0)
    rows = [np.unique([*rng.choice(200, 8, replace=False), i]) for i in range(200)]
    graph = sp.csr_matrix((rng.random(sum(map(len, rows))), np.concatenate(rows), np.cumsum([0, *map(len, rows)])))
    model = machine_cost_for(ew.from_matrices([graph] * 4), "energy", "edge", lanes=16, timing="replay")
    block = model.blocked()
    assert block is not None and block.value <= model(model.plain)


def test_tiles_larger_than_any_layer_are_not_the_end_of_the_choice() -> None:
    """Such a tile is row by row: with 64 KiB blocking had saved nothing."""
    network = ew.load(str(NETWORKS / "digits_small.npz"))
    (point,) = ew.break_even(network, "tiles", system="application-core", sizes=[65536]).points
    assert point.blocking is not None and point.blocking["energy"] < 0.98 * point.against["energy"]


@pytest.mark.parametrize("policy", ["min", "lru", "rr"])
@pytest.mark.parametrize(("density", "memory"), [(0.4, 24), (0.05, 40), (1.0, 12)])
def test_no_tile_near_that_of_the_method_is_better(policy: str, density: float, memory: int) -> None:
    network = uniform_layers([60, 80, 40], density, seed=3)

    def cost(tile: Tile) -> float:
        return count_io(network, tile.order(network), memory=memory, policy=policy).total

    width = int(np.bincount(network.depth).max())
    made = order(network, "tiles", memory=memory, policy=policy)
    tile = Tile(**made.parameters)
    assert made.edges.tolist() == tile.order(network).tolist()
    assert cost(tile) <= min(map(cost, [*nearby_tiles(tile, width), *tile_choices(memory, policy)[:4]]))
    fixed = order(network, "tiles", memory=memory, policy=policy, targets=7, sources=9, outer="sources")
    assert fixed.edges.tolist() == Tile(7, 9, "sources").order(network).tolist()


def test_auto_is_not_above_a_scan_of_square_tiles_under_round_robin() -> None:
    """Every second of four weights: 10,255 I/Os beyond W + N + S, where 44 x 52 tiles had 10,084."""
    rng = np.random.default_rng(1)
    kept = [[4 * group + rng.choice(4, 2, replace=False) for group in range(32)] for _ in range(128)]
    sources, targets = np.concatenate(list(map(np.concatenate, kept))), 128 + np.repeat(np.arange(128), 64)
    network = Network(sources, targets, 256, range(128), range(128, 256))
    scanned = min(
        count_io(network, Tile(targets, sources, "targets").order(network), memory=64, policy="rr").total
        for targets, sources in itertools.product(range(24, 40, 2), repeat=2)
    )
    found = order(network, "auto", memory=64, policy="rr", moves=0)
    assert count_io(network, found, memory=64, policy="rr").total <= scanned


def test_a_dense_layer_costs_what_the_loops_say() -> None:
    """24 sources, 40 targets, 10 partial sums stay (M = 12): each block reads all sources but those that stayed."""
    network = uniform_layers([24, 40], 1.0, seed=1)
    edges = Tile(10, 1, "targets").order(network)
    extra = count_io(network, edges, memory=12).total - network.n_connections - 64 - 40
    assert extra == 3 * 24 - 3  # four blocks; one source stays at each turn
    rounded = tile_choices(40, multiple=8)
    assert all(n % 8 == 0 or n < 8 for tile in rounded for n in (tile.targets, tile.sources))
