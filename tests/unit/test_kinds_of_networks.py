"""What the search gains on single kinds of networks stays gained. Limits are steps, so that counts repeat."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from orderbench import instances
from orderbench.instances import Pairs

import reorder.edges.methods.residency as residency
from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.edges.methods.auto import constructions
from reorder.edges.methods.residency import ResidencyParameters
from reorder.edges.search.budget import Best, Budget
from reorder.edges.search.intervals import Items
from reorder.edges.search.locality import neuron_coordinates
from reorder.order import order
from traces.networks.network import Network


def network_of(made: tuple[int, Pairs]) -> Network:
    """Return a generator's network: what nothing goes into is an input, what goes nowhere an output."""
    sources, targets = np.array(made[1]).T
    inputs, outputs = np.setdiff1d(sources, targets), np.setdiff1d(targets, sources)
    return Network(sources, targets, n_neurons=made[0], inputs=inputs, outputs=outputs)


def test_edge_moves_under_rr_begin_from_the_annealed_order() -> None:
    """From the best order, which is mostly one of fewer slots, they end 1.2 % higher, at 20,454."""
    network = network_of(instances.blocks(Random("block0"), [256, 256, 256], 32))
    found = order(network, "residency", memory=24, policy="rr", moves=1_000_000)
    assert count_io(network, found, memory=24, policy="rr").total < 20_330


def test_a_tree_has_no_locality_and_the_heaviest_subtree_comes_first() -> None:
    network = network_of(instances.tree(Random("tree"), 1500, 3))
    assert neuron_coordinates(Items(network)) is None
    for policy in ("min", "lru", "rr"):
        assert order(network, "auto", memory=8, policy=policy, moves=0).parameters["found_by"] == "sethi-ullman"
    found = order(network, "auto", memory=8, moves=0)
    assert count_io(network, found, memory=8).total <= io_bounds(network).lower_total + 2


def test_windows_that_slide_are_found_in_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a network whose connections are too many for what one construction may take at first."""
    monkeypatch.setattr(Budget, "clock", staticmethod(lambda: 0.0))
    network = network_of(instances.windows(Random("windows"), 384, 1000, 60, 24))
    assert network.n_connections > 40_000
    found = order(network, "auto", memory=123, moves=0, time_limit_s=1.0)
    assert count_io(network, found, memory=123).total <= io_bounds(network).lower_total + 20


KINDS = {
    "message passing": instances.graph(Random("graph"), 120, 8, 3),
    "square grid": instances.grid(Random("grid"), 10, 5),
    "stencil": instances.stencil(Random("stencil"), 60, 10),
    "tree": instances.tree(Random("tree"), 400, 3),
    "butterflies": instances.fft(Random("fft"), 6),
    "blocks": instances.blocks(Random("blocks"), [48, 48, 48], 12),
    "dense": instances.dense(Random("dense"), [40, 40, 40]),
}


@pytest.mark.parametrize("policy", ["min", "lru", "rr"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_construction_has_fewer_ios_than_the_portfolio(kind: str, policy: str) -> None:
    """Not even before it searches, and on a network with locality plans of what to fuse come first.

    On one without, the search makes the swaps at the end of `learned`.
    """
    network = network_of(KINDS[kind])
    fewer = {"learned": {"moves": 0}} if neuron_coordinates(Items(network)) is None else {}
    totals = {}
    for name, _ in constructions(network):
        alone = order(network, name, memory=20, policy=policy, **fewer.get(name, {}))
        totals[name] = count_io(network, alone, memory=20, policy=policy).total
    found = order(network, "auto", memory=20, policy=policy, moves=0)
    assert count_io(network, found, memory=20, policy=policy).total <= min(totals.values()), totals


def test_a_long_search_of_a_sparse_network_under_rr_anneals_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """With .93 of 10 s for edge moves the 1 % reference network of 7,500 connections had 1 % more I/Os."""
    network = network_of(instances.random_layers(Random("sparse"), [60] * 4, 0.05))
    shares: list[float] = []
    anneal = residency.anneal_for_objective

    def noting(items: Items, best: Best, parameters: ResidencyParameters, seconds: float, heat: float) -> object:
        shares.append(seconds)
        return anneal(items, best, replace(parameters, moves=100), seconds, heat)

    monkeypatch.setattr(residency, "anneal_for_objective", noting)
    monkeypatch.setattr(residency, "polish", lambda *given: None)
    for limit in (100.0, 0.05):
        order(network, "residency", memory=20, policy="rr", time_limit_s=limit, polish=None)
    assert shares[0] > 30 and shares[1] < 0.005
