"""Encoders and wire counts against the bitarray oracle; cutting a stream anywhere changes nothing; decode inverts."""

import numpy as np
from bitarray import bitarray
from encoder_strategies import geometries, streams
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import encoders_oracle as oracle

from hwmodel.bus import Bus, Coded
from hwmodel.coding.chain import Chain
from hwmodel.coding.codec import decode, encode
from hwmodel.coding.stage import Geometry

SIMILARITY = ("base-xor", "base-xor-zdr", "universal-xor")
CHAINS = (
    "raw",
    "dbi-dc",
    "dbi-ac",
    "transition",
    "dbi-dc+transition",
    *SIMILARITY,
    *(f"{name}+dbi-dc" for name in SIMILARITY),
    "base-xor+dbi-ac",
    "base-xor+dbi-dc+transition",
)
quick = settings(max_examples=60, deadline=None)


def flag_bits(encoded) -> bitarray:
    bits = bitarray(endian="little")
    bits.frombytes(encoded.flags.tobytes() if encoded.flags is not None else bytes(len(encoded.data)))
    return bits[: len(encoded.data)] if encoded.flags is not None else bitarray(len(encoded.data))


@quick
@given(streams(), geometries, st.sampled_from(CHAINS))
def test_encoders_match_the_oracle(data, geometry, encoder):
    element, bus, block = geometry
    if "universal" in encoder and (block // element) & (block // element - 1):
        block = 32
    got = encode(data, encoder, element_bytes=element, bus_bytes=bus, block_bytes=block)
    want, flags = oracle.encode(data.tobytes(), encoder, element, bus, block)
    assert got.data.tobytes() == want
    if got.flags is not None:
        assert flag_bits(got) == flags
        assert not np.unpackbits(got.flags, bitorder="little")[len(data) :].any()
    ones, toggles, rising = oracle.wire_counts(want, flags, bus)
    assert (got.wires.ones.tolist(), got.wires.toggles.tolist(), got.wires.rising.tolist()) == (ones, toggles, rising)
    assert (got.ones, got.toggles, got.rising) == (sum(ones), sum(toggles), sum(rising))
    back = decode(got, encoder, element_bytes=element, bus_bytes=bus, block_bytes=block)
    assert back.tobytes() == data.tobytes()


ANCHORS = ("3-lwc", "scrambler", "base-xor+scrambler+dbi-dc")


@quick
@given(streams(), st.sampled_from(ANCHORS), st.lists(st.integers(0, 700), max_size=4))
def test_anchors_can_be_cut_and_decoded(data, encoder, cuts):
    sizes = dict(element_bytes=2, bus_bytes=2, block_bytes=32)
    whole = encode(data, encoder, **sizes)
    assert decode(whole, encoder, **sizes).tobytes() == data.tobytes()
    bounds = [*sorted({min(c, len(data)) for c in cuts}), len(data)]
    state, sent, counts = None, b"", np.zeros(3, np.int64)
    for k, (start, stop) in enumerate(zip([0, *bounds], bounds, strict=False)):
        piece = encode(data[start:stop], encoder, **sizes, state=state, last=k == len(bounds) - 1)
        state, sent = piece.state, sent + piece.data.tobytes()
        counts += (piece.ones, piece.toggles, piece.rising)
    assert sent == whole.data.tobytes()
    assert counts.tolist() == [whole.ones, whole.toggles, whole.rising]


@quick
@given(streams(), geometries, st.sampled_from(CHAINS), st.lists(st.integers(0, 700), max_size=4))
def test_a_stream_may_be_cut_anywhere(data, geometry, encoder, cuts):
    element, bus, block = geometry
    if "universal" in encoder and (block // element) & (block // element - 1):
        block = 32
    sizes = dict(element_bytes=element, bus_bytes=bus, block_bytes=block)
    whole = encode(data, encoder, **sizes)
    pieces, state, decoded, decoder = [], None, b"", None
    bounds = [*sorted({min(c, len(data)) for c in cuts}), len(data)]
    chain = Chain(encoder, Geometry(element, bus, block))
    for k, (start, stop) in enumerate(zip([0, *bounds], bounds, strict=False)):
        piece = encode(data[start:stop], encoder, **sizes, state=state, last=k == len(bounds) - 1)
        state = piece.state
        pieces.append(piece)

        back, decoder = chain.decode(Coded(piece.data, piece.flags), decoder)
        decoded += back.tobytes()
    assert b"".join(p.data.tobytes() for p in pieces) == whole.data.tobytes()
    assert sum((flag_bits(p) for p in pieces), bitarray()) == flag_bits(whole)
    for name in ("ones", "toggles", "rising"):
        assert sum(getattr(p, name) for p in pieces) == getattr(whole, name)
        assert (sum(getattr(p.wires, name) for p in pieces) == getattr(whole.wires, name)).all()
    assert decoded == data.tobytes()


@quick
@given(streams(), st.sampled_from((1, 2, 3, 4, 8)), st.sampled_from((0, 1)), st.lists(st.integers(0, 700), max_size=6))
def test_streams_share_the_wires_but_not_the_counts(data, lanes, idle, cuts):
    flags = np.packbits(data & 1, bitorder="little")
    ends = np.array(sorted({min(c, len(data)) for c in cuts} | {len(data)}), np.int64)
    names = np.arange(len(ends)) % 3
    together, apart = Bus(lanes, idle_level=idle), Bus(lanes, idle_level=idle, n_streams=3)
    together.send(data, flags)
    apart.send(data, flags, ends=ends, streams=names)
    bits = bitarray(endian="little")
    bits.frombytes(flags.tobytes())
    want = oracle.wire_counts(data.tobytes(), bits[: len(data)], lanes, idle)
    for k, name in enumerate(("ones", "toggles", "rising")):
        assert getattr(together.counts, name)[0].tolist() == want[k]
        assert getattr(apart.counts, name).sum(axis=0).tolist() == want[k]
    assert (together.level == apart.level).all() and together.lane == apart.lane


@quick
@given(
    st.data(),
    st.sampled_from((1, 2, 3, 4, 6, 8, 16, 32, 63, 64)),
    st.sampled_from((0, 1)),
    st.booleans(),
    st.booleans(),
)
def test_many_short_segments_count_what_single_ones_do(data, lanes, idle, flagged, rests):
    """In one call, what the wires do is found for many segments at once; alone, for each; and bit by bit."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n = data.draw(st.sampled_from((100, 1023, 1024, 1025, 4096)) | st.integers(1, 9000))
    unit = data.draw(st.sampled_from((1, lanes)))
    cuts = np.unique(rng.integers(0, n // unit + 1, data.draw(st.integers(2, 3000)))) * unit
    ends = np.append(cuts[cuts < n], n)
    names, idles = rng.integers(0, 3, len(ends)), rests & (rng.random(len(ends)) < 0.1)
    sent = rng.integers(0, 256, n, dtype=np.uint8)
    bits = rng.integers(0, 2, n, dtype=np.uint8) if flagged else None
    together, apart = (Bus(lanes, idle_level=idle, n_streams=3) for _ in range(2))
    for bus in (together, apart):  # wires that carry something, flags too
        bus.send(np.full(lanes, 0x5A, np.uint8), np.full(lanes, 255, np.uint8))
    packed = None if bits is None else np.packbits(bits, bitorder="little")
    together.send(sent, packed, ends=ends, streams=names, idle_before=idles)
    for start, end, name, rest in zip(np.append(0, ends), ends, names, idles, strict=False):
        part = None if bits is None else np.packbits(bits[start:end], bitorder="little")
        apart.send(sent[start:end], part, ends=[end - start], streams=[name], idle_before=[rest])
    for name in ("ones", "toggles", "rising"):
        assert (getattr(together.counts, name) == getattr(apart.counts, name)).all()
    assert (together.level == apart.level).all() and (together.flag_level == apart.flag_level).all()
    if not idles.any():
        flat = bitarray(endian="little")
        flat.frombytes(np.packbits(np.concatenate((np.ones(lanes, np.uint8), bits if flagged else 0 * sent)),
                                   bitorder="little").tobytes())  # fmt: skip
        whole = np.concatenate((np.full(lanes, 0x5A, np.uint8), sent))
        want = oracle.wire_counts(whole.tobytes(), flat[: len(whole)], lanes, idle)
        for k, name in enumerate(("ones", "toggles", "rising")):
            assert getattr(together.counts, name).sum(axis=0).tolist() == want[k]


def _counts_by_hand(sent, flags, owner, lanes, n_streams, idle):
    """int64[ones, toggles, rising; stream; wire] of bytes, their flags and whose they are, on a bus that was idle."""
    place = np.arange(len(sent)) % lanes
    want = np.zeros((3, n_streams, 9 * lanes), np.int64)
    for wire, carried in [(bit, sent >> bit & 1) for bit in range(8)] + [(8, flags)]:
        before = np.concatenate((np.full(lanes, idle, np.uint8), carried))[: len(sent)]
        at = 8 * place + wire if wire < 8 else 8 * lanes + place
        for k, counted in enumerate((carried, carried ^ before, carried & ~before)):
            np.add.at(want[k], (owner, at), counted)
    return want


@quick
@given(st.data(), st.sampled_from((1, 2, 3, 5, 8, 64)), st.sampled_from((1, 7, 64, 65, 254, 255, 256, 700, 2046, 2047)))
def test_many_streams_and_lengths_count_what_is_theirs(data, lanes, n_streams):
    """Streams more than a window has numbers for, segments of no byte, of one, of a few and of many in one call."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    longest = data.draw(st.lists(st.sampled_from((0, 1, 2, 4, 16, 17, 64, 65, 600)), min_size=1, max_size=6))
    lengths = np.concatenate(
        [rng.integers(min(most, 1) * (most < 3), most + 1, rng.integers(1, 400)) for most in longest]
    )
    ends, names = np.cumsum(lengths), rng.integers(0, n_streams, len(lengths))
    n = int(ends[-1])
    sent, bits = rng.integers(0, 256, n, dtype=np.uint8), rng.integers(0, 2, n, dtype=np.uint8)
    flagged = data.draw(st.booleans())
    bus = Bus(lanes, n_streams=n_streams)
    bus.send(sent, np.packbits(bits, bitorder="little") if flagged else None, ends=ends, streams=names)
    bits &= flagged
    want = _counts_by_hand(sent, bits, np.repeat(names, lengths), lanes, n_streams, 0)
    for k, name in enumerate(("ones", "toggles", "rising")):
        assert (getattr(bus.counts, name) == want[k]).all()


@quick
@given(
    st.sampled_from((1, 2, 3, 48, 64)),
    st.sampled_from((2, 18, 64, 257)),
    st.sampled_from((0, 1)),
    st.sampled_from((2, 5, 70)),
    st.integers(0, 2**32 - 1),
)
def test_windows_with_and_without_flags_follow_each_other(lanes, n_streams, idle, longest, seed):
    """Some calls have flags and some have none, the bus rests between segments at a level that sets its flags, and most
    streams send in few of the windows: their counters wait in between. Most flags are set, so that carries of theirs
    wait when a call without them begins."""
    rng = np.random.default_rng(seed)
    bus = Bus(lanes, idle_level=idle, n_streams=n_streams)
    want = np.zeros((3, n_streams, 9 * lanes), np.int64)
    run: list[np.ndarray] = [np.empty((3, 0), np.int64)]  # bytes, flags and owners since the bus rested
    for flagged in (True, True, False, False, False, True):
        lengths = rng.integers(0, longest, 16_000 // longest)
        ends, names = np.cumsum(lengths), rng.integers(0, n_streams, len(lengths))
        n = int(ends[-1])
        sent, bits = rng.integers(0, 256, n, dtype=np.uint8), (rng.random(n) < 0.9).astype(np.uint8) & flagged
        idles = rng.random(len(lengths)) < 3 / len(lengths)
        packed = np.packbits(bits, bitorder="little") if flagged else None
        bus.send(sent, packed, ends=ends, streams=names, idle_before=idles)
        every, start = np.stack((sent, bits, np.repeat(names, lengths))).astype(np.int64), 0
        for k in np.flatnonzero(idles):
            rest = ends[k] - lengths[k]
            whole = np.concatenate((*run, every[:, start:rest]), axis=1)
            want += _counts_by_hand(*whole, lanes, n_streams, idle)
            level = np.full((9, lanes), idle)
            for place in range(max(0, whole.shape[1] - lanes), whole.shape[1]):
                level[:8, place % lanes], level[8, place % lanes] = whole[0, place] >> np.arange(8) & 1, whole[1, place]
            wires = np.append(level[:8].T, level[8])  # as they are numbered: those of a lane, and the flags last
            want[1, names[k]] += wires != idle
            want[2, names[k]] += (wires == 0) & (idle == 1)
            run, start = [], rest
        run.append(every[:, start:])
    want += _counts_by_hand(*np.concatenate(run, axis=1), lanes, n_streams, idle)
    for k, name in enumerate(("ones", "toggles", "rising")):
        assert (getattr(bus.counts, name) == want[k]).all()


@quick
@given(
    st.sampled_from((1, 2, 3, 7, 8, 63, 64)),
    st.sampled_from((0, 1)),
    st.lists(
        st.tuples(
            st.sampled_from((1, 5, 6, 7, 8, 9, 17, 300)),
            st.integers(1, 900),
            st.integers(-2, 2),
            st.booleans(),
            st.booleans(),
        ),
        min_size=2,
        max_size=6,
    ),
    st.integers(0, 2**32 - 1),
)
def test_calls_of_short_and_of_long_segments_share_a_bus(lanes, idle, calls, seed):
    """Levels, flags, the lane and what is not counted yet go on from call to call. `calls`: bytes of a segment on
    average, segments, bytes more or less, flags or none, with rests."""
    rng = np.random.default_rng(seed)
    together, apart = (Bus(lanes, idle_level=idle, n_streams=3) for _ in range(2))
    carried, flags, owner = [], [], []
    for average, segments, more, flagged, rests in calls:
        n = max(average * segments + more, 0)
        ends = np.append(np.sort(rng.integers(0, n + 1, segments - 1)), n)
        names, idles = rng.integers(0, 3, segments), rests & (rng.random(segments) < 0.1)
        sent, bits = rng.integers(0, 256, n, dtype=np.uint8), rng.integers(0, 2, n, dtype=np.uint8) & flagged
        packed = np.packbits(bits, bitorder="little") if flagged else None
        together.send(sent, packed, ends=ends, streams=names, idle_before=idles)
        for start, end, name, rest in zip(np.append(0, ends), ends, names, idles, strict=False):
            part = np.packbits(bits[start:end], bitorder="little") if flagged else None
            apart.send(sent[start:end], part, ends=[end - start], streams=[name], idle_before=[rest])
        carried.append(sent), flags.append(bits), owner.append(np.repeat(names, np.diff(ends, prepend=0)))
    assert (together.level == apart.level).all() and (together.flag_level == apart.flag_level).all()
    for name in ("ones", "toggles", "rising"):
        assert (getattr(together.counts, name) == getattr(apart.counts, name)).all()
    if not any(rests for *_, rests in calls):
        want = _counts_by_hand(*map(np.concatenate, (carried, flags, owner)), lanes, 3, idle)
        for k, name in enumerate(("ones", "toggles", "rising")):
            assert (getattr(together.counts, name) == want[k]).all()


def test_more_bytes_than_the_counters_of_a_stream_hold():
    n = 3 << 20
    bus = Bus(1)
    bus.send(np.where(np.arange(n) % 2, 0, 0xFF).astype(np.uint8), np.full(n // 8, 0x55, np.uint8))
    for k in range(9):
        assert (bus.counts.ones[0, k], bus.counts.toggles[0, k], bus.counts.rising[0, k]) == (n // 2, n, n // 2)


def test_rest_between_bursts_returns_every_wire_to_idle():
    bus = Bus(1, n_streams=2)
    bus.send(np.array([0xFF, 0xFF], np.uint8), ends=[1, 2], streams=[0, 1], idle_before=[False, True])
    assert bus.counts.rising.sum(axis=1).tolist() == [8, 8]
    assert bus.counts.toggles.sum(axis=1).tolist() == [8, 16]  # eight wires fall, then rise again
    assert bus.counts.ones.sum() == 16


def test_dbi_dc_on_every_byte():
    for byte in range(256):
        weight = byte.bit_count()
        got = encode(bytes([byte]), "dbi-dc", element_bytes=1, bus_bytes=1)
        assert got.ones == (0, 1, 2, 3, 4, 4, 3, 2, 1)[weight] and got.flags[0] == (weight >= 5), byte


@quick
@given(st.sampled_from((1, 2, 3, 8)), st.sampled_from((0, 1)), st.integers(0, 2**32 - 1))
def test_buses_beside_each_other_count_together(lanes, idle, seed):
    """Each has levels of its own, and what they count is the sum of what they would count alone."""
    rng = np.random.default_rng(seed)
    together = [Bus(lanes, idle_level=idle, n_streams=5)]
    together += [together[0].another_channel() for _ in range(2)]
    alone = [Bus(lanes, idle_level=idle, n_streams=5) for _ in together]
    for k in rng.integers(0, 3, 12):
        lengths = rng.integers(0, 40, rng.integers(1, 60))
        ends, names = np.cumsum(lengths), rng.integers(0, 5, len(lengths))
        data = rng.integers(0, 256, ends[-1], dtype=np.uint8)
        for bus in (together[k], alone[k]):
            bus.send(data, ends=ends, streams=names)
    want = alone[0].counts + alone[1].counts + alone[2].counts
    for bus, apart in zip(together, alone, strict=True):
        for name in ("ones", "toggles", "rising"):
            assert (getattr(bus.counts, name) == getattr(want, name)).all()
        assert (bus.level == apart.level).all() and bus.lane == apart.lane
    assert (together[0].another_channel().level == 255 * idle).all()
