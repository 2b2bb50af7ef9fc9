"""Estimates have ranges, and energies carry them; LPDDR6's bursts are the same on a machine and in a command table."""

from itertools import product

import numpy as np
import pytest
from dram_parts import made, one_channel_reads
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.dram.energy import (
    core_constants_pj,
    core_rows,
    energy_range,
    interface_energy,
    scaled,
    term_ranges,
)  # fmt: skip
from hwmodel.dram.engine import simulate_dram
from hwmodel.machine import BusSpec, Machine
from hwmodel.parts.part_file import load_part, part_names
from hwmodel.replay import replay
from traces.base.errors import InputError


def small_run(part, **controller):
    o = part.organisation
    rng = np.random.default_rng(0)
    address = rng.integers(0, o.capacity_bytes // o.burst_bytes, 500).astype(np.uint64) * np.uint64(o.burst_bytes)
    return simulate_dram(address, rng.random(500) < 0.3, np.zeros(500, int), part=part, controller=controller).counts


def test_no_terms_have_no_energy():
    part = load_part("hbm3")
    assert term_ranges(part, []) == [] and energy_range(part, []) == (0.0, 0.0)


@pytest.mark.parametrize("name", part_names())
def test_the_range_of_the_core_is_that_of_all_corners(name):
    """Least and most over every combination of ends that can be, for three constants at a time; all estimates have a
    range."""
    part = load_part(name)
    counts = small_run(part)
    currents = [key for key in part.ranges if key.startswith("currents.")]
    ranged = {key.rpartition(".")[0] if key.startswith("currents.") else key for key in part.estimates}
    assert {key for key in ranged if key.endswith(("_mA", "_pF"))} == set(part.ranges)
    for chosen in (currents[:3], currents[2:5], currents[-3:]):
        only = {**{key: (1.0, 1.0) for key in part.ranges}, **{key: part.ranges[key] for key in chosen}}
        found = energy_range(_with_ranges(part, only), core_rows(counts, part))
        corners, possible = [], []
        for ends in product(*(part.ranges[key] for key in chosen)):
            moved = part
            for key, end in zip(chosen, ends, strict=True):
                moved = scaled(moved, key, end)
            corners.append(sum(row.energy_pj for row in core_rows(counts, moved)))
            possible.append(min(pj for _, pj in core_constants_pj(moved).values()) >= 0)
        least = min(corner for corner, can_be in zip(corners, possible, strict=True) if can_be)
        assert found[1] == pytest.approx(max(corners), rel=1e-12)
        assert 0 < found[0] <= least * (1 + 1e-12)
        assert not all(possible) or found[0] == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("name", part_names())
def test_a_range_is_that_of_terms_that_are_not_negative(name):
    """Many activates, whose current may not fall below that of open banks; the terms' own ranges lie around."""
    part = load_part(name)
    rows = core_rows(small_run(part, page_policy="closed-strict"), part)
    least, most = energy_range(part, rows)
    ranged = term_ranges(part, rows)
    assert 0 < sum(low for _, low, _ in ranged) <= least * (1 + 1e-12)
    assert least < sum(row.energy_pj for row in rows) < most <= sum(high for *_, high in ranged) * (1 + 1e-12)


def _with_ranges(part, ranges):
    from dataclasses import replace

    return replace(part, ranges=ranges)


def test_a_scaled_capacitance_scales_edges_only():
    part = load_part("lpddr5-6400")
    rows = {"timestamp_cycles": [0], "command": ["RD"], "data_hex": ["5a" * 32]}
    more = scaled(part, "interface.wires.dq.read_capacitance_pF", 1.5)
    one, other = (interface_energy(rows, part=p, dbi=False).energy_pj["dq"] for p in (part, more))
    assert other["static"] == one["static"] and other["dynamic"] == pytest.approx(1.5 * one["dynamic"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"range": [0.6, 1.5], "estimate": False}, "only estimated currents and capacitances have one"),
        ({"range": [1.2, 1.5], "estimate": True}, "one up to 1 and one from 1 on"),
        ({"range": [0.6], "estimate": True}, "must be two factors"),
        ({"range": [0.6, True], "estimate": True}, "range.1: expected a number, not true"),
        ({"ragne": [0.6, 1.5], "estimate": True}, "did you mean 'range'"),
    ],
)
def test_bad_ranges_are_named(change, message):
    current = {"vdd1": 3.5, "vdd2": 45, "source": "test", **change}
    with pytest.raises(InputError, match=message):
        load_part({"extends": "lpddr4-3200", "currents": {"IDD0_mA": current}})


def test_a_range_belongs_to_currents_and_capacitances():
    node = {**made(1.0), "estimate": True, "range": [0.9, 1.1]}
    with pytest.raises(InputError, match="only estimated currents and capacitances"):
        load_part({"extends": "lpddr4-3200", "clock": {"tCK_ns": node}})


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 60), st.integers(0, 2**32))
def test_lpddr6_bursts_on_a_machine_are_those_of_the_table(n, seed):
    part = load_part("lpddr6-10667")
    data = np.random.default_rng(seed).integers(0, 256, (n, 32)).astype(np.uint8)
    result = replay(
        one_channel_reads(data), Machine(part=part, bus=BusSpec(2, 32), controller={"scheduler": "fcfs"}, flush=False)
    )
    rows = {
        "timestamp_cycles": np.arange(n) * 6, "command": ["RD"] * n, "data_hex": [bytes(d).hex() for d in data],
    }  # fmt: skip
    table = interface_energy(rows, part=part, dbi=False).counts.group("dq", "read")
    assert result.total.ones == table.ones
    ways = result.total.way_wires.data
    assert int(ways.rising.sum()) == table.rising and not ways.ones.reshape(-1, 16)[:, 12:].any()
