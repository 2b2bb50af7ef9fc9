"""Inversion of least cost: nothing cheaper exists for a burst, and never dearer than DC or AC; decode gives it back."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.bus import WireCosts
from hwmodel.coding.chain import Chain
from hwmodel.coding.codec import decode, encode
from hwmodel.coding.stage import Geometry
from hwmodel.dram.energy import data_wire_costs
from hwmodel.parts.part_file import load_part
from traces.base.errors import InputError

costs = st.builds(WireCosts, *[st.sampled_from((0.0, 0.5, 1.0, 3.25))] * 3)


def cost_of(words, level, weights):
    """Cost of nine-bit words sent one after another on a lane."""
    total = 0.0
    for word in words:
        ones, edges = word.bit_count(), (word ^ level).bit_count()
        total += weights.one_pj * ones + weights.zero_pj * (9 - ones) + weights.rise_pj * edges / 2
        level = word
    return total


def words_of(data, flags):
    return [int(byte) | int(flag) << 8 for byte, flag in zip(data, flags, strict=True)]


@settings(max_examples=150, deadline=None)
@given(st.binary(min_size=1, max_size=8), costs, st.binary(max_size=8))
def test_no_other_choice_of_inversions_is_cheaper(data, weights, before):
    chain = Chain("dbi-opt", Geometry(1, 1, 8, costs=weights))
    sent, state = chain.encode(np.frombuffer(before, np.uint8), last=len(before) < 8)
    if len(before) % 8:  # a burst is whole: start from idle wires
        state = chain.start()
    level = 0 if state.offset == 0 else int(sent.data[-1]) | int(sent.flags[0] >> 7 & 1) << 8
    got, _ = chain.encode(np.frombuffer(data, np.uint8), state)
    flags = np.unpackbits(got.flags, bitorder="little", count=len(data))
    found = cost_of(words_of(got.data, flags), level, weights)
    low = int(weights.zero_pj > weights.one_pj)
    best = min(
        cost_of(
            [byte ^ (0xFF if turn else 0) | (turn ^ low) << 8 for byte, turn in zip(data, turns, strict=True)],
            level,
            weights,
        )
        for turns in product((0, 1), repeat=len(data))
    )
    assert found == pytest.approx(best, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), costs, st.sampled_from((1, 2, 3, 4)))
def test_a_burst_from_idle_wires_is_no_dearer_than_dc_or_ac(data, weights, lanes):
    sizes = dict(element_bytes=1, bus_bytes=lanes, block_bytes=256, costs=weights)

    def cost(encoder):
        got = encode(data, encoder, **sizes)
        driven = 9 * len(data)
        return weights.one_pj * got.ones + weights.zero_pj * (driven - got.ones) + weights.rise_pj * got.toggles / 2

    if weights.zero_pj <= weights.one_pj:  # else its flags are low-active, theirs not
        assert cost("dbi-opt") <= min(cost("dbi-dc"), cost("dbi-ac")) + 1e-9
    got = encode(data, "dbi-opt", **sizes)
    assert decode(got, "dbi-opt", element_bytes=1, bus_bytes=lanes, block_bytes=256, costs=weights).tobytes() == data


def test_costs_are_those_of_a_part():
    ends_low, ends_high, free = (data_wire_costs(load_part(name)) for name in ("lpddr4-3200", "ddr4-3200-x8", "hbm2"))
    assert ends_low.one_pj > 0 == ends_low.zero_pj and ends_high.zero_pj > 0 == ends_high.one_pj
    assert free.one_pj == free.zero_pj == 0 < free.rise_pj
    light = np.full(64, 0x01, np.uint8)  # zeros cost on DDR4: light bytes are turned
    assert encode(light, "dbi-opt", element_bytes=1, block_bytes=64, costs=ends_high).ones == 64 * 7
    assert encode(light, "dbi-opt", element_bytes=1, block_bytes=64, costs=ends_low).ones == 64
    with pytest.raises(InputError, match="finite and not negative"):
        WireCosts(one_pj=-1)
    with pytest.raises(InputError, match="at most 4096 beats"):
        encode(b"", "dbi-opt", element_bytes=1, bus_bytes=1, block_bytes=8192)
