"""The smallest memory with minimal I/Os: exact for an order, between two bounds for a network."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.least_io_oracle import least_io
from oracles.random_networks import dags
from oracles.theory import chains, dense_layers
from typer.testing import CliRunner

import edgewatt as ew
import reorder.edges.bounds.smallest as smallest
from edgewatt.cli import app
from traces.base.errors import InputError

NETWORK = "configs/examples/networks/digits_small.npz"


@settings(max_examples=60, deadline=None)
@given(dags(max_neurons=12), st.integers(0, 5))
def test_it_is_exact_for_an_order(network, seed):
    order = ew.order(network, "random-topological", memory=3, seed=seed)
    found = ew.orders.smallest_memory(network, order)
    least = ew.io_bounds(network).lower_total
    assert ew.count_io(network, order, memory=found.memory).total == least
    if found.memory > 3:
        assert ew.count_io(network, order, memory=found.memory - 1).total > least
    assert found.ordering is order and not found.searched


@settings(max_examples=25, deadline=None)
@given(dags(max_neurons=7))
def test_the_bounds_hold_the_true_one(network):
    """Against the least I/Os over all orders and evictions, by exhaustive search."""
    if network.n_connections > 8:
        return
    found = ew.orders.smallest_memory(network, moves=500)
    least = ew.io_bounds(network).lower_total
    truth = next(m for m in range(3, network.n_neurons + 3) if least_io(network, m) == least)
    assert found.lower_bound <= truth <= found.memory
    assert ew.count_io(network, found.ordering, memory=found.memory).total == least


def test_networks_whose_answer_is_known():
    pairs = [(chains(6, 3), 6), (dense_layers([3, 3]), 6)]
    for network, most in pairs:
        found = ew.orders.smallest_memory(network)
        assert found.lower_bound <= found.memory <= most
        assert found.exact == (found.lower_bound == found.memory)
    path = ew.orders.smallest_memory(dense_layers([1, 1, 1, 1]))
    assert path.exact and path.memory == 3


def test_command(tmp_path):
    order = tmp_path / "order.npz"
    found = CliRunner().invoke(app, ["order", NETWORK, "--smallest-memory", "-m", "two-optimal", "-o", str(order)])
    assert found.exit_code == 0, found.output
    assert "by two-optimal has W + N + S I/Os under MIN;" in found.output and "every order needs M" in found.output
    again = CliRunner().invoke(
        app, ["order", NETWORK, "--smallest-memory", "-m", "file", "-s", f"path={order}", "--json", "-"]
    )
    result = json.loads(again.stdout)
    network = ew.load(NETWORK)
    assert result["memory"] == ew.orders.smallest_memory(network, np.load(order)["edges"]).memory
    assert result["lower_bound"] <= result["memory"] and not result["exact"]


@pytest.mark.parametrize("words", ["--policy lru", "--pinning pin_both", "-M 40", "--lanes 4", "--system edge"])
def test_options_that_it_does_not_follow_are_refused(words):
    found = CliRunner().invoke(app, ["order", NETWORK, "--smallest-memory", *words.split()])
    assert isinstance(found.exception, InputError) and not found.stdout
    assert "leave out " + words.replace("-M", "--memory").split()[0] in str(found.exception)


def test_bad_input():
    with pytest.raises(InputError, match="the order has 3 entries"):
        ew.orders.smallest_memory(dense_layers([3, 3]), [0, 1, 2])
    with pytest.raises(InputError, match="two-optimal"):
        ew.orders.smallest_memory(dense_layers([3, 3]), method="two-optimum")


def test_a_search_has_the_steps_asked_for_whatever_it_calls_them():
    network = ew.load(NETWORK)
    for method, steps in (("connection-reordering", "iterations"), ("residency", "moves")):
        found = ew.orders.smallest_memory(network, method=method, moves=3)
        assert found.ordering.parameters[steps] == 3, method


def test_a_time_limit_is_that_of_all_searches(monkeypatch) -> None:
    """Each of them took it: five seconds were twenty."""
    now = [0.0]

    def slow(network, name, memory, seed, moves, time_limit_s):
        now[0] += time_limit_s
        return ew.order(network, "two-optimal", memory=3), max(40, memory)

    monkeypatch.setattr(smallest.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(smallest, "_try", slow)
    found = smallest.smallest_memory(dense_layers([30, 30, 30]), method="auto", time_limit_s=5.0)
    assert found.memory == 40 and now[0] <= 5.1 and len(found.searched) < 8
