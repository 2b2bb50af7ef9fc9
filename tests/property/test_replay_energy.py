"""The energy of a replay equals that of the same bursts as a command table, wire group by wire group."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from dram_parts import with_channels
from hypothesis import given, settings
from hypothesis import strategies as st
from random_traces import random_trace

from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.energy import interface_energy
from hwmodel.dram.engine import load_part
from hwmodel.energy.total import replay_energy
from hwmodel.machine import BusSpec, Machine
from hwmodel.replay import replay
from hwmodel.replay.commands import commands_of, export_commands
from hwmodel.system.simulation import simulate
from traces.generators.networks import random_layered
from traces.trace.build import build_trace
from traces.trace.chunks import STREAMS, Chunk, Memory, Trace, slices


@pytest.mark.parametrize("encoder", ["raw", "dbi-dc"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000))
def test_data_wires_agree_with_a_command_table(encoder: str, seed: int) -> None:
    """Served in order without merging, every request is a burst; with nothing at rest, ones and inversions agree."""
    part = load_part("lpddr4-3200")
    network = random_layered(3, 24, 0.4, seed)
    machine = Machine((CacheSpec(1024, 64, 2),), encoder, 4, part=part, controller={"scheduler": "fcfs"})
    result = replay(build_trace(network), machine)
    energy = replay_energy(result, machine)
    terms = {row.term: row for row in (*energy.interface, *energy.core)}
    from hwmodel.replay.hierarchy import open_hierarchy

    trace = build_trace(network)
    hierarchy = open_hierarchy(trace, machine)
    bursts = [hierarchy.feed(chunk) for chunk in slices(trace)] + list(hierarchy.flush())
    data = np.concatenate([b.data for b in bursts if b.data is not None]).reshape(-1, 32)
    is_write = np.concatenate([b.is_write for b in bursts])
    n = len(data)
    commands = {
        "timestamp_cycles": np.arange(n) * 8 + 1000 * is_write.cumsum(),  # a write rests before and after
        "command": np.where(is_write, "WR", "RD"),
        "data_hex": [row.tobytes().hex() for row in data],
    }
    table = interface_energy(commands, part=part, dbi=encoder == "dbi-dc")
    for way in ("read", "write"):
        for group in ("dq", "dbi"):
            counted = next(g for g in table.counts.groups if (g.group, g.way) == (group, way))
            assert terms[f"{group}_{way}_static"].count == counted.ones
    strobe = next(g for g in table.counts.groups if (g.group, g.way) == ("dqs", "read"))
    assert terms["dqs_read_static"].count == strobe.ones
    assert result.dram is not None
    counts = result.dram.counts
    assert terms["read"].count == result.dram.commands["RD"]  # the controller answers some reads without a burst
    assert terms["read"].count + counts.merged_reads + counts.forwarded_reads == int(result.total.reads.sum())
    assert terms["ca_write_static"].count == int(counts.ca_ones.sum()) > 0
    assert energy.total_pj == pytest.approx(sum(row.energy_pj for row in terms.values()))
    assert 0 < energy.io_pj < energy.interface_pj


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    channels=st.sampled_from((1, 2, 8)),
    encoder=st.sampled_from(("raw", "dbi-dc", "base-xor+dbi-dc")),
    scheduler=st.sampled_from(("fr-fcfs", "fcfs")),
    cached=st.booleans(),
    how=st.sampled_from((replay, simulate)),
)
def test_bursts_on_the_wires_are_the_commands_that_happened(seed, channels, encoder, scheduler, cached, how):
    """Requests that are merged, forwarded or replaced drive no wire: not DQ, not DQS."""
    part = with_channels(channels)
    caches = (CacheSpec(1024, 64, 2),) if cached else ()
    machine = Machine(caches, encoder, 4, part=part, controller={"scheduler": scheduler})
    result = how(random_trace(seed, 600), machine)
    counts = result if how is replay else result.counts
    commands = counts.dram.commands
    bursts = [commands["RD"] + commands["RDA"], commands["WR"] + commands["WRA"]]
    assert counts.total.way_bursts.sum(axis=1).tolist() == bursts and counts.total.bursts == sum(bursts)
    terms = {row.term: row.count for row in replay_energy(counts, machine).interface}
    assert terms["dqs_read_static"] == 32 * bursts[0] and terms["dqs_write_static"] == 32 * bursts[1]


def test_ones_cost_nothing_where_wires_end_high():
    """All bytes 0xff on a VDDQ-terminated part, many requests merged: no static energy on DQ."""
    part = load_part("ddr4-3200-x8")
    machine = Machine((), "raw", 8, BusSpec(8, 64), part=part)
    rng = np.random.default_rng(0)
    address = rng.integers(0, 64, 3000).astype(np.uint64) * np.uint64(64)
    trace = Trace.from_chunks(
        [
            Chunk(
                address,
                np.full(3000, 64, np.uint8),
                (rng.random(3000) < 0.4).astype(np.uint8),
                np.zeros(3000, np.uint8),
                np.arange(3001) * 64,
                np.full(3000 * 64, 255, np.uint8),
            )
        ],
        Memory(0, 4096, np.full(4096, 255, np.uint8)),
    )
    for result in (replay(trace, machine), simulate(trace, machine).counts):
        assert result.total.bursts < 3000
        terms = {row.term: row.count for row in replay_energy(result, machine).interface}
        assert terms["dq_read_static"] == terms["dq_write_static"] == 0


def test_a_later_write_replaces_the_bytes_of_a_waiting_one():
    """Two stores to one burst: the second's bytes are on the wires, once."""
    data = np.concatenate([np.full(32, 1, np.uint8), np.full(32, 3, np.uint8)])
    trace = Trace.from_chunks(
        [Chunk(np.zeros(2, np.uint64), np.full(2, 32, np.uint8), np.ones(2, np.uint8), np.array([1, 2], np.uint8),
               np.arange(3) * 32, data)],
        Memory(0, 64, np.zeros(64, np.uint8)),
    )  # fmt: skip
    machine = Machine((), part=load_part("lpddr4-3200"))
    for result in (replay(trace, machine), simulate(trace, machine).counts):
        assert result.total.bursts == 1 and result.total.ones == 2 * 32
        assert result.total.way_bursts[1].tolist() == [0, 0, 1] + [0] * (len(STREAMS) - 3)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), part=st.sampled_from(("lpddr4-3200", "lpddr5-6400")))
def test_one_rule_for_levels_in_gaps(seed: int, part: str) -> None:
    """The command table of a replay has the ones and the edges of the replay; written as DRAMPower's, levels rest."""
    loaded = load_part(part)
    trace = build_trace(random_layered(3, 24, 0.4, seed))
    machine = Machine(
        (CacheSpec(1024, 64, 2),),
        bus=BusSpec(loaded.organisation.byte_lanes, loaded.organisation.burst_bytes),
        part=loaded,
    )
    result, played = replay(trace, machine), commands_of(trace, machine, 0)
    counts = interface_energy(played.of_part(loaded), part=loaded, dbi=False).counts
    for k, way in enumerate(("read", "write")):
        group, wires = counts.group("dq", way), result.total.way_wires
        assert wires is not None
        ones, toggles, rising = (array.sum(axis=0) for array in wires.counts[k].swapaxes(0, 1))
        dq = loaded.organisation.dq_bits
        assert (group.ones, group.toggles) == (ones[:dq].sum(), toggles[:dq].sum())
        assert group.rising == rising[:dq].sum()
    with TemporaryDirectory() as folder:
        export_commands(trace, machine, Path(folder) / "played.csv")
        written = interface_energy(Path(folder) / "played.csv", part=loaded, dbi=False)
    rested = interface_energy(played.of_part(loaded), part=loaded, dbi=False, gaps="rest")
    assert written.total_pj == rested.total_pj
