"""Objective `energy`: the order whose off-chip transfers take least on a machine; recomputation on the command line."""

import numpy as np
import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.operators.energy import OperatorMachine, machine_of, operator_energy
from reorder.operators.schedule.operator_problem import footprint
from traces.base.errors import InputError


def test_no_order_that_was_tried_takes_less() -> None:
    graph = ew.generators.randwire("ws", 16, stages=1, seed=3)
    on = OperatorMachine(64 * 1024)
    found = ew.schedule(graph, objective="energy", machine=on, evaluations=300)
    assert found.objective == "energy" and not found.proved
    own = operator_energy(graph, found.order, onchip_bytes=on.onchip_bytes)
    assert own["total_pj"] == found.details["energy"]["total_pj"] == found.details["candidates_pj"][0]
    for other in (np.arange(graph.n_nodes), ew.schedule(graph, method="kahn-fifo").order, ew.schedule(graph).order):
        assert own["total_pj"] <= operator_energy(graph, other, onchip_bytes=on.onchip_bytes)["total_pj"]
    assert footprint(graph, found.order).peak_bytes == found.peak_bytes
    assert found.arena_bytes >= found.peak_bytes
    assert (
        found.traffic_bytes
        == ew.operators.offchip_traffic(graph, found.order, onchip_bytes=on.onchip_bytes).total_bytes
    )


def test_systems_say_what_the_machine_is() -> None:
    assert machine_of("scratchpad-64k") == OperatorMachine(65536, "lpddr4-3200", "dbi-dc")
    assert machine_of("application-core").onchip_bytes == 256 * 1024
    with pytest.raises(InputError, match="scratchpad-64k"):
        machine_of("scratchpad-64")
    with pytest.raises(InputError, match=r"needs a machine \(--system\)"):
        ew.schedule(ew.generators.cell("darts_v2"), objective="energy")
    with pytest.raises(InputError, match="belongs to the objective"):
        ew.schedule(ew.generators.cell("darts_v2"), machine="edge")


def test_energy_on_the_command_line() -> None:
    options = ["--system", "scratchpad-8k", "--evaluations", "100"]
    done = CliRunner().invoke(app, ["schedule", "randwire-ws16", "--objective", "energy", *options])
    assert done.exit_code == 0, done.output
    assert "off-chip energy of" in done.output and "the least of" in done.output
