"""dbi-dc minimises the level that costs: ones where wires end in VSSQ, zeros where they end in VDDQ."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.bit_by_bit import bit_by_bit

from hwmodel.bus import WireCosts
from hwmodel.coding.codec import decode, encode
from hwmodel.dram.energy import interface_energy
from hwmodel.energy.total import replay_energy
from hwmodel.machine import BusSpec, Machine
from hwmodel.parts.part_file import load_part
from hwmodel.replay import replay
from traces.trace.chunks import Chunk, Memory, Trace

ZEROS_COST = WireCosts(one_pj=0.0, zero_pj=1.0, rise_pj=0.1)


def reads(data, stride):
    n, size = data.shape
    image = np.zeros(n * stride, np.uint8)
    image.reshape(n, stride)[:, :size] = data
    chunk = Chunk(
        np.arange(n, dtype=np.uint64) * np.uint64(stride), np.full(n, size, np.uint8), np.zeros(n, np.uint8),
        np.zeros(n, np.uint8), np.arange(n + 1) * size, data.reshape(-1),
    )  # fmt: skip
    return Trace.from_chunks([chunk], Memory(0, n * stride, image))


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=200), st.sampled_from(("dbi-dc", "base-xor+dbi-dc")))
def test_no_beat_has_more_than_four_zeros(data, encoder):
    given_bytes = np.frombuffer(data, np.uint8)
    coded = encode(given_bytes, encoder, element_bytes=1, bus_bytes=1, costs=ZEROS_COST)
    flags = np.unpackbits(coded.flags, bitorder="little", count=len(data))
    zeros = 8 - np.bitwise_count(coded.data)
    assert (zeros <= 4).all()  # five or more are inverted
    if encoder == "dbi-dc":
        assert np.array_equal(flags == 0, np.bitwise_count(given_bytes) < 4)  # DBI_n is low where a byte is inverted
    back = decode(coded.data, encoder, flags=coded.flags, element_bytes=1, bus_bytes=1, costs=ZEROS_COST)
    assert np.array_equal(back, given_bytes)
    with bit_by_bit():
        bits = encode(given_bytes, encoder, element_bytes=1, bus_bytes=1, costs=ZEROS_COST)
    assert np.array_equal(bits.data, coded.data) and np.array_equal(
        np.unpackbits(bits.flags, bitorder="little", count=len(data)), flags
    )


@pytest.mark.parametrize("part_name", ["ddr4-3200-x8", "lpddr4-3200"])
def test_a_machine_pays_what_the_parts_own_rule_pays(part_name):
    part = load_part(part_name)
    o = part.organisation
    rng = np.random.default_rng(3)
    data = (rng.random((200, o.burst_bytes)) ** 3 * 256).astype(np.uint8)
    machine = Machine((), "dbi-dc", 1, BusSpec(o.byte_lanes, o.burst_bytes), part=part, flush=False)
    terms = {
        row.term: row.count for row in replay_energy(replay(reads(data, o.burst_bytes), machine), machine).interface
    }
    rows = {
        "timestamp_cycles": np.arange(200) * 100, "command": ["RD"] * 200, "data_hex": [bytes(d).hex() for d in data],
    }  # fmt: skip
    table = {row.term: row.count for row in interface_energy(rows, part=part, dbi=True).rows}
    for term in ("dq_read_static", "dbi_read_static"):
        assert terms[term] == table[term]
