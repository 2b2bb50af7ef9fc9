"""What holds for every encoder of the registry and every chain of them: a new one is tested by being there."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_strategies import a_trace
from oracles.trace_oracle import networks
from outside import run_with, write_distribution

from hwmodel.bus import Coded
from hwmodel.caches.spec import CacheSpec
from hwmodel.coding.chain import Chain, parse_chain
from hwmodel.coding.codec import decode, encode
from hwmodel.coding.stage import ENCODERS, Geometry
from hwmodel.coding.streams import StreamChain
from hwmodel.energy.total import replay_energy
from hwmodel.machine import BusSpec, Machine
from hwmodel.parts.part_file import load_part, part_names
from hwmodel.replay import replay
from traces.base.errors import InputError

quick = settings(max_examples=15, deadline=None)


def _chains():
    found = []
    for length in (1, 2, 3):
        for names in permutations(ENCODERS, length):
            try:
                parse_chain("+".join(names))
            except InputError:
                continue
            found.append("+".join(names))
    return found


CHAINS = _chains()


def test_every_member_states_its_facts():
    for name, entry in ENCODERS.items():
        stage = entry.item
        assert entry.summary and stage.__doc__ and 0 <= stage.flag_wires <= 9, name
        assert set(stage.element_sizes) <= {1, 2, 4, 8} and stage.latency_cycles >= 0, name
        assert all(partner in ENCODERS for partner in stage.fused), name
    assert len(CHAINS) > 50


@pytest.mark.parametrize("encoder", CHAINS)
@settings(max_examples=6, deadline=None)
@given(st.data())
def test_decoding_inverts_encoding_however_the_stream_is_cut(encoder, data):
    sizes = set.intersection(*(set(ENCODERS[n].item.element_sizes) for n in parse_chain(encoder)))
    geometry = Geometry(data.draw(st.sampled_from(sorted(sizes))), data.draw(st.sampled_from((1, 2, 4))), 32)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    plain = (rng.integers(0, 256, data.draw(st.integers(0, 300))) * (rng.random() < 0.8)).astype(np.uint8)
    bounds = [*sorted(data.draw(st.lists(st.integers(0, len(plain)), max_size=4))), len(plain)]
    chain = Chain(encoder, geometry)
    state = decoder = None
    sent, back = [], []
    for k, (start, stop) in enumerate(zip([0, *bounds], bounds, strict=False)):
        coded, state = chain.encode(plain[start:stop], state, last=k == len(bounds) - 1)
        sent.append(coded)
        got, decoder = chain.decode(Coded(coded.data, coded.flags, coded.extra), decoder)
        back.append(got)
    assert (np.concatenate(back) == plain).all()
    sizes = dict(element_bytes=geometry.element_bytes, bus_bytes=geometry.bus_bytes)
    whole = encode(plain, encoder, **sizes)
    assert (np.concatenate([c.data for c in sent]) == whole.data).all()
    assert whole.extra_wires == chain.facts.flag_wires * geometry.bus_bytes
    assert (decode(whole, encoder, **sizes) == plain).all()
    if chain.facts.flag_wires and len(plain):
        with pytest.raises(InputError, match="needs the flags"):
            decode(whole.data, encoder, **sizes)


@pytest.mark.parametrize("chain", [c for c in CHAINS if Chain(c, Geometry(4)).stages.__len__() < c.count("+") + 1])
@quick
@given(st.binary(max_size=400), st.sampled_from((1, 2, 4)))
def test_a_single_pass_does_what_its_stages_do(chain, data, element_bytes):
    geometry = Geometry(element_bytes)
    coded = Coded(np.frombuffer(data, np.uint8))
    for name in parse_chain(chain):
        stage = ENCODERS[name].item(geometry)
        coded, _ = stage.encode(coded, 0, stage.start())
    got, _ = Chain(chain, geometry).encode(np.frombuffer(data, np.uint8))
    assert (got.data == coded.data).all()
    assert (got.flags is None) == (coded.flags is None) and (got.flags is None or (got.flags == coded.flags).all())


@pytest.mark.parametrize("part_name", part_names())
@quick
@given(networks, st.sampled_from(CHAINS))
def test_what_goes_over_the_wires_is_driven(part_name, made, encoder):
    """Ones and zeros of each group add up to the unit intervals of the wires the chain declares, on any part."""
    part = load_part(part_name)
    bus = BusSpec(part.organisation.byte_lanes, part.organisation.burst_bytes)
    machine = Machine((CacheSpec(256, 64, 2),), encoder, bus=bus, part=part_name)
    stages = [ENCODERS[name].item for name in encoder.split("+")]
    if part.interface.cells and any(stage.flag_wires and not stage.inverts_shares for stage in stages):
        with pytest.raises(InputError, match="the part has no such wires"):
            replay(a_trace(made), machine)
        return
    result = replay(a_trace(made), machine)
    energy = replay_energy(result, machine)
    rows = {row.term: row for row in energy.interface}
    assert all(row.count >= 0 for row in (*energy.interface, *energy.core))
    flag_wires, has_pins = machine.flag_wires, "dbi" in part.interface.wires
    assert ("extra_read_static" in rows) == (flag_wires > (1 if has_pins else 0))
    total, group = result.total, 0
    for k, way in enumerate(("read", "write")):
        driven = int(total.way_bursts[k].sum()) * machine.beats_per_block * bus.bus_bytes
        wires = [(total.way_wires.data, 8), (total.way_wires.flag, min(flag_wires, 1))]
        if total.way_extra_wires is not None:
            wires.append((total.way_extra_wires, flag_wires - 1))
        for counts, per_lane in wires:
            assert 0 <= int(counts.ones[k].sum()) <= per_lane * driven
            group += int(counts.ones[k].sum())
        if part.interface.costly_level == 0 and has_pins:  # zeros cost: what is driven and not at 1
            flag_ones = int(total.way_wires.flag.ones[k].sum())
            assert rows[f"dbi_{way}_static"].count == min(flag_wires, 1) * driven - flag_ones
    assert group == total.ones


PLUGIN = '''
"""An encoder of another author: it inverts heavy nibbles, with two flag wires per lane."""
import numpy as np
from hwmodel.bus import Coded
from hwmodel.coding.stage import ENCODERS, Role, Stage


@ENCODERS.register("nibble-invert", summary="invert each nibble with three or more ones")
class NibbleInvert(Stage):
    """Data bus inversion of half bytes."""

    role = Role.BUS_CODE
    flag_wires = 2
    inverts = True
    latency_cycles = 1

    def encode(self, coded, offset, state):
        low, high = coded.data & 15, coded.data >> 4
        marks = [np.bitwise_count(half) > 2 for half in (low, high)]
        sent = coded.data ^ (marks[0] * np.uint8(15)) ^ (marks[1] * np.uint8(240))
        return Coded(sent, np.packbits(marks[0], bitorder="little"), marks[1].astype(np.uint8)), state

    def decode(self, coded, offset, state):
        low = np.unpackbits(coded.flags, bitorder="little", count=len(coded.data)).astype(np.uint8)
        return Coded(coded.data ^ low * np.uint8(15) ^ coded.extra * np.uint8(240)), state
'''
USE = """
import numpy as np
import edgewatt as ew
from hwmodel.coding.chain import chain_facts
from hwmodel.coding.stage import ENCODERS
from hwmodel.energy.total import replay_energy
from hwmodel.caches.spec import CacheSpec
from hwmodel.machine import Machine, BusSpec
from hwmodel.replay import replay
from traces.trace.build import build_trace
from traces.generators.networks import random_layered

data = np.arange(256, dtype=np.uint8)
got = ew.encode(data, "nibble-invert", element_bytes=1)
assert got.extra_wires == 4 and (ew.decode(got, "nibble-invert", element_bytes=1) == data).all()
assert got.ones == sum(min(n, 5 - n) for n in (b.bit_count() for b in range(16))) * 32
assert ENCODERS["nibble-invert"].origin.distribution == "others"
assert chain_facts("base-xor+nibble-invert").flag_wires == 2
machine = Machine((CacheSpec(512),), "base-xor+nibble-invert", part="lpddr4-3200")
controller, plain = machine.memory_controller(), Machine((), part="lpddr4-3200").memory_controller()
assert controller.read_dbi and controller.controller_latency_cycles == plain.controller_latency_cycles + 1
trace = build_trace(random_layered(3, 20, 0.5, 1))
result = replay(trace, machine)
energy = replay_energy(result, machine)
rows = {row.term: row.count for row in energy.interface}
assert rows["extra_read_static"] > 0 and rows["dbi_read_static"] > 0
vddq = Machine((CacheSpec(512),), "nibble-invert", bus=BusSpec(8, 64), part="ddr4-3200-x8")
assert min(r.count for r in replay_energy(replay(trace, vddq), vddq).interface) >= 0
"""


@pytest.mark.application
def test_an_encoder_of_another_distribution(tmp_path):
    points = "[edgewatt.encoders]\nnibble-invert = others_encoder\n"
    write_distribution(tmp_path, "others", "1.2", {"others_encoder": PLUGIN}, points)
    ran = run_with(tmp_path, "-c", USE)
    assert ran.returncode == 0, ran.stderr
    listed = run_with(tmp_path, "-c", "from edgewatt.cli import main; main()", "list", "encoders")
    assert "nibble-invert" in listed.stdout, listed.stderr


@pytest.mark.parametrize("name", [name for name, entry in ENCODERS.loadable().items() if entry.item.by_block])
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_blocks_that_stand_for_themselves_may_be_sent_in_any_order(name, data):
    block, lanes = data.draw(st.sampled_from([(32, 2), (64, 8), (8, 1)]))
    n = data.draw(st.integers(0, 12))
    blocks = np.frombuffer(data.draw(st.binary(min_size=n * block, max_size=n * block)), np.uint8).reshape(n, block)
    kind = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), np.uint8)
    order = np.array(data.draw(st.permutations(range(n))), np.int64)

    def encoded(which):
        chain = StreamChain(name, [1, 4, 6], lanes, block)
        assert chain.by_block
        return chain.encode(blocks[which].reshape(-1), kind[which])

    straight, mixed = encoded(np.arange(n)), encoded(order)
    for at, k in enumerate(order.tolist()):
        ours, theirs = mixed.part(at * block, (at + 1) * block), straight.part(k * block, (k + 1) * block)
        assert ours.data.tobytes() == theirs.data.tobytes()
        assert (ours.flags is None) == (theirs.flags is None)
        assert ours.flags is None or ours.flags.tobytes() == theirs.flags.tobytes()
