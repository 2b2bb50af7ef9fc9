"""The energy of a replay equals that of the same bursts as a command table, wire group by wire group."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.dram.engine import load_part
from hwmodel.energy.memory import interface_energy
from hwmodel.energy.replay import replay_energy
from hwmodel.machine import CacheSpec, Machine
from hwmodel.replay import replay
from traces.access.build import build_trace
from traces.generators.networks import random_layered


@pytest.mark.parametrize("encoder", ["raw", "dbi-dc"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000))
def test_data_wires_agree_with_a_command_table(encoder: str, seed: int) -> None:
    """Play the bursts back to back, all reads then all writes: nothing rests, so ones and inversions are the same."""
    part = load_part("lpddr4-3200")
    network = random_layered(3, 24, 0.4, seed)
    machine = Machine((CacheSpec(1024, 64, 2),), encoder, 4, part=part)
    result = replay(build_trace(network), machine)
    energy = replay_energy(result, machine)
    terms = {row.term: row for row in (*energy.interface, *energy.core)}
    from hwmodel.caches.hierarchy import open_hierarchy, slices

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
