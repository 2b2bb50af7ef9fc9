"""`pays` and `order` answer one question on one machine: their figures and their orders are the same."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.evaluation.machine_cost import order_on_machine, view_on_machine
from edgewatt.orders.ordering import machine_cost_for
from traces.base.errors import InputError
from traces.generators.networks import random_layered
from traces.networks.network import Network
from traces.readers.native import save

SYSTEMS = {
    "edge": 16,
    "scratchpad-8k": 64,
    "cache": 4,
    "two levels": 4,
    "a size between two rows": 16,
}
KEYS = {
    "cache": {"caches": [{"size_bytes": 1024, "line_bytes": 64, "ways": 4, "policy": "fifo"}], "encoder": "dbi-dc"},
    "two levels": {
        "caches": [
            {"size_bytes": 512, "line_bytes": 64, "ways": 2, "policy": "lru"},
            {"size_bytes": 2048, "line_bytes": 64, "ways": 4, "policy": "lru"},
        ]
    },
    "a size between two rows": {"scratchpad": {"size_bytes": 2351, "policy": "lru", "stream_bytes": 1024}},
}


@pytest.fixture(scope="module")
def network() -> Network:
    return random_layered(3, 40, 0.2, seed=4)


@pytest.mark.parametrize("system", SYSTEMS)
def test_one_order_has_one_cost(network: Network, system: str) -> None:
    lanes, machine = SYSTEMS[system], KEYS.get(system, system)
    judge = machine_cost_for(network, "energy", machine, lanes=lanes)
    size = judge.machine.scratchpad.size_bytes if judge.machine.scratchpad else judge.machine.caches[0].size_bytes
    rows = ew.order(network, "depth-first", memory=8)  # keeps rows whole, as two-optimal does
    for found in (order_on_machine(judge, "auto", rounds=1, moves=500), rows):
        view = view_on_machine(judge, found)
        study = ew.pays(network, found, system=machine, lanes=[lanes])
        (point,) = [point for point in study.points if point.size_bytes == size]
        assert point.order == view.cost and point.against == view.plain
        assert point.reason() in view.sentence, "both of one inference"
        assert study.layout == judge.layout.kind


def test_shared_weights_are_streamed_with_their_connections_by_every_command(network: Network, tmp_path: Path) -> None:
    """`run` chose tuples for a convolution on a scratchpad; the other two refused it."""
    shared = np.arange(network.n_connections) % 7
    network = network.with_(weights=(1.0 + shared).astype(np.float32), weight_ids=shared)
    save(network, str(tmp_path / "net.npz"))
    found = order_on_machine(machine_cost_for(network, "energy", "scratchpad-8k"), "depth-first")
    (record,) = ew.run({
        "network": {"file": str(tmp_path / "net.npz")}, "system": "scratchpad-8k", "orderings": ["depth-first"],
        "layout": {"kind": "tuples"}
    })  # fmt: skip
    points = ew.pays(network, found, system="scratchpad-8k", sizes=[8192]).points
    cost = record.results["energy_pj"]["total"]
    assert found.parameters["value"] == pytest.approx(cost) and points[0].order["energy"] == pytest.approx(cost)
    run = CliRunner().invoke
    done = run(app, ["order", str(tmp_path / "net.npz"), "--system", "scratchpad-8k", "-m", "depth-first"])
    assert done.exit_code == 0 and "layout tuples" in " ".join(done.output.split()), done.output


@pytest.mark.parametrize(("system", "objective"), [("edge", None), ("cache", "time")])
def test_pays_searches_for_the_machine_as_order_does(system: str, objective: str | None) -> None:
    network, lanes, machine = random_layered(2, 20, 0.3, seed=4), SYSTEMS[system], KEYS.get(system, system)
    what = objective or "energy"
    mine = ew.order(network, "auto", memory=None, objective=what, machine=machine, lanes=lanes)
    study = ew.pays(network, "auto", system=machine, lanes=[lanes], objective=objective)
    own = [point for point in study.points if point.order[what] == mine.parameters["value"]]
    assert own and own[0].against[what] == mine.parameters["two_optimal"]


@pytest.mark.parametrize("objective", ["energy", "bytes"])
@pytest.mark.parametrize("system", ["edge", "scratchpad-8k", "cache", "two levels"])
def test_a_search_for_the_machine_is_not_above_one_for_ios(network: Network, system: str, objective: str) -> None:
    lanes, machine = SYSTEMS[system], KEYS.get(system, system)
    own, against = (
        ew.pays(network, "auto", system=machine, lanes=[lanes], objective=each).points for each in (objective, "io")
    )
    judge = machine_cost_for(network, objective, machine, lanes=lanes)
    size = (judge.machine.scratchpad or judge.machine.caches[0]).size_bytes
    mine, theirs = ([p.order[objective] for p in points if p.size_bytes == size] for points in (own, against))
    assert len(mine) == len(theirs) == 1 and mine[0] <= theirs[0]


def test_the_two_commands_agree(network: Network, tmp_path: Path) -> None:
    file, order = str(tmp_path / "net.npz"), str(tmp_path / "order.npz")
    save(network, file)
    run = CliRunner().invoke
    done = run(app, ["order", file, "--system", "edge", "--time-limit", "1", "-o", order, "--json", "-"])
    assert done.exit_code == 0, done.output
    view = json.loads(done.stdout)["machine"]
    done = run(app, ["pays", file, "--order", order, "--system", "edge", "--json", "-"])
    assert done.exit_code == 0, done.output
    points = json.loads(done.stdout)["points"]
    assert [p["order"] for p in points if p["against"] == view["two-optimal"]] == [view["auto"]]
    done = run(app, ["order", file, "--system", "edge", "-m", "file", "-s", f"path={order}", "--json", "-"])
    assert json.loads(done.stdout)["machine"]["file"] == view["auto"]


def test_what_cannot_be_is_said(network: Network) -> None:
    by_source = np.argsort(network.sources, kind="stable")
    with pytest.raises(InputError, match="layout 'csr' cannot store the order 'order'"):
        ew.pays(network, by_source, system="edge", layout="csr")
    with pytest.raises(InputError, match="a machine is for the objectives energy, time, bytes, not 'watts'"):
        ew.pays(network, "by-source", system="edge", objective="watts")
    with pytest.raises(InputError, match="no weights, and a machine, which moves"):
        ew.pays(network.with_(weights=None), "by-source", system="edge")
