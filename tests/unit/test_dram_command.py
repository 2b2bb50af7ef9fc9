"""`edgewatt dram`: a table for people, JSON for programs, a command trace that our own reader takes."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import cython_ext.dram.engine as kernel
from edgewatt.cli import app
from hwmodel.dram.checker import check_trace
from hwmodel.dram.command_table import command_table, count_commands
from hwmodel.dram.engine import ControllerSpec, load_part, open_memory, simulate_dram
from hwmodel.energy.total import replay_energy
from hwmodel.machine import Machine
from hwmodel.replay import replay
from traces.base.errors import InputError
from traces.trace.chunks import Chunk, Memory, Trace
from traces.trace_files.npz import save_trace


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


def test_an_access_is_the_bursts_that_it_touches(tmp_path):
    """One of 256 bytes was one burst of 32."""
    for text, bursts in (("r 0 100\nw 3c 8\n", 10), ("0 3c\n0 1f\n", 2)):  # without sizes one each
        file = tmp_path / "sizes.din"
        file.write_text(text)
        report = json.loads(CliRunner().invoke(app, ["dram", str(file), "--json", "-"]).stdout)
        assert report["requests"] == bursts


def test_bursts_are_claimed_before_they_are_made(tmp_path, monkeypatch):
    """A megabyte of accesses of 64 KiB each would take gigabytes."""
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", str(1 << 24))
    (tmp_path / "large.din").write_text("r 0 ffff\n" * 1000)
    refused = CliRunner().invoke(app, ["dram", str(tmp_path / "large.din")])
    assert isinstance(refused.exception, InputError) and "the bursts of 1000 accesses" in str(refused.exception)


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
    assert file.read_text().startswith("edgewatt-dram 4 ")


def test_parts_are_listed_with_what_one_compares_them_by():
    rows = json.loads(CliRunner().invoke(app, ["list", "parts", "--json", "-"]).stdout)
    text = json.dumps(rows)
    assert "LPDDR4, 3,200 MT/s, 16 data wires, 1 GiB, 2.63 pJ per bit read in the core" in text
    assert "HBM2" in text and "currents are estimates" in text


def data_trace(n=400):
    """Whole bursts of 32 bytes with their bytes and clocks; conflicts in every bank."""
    rng = np.random.default_rng(4)
    address = rng.integers(0, 1 << 12, n).astype(np.uint64) * np.uint64(32 * 64)
    data = rng.integers(0, 256, (n, 32)).astype(np.uint8)
    chunk = Chunk(
        address, np.full(n, 32, np.uint8), (rng.random(n) < 0.3).astype(np.uint8), np.zeros(n, np.uint8),
        np.arange(n + 1) * 32, data.reshape(-1), np.cumsum(rng.integers(0, 60, n)),
    )  # fmt: skip
    return Trace.from_chunks([chunk], Memory(0, 1 << 23, np.zeros(1 << 23, np.uint8)))


@pytest.mark.parametrize("encoder", ["raw", "dbi-dc"])
def test_a_trace_with_its_bytes_has_all_wires_as_a_run_has(tmp_path, encoder):
    trace, file = data_trace(), tmp_path / "bursts.npz"
    save_trace(trace, file)
    report = json.loads(CliRunner().invoke(app, ["dram", str(file), "--encoder", encoder, "--json", "-"]).stdout)
    machine = Machine((), encoder, part=load_part("lpddr4-3200"), flush=False)
    energy = replay_energy(replay(trace, machine), machine)
    assert report["interface_energy_pj"] == pytest.approx(energy.interface_pj, rel=1e-12)
    assert report["total_energy_pj"] == pytest.approx(energy.total_pj, rel=1e-12)
    terms = {row["term"]: row["count"] for row in report["interface_terms"]}
    assert terms["dq_read_static"] > 0 and (terms["dbi_read_static"] > 0) == (encoder == "dbi-dc")
    assert report["core_energy_low_pj"] < report["core_energy_pj"] < report["core_energy_high_pj"]


def test_an_encoder_needs_the_bytes(requests):
    shown = CliRunner().invoke(app, ["dram", str(requests), "--encoder", "dbi-dc"])
    assert isinstance(shown.exception, InputError) or "needs a trace that carries the bytes" in shown.output


def test_conflicts_are_told_from_misses():
    """Two rows of bank 0 in turn, one row of bank 1: only the first bank has conflicts."""
    row = 1 << 14
    address = np.array([0, row, 2 * row, 3 * row, 2048, 2080], np.uint64)
    for controller in ({}, {"preset": "ramulator2"}):
        result = simulate_dram(address, np.zeros(6, int), np.arange(6) * 400, part="lpddr4-3200", controller=controller)
        banks = {r["bank"]: r["conflicts"] for r in result.rows_by_bank()}
        assert banks[0] == 3 and sum(banks.values()) == 3


@pytest.mark.parametrize("part", ["ddr5-4800-x8", "lpddr4-3200"])
def test_row_hits_of_banks_add_up_where_rows_are_closed_before_a_burst(part):
    """Spread requests faster than the memory: refreshes close rows that were just opened."""
    rng = np.random.default_rng(1)
    address = rng.integers(0, 1 << 20, 3000).astype(np.uint64) * np.uint64(64)
    result = simulate_dram(address, rng.integers(0, 2, 3000), np.arange(3000) * 10, part=part)
    banks = result.rows_by_bank()
    assert sum(bank["hits"] for bank in banks) == result.counts.row_hits
    assert all(0 <= bank["bursts"] - bank["hits"] <= bank["activates"] for bank in banks)
    assert any(bank["bursts"] - bank["hits"] < bank["activates"] for bank in banks)


def test_what_was_sent_must_be_taken():
    """A caller that wants what was sent and never takes it gets an error, not memory that is not its own."""
    memory = open_memory(load_part("lpddr4-3200"), ControllerSpec(), sent=True)
    n = 1 << 20
    requests = np.arange(n, dtype=np.int64)
    memory.feed(0, requests, requests.astype(np.uint64) * np.uint64(32), np.zeros(n, np.uint8), np.zeros(n, np.int64))
    memory.close(0)
    with pytest.raises(RuntimeError, match="take_sent"):
        while memory.run() == kernel.OUTPUT_FULL:
            memory.take_done()


def test_writes_alone_have_no_read_latency(tmp_path):
    file = tmp_path / "writes.trc"
    file.write_text("\n".join(f"0x{k * 32:X} WRITE {k * 20}" for k in range(50)) + "\n")
    shown = CliRunner().invoke(app, ["dram", str(file), "--from", "dramsim3"])
    assert shown.exit_code == 0 and "latency" not in shown.output and "row_hits" in shown.output
    report = json.loads(CliRunner().invoke(app, ["dram", str(file), "--json", "-"]).stdout)
    assert report["mean_read_latency_cycles"] is None and report["read_latency_p99_cycles"] is None
