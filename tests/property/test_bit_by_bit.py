"""The bitarray engine and the kernels send the same bits and count the same, for every encoder that has a reference."""

import numpy as np
import pytest
from encoder_strategies import geometries, streams
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import encoders_oracle as oracle

from hwmodel.coding import ENCODERS, BitStage, Coded, StreamChain, WireCosts, decode, encode
from hwmodel.coding.bits import Bits, pieces, to_bits, to_bytes
from traces.base.errors import InputError
from traces.base.registry import Entry

CHAINS = (
    *ENCODERS,
    "base-xor+dbi-dc",
    "base-xor-zdr+dbi-ac",
    "universal-xor+scrambler+dbi-dc",
    "3-lwc+transition",
    "line-reorder+base-xor+dbi-dc+transition",
)
costs = st.builds(WireCosts, *[st.sampled_from((0.0, 0.5, 1.0, 3.25))] * 3)


@settings(max_examples=200, deadline=None)
@given(streams(), geometries, st.sampled_from(CHAINS), st.lists(st.integers(0, 700), max_size=3), costs)
def test_kernels_and_bitarrays_agree_on_pieces(data, geometry, encoder, cuts, weights):
    element, bus, block = geometry
    if "universal" in encoder and (block // element) & (block // element - 1):
        block = 32
    if "line-reorder" in encoder and block % bus:
        bus = 2
    sizes = dict(element_bytes=element, bus_bytes=bus, block_bytes=block, costs=weights)
    bounds = [*sorted({min(c, len(data)) for c in cuts}), len(data)]
    states = {"kernels": None, "bitarray": None}
    for k, (start, stop) in enumerate(zip([0, *bounds], bounds, strict=False)):
        found = {}
        for engine in states:
            last = k == len(bounds) - 1
            got = encode(data[start:stop], encoder, **sizes, state=states[engine], last=last, engine=engine)
            states[engine] = got.state
            wires = [got.wires.ones, got.wires.toggles, got.wires.rising]
            extra = None if got.extra_counts is None else [x.tolist() for x in vars(got.extra_counts).values()]
            arrays = (got.data, got.flags, got.extra, got.order, *wires)
            found[engine] = [None if a is None else a.tolist() for a in arrays] + [extra, got.ones, got.toggles]
        assert found["kernels"] == found["bitarray"]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(("base-xor", "base-xor-zdr", "base-xor+dbi-dc", "base-xor+dbi-ac", "universal-xor", "bd-coding")),
    st.lists(st.sampled_from((1, 2, 4, 8, 10, 12)), min_size=1, max_size=3),
    st.sampled_from((16, 32, 64)),
    st.integers(1, 8),
    st.integers(0, 2**32 - 1),
)
def test_streams_of_different_elements_agree(encoder, sizes, block, n, seed):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, len(sizes), n)
    data = (rng.integers(0, 256, n * block) * (rng.random(n * block) < 0.6)).astype(np.uint8)
    sent = [StreamChain(encoder, sizes, 2, block, engine=e).encode(data, kinds) for e in ("kernels", "bitarray")]
    assert (sent[0].data == sent[1].data).all()
    assert sent[0].flags is None or (sent[0].flags == sent[1].flags).all()


@settings(max_examples=60, deadline=None)
@given(streams(), geometries)
def test_the_reference_is_the_rule_read_once_more(data, geometry):
    """Against the oracle of the tests, which knows neither stages nor states."""
    element, bus, block = geometry
    for encoder in ("base-xor+dbi-dc", "base-xor-zdr", "dbi-ac", "dbi-dc+transition"):
        got = encode(data, encoder, element_bytes=element, bus_bytes=bus, block_bytes=block, engine="bitarray")
        want, flags = oracle.encode(data.tobytes(), encoder, element, bus, block)
        assert got.data.tobytes() == want
        ones, toggles, rising = oracle.wire_counts(want, flags, bus)
        assert got.wires.counts.tolist() == [ones, toggles, rising]


class Gray(BitStage):
    """An encoder of a newcomer, over bitarrays only: each byte in Gray code."""

    role = ENCODERS["base-xor"].item.role

    def encode_bits(self, sent, offset, state):
        out = sent.data.copy()
        for at, _, _ in pieces(sent.n_bytes, offset, 1, 1):
            byte = sent.data[at]
            out[at] = byte ^ (byte << 1)  # little endian: towards the least significant bit
        return Bits(out), state

    def decode_bits(self, sent, offset, state):
        out = sent.data.copy()
        for at, _, _ in pieces(sent.n_bytes, offset, 1, 1):
            for k in reversed(range(at.start, at.stop - 1)):
                out[k] ^= out[k + 1]
        return Bits(out), state


def test_an_encoder_may_be_written_over_bitarrays_alone(monkeypatch):
    monkeypatch.setitem(ENCODERS._entries, "gray", Entry("gray", Gray, "each byte in Gray code", None))
    data = np.arange(256, dtype=np.uint8)
    sent = encode(data, "gray+dbi-dc", element_bytes=1)
    assert decode(sent, "gray+dbi-dc", element_bytes=1).tolist() == data.tolist()
    plain = encode(data, "gray", element_bytes=1).data
    assert plain.tolist() == [x ^ x >> 1 for x in range(256)]


def test_bits_and_bytes_are_the_same_thing():
    coded = Coded(np.arange(9, dtype=np.uint8), np.array([0b10110, 1], np.uint8), np.arange(9, dtype=np.uint8))
    back = to_bytes(to_bits(coded))
    assert all((getattr(back, name) == getattr(coded, name)).all() for name in ("data", "flags", "extra"))


def test_what_an_engine_refuses():
    with pytest.raises(InputError, match=r"unknown encoding engine 'bitaray' \(did you mean 'bitarray'\?\)"):
        encode(b"ab", "raw", element_bytes=1, engine="bitaray")
    state = encode(b"ab", "raw", element_bytes=1).state
    with pytest.raises(InputError, match=r"kernels\), this call .* \(bitarray"):
        encode(b"ab", "raw", element_bytes=1, state=state, engine="bitarray")
