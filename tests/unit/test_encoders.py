"""Reference vectors, worked examples, bad input."""

import json
import subprocess
import sys

import numpy as np
import pytest

import edgewatt as ew
from cython_ext.dram.in_flight import Held
from cython_ext.wires.encode import encode_xor_dbi_blocks
from hwmodel.bus import Bus
from hwmodel.coding.stage import ENCODERS
from traces.base.errors import InputError

NAMES = {
    "raw": "raw",
    "dbi_dc": "dbi-dc",
    "dbi_ac": "dbi-ac",
    "bx": "base-xor",
    "bx_dbi_dc": "base-xor+dbi-dc",
    "bx_zdr": "base-xor-zdr",
    "bx_zdr_dbi_dc": "base-xor-zdr+dbi-dc",
    "ubx": "universal-xor",
    "ubx_dbi_dc": "universal-xor+dbi-dc",
    "transition": "transition",
}


def test_all_reference_vectors(reference):
    cases = json.loads((reference / "encoders" / "vectors.json").read_text())
    assert len(cases) == 40
    for case in cases:
        data = bytes.fromhex(case["hex"])
        sizes = dict(element_bytes=case["elem_bytes"], bus_bytes=case["bus_bytes"])
        assert set(case["enc"]) == set(NAMES)
        for key, want in case["enc"].items():
            got = ew.encode(data, NAMES[key], **sizes)
            where = f"{case['id']} {key}"
            assert got.data.tobytes().hex() == want["hex"], where
            flags = got.flags if got.flags is not None else np.zeros((len(data) + 7) // 8, np.uint8)
            assert flags.tobytes().hex() == want["flags"], where
            assert (got.ones, got.toggles) == (want["ones"], want["toggles"]), where
            assert ew.decode(got, NAMES[key], **sizes).tobytes() == data, where


def test_worked_examples():
    got = ew.encode(bytes([0xF0, 0xF8]), "dbi-dc", element_bytes=1)
    assert (got.data.tobytes(), got.flags.tolist(), got.ones) == (bytes([0xF0, 0x07]), [0b10], 8)
    assert got.extra_wires == 2


def test_a_state_can_be_resumed_twice():
    first = ew.encode(bytes(range(8)), "base-xor+dbi-dc", element_bytes=2, last=False)
    again = [ew.encode(b"\x01\x02", "base-xor+dbi-dc", element_bytes=2, state=first.state) for _ in range(2)]
    assert again[0].toggles == again[1].toggles and (again[0].data == again[1].data).all()


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        ("dbi-dc+base-xor", "'dbi-dc' is misplaced.*try 'base-xor\\+dbi-dc'"),
        ("base-xor+universal-xor", "do the same job"),
        ("raw+dbi-dc", "'raw' does nothing"),
        ("dbi-ac+transition", "makes no sense"),
        ("dbi-dc+dbi-ac", "do the same job"),
        ("base-xr", "did you mean 'base-xor'"),
        ("", "unknown encoder"),
    ],
)
def test_senseless_chains_are_refused(encoder, words):
    with pytest.raises(InputError, match=words):
        ew.encode(b"", encoder, element_bytes=2)


def test_bad_sizes_are_refused():
    with pytest.raises(InputError, match="whole number of 4-byte"):
        ew.encode(b"", "base-xor", element_bytes=4, block_bytes=30)
    with pytest.raises(InputError, match="elements have"):
        ew.encode(b"", "base-xor", element_bytes=3)
    with pytest.raises(InputError, match="byte lanes"):
        ew.encode(b"", "base-xor", element_bytes=2, bus_bytes=0)
    with pytest.raises(InputError, match="power of two"):
        ew.encode(b"", "universal-xor", element_bytes=2, block_bytes=24)
    first = ew.encode(b"abc", "base-xor", element_bytes=2)
    with pytest.raises(InputError, match="last=False"):
        ew.encode(b"d", "base-xor", element_bytes=2, state=first.state)
    with pytest.raises(InputError, match="belongs to 'base-xor'"):
        ew.encode(b"d", "raw", element_bytes=2, state=first.state)
    with pytest.raises(InputError, match="needs the flags"):
        ew.decode(b"abcd", "dbi-dc", element_bytes=2)
    bus = Bus(2)
    with pytest.raises(InputError, match="ascend"):
        bus.send(np.zeros(4, np.uint8), ends=[3, 2, 4])
    with pytest.raises(InputError, match="stream numbers"):
        bus.send(np.zeros(4, np.uint8), streams=1)


@pytest.mark.parametrize("longest", (4, 30))
@pytest.mark.parametrize("segments", (5_000, 50_000))
@pytest.mark.parametrize("place", ("first", "inside", "last"))
@pytest.mark.parametrize("what", ("stream", "below zero", "end", "beyond"))
def test_a_bad_segment_leaves_the_bus_as_it_was(segments, place, what, longest):
    """Many short segments are checked as they are sent, so what was counted before the bad one is taken back."""
    bus, fresh = Bus(2, n_streams=3), Bus(2, n_streams=3)
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, longest, segments)
    ends, streams = np.cumsum(lengths), rng.integers(0, 3, segments)
    data = rng.integers(0, 256, ends[-1], dtype=np.uint8)
    for each in (bus, fresh):
        each.send(data[:101], ends=[50, 101], streams=[2, 1])
    at = {"first": 0, "inside": segments * 7 // 8, "last": segments - 1}[place]
    bad_ends, bad_streams = ends.copy(), streams.copy()
    if what == "stream":
        bad_streams[at] = 3
    elif what == "below zero":
        bad_streams[at] = -1
    elif what == "end":
        bad_ends[at] = -5
    else:
        bad_ends[at] = 2**63 - 1
    with pytest.raises(InputError, match=r"stream numbers run|segment ends must ascend"):
        bus.send(data, ends=bad_ends, streams=bad_streams)
    for each in (bus, fresh):
        each.send(data, ends=ends, streams=streams)
    for name in ("ones", "toggles", "rising"):
        assert (getattr(bus.counts, name) == getattr(fresh.counts, name)).all()
    assert (bus.level == fresh.level).all() and bus.lane == fresh.lane


READS_BEYOND = """
import ctypes, mmap
import numpy as np
from hwmodel.bus import Bus
from traces.base.errors import InputError
pages = mmap.mmap(-1, 16 * mmap.PAGESIZE)
start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
rest = ctypes.c_void_p(start + mmap.PAGESIZE), ctypes.c_size_t(15 * mmap.PAGESIZE)
assert ctypes.CDLL(None).mprotect(*rest, 0) == 0
data = np.frombuffer(pages, np.uint8, mmap.PAGESIZE)[-8:]
ends = np.arange(1, 20_001) * STEP
ends[-1] = 8
for lanes in (1, 2, 8, 64):
    try:
        Bus(lanes, n_streams=3).send(data, ends=ends, streams=np.zeros(20_000, np.int64))
    except InputError as error:
        print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects pages by mprotect")
@pytest.mark.parametrize("step", (1, 2, 7))
def test_nothing_behind_the_data_is_read_where_segments_end_there(step):
    """The page behind the data may not be read: a read of it ends the process."""
    done = subprocess.run(
        [sys.executable, "-c", READS_BEYOND.replace("STEP", str(step))], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("segment ends must ascend") == 4


def test_limited_weight_code_sends_at_most_three_ones_per_byte():
    data = np.arange(256, dtype=np.uint8)
    got = ew.encode(data, "3-lwc", element_bytes=1, bus_bytes=2)
    bits = [np.unpackbits(a).reshape(256, 8).sum(axis=1) for a in (got.data, got.extra)]
    weights = sum(bits) + np.unpackbits(got.flags, bitorder="little")
    assert np.bincount(weights).tolist() == [1, 17, 136, 102]  # of 1, 17, 136, 680 words of weight 0 to 3
    assert got.ones == weights.sum() and got.extra_wires == 9 * 2
    with pytest.raises(InputError, match="not a word of"):
        ew.decode(b"\xff", "3-lwc", flags=np.ones(1, np.uint8), extra=np.zeros(1, np.uint8), element_bytes=1)


def test_scrambled_zeros_are_the_sequence():
    got = ew.encode(bytes(32767 * 2), "scrambler", element_bytes=1)
    bits = np.unpackbits(got.data, bitorder="little")
    assert (bits[: 8 * 32767] == bits[8 * 32767 :]).all() and bits[:32767].sum() == 1 << 14  # a maximal sequence


@pytest.mark.parametrize("name", list(ENCODERS))
def test_every_registered_encoder_is_inverted_by_decode(name):
    data = np.random.default_rng(5).integers(0, 256, 997, dtype=np.uint8)
    got = ew.encode(data, name, element_bytes=2)
    assert (ew.decode(got, name, element_bytes=2) == data).all()
    assert ENCODERS[name].summary


def test_kernels_refuse_blocks_whose_bytes_wrap_around() -> None:
    none, kinds = np.zeros(0, np.uint8), np.zeros(4, np.uint8)  # 4 blocks of 2^62 bytes would be none
    with pytest.raises(ValueError, match="whole blocks"):
        encode_xor_dbi_blocks(none, none, none, np.array([2]), np.array([0]), kinds, 2**62, True)
    with pytest.raises(ValueError, match="bytes"):
        Held(2**62)
