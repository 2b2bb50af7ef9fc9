"""Where an order stops paying: bisection against the full grid, the sentence, the page and the command."""

import json

import numpy as np
import pytest
from oracles.trace_oracle import random_network, topological_order
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.orders.pays import METRICS, last_saving
from edgewatt.orders.pays_machine import legal_sizes
from edgewatt.orders.pays_page import pays_page
from traces.base.errors import InputError
from traces.base.resources import shipped_names

NETWORK = "configs/examples/networks/digits_small.npz"


def machine(**options):
    return ew.Machine(scratchpad=ew.ScratchpadSpec(512, stream_bytes=64, **options), part="lpddr4-3200")


@pytest.mark.parametrize("few_sizes", [0, 24])
@pytest.mark.parametrize("seed", range(20))
def test_break_even_equals_the_full_grid(seed, few_sizes, monkeypatch):
    """I/Os and bytes by bisection alone; energy and time, which need not fall steadily, where few sizes are legal."""
    monkeypatch.setattr("edgewatt.orders.pays.FEW_SIZES", few_sizes)
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    edges = topological_order(network, rng, rows=False)
    legal = legal_sizes(network, machine(), 4)
    grid = ew.pays(network, "two-optimal", against=edges, system=machine(), sizes=legal, lanes=[4], timing="replay")
    found = ew.pays(
        network, "two-optimal", against=edges, system=machine(), sizes=legal[:: max(len(legal) // 4, 1)] + legal[-1:],
        lanes=[4], timing="replay",
    )  # fmt: skip
    choice = str(grid.points[0].choice)
    for metric in METRICS if few_sizes else ("io", "bytes"):
        saves = [point.size_bytes for point in grid.points if point.saving(metric) > 0]
        assert found.break_even[choice][metric] == (max(saves) if saves else None), metric


def test_bisection_asks_few_sizes():
    asked = []

    def saving(size):
        asked.append(size)
        return 700.5 - size

    assert last_saving(saving, [1, 500, 1000], list(range(1, 1001))) == (700, False)
    assert len(asked) < 25
    assert last_saving(lambda size: 1.0, [1, 5], [1, 2, 5]) == (5, True)
    assert last_saving(lambda size: -1.0, [1, 5], [1, 2, 5]) == (None, False)


def test_verdict_reason_and_page():
    network = ew.load(NETWORK)
    order = ew.order(network, "connection-reordering", memory=113, iterations=5000)
    found = ew.pays(network, order, system="scratchpad-8k", sizes=[2048, 8192, 65536], lanes=[16], timing="replay")
    assert found.verdict.startswith("connection-reordering against two-optimal on lpddr4-3200, fp32, 16 lanes, min: ")
    assert "The reason at" in found.verdict and found.layout == "tuples"
    page = pays_page(found)
    assert (
        "connection-reordering against two-optimal on lpddr4-3200" in page
        and "class=edge" in page
        and "http" not in page
    )
    assert json.loads(json.dumps(found.as_dict()))["points"]
    big = next(point for point in found.points if point.size_bytes == 8192)
    assert big.memory == 113 and sum(big.order["streams"].values()) == big.order["bytes"]
    assert sum(big.order["terms"].values()) == pytest.approx(big.order["energy"])


def test_caches_vary_by_legal_sizes():
    network = ew.load(NETWORK)
    found = ew.pays(network, "by-source", system="edge", sizes=[8192, 20000], lanes=[4], timing="replay")
    assert [point.size_bytes for point in found.points] == [8192, 16384]


def test_bad_input(tmp_path):
    network = ew.load(NETWORK)
    with pytest.raises(InputError, match="the order has 3 entries, the network 8000 connections"):
        ew.pays(network, [0, 1, 2], system="scratchpad-8k")
    with pytest.raises(InputError, match="neither caches nor a scratchpad"):
        ew.pays(network, "by-source", system={"caches": []})
    with pytest.raises(InputError, match="timing must be"):
        ew.pays(network, "by-source", system="edge", timing="guess")
    (tmp_path / "order.txt").write_text("0\n1\n2\n")
    wrong = CliRunner().invoke(app, ["pays", NETWORK, "--order", str(tmp_path / "order.txt"), "--system", "edge"])
    assert isinstance(wrong.exception, InputError) and "an order belongs to one network" in str(wrong.exception)


def test_command(tmp_path):
    page = tmp_path / "pays.html"
    arguments = ["pays", NETWORK, "--order", "by-source", "--system", "scratchpad-8k", "--size", "8192", "--lanes", "4"]
    found = CliRunner().invoke(app, [*arguments, "-o", str(page)])
    assert found.exit_code == 0, found.output
    assert "by-source against two-optimal" in found.output and page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("system", shipped_names("systems"))
def test_every_shipped_system_gives_an_answer(system):
    network = ew.load(NETWORK)
    found = ew.pays(network, "by-source", system=system, timing="replay")
    assert len(found.points) >= 3 and found.verdict.startswith("by-source against two-optimal on ")


def test_sizes_without_energies_are_refused_by_name():
    tiny = ew.Machine(scratchpad=ew.ScratchpadSpec(128, stream_bytes=64), part="lpddr4-3200", technology="lop-22nm")
    with pytest.raises(InputError, match="has no energies for on-chip memories of"):
        legal_sizes(random_network(np.random.default_rng(1)), tiny, 1)
