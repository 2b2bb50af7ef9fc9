"""`edgewatt dram`: a table for people, JSON for programs, a command trace that our own reader takes."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from edgewatt.cli import app
from hwmodel.dram.checker import check_trace
from hwmodel.dram.command_table import command_table, count_commands
from hwmodel.dram.engine import load_part, simulate_dram
from hwmodel.energy.replay import replay_energy
from hwmodel.machine import Machine
from hwmodel.replay import replay
from traces.access.trace import Chunk, Memory, Trace
from traces.base.errors import InputError


@pytest.fixture
def requests(tmp_path):
    file = tmp_path / "requests.trc"
    lines = [f"0x{(k * 7919 % 4096) * 32:X} {'WRITE' if k % 5 == 0 else 'READ'} {k * 20}" for k in range(400)]
    file.write_text("\n".join(lines) + "\n")
    return file


def test_table_explain_check_and_command_trace(requests, tmp_path):
    out = tmp_path / "commands.csv"
    shown = CliRunner().invoke(app, ["dram", str(requests), "--explain", "--check", "--commands", str(out)])
    assert shown.exit_code == 0, shown.output
    assert "every command is legal" in shown.output and "activates" in shown.output
    part = load_part("lpddr4-3200")
    table = command_table(out, part=part)
    assert not check_trace(table, part=part)
    result = CliRunner().invoke(app, ["dram", str(requests), "--json", "-"])
    report = json.loads(result.stdout)
    assert report["requests"] == 400 and report["commands"]["RD"] == count_commands(table, part=part).reads
    assert report["core_energy_pj"] == pytest.approx(sum(row["energy_pj"] for row in report["terms"]))


def test_controller_parameters_and_mistakes(requests):
    closed = CliRunner().invoke(app, ["dram", str(requests), "--set", "page_policy=closed", "--json", "-"])
    assert json.loads(closed.stdout)["commands"]["RDA"] > 0
    for arguments, words in ((["--set", "page_polcy=closed"], "page_policy"), (["--set", "closed"], "KEY=VALUE")):
        refused = CliRunner().invoke(app, ["dram", str(requests), *arguments])
        assert isinstance(refused.exception, InputError) and words in str(refused.exception)


def test_latencies_banks_and_wires(requests):
    """Percentiles and banks as NumPy counts them; the wires that need no data cost what a replay charges for them."""
    report = json.loads(CliRunner().invoke(app, ["dram", str(requests), "--json", "-"]).stdout)
    address = np.array([(k * 7919 % 4096) * 32 for k in range(400)], np.uint64)
    write = np.array([k % 5 == 0 for k in range(400)])
    result = simulate_dram(address, write, np.arange(400) * 20, part="lpddr4-3200")
    latency = (result.done_cycle - result.accept_cycle)[~write]
    found = [report[f"read_latency_p{p}_cycles"] for p in (50, 95, 99)]
    assert found == [int(np.percentile(latency, p, method="inverted_cdf")) for p in (50, 95, 99)]
    assert sum(step["requests"] for step in report["read_latency_histogram"]) == len(latency)
    assert sum(bank["hits"] for bank in report["banks"]) == report["row_hits"]
    assert sum(bank["bursts"] for bank in report["banks"]) == report["commands"]["RD"] + report["commands"]["WR"]
    part = load_part("lpddr4-3200")
    trace = Trace.from_chunks(
        [Chunk(address, np.full(400, 32, np.uint8), write.astype(np.uint8), np.zeros(400, np.uint8),
               cycle=np.arange(400) * 20)], Memory(0, 4096 * 32, None)
    )  # fmt: skip
    machine = Machine((), part=part)
    rows = {row.term: row.energy_pj for row in replay_energy(replay(trace, machine), machine).interface}
    assert {row["term"]: row["energy_pj"] for row in report["interface_terms"]} == pytest.approx(rows)
    assert report["total_energy_pj"] == pytest.approx(report["core_energy_pj"] + sum(rows.values()))


def test_the_file_of_the_c_library(tmp_path):
    file = tmp_path / "part.edram"
    shown = CliRunner().invoke(app, ["part", "library", "hbm2", str(file), "--set", "page_policy=closed"])
    assert shown.exit_code == 0 and "edgewatt_dram_open" in shown.output
    assert file.read_text().startswith("edgewatt-dram 2 ")


def test_parts_are_listed_with_what_one_compares_them_by():
    rows = json.loads(CliRunner().invoke(app, ["list", "parts", "--json", "-"]).stdout)
    text = json.dumps(rows)
    assert "LPDDR4, 3,200 MT/s, 16 data wires, 1 GiB, 5.26 pJ per bit read in the core" in text
    assert "HBM2" in text and "currents are estimates" in text
