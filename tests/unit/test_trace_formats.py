"""Other simulators' trace formats: what is written, read back, and refused by file and line."""

import os
from pathlib import Path

import numpy as np
import pytest
from oracles.trace_oracle import small_network

from traces.base.errors import InputError
from traces.trace.build import build_trace
from traces.trace.chunks import STREAMS, Chunk, Memory, Trace
from traces.trace_files import TRACE_WRITERS, export_trace, open_trace

FORMATS = ("dramsim3", "ramulator2", "dinero", "dramsys", "libcachesim")


def recorded(*, cycle=None, payload=None):
    chunk = Chunk(
        np.array([0x1F40, 0x2000, 0x1F42], np.uint64),
        np.array([4, 2, 2], np.uint8),
        np.array([0, 1, 0], np.uint8),
        np.full(3, STREAMS.index("external"), np.uint8),
        None if payload is None else np.array([0, 4, 6, 8]),
        payload,
        cycle,
    )
    return Trace.from_chunks([chunk], Memory(0x1F40, 0x100, None))


def test_text_of_every_format(tmp_path):
    path = tmp_path / "trace"
    trace = recorded(cycle=np.array([3, 3, 9]), payload=np.arange(10, 18, dtype=np.uint8))
    expected = {
        "dramsim3": "0x1F40 READ 3\n0x2000 WRITE 3\n0x1F42 READ 9\n",
        "ramulator2": "LD 0x1f40\nST 0x2000\nLD 0x1f42\n",
        "dinero": "r 1f40 4\nw 2000 2\nr 1f42 2\n",
        "dramsys": "3:\tread\t0x1f40\n3:\twrite\t0x2000\t0x0e0f\n9:\tread\t0x1f42\n",
    }
    for name, text in expected.items():
        assert export_trace(trace, path, name) == 3
        assert path.read_text() == text
    export_trace(trace, path, "libcachesim")
    assert path.read_bytes()[:24] == bytes([0] * 4 + [125] + [0] * 7 + [64, 0, 0, 0, 2] + [0] * 7)
    assert len(path.read_bytes()) == 72
    assert set(TRACE_WRITERS) == {"npz", *FORMATS}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("guess", [True, False])
def test_what_is_written_reads_back(tmp_path, name, guess):
    rng = np.random.default_rng(2)
    n = 3000
    chunk = Chunk(
        rng.integers(0, 2**40, n).astype(np.uint64) * np.uint64(64),
        np.full(n, 64, np.uint8),
        rng.integers(0, 2, n).astype(np.uint8),
        np.zeros(n, np.uint8),
        cycle=np.sort(rng.integers(0, 10**6, n)),
    )
    path = tmp_path / "trace"
    export_trace(Trace.from_chunks([chunk], Memory(0, 2**46, None)), path, name)
    trace = open_trace(path, None if guess else name, access_bytes=64)
    (back,) = trace
    assert np.array_equal(back.address, chunk.address) and np.array_equal(back.size, chunk.size)
    if not name.startswith("libcachesim"):
        assert np.array_equal(back.op, chunk.op)
    if name in ("dramsim3", "dramsys"):
        assert np.array_equal(back.cycle, chunk.cycle)
    assert trace.n_accesses == n and not trace.has_data
    assert trace.memory.base_address == chunk.address.min()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("dramsim3", "0x10 READ 1\n0x10 REED 2\n", r":2: operation 'REED' is none of READ, .* in '0x10 REED 2'"),
        ("dramsim3", "0x10 READ 5\n0x10 READ 4\n", ":2: clock 4 goes back behind 5"),
        ("dramsim3", "0x10 READ\n", ":1: 2 fields, expected 'ADDRESS READ|WRITE CLOCK'"),
        ("dramsim3", "0x8000000000000000 READ 1\n", ":1: the access at 0x8000000000000000 does not end below"),
        ("dramsim3", "0x10 READ 2000000000000000000\n", ":1: clock .* is beyond"),
        ("ramulator2", "LD 0x10\n\n# note\nLD ten\n", ":4: address 'ten' is not a decimal number"),
        ("ramulator2", "LD 99999999999999999999999\n", "too large"),
        ("dinero", "r 10 0\n", ":1: size 0 is out of range"),
        ("dinero", "c 10 4\n", ":1: operation 'c'"),
        ("dramsys", "1: write 0x10 0xabc\n", ":1: data '0xabc' is not a hexadecimal"),
        ("dramsys", "1: (0) read 0x10\n", ":1: length 0"),
        ("dinero", "0 1f40\n4 1f40\n", ":2: operation '4' is none of 0, 2, 3, 1"),
        ("lackey", "==1== note\n X 10,4\n", ":2: operation 'X'"),
        ("lackey", " L 10,0\n", ":1: size 0 is out of range"),
        ("dramsim3", "", "no accesses in it"),
        ("dramsim3", "0x10 READ 1\n\0\0", ":2: this is not text"),
        (None, "once upon a time\n", "its first line fits no known trace format"),
        (None, "\0\1\2", "no trace format that is known here"),
        ("dramsim4", "0x10 READ 1\n", "unknown trace format 'dramsim4' .did you mean 'dramsim3'"),
    ],
)
def test_a_line_that_does_not_parse_is_named(tmp_path, name, text, message):
    path = tmp_path / "given.trace"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        open_trace(path, name)


def test_binary_records(tmp_path):
    path = tmp_path / "trace"
    path.write_bytes(bytes(24 + 7))
    with pytest.raises(InputError, match="the last record is cut: 7 of 24 bytes"):
        open_trace(path, "libcachesim")
    path.write_bytes(bytes(4) + b"\xff" * 8 + bytes(12))
    with pytest.raises(InputError, match=r"record 0: object .* not line numbers"):
        open_trace(path, "libcachesim")
    with pytest.raises(InputError, match="no such file"):
        open_trace(tmp_path / "missing", "dinero")


def test_exports_are_complete_or_absent(tmp_path):
    with pytest.raises(InputError, match=r"unknown trace format 'dinro' .did you mean 'dinero'"):
        export_trace(recorded(), tmp_path / "out", "dinro")
    with pytest.raises(InputError, match="no accesses"):
        export_trace(Trace.from_chunks([], Memory(0, 1, None)), tmp_path / "out", "dinero")
    with pytest.raises(InputError, match="line_bytes"):
        export_trace(recorded(), tmp_path / "out", "libcachesim", line_bytes=0)
    with pytest.raises(InputError, match="cannot be written"):
        export_trace(recorded(), tmp_path / "no" / "out", "dinero")
    assert not list(tmp_path.iterdir())
    trace = build_trace(small_network())
    assert export_trace(trace, tmp_path / "out.npz", "npz") == sum(map(len, trace))
    assert open_trace(tmp_path / "out.npz").has_data


@pytest.mark.parametrize("name", ["dramsim3", "ramulator2", "dinero", "dramsys"])
def test_many_lines_at_once_read_as_line_by_line(tmp_path, monkeypatch, name):
    rng = np.random.default_rng(3)
    n = 500
    chunk = Chunk(
        rng.integers(0, 2**62, n).astype(np.uint64),
        rng.integers(1, 9, n).astype(np.uint8),
        rng.integers(0, 2, n).astype(np.uint8),
        np.zeros(n, np.uint8),
        cycle=np.sort(rng.integers(0, 10**6, n)),
    )
    path = tmp_path / "trace"
    export_trace(Trace.from_chunks([chunk], Memory(0, 2**62, None)), path, name)
    (fast,) = open_trace(path, name)
    monkeypatch.setattr("traces.trace_files.text._plain", lambda *_: None)
    (slow,) = open_trace(path, name)
    for column in ("address", "size", "op", "stream", "cycle"):
        assert np.array_equal(getattr(fast, column), getattr(slow, column)), column


@pytest.mark.parametrize(
    "text",
    ["LD 0x1_0\n", "LD 0x10 LD\n0x20\n", "READ 0x10\n", "LD -0x10\n", "LD 0x8000000000000000\n", "LD 0x\n"],
)
def test_what_reads_at_once_is_what_the_format_says(tmp_path, text):
    path = tmp_path / "trace"
    path.write_text("LD 0x40\n" + text)
    with pytest.raises(InputError, match=":2: "):
        open_trace(path, "ramulator2")


ACCESSES = [(0x1FFEFFE7E8, 8, 0), (0x1FFEFFE7E0, 8, 1), (0x0421C7CC, 4, 0), (0x0421C7CC, 4, 1)]
LACKEY = """==7== Lackey, an example Valgrind tool
I  04000c30,3
 L 1ffeffe7e8,8
 S 1ffeffe7e0,8
 M 0421c7cc,4
==7== end
"""


def listing(trace):
    return [
        row
        for chunk in trace
        for row in zip(chunk.address.tolist(), chunk.size.tolist(), chunk.op.tolist(), strict=True)
    ]


def packed(kind, raw):
    """Return the bytes compressed, by another route than the readers take."""
    import gzip

    import zstandard

    pack = {"gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}
    return pack[kind](raw)


@pytest.mark.parametrize("name", ["lackey", "lackey-fetches", None])
def test_lackey_traces(tmp_path, name):
    """Instruction fetches are not loads of data: dropped, or kept as a stream of their own."""
    path = tmp_path / "trace"
    fetched = [(0x04000C30, 3, 0)] if name == "lackey-fetches" else []
    for text in (LACKEY, "".join(line + "\n" for line in LACKEY.split("\n")[1:5])):  # without notes many lines at once
        path.write_text(text)
        trace = open_trace(path, name)
        assert listing(trace) == fetched + ACCESSES
        streams = [STREAMS[s] for chunk in trace for s in chunk.stream]
        assert streams == ["instructions"] * len(fetched) + ["external"] * len(ACCESSES)
    path.write_text("I  04000c30,3\n")
    if name != "lackey-fetches":
        with pytest.raises(InputError, match="no accesses in it"):
            open_trace(path, name)


@pytest.mark.parametrize("name", ["dinero", None])
def test_classic_dinero_traces(tmp_path, name):
    path = tmp_path / "trace"
    path.write_text("0 1f40\n1 1f44\n2 400\n")
    expected = [(0x1F40, 4, 0), (0x1F44, 4, 1), (0x400, 4, 0)]
    assert listing(open_trace(path, name, access_bytes=4)) == expected
    path.write_text("2 1f40\n3 0x10  not known\n")
    assert listing(open_trace(path, name, access_bytes=4)) == [(0x1F40, 4, 0), (16, 4, 0)]


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_compressed_traces(tmp_path, kind):
    path = tmp_path / "trace"
    whole = packed(kind, LACKEY.encode())
    path.write_bytes(whole)
    trace = open_trace(path)
    assert listing(trace) == ACCESSES == listing(trace) and trace.description["format"] == "lackey"
    path.write_bytes(whole + whole)  # members one after another, as pigz and cat leave them
    assert listing(open_trace(path)) == ACCESSES + ACCESSES
    for damaged in (whole[:-6], whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"trace: damaged .* file"):
            listing(open_trace(path, "lackey"))
    oracle = tmp_path / "oracle"
    export_trace(recorded(), oracle, "libcachesim")
    oracle.write_bytes(packed(kind, oracle.read_bytes()))
    assert open_trace(oracle, "libcachesim", access_bytes=64).n_accesses == 3
    export_trace(recorded(), oracle, "npz")
    oracle.write_bytes(packed(kind, oracle.read_bytes()))
    with pytest.raises(InputError, match="an npz is compressed already"):
        open_trace(oracle)


def test_standard_input_is_a_trace(tmp_path):
    import gc
    import subprocess
    import sys

    program = (
        "from traces.trace_files import open_trace; t = open_trace('-');"
        "print([int(sum(map(len, t))), int(sum(map(len, t))), t.description])"
    )
    for given in (LACKEY.encode(), packed("gz", LACKEY.encode())):
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=given,
            capture_output=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            check=True,
        )
        assert done.stdout.startswith(b"[4, 4, {'file': 'standard input', 'format': 'lackey'")
    gc.collect()
    assert not list(tmp_path.iterdir())  # nothing is left of it


@pytest.mark.parametrize("padding", [(70_000, 1), (65_530, 0), (65_525, 0)])
def test_a_line_that_is_too_long_is_refused_though_its_pieces_would_be_accesses(
    tmp_path: Path, padding: tuple[int, int]
) -> None:
    spaces, ended = padding
    path = tmp_path / "t.trace"
    path.write_text("0x10 READ 1\n" + " " * spaces + "0x20 READ 2" + "\n0x30 READ 3\n" * ended)
    with pytest.raises(InputError, match=r"t\.trace:2: this is not text"):
        list(open_trace(path, "dramsim3"))
