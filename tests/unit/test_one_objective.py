"""One network and machine cost the same, to the digit, through every command; what is not the usual is named."""

import json

import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.results.record_rows import order_label, row_of
from traces.base.errors import InputError
from traces.generators.networks import random_layered
from traces.readers.native import save


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(random_layered(2, 24, 0.3, seed=1), "net.npz")
    return tmp_path


def said(*arguments):
    done = CliRunner().invoke(app, [*arguments, "--json", "out.json"], env={"COLUMNS": "80"})
    assert done.exit_code == 0, (arguments, done.output, done.exception)
    with open("out.json") as stream:
        return json.load(stream)


@pytest.mark.parametrize("system", ["scratchpad-8k", "edge"])
def test_five_commands_give_the_same_numbers(here, system):
    orders = "[two-optimal, {kind: auto, moves: 100, rounds: 2}]"
    (here / "run.yaml").write_text(f"network: {{file: net.npz}}\nsystem: {system}\norderings: {orders}\n")
    (here / "best.yaml").write_text("base: run.yaml\noptimize: {trials: 4}\n")
    rows = said("run", "run.yaml")
    found = {"run": [(row["energy_pj"], row["time_ns"]) for row in rows]}
    swept = said("sweep", "run.yaml", "-o", "s", "--executor", "inline")
    found["sweep"] = [(row["energy_pj"], row["time_ns"]) for row in swept["rows"]]
    machine = said("order", "net.npz", "--system", system, "-s", "moves=100", "-s", "rounds=2")["machine"]
    found["order"] = [(machine[name]["energy"], machine[name]["time"]) for name in ("two-optimal", "auto")]
    budget = ("-s", "moves=100", "-s", "rounds=2")
    (point,) = said("pays", "net.npz", "--system", system, "--size", "8KiB", *budget)["points"]
    found["pays"] = [(point[name]["energy"], point[name]["time"]) for name in ("against", "order")]
    best = said("optimize", "best.yaml", "-o", "o", "--executor", "inline")
    found["optimize"] = [(best["baseline"]["energy_pj"], best["baseline"]["time_ns"])]
    for command, costs in found.items():
        assert costs == found["run"][: len(costs)], command
    assert set((row["energy_pj"], row["time_ns"]) for row in best["front"]) <= set(found["run"])


def test_an_objective_that_is_not_the_usual_is_named(here):
    orders = ["two-optimal", {"kind": "auto", "moves": 50}]
    net = {"network": {"file": "net.npz"}, "system": "edge", "orderings": orders}
    plain, aimed = ew.run({**net, "search": {"objective": "io"}})
    assert order_label(plain.config) == "two-optimal"
    assert order_label(aimed.config) == "auto (moves=50) for I/Os"
    alone = ew.run({**net, "measure": "io"})[1]
    assert alone.config["search"]["objective"] == "io" and order_label(alone.config) == "auto (moves=50)"


def test_a_search_that_was_cut_says_so(here):
    slow = {"kind": "connection-reordering", "iterations": 10**8}
    config = {"network": {"file": "net.npz"}, "measure": "io", "orderings": [slow], "search": {"time_limit_s": 0.05}}
    (record,) = ew.run(config)
    done = record.results["ordering"]["curve"][-1][0]
    assert row_of(record)["ordering"].endswith(f", cut at {done} of 100000000")


def test_a_policy_that_the_machine_does_not_have_is_refused(here):
    """It was taken from any word, and left out."""
    for system in ("scratchpad-8k", "edge"):
        done = CliRunner().invoke(app, ["order", "net.npz", "--system", system, "--policy", "lru", "-m", "two-optimal"])
        assert "policy 'lru': the machine has" in str(done.exception)
    machine = {"objective": "energy", "machine": "scratchpad-8k", "memory": None}
    with pytest.raises(InputError, match="pinning 'pin_both': the machine has a scratchpad of pinning literal"):
        ew.order(ew.load("net.npz"), "auto", pinning="pin_both", **machine)


def test_a_memory_beside_that_of_the_machine_is_said(here):
    done = CliRunner().invoke(app, ["order", "net.npz", "--system", "scratchpad-8k", "-M", "50", "-m", "two-optimal"])
    assert "I/Os and bounds are those of M = 50; the machine holds M = 113" in done.output
