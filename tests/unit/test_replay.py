"""Replay on a machine with a memory part: time, recorded arrivals, exported bursts."""

import copy
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracles.trace_oracle import small_network

from hwmodel.caches.spec import CacheSpec
from hwmodel.coding.stage import ENCODERS
from hwmodel.dram.engine import simulate_dram
from hwmodel.machine import BusSpec, EngineSpec, Machine
from hwmodel.parts.part_file import load_part, part_names
from hwmodel.replay import replay
from hwmodel.replay.hierarchy import burst_trace
from hwmodel.system.simulation import simulate
from traces.base.errors import InputError
from traces.trace.build import build_trace
from traces.trace.chunks import STREAMS
from traces.trace_files import open_trace
from traces.trace_files.writer import export_trace

MACHINE = Machine((CacheSpec(64, 32, 2),), part="lpddr4-3200", engine=EngineSpec(accesses_per_ns=0.5))


def test_the_memory_sees_the_bursts_in_program_order():
    trace = build_trace(small_network())
    result = replay(trace, MACHINE)
    bursts = burst_trace(trace, MACHINE)
    address, op, cycle = (np.concatenate([getattr(c, name) for c in bursts]) for name in ("address", "op", "cycle"))
    again = simulate_dram(address, op, cycle, part="lpddr4-3200")
    assert again.total_cycles == result.dram.total_cycles and again.commands == result.dram.commands
    assert result.dram.counts.reads == result.total.reads.sum()
    assert len(address) == result.total.reads.sum() + result.total.writes.sum()


def test_dbi_reads_take_longer():
    assert MACHINE.memory_controller().read_dbi is False
    inverted = Machine(MACHINE.caches, encoder="base-xor+dbi-dc", part="lpddr4-3200")
    assert inverted.memory_controller().read_dbi is True
    trace = build_trace(small_network())
    assert replay(trace, inverted).total.extra_wires is None


def test_an_exported_trace_of_bursts_replays_to_the_same_memory_time(tmp_path):
    trace = build_trace(small_network())
    path = tmp_path / "bursts.trace"
    written = export_trace(burst_trace(trace, MACHINE), path, "dramsim3")
    recorded = open_trace(path, access_bytes=32)
    result, bare = replay(trace, MACHINE), replay(recorded, Machine((), part="lpddr4-3200"))
    assert bare.dram.total_cycles == result.dram.total_cycles
    assert bare.loads[STREAMS.index("external")] + bare.stores[STREAMS.index("external")] == written
    assert bare.run.ones is None


def test_an_external_trace_through_caches_keeps_its_arrivals(tmp_path):
    path = tmp_path / "given.trace"
    path.write_text("0x0 READ 5\n0x4 WRITE 6\n0x1000 READ 700\n")
    result = replay(open_trace(path, access_bytes=4), Machine((CacheSpec(64, 32, 1),), part="lpddr4-3200"))
    assert (result.caches[0].hits, result.caches[0].misses) == (1, 2)
    assert result.dram.total_cycles > 700


@pytest.mark.parametrize("name", part_names())
def test_a_bus_that_is_not_given_is_that_of_the_part(name):
    organisation = load_part(name).organisation
    machine = Machine(part=name)
    assert machine.bus == BusSpec(organisation.byte_lanes, organisation.burst_bytes)
    result = replay(build_trace(small_network()), machine)
    assert result.block_bytes == organisation.burst_bytes and result.dram.commands["RD"] > 0
    assert Machine().bus == BusSpec() and replace(Machine(), part=name).bus == machine.bus


def test_a_bus_that_does_not_fit_the_part_is_refused():
    with pytest.raises(InputError, match="bus block_bytes 64 is not the part's burst of 32 bytes"):
        replay(build_trace(small_network()), Machine((), bus=BusSpec(2, 64), part="lpddr4-3200"))


def test_an_exported_command_trace_has_the_commands_and_the_bytes(tmp_path):
    from hwmodel.dram.command_table import command_table, count_commands
    from hwmodel.dram.engine import load_part
    from hwmodel.replay.commands import export_commands

    part = load_part("lpddr4-3200")
    machine = Machine(MACHINE.caches, part=part, engine=MACHINE.engine, controller={"power_down_cycles": 100})
    trace = build_trace(small_network(), sample=[0, 1] * 200)
    path = tmp_path / "commands.csv"
    written = export_commands(trace, machine, path)
    table = command_table(path, part=part)
    result = replay(trace, machine)
    assert len(table) == written
    counted = count_commands(table, part=part)
    assert counted.commands == result.dram.commands
    assert (counted.background_cycles == result.dram.counts.background_cycles).all()
    sent = np.concatenate([c.payload for c in burst_trace(trace, machine)]).reshape(-1, 32)
    assert {row.tobytes() for row in table.data} <= {row.tobytes() for row in sent}
    with pytest.raises(InputError, match="addresses only"):
        export_commands(trace_without_data(trace), machine, path)
    with pytest.raises(InputError, match="channel 1 does not exist"):
        export_commands(trace, machine, path, channel=1)
    with pytest.raises(InputError, match="needs a memory part"):
        export_commands(trace, Machine(MACHINE.caches), path)


def trace_without_data(trace):
    return replace(trace, memory=replace(trace.memory, image=None))


def test_what_is_kept_of_a_part_is_that_of_its_file_and_no_other(tmp_path):
    shipped = Path("configs/dram/lpddr4-3200.yaml").read_text()
    file = tmp_path / "part.yaml"
    trace = build_trace(small_network())
    first, slow = (None, None)
    for clock in ("0.625", "1.25"):
        file.write_text(shipped.replace("value: 0.625", f"value: {clock}", 1))
        machine = replace(MACHINE, part=str(file))
        first, slow = slow, replay(trace, machine).dram
    assert first.tck_ns == 0.625 and slow.tck_ns == 1.25
    part = load_part("lpddr4-3200")
    longer = replace(part, timing=replace(part.timing, tRCD=part.timing.tRCD + 10))
    usual, late = (replay(trace, replace(MACHINE, part=each)).dram for each in (part, longer))
    assert late.total_cycles > usual.total_cycles
    for copied in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part)):  # the compiled tables stay behind
        assert (
            copied.timing == part.timing
            and replay(trace, replace(MACHINE, part=copied)).dram.total_cycles == usual.total_cycles
        )


def test_a_name_that_stands_for_another_encoder_makes_another_chain(monkeypatch):
    trace = build_trace(small_network())
    machine = Machine(MACHINE.caches, encoder="dbi-dc")
    inverted = replay(trace, machine).total
    monkeypatch.setitem(ENCODERS._entries, "dbi-dc", ENCODERS["raw"])
    plain = replay(trace, machine).total
    assert plain.ones == replay(trace, Machine(MACHINE.caches)).total.ones != inverted.ones
    assert not plain.wires.flag.ones.any()


def test_writes_that_wait_are_drained_when_the_engine_has_ended():
    """In the system, where it may work on after the last completion; replay knows only when bursts were accepted."""
    for instructions in (0, 400):
        engine = EngineSpec(instructions_per_cycle=1, instructions_per_connection=instructions)
        machine = replace(MACHINE, caches=(CacheSpec(64, 32, 2, write="through"),), engine=engine)
        trace = build_trace(small_network(), layout="tuples")
        run = simulate(trace, machine, keep=True)
        again = replay(trace, machine, arrival=run.requests.accept_cycle)
        late = max(run.engines[0].finish_cycle - run.dram.total_cycles, 0)
        assert again.dram.commands["WR"] == run.dram.commands["WR"]
        assert again.dram.total_cycles == run.dram.total_cycles
        later = run.dram.end_cycle - again.dram.end_cycle
        assert 0 <= later <= late and (later > 0) == (instructions > 0)
