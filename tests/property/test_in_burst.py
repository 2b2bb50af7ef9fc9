"""Inversion flags inside a burst (LPDDR6): the rules against the oracle, both engines, a machine against the table."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from dram_parts import one_channel_reads
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import in_burst_oracle as oracle
from oracles.bit_by_bit import bit_by_bit

from hwmodel.bus import Coded, WireCosts
from hwmodel.coding.in_burst import ShareFlags, whole_costs
from hwmodel.coding.stage import ENCODERS, Geometry
from hwmodel.coding.streams import StreamChain
from hwmodel.dram.energy import data_wire_costs, interface_energy
from hwmodel.dram.engine import load_part
from hwmodel.energy.total import replay_energy
from hwmodel.machine import BusSpec, Machine
from hwmodel.parts.burst_cells import BurstCells, check_cells
from hwmodel.replay import replay
from hwmodel.system.simulation import simulate
from traces.base.errors import InputError

LPDDR6 = load_part("lpddr6-10667")
INVERTING = ("dbi-dc", "dbi-ac", "dbi-opt")


@st.composite
def bursts(draw):
    """(cells, organisation, rule): eight data cells, one of four flags and some metadata on six wires, anywhere."""
    kinds = draw(st.permutations(list("DDDDDDDDIMMM")))
    cells = (" ".join(kinds[:6]), " ".join(kinds[6:]))
    o = replace(LPDDR6.organisation, device_dq_bits=6, burst_beats=8, overhead_bits=16)
    return cells, o, draw(st.sampled_from(("ones", "zeros")))


weights = st.builds(WireCosts, *[st.sampled_from((0.0, 0.5, 1.0, 3.25))] * 3)


def bits(data):
    return np.unpackbits(data, bitorder="little").tolist()


@settings(max_examples=150, deadline=None)
@given(bursts(), st.integers(0, 2**12 - 1), weights, st.binary(min_size=4, max_size=20), st.sampled_from(INVERTING))
@example((("D D D D D D", "D D I M M M"), replace(LPDDR6.organisation, device_dq_bits=6, burst_beats=8,
          overhead_bits=16), "ones"), 0, WireCosts(1, 0, 0), b"\xff\x00\x0f\xf1", "dbi-dc")  # fmt: skip
def test_flags_are_those_of_the_oracle(made, metadata, costs, data, encoder):
    cells, o, rule = made
    assert not list(check_cells(cells, o, rule))
    shares = ShareFlags(BurstCells(cells, o, rule), metadata)
    stage = ENCODERS[encoder].item(Geometry(1, 1, 4, costs=costs, shares=shares))
    data = np.frombuffer(data[: len(data) // 4 * 4], np.uint8)
    sent, _ = stage.encode(Coded(data), 0, stage.start())
    assert (stage.decode(sent, 0, stage.start())[0].data == data).all()
    flags = np.unpackbits(sent.flags, bitorder="little", count=len(data)).reshape(-1, 4)
    on_wires = np.unpackbits(shares.on_wires(sent.data, sent.flags), bitorder="little").reshape(-1, 8, 8)
    before = [0] * 6
    for burst, found, levels in zip(data.reshape(-1, 4), flags.tolist(), on_wires, strict=True):
        wires = oracle.wires(cells, 1, bits(burst), found, metadata)
        assert wires == levels[:, :6].tolist()
        assert not levels[:, 6:].any(), "a wire that is not there"
        if encoder == "dbi-dc":
            level = 0 if costs.zero_pj > costs.one_pj else 1
            assert found == [bits(burst)[8 * c : 8 * c + 8].count(level) > 4 for c in range(4)]
        elif encoder == "dbi-ac":
            for c in range(4):
                plain = oracle.wires(cells, 1, bits(burst), [*found[:c], *[0] * (4 - c)], metadata)
                whole = oracle.wires(cells, 1, [int(8 * c <= k < 8 * c + 8) for k in range(32)], [0] * 4, 0)
                begins = [(b, w) for b in range(8) for w in range(6) if whole[b][w] and not (b and whole[b - 1][w])]
                flips = [(plain[b - 1] if b else before)[w] != plain[b][w] for b, w in begins]
                assert found[c] == (2 * sum(flips) > len(flips))
        elif encoder == "dbi-opt":
            assert tuple(found) == oracle.cheapest(cells, 1, bits(burst), 4, metadata, before, *whole_costs(costs))
        before = wires[-1]


def chain(encoder, metadata=0):
    cells = BurstCells(LPDDR6.interface.cells, LPDDR6.organisation, LPDDR6.interface.dbi)
    costs = data_wire_costs(LPDDR6)
    return StreamChain(encoder, [4, 2], 2, 32, costs, ShareFlags(cells, metadata))


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from((*INVERTING, "base-xor+dbi-dc", "dbi-dc+transition", "transition")),
    st.integers(0, 2**32), st.integers(1, 5), st.integers(0, 4),
)  # fmt: skip
def test_kernels_and_bitarrays_agree_on_lpddr6_cut_anywhere(encoder, seed, n, cut):
    rng = np.random.default_rng(seed)
    data, kind = rng.integers(0, 256, (n, 32)).astype(np.uint8), rng.integers(0, 2, n)
    whole = chain(encoder, metadata=0xBEEF).encode(data.reshape(-1), kind).data
    for engine in ("kernels", "bitarray"):
        with bit_by_bit() if engine == "bitarray" else nullcontext():
            pieces = chain(encoder, metadata=0xBEEF)
            parts = (slice(0, cut), slice(cut, None))
            sent = [pieces.encode(data[part].reshape(-1), kind[part]).data for part in parts]
        assert (np.concatenate(sent) == whole).all()


@pytest.mark.parametrize("encoder", INVERTING)
def test_an_inversion_gains_what_it_is_for(encoder):
    """On random data: fewest ones, fewest flips between shares, least cost."""
    data = np.random.default_rng(0).integers(0, 256, 32 * 500).astype(np.uint8)
    kind = np.zeros(500, int)
    one, zero, edge = whole_costs(data_wire_costs(LPDDR6))
    found = {}
    for name in ("raw", *INVERTING):
        levels = np.unpackbits(chain(name).encode(data, kind).data, bitorder="little").reshape(-1, 16)[:, :12]
        ones, edges = int(levels.sum()), int((np.diff(levels.astype(int), axis=0, prepend=0) != 0).sum())
        found[name] = (ones, edges, one * ones + zero * (levels.size - ones) + edge * edges)
    at = INVERTING.index(encoder)
    assert found[encoder][at] == min(values[at] for values in found.values())


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 60), st.integers(0, 2**32), st.sampled_from((0, 1, 0x8001, 0xFFFF)))
def test_dbi_dc_on_a_machine_is_the_parts_own(n, seed, metadata):
    """Ones, rising edges and energy of DQ equal those of the command table with DBI on (held against DRAMPower)."""
    data = np.random.default_rng(seed).integers(0, 256, (n, 32)).astype(np.uint8)
    machine = Machine(part=LPDDR6, bus=BusSpec(2, 32, metadata), encoder="dbi-dc", flush=False,
                      controller={"scheduler": "fcfs"})  # fmt: skip
    result = replay(one_channel_reads(data), machine)
    rows = {
        "timestamp_cycles": np.arange(n) * 6, "command": ["RD"] * n, "data_hex": [bytes(d).hex() for d in data],
    }  # fmt: skip
    table = interface_energy(rows, part=LPDDR6, dbi=True, metadata=(metadata,))
    dq = table.counts.group("dq", "read")
    ways = result.total.way_wires.data
    assert (result.total.ones, int(ways.rising.sum())) == (dq.ones, dq.rising)
    assert not result.total.wires.flag.ones.any() and result.total.extra_wires is None
    energy = {row.term: row.energy_pj for row in replay_energy(result, machine).interface}
    assert energy["dq_read_static"] == pytest.approx(table.energy_pj["dq"]["static"], rel=1e-12)
    assert not any(term.startswith(("dbi", "extra")) for term in energy)


@pytest.mark.parametrize("encoder", ["base-xor+dbi-dc", "dbi-ac", "dbi-opt", "dbi-dc+transition"])
def test_the_system_sends_what_replay_sends(encoder):
    rng = np.random.default_rng(3)
    data = rng.integers(0, 256, (300, 32)).astype(np.uint8)
    machine = Machine(part=LPDDR6, bus=BusSpec(2, 32, 0x5A5A), encoder=encoder, controller={"scheduler": "fcfs"})
    one, other = replay(one_channel_reads(data), machine), simulate(one_channel_reads(data), machine)
    for result in (one, other.counts):
        commands = result.dram.commands
        assert result.total.bursts == sum(commands.get(name, 0) for name in ("RD", "WR", "RDA", "WRA"))
    assert (one.total.ones, one.total.toggles) == (other.counts.total.ones, other.counts.total.toggles)


@pytest.mark.parametrize(("encoder", "bits_beside"), [("3-lwc", 288), ("base-xor+3-lwc", 288)])
def test_what_has_no_wires_is_refused_with_the_reason(encoder, bits_beside):
    machine = Machine(part=LPDDR6, bus=BusSpec(2, 32), encoder=encoder, flush=False)
    with pytest.raises(InputError) as caught:
        replay(one_channel_reads(np.zeros((1, 32), np.uint8)), machine)
    text = str(caught.value)
    assert f"{bits_beside} bits with a burst of 32 bytes" in text
    assert "of the 288 bits of its burst 256 are data, 16 metadata and 16 inversion flags" in text
    assert "dbi-ac, dbi-dc, dbi-opt fit" in text


@pytest.mark.parametrize(
    ("part", "metadata", "message"),
    [
        ("lpddr6-10667", 1 << 16, "bus metadata is 65536: the bursts of 'lpddr6-10667' have 16 bits of it"),
        ("lpddr4-3200", 1, "the bursts of 'lpddr4-3200' have none of it"),
        ("lpddr6-10667", -1, "bus metadata must be"),
    ],
)
def test_metadata_that_no_burst_holds_is_named(part, metadata, message):
    with pytest.raises(InputError, match=message):
        replay(one_channel_reads(np.zeros((1, 32), np.uint8)), Machine(part=part, bus=BusSpec(2, 32, metadata)))
