"""The rules over bitarrays and the kernels send the same bits and count the same, for every encoder."""

from contextlib import nullcontext

import numpy as np
from encoder_strategies import geometries, streams
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import encoders_oracle as oracle
from oracles.bit_by_bit import bit_by_bit, to_bits, to_bytes

from hwmodel.bus import Coded, WireCosts
from hwmodel.coding.codec import encode
from hwmodel.coding.stage import ENCODERS
from hwmodel.coding.streams import StreamChain

CHAINS = (
    *ENCODERS,
    "base-xor+dbi-dc",
    "base-xor-zdr+dbi-ac",
    "universal-xor+scrambler+dbi-dc",
    "3-lwc+transition",
)
costs = st.builds(WireCosts, *[st.sampled_from((0.0, 0.5, 1.0, 3.25))] * 3)


@settings(max_examples=200, deadline=None)
@given(streams(), geometries, st.sampled_from(CHAINS), st.lists(st.integers(0, 700), max_size=3), costs)
def test_kernels_and_bitarrays_agree_on_pieces(data, geometry, encoder, cuts, weights):
    element, bus, block = geometry
    if "universal" in encoder and (block // element) & (block // element - 1):
        block = 32
    sizes = dict(element_bytes=element, bus_bytes=bus, block_bytes=block, costs=weights)
    bounds = [*sorted({min(c, len(data)) for c in cuts}), len(data)]
    states = {"kernels": None, "bitarray": None}
    for k, (start, stop) in enumerate(zip([0, *bounds], bounds, strict=False)):
        found = {}
        for engine in states:
            last = k == len(bounds) - 1
            with bit_by_bit() if engine == "bitarray" else nullcontext():
                got = encode(data[start:stop], encoder, **sizes, state=states[engine], last=last)
            states[engine] = got.state
            wires = [got.wires.ones, got.wires.toggles, got.wires.rising]
            extra = None if got.extra_counts is None else [x.tolist() for x in vars(got.extra_counts).values()]
            arrays = (got.data, got.flags, got.extra, *wires)
            found[engine] = [None if a is None else a.tolist() for a in arrays] + [extra, got.ones, got.toggles]
        assert found["kernels"] == found["bitarray"]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(("base-xor", "base-xor-zdr", "base-xor+dbi-dc", "base-xor+dbi-ac", "universal-xor")),
    st.lists(st.sampled_from((1, 2, 4, 8, 10, 12)), min_size=1, max_size=3),
    st.sampled_from((16, 32, 64)),
    st.integers(1, 8),
    st.integers(0, 2**32 - 1),
)
def test_streams_of_different_elements_agree(encoder, sizes, block, n, seed):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, len(sizes), n)
    data = (rng.integers(0, 256, n * block) * (rng.random(n * block) < 0.6)).astype(np.uint8)
    sent = [StreamChain(encoder, sizes, 2, block).encode(data, kinds)]
    with bit_by_bit():
        sent.append(StreamChain(encoder, sizes, 2, block).encode(data, kinds))
    assert (sent[0].data == sent[1].data).all()
    assert sent[0].flags is None or (sent[0].flags == sent[1].flags).all()


@settings(max_examples=60, deadline=None)
@given(streams(), geometries)
def test_the_reference_is_the_rule_read_once_more(data, geometry):
    """Against the oracle of the tests, which knows neither stages nor states."""
    element, bus, block = geometry
    for encoder in ("base-xor+dbi-dc", "base-xor-zdr", "dbi-ac", "dbi-dc+transition"):
        with bit_by_bit():
            got = encode(data, encoder, element_bytes=element, bus_bytes=bus, block_bytes=block)
        want, flags = oracle.encode(data.tobytes(), encoder, element, bus, block)
        assert got.data.tobytes() == want
        ones, toggles, rising = oracle.wire_counts(want, flags, bus)
        assert got.wires.counts.tolist() == [ones, toggles, rising]


def test_bits_and_bytes_are_the_same_thing():
    coded = Coded(np.arange(9, dtype=np.uint8), np.array([0b10110, 1], np.uint8), np.arange(9, dtype=np.uint8))
    back = to_bytes(to_bits(coded))
    assert all((getattr(back, name) == getattr(coded, name)).all() for name in ("data", "flags", "extra"))
