"""What every trace reader and writer must do, whoever brings it."""

import numpy as np
import pytest

from traces.base.errors import InputError
from traces.trace.chunks import Chunk, Memory, Trace
from traces.trace_files import OBJECTS, TRACE_READERS, TRACE_WRITERS, export_trace, open_trace
from traces.trace_files.source import Source
from traces.trace_files.text import TextReader, need, number, operation


def recorded() -> Trace:
    """512 aligned accesses of 64 bytes: what every format can hold."""
    rng = np.random.default_rng(7)
    n = 512
    address = rng.integers(0, 2**30, n).astype(np.uint64) * np.uint64(64)
    payload = rng.integers(0, 256, 64 * n).astype(np.uint8)
    chunk = Chunk(
        address,
        np.full(n, 64, np.uint8),
        rng.integers(0, 2, n).astype(np.uint8),
        np.zeros(n, np.uint8),
        np.arange(n + 1) * 64,
        payload,
    )
    return Trace.from_chunks([chunk], Memory(0, 2**36, None))


@pytest.mark.parametrize("name", TRACE_WRITERS)
def test_a_writer_writes_every_access_and_its_reader_gives_them_back(tmp_path, name):
    assert TRACE_WRITERS[name].summary
    path, trace = tmp_path / "trace", recorded()
    if TRACE_WRITERS[name].item.needs_data:
        with pytest.raises(InputError, match="addresses only"):
            export_trace(trace, path, name)
        return
    assert export_trace(trace, path, name, line_bytes=64) == 512
    if name not in TRACE_READERS:
        return  # what others read
    (back,) = open_trace(path, access_bytes=64)
    (given,) = trace
    assert np.array_equal(back.address, given.address) and np.array_equal(back.size, given.size)
    assert name == OBJECTS or np.array_equal(back.op, given.op)
    assert open_trace(path, name, access_bytes=64).n_accesses == 512


@pytest.mark.parametrize("name", TRACE_READERS)
def test_a_reader_refuses_what_is_none_of_its_own(tmp_path, name):
    assert TRACE_READERS[name].summary
    path = tmp_path / "trace"
    for given in (b"", b"\n\n", b"once upon a time\n", b"\xff" * 31, b"PK\x03\x04 and no more", b"0" * 70000):
        path.write_bytes(given)
        with pytest.raises(InputError, match=str(path)):
            open_trace(path, name)
    with pytest.raises(InputError, match="no such file"):
        open_trace(tmp_path / "missing", name)


def test_a_table_of_another_dialect_is_a_few_words(tmp_path):
    def line(words):
        if words[0] == "when":
            return None
        need(words, "WHEN KIND WHERE BYTES")
        address = number(words[2].removesuffix("h"), 16, "address")
        return address, number(words[3], 10, "bytes"), operation(words[1], ("load",), ("store",)), int(words[0])

    reader, path = TextReader(line, separators=";|"), tmp_path / "trace"
    text = b"when;kind;where;bytes\n3;load;1f40h;8\n7|store|1f48h|4\n"
    path.write_bytes(text)
    assert reader.recognises(text, len(text)) and not reader.recognises(b"3,load,1f40h,8\n", None)
    (chunk,) = reader.chunks(Source.of(path), 32)
    assert chunk.address.tolist() == [0x1F40, 0x1F48] and chunk.op.tolist() == [0, 1]
    assert chunk.size.tolist() == [8, 4] and chunk.cycle.tolist() == [3, 7]
