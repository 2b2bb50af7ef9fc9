"""`edgewatt order` as a user meets it."""

import json
from pathlib import Path

import numpy as np
import pytest
from local_networks import local_network
from oracles.theory import dense_layers
from typer.testing import CliRunner

from edgewatt.cli import app
from edgewatt.cli.parts.output import read_value
from hwmodel.fastmemory.iomodel import count_io
from reorder.base import check_order
from traces.base.errors import InputError
from traces.networks.network import Network
from traces.readers.native import save


@pytest.fixture
def file(tmp_path: Path) -> str:
    save(dense_layers([12, 10, 8]), tmp_path / "net.npz")
    return str(tmp_path / "net.npz")


def test_the_table_and_the_files(file: str, tmp_path: Path) -> None:
    method = ["-m", "connection-reordering", "-s", "iterations=200", "--memory", "7", "--policy", "lru"]
    done = CliRunner().invoke(app, ["order", file, *method, "-o", str(tmp_path / "order.npz")])
    assert done.exit_code == 0, done.output
    for text in ("two-optimal", "connection-reordering", "I/Os under RR", "gap:", "best lower bound"):
        assert text in done.output
    network = dense_layers([12, 10, 8])
    with np.load(tmp_path / "order.npz", allow_pickle=False) as data:
        edges = check_order(network, data["edges"])
        assert json.loads(str(data["made_with"]))["memory"] == 7
    done = CliRunner().invoke(app, ["order", file, *method, "--json", "-"])
    result = json.loads(done.stdout)
    expected = count_io(network, edges, memory=7, policy="lru").total
    assert result["orders"]["connection-reordering"]["total"] == expected
    assert result["lower_bound"] <= result["best_lower_bound"] <= expected
    assert result["gap"] == (expected - result["lower_bound"]) / (
        result["orders"]["two-optimal"]["total"] - result["lower_bound"]
    )


@pytest.mark.parametrize(("policy", "known"), [("min", 35), ("lru", None), ("rr", None)])
def test_a_small_network_is_proved_optimal(tmp_path: Path, policy: str, known: int | None) -> None:
    """Its 14 connections can be checked by hand; other bounds prove less."""
    sources, targets = [0, 0, 0, 0, 1, 1, 1, 1, 2, 4, 4, 5, 7, 8], [2, 5, 7, 8, 3, 4, 5, 10, 3, 6, 8, 7, 10, 9]
    save(Network(sources, targets, 11, [0, 1], [3, 6, 9, 10, 2, 4]), tmp_path / "net.npz")
    wish = ["order", str(tmp_path / "net.npz"), "--memory", "3", "--policy", policy]
    result = json.loads(CliRunner().invoke(app, [*wish, "--json", "-"]).stdout)
    assert result["proved_optimal"] and result["best_lower_bound_argument"] == "search"
    assert known in (None, result["best_lower_bound"])
    assert f"no order has fewer I/Os, under {policy.upper()}" in CliRunner().invoke(app, wish).output


@pytest.mark.parametrize(
    ("memory", "policy", "proved"), [("700", "lru", True), ("500", "min", True), ("60", "min", False)]
)
def test_an_order_that_meets_the_bound_is_called_optimal(
    tmp_path: Path, memory: str, policy: str, proved: bool
) -> None:
    """A network with locality: its front fits in 500 values, and not in 60."""
    save(local_network(14, [3, 4, 4], 0.7, seed=5), tmp_path / "net.npz")
    wish = ["order", str(tmp_path / "net.npz"), "-m", "sweep", "--memory", memory, "--policy", policy]
    done = CliRunner().invoke(app, wish)
    assert done.exit_code == 0, done.output
    assert ("proved optimal: it meets the bound" in done.output) is proved
    result = json.loads(CliRunner().invoke(app, [*wish, "--json", "-"]).stdout)
    assert result["proved_optimal"] is proved
    assert (result["orders"]["sweep"]["total"] == result["best_lower_bound"]) is proved


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "two-optimum"], "did you mean 'two-optimal'"),
        (["--memory", "2"], "at least 3"),
        (["-m", "ego", "-s", "window"], "write NAME=VALUE"),
        (["-m", "ego", "-s", "windw=3"], "did you mean 'window'"),
        (["-m", "ego", "--objective", "{kind: weighted"], "cannot be read"),
        (["--time-limit", "0"], "time_limit_s is 0"),
        (["-m", "ego", "-o", "no/such/folder/order.npz"], "cannot be written"),
        (["-o", "order.mtx"], "-o order.mtx: an order is written as npz: give the file a name that ends in .npz"),
        (
            ["--renumber", "net.mtx"],
            "--renumber net.mtx: a network is written as npz: give the file a name that ends in",
        ),
    ],
)
def test_bad_requests(file: str, arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["order", file, *arguments])
    assert isinstance(done.exception, InputError) and message in str(done.exception)


def test_values_from_the_command_line() -> None:
    texts = ("3", "1e-3", "0.5", "true", "two-optimal", "{kind: weighted, a: 0.5, b: 1}")
    assert [read_value(text) for text in texts] == [
        3, 1e-3, 0.5, True, "two-optimal", {"kind": "weighted", "a": 0.5, "b": 1},
    ]  # fmt: skip
