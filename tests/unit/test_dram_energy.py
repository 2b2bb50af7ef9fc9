"""Energy: every term is a count times a constant, views add up, and each kind of termination pays for its own level."""

import numpy as np
import pytest
from dram_parts import grouped, two_channels

from hwmodel.dram.energy import DATA_WIRES, core_constants_pj, core_rows, explain, interface_energy
from hwmodel.dram.engine import simulate_dram
from hwmodel.dram.interface import count_interface
from hwmodel.parts.part_file import load_part, part_names
from traces.base.errors import InputError


def bursts(part, data, command="RD"):
    n = len(data)
    size = part.organisation.burst_bytes
    return {
        "timestamp_cycles": np.arange(n) * part.organisation.burst_cycles,
        "command": [command] * n,
        "data_hex": [bytes([value] * size).hex() if isinstance(value, int) else bytes(value).hex() for value in data],
    }


@pytest.mark.parametrize("make", [grouped, two_channels])
def test_terms_add_up(make):
    part = make()
    rng = np.random.default_rng(0)
    address = rng.integers(0, part.organisation.capacity_bytes // 32, 3000).astype(np.uint64) * 32
    result = simulate_dram(address, rng.random(3000) < 0.3, np.zeros(3000, int), part=part)
    moved = result.counts.command("RD", "WR") * 32 * 8
    assert result.core_pj_per_bit == pytest.approx(result.core_energy_pj / moved, rel=1e-12)
    rows = explain(core_rows(result.counts, part))
    assert all(row["energy_pj"] == row["count"] * row["constant_pj"] for row in rows)
    assert sum(row["energy_pj"] for row in rows) == pytest.approx(result.core_energy_pj, rel=1e-12)


def test_core_constants_from_currents_by_hand():
    pj = {term: constant for term, (_, constant) in core_constants_pj(load_part("lpddr4-3200")).items()}
    assert pj["activate"] == pytest.approx((1.8 * (1.75 - 1.125) + 1.1 * (22.5 - 15)) * 68 * 0.625, rel=1e-12)
    assert pj["read"] == pytest.approx(1.1 * (137.5 - 15) * 8 * 0.625, rel=1e-12)
    assert pj["refresh"] == pytest.approx((1.8 * 6.675 + 1.1 * 51) * 448 * 0.625, rel=1e-12)
    assert pj["background_active"] == pytest.approx((1.8 * 1.125 + 1.1 * 15) * 0.625, rel=1e-12)


@pytest.mark.parametrize("name", part_names())
def test_each_termination_pays_for_its_level(name):
    part = load_part(name)
    zeros, ones = (interface_energy(bursts(part, [value] * 10), part=part, dbi=False) for value in (0x00, 0xFF))
    static = [energy.energy_pj["dq"]["static"] for energy in (zeros, ones)]
    costly = part.interface.costly_level
    assert static[0] == (0 if costly != 0 else pytest.approx(static[0])) and (static[0] > 0) == (costly == 0)
    assert (static[1] > 0) == (costly == 1)
    o = part.organisation
    alternating = np.tile(np.repeat([0, 255], o.byte_lanes), o.burst_bytes // o.byte_lanes // 2)
    if part.interface.cells:  # a wire carries four bits of data running: 5 is 1 0 1 0
        alternating = np.full(o.burst_bytes, 0x55)
    flips = interface_energy(bursts(part, [alternating.tolist()] * 10), part=part, dbi=False)
    assert flips.energy_pj["dq"]["dynamic"] > 10 * max(e.energy_pj["dq"]["dynamic"] for e in (zeros, ones))
    beats = o.burst_bytes * 8 * 10
    group = flips.counts.group("dq", "read")
    assert group.ones == beats // 2 and group.ones + group.zeros == o.burst_beats * o.dq_bits * 10
    assert int(group.wire_ones.sum()) == group.ones
    assert flips.data_bits == beats


@pytest.mark.parametrize("name", part_names())
def test_inversion_helps_where_the_part_wants_it(name):
    part = load_part(name)
    bad = {"ones": 0xFE, "zeros": 0x01}.get(part.interface.dbi)
    lanes = part.organisation.byte_lanes
    beats = part.organisation.burst_bytes // lanes
    if part.interface.dbi == "none":
        with pytest.raises(InputError, match="no data bus inversion"):
            interface_energy(bursts(part, [0]), part=part, dbi=True)
        return
    alternating = np.tile(np.repeat([0, 0xFE], lanes), beats // 2).tolist()
    data = bursts(part, [alternating if bad is None else bad] * 50)
    off, on = (interface_energy(data, part=part, dbi=dbi) for dbi in (False, True))
    less, more = (sum(row.energy_pj for row in energy.rows if row.group in DATA_WIRES) for energy in (on, off))
    assert less < 0.7 * more
    assert on.counts.inverted_bytes > 0 and off.counts.inverted_bytes == 0


def test_lane_order_moves_wires_and_keeps_sums():
    part = load_part("lpddr4-3200")
    data = bursts(part, np.random.default_rng(1).integers(0, 256, (40, 32)).tolist())
    plain = count_interface(data, part=part, dbi=True).group("dq", "read")
    swapped = count_interface(data, part=part, dbi=True, lane_order=(1, 0)).group("dq", "read")
    assert np.array_equal(swapped.wire_ones, np.roll(plain.wire_ones, 8)) and swapped.rising == plain.rising
    with pytest.raises(InputError, match="permutation"):
        count_interface(data, part=part, dbi=True, lane_order=(0, 0))
    with pytest.raises(InputError, match="beat order"):
        count_interface(data, part=part, dbi=True, beat_order="backwards")
