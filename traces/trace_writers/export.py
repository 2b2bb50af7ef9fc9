"""Writers of other simulators' trace formats. `traces.trace_readers.external` reads them back.

dramsim3: ``0x1F40 READ 12`` (address, READ or WRITE, clock of arrival). ramulator2: ``LD 0x1f40`` or ``ST 0x1f40``
(frontend LoadStoreTrace). dinero: Dinero IV's extended format ``r 1f40 4``, address and size hexadecimal. dramsys:
``12: read 0x1f40``, a write followed by its bytes where they are known. libcachesim: binary oracleGeneral records of
24 bytes (clock uint32, object uint64, size uint32, position of the object's next request int64, -1 for none), objects
being memory lines; libcachesim-csv: the same as text. npz: our own, with all data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from traces.access.lines import NEVER, next_uses, touched_lines
from traces.access.trace import Chunk, Trace, save_trace
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.base.progress import Progress
from traces.base.registry import Registry

Writer = Callable[[Iterable[Chunk], IO[bytes], int], int]  # (chunks, stream, line_bytes) -> records written

TRACE_WRITERS: Registry[Writer] = Registry("trace format", "edgewatt.trace_writers")

ORACLE_GENERAL = np.dtype([("clock", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
_LINES_AT_ONCE = 2**16


def export_trace(
    trace: Trace, path: str | Path, format: str, *, line_bytes: int = 64, progress: Progress | None = None
) -> int:
    """Write a trace in the format of another simulator (a name of TRACE_WRITERS, or 'npz'); return the records written.

    The file is complete or absent. line_bytes: size of an object in the libcachesim formats, where an access that
    touches k lines makes k requests. Formats without a clock for a trace without arrivals count requests: one a clock.
    Raises InputError for an unknown format, an empty trace or a path that cannot be written.
    """
    if isinstance(line_bytes, bool) or not isinstance(line_bytes, int) or not 1 <= line_bytes < 2**32:
        raise InputError(f"line_bytes must be a whole number from 1 to 2^32 - 1, not {line_bytes!r}")
    chunks = _watched(trace, progress)
    if format == "npz":
        return save_trace(Trace(lambda: chunks, trace.memory, trace.n_accesses, trace.description), path)
    writer = TRACE_WRITERS[format].item
    with whole_file(path) as stream:
        written = writer(chunks, stream, line_bytes)
        if not written:
            raise InputError("the trace has no accesses: there is nothing to write")
    return written


def _watched(trace: Trace, progress: Progress | None) -> Iterator[Chunk]:
    done = 0
    for chunk in trace:
        yield chunk
        done += len(chunk)
        if progress is not None:
            progress(done, trace.n_accesses, "accesses written")


def _columns(chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, list[int], list[int], list[int], list[int]]]:
    """Yield pieces of chunks with address, size, op and arrival as lists; without arrivals, the request's number."""
    first = 0
    for chunk in chunks:
        for start in range(0, len(chunk), _LINES_AT_ONCE):
            part = slice(start, start + _LINES_AT_ONCE)
            n = len(chunk.address[part])
            cycle = list(range(first, first + n)) if chunk.cycle is None else chunk.cycle[part].tolist()
            offset = None if chunk.payload_offset is None else chunk.payload_offset[start : start + n + 1]
            piece = Chunk(
                chunk.address[part], chunk.size[part], chunk.op[part], chunk.stream[part], offset, chunk.payload
            )
            yield piece, chunk.address[part].tolist(), chunk.size[part].tolist(), chunk.op[part].tolist(), cycle
            first += n


@TRACE_WRITERS.register("dramsim3", summary="DRAMsim3: address, READ or WRITE, clock")
def _dramsim3(chunks: Iterable[Chunk], stream: IO[bytes], line_bytes: int) -> int:
    written = 0
    for _, address, _, op, cycle in _columns(chunks):
        rows = zip(address, op, cycle, strict=True)
        stream.write("".join([f"0x{a:X} {'WRITE' if o else 'READ'} {c}\n" for a, o, c in rows]).encode())
        written += len(address)
    return written


@TRACE_WRITERS.register("ramulator2", summary="Ramulator 2 LoadStoreTrace: LD or ST, address")
def _ramulator2(chunks: Iterable[Chunk], stream: IO[bytes], line_bytes: int) -> int:
    written = 0
    for _, address, _, op, _ in _columns(chunks):
        rows = zip(address, op, strict=True)
        stream.write("".join([f"{'ST' if o else 'LD'} 0x{a:x}\n" for a, o in rows]).encode())
        written += len(address)
    return written


@TRACE_WRITERS.register("dinero", summary="Dinero IV extended: r or w, hexadecimal address and size")
def _dinero(chunks: Iterable[Chunk], stream: IO[bytes], line_bytes: int) -> int:
    written = 0
    for _, address, size, op, _ in _columns(chunks):
        rows = zip(address, size, op, strict=True)
        stream.write("".join([f"{'w' if o else 'r'} {a:x} {n:x}\n" for a, n, o in rows]).encode())
        written += len(address)
    return written


@TRACE_WRITERS.register("dramsys", summary="DRAMSys trace player (.stl): clock, read or write, address, data of writes")
def _dramsys(chunks: Iterable[Chunk], stream: IO[bytes], line_bytes: int) -> int:
    written = 0
    for piece, address, size, op, cycle in _columns(chunks):
        data = [""] * len(address)
        if piece.payload is not None and piece.payload_offset is not None:
            start = piece.payload_offset.tolist()
            raw = piece.payload[start[0] : start[-1]].tobytes().hex()
            for i, store in enumerate(op):
                if store:
                    at = 2 * (start[i] - start[0])
                    data[i] = "\t0x" + raw[at : at + 2 * size[i]]
        rows = zip(address, op, cycle, data, strict=True)
        text = [f"{c}:\t{'write' if o else 'read'}\t0x{a:x}{bytes_}\n" for a, o, c, bytes_ in rows]
        stream.write("".join(text).encode())
        written += len(address)
    return written


@TRACE_WRITERS.register("libcachesim", summary="libCacheSim oracleGeneral (binary), objects are lines")
def _libcachesim(chunks: Iterable[Chunk], stream: IO[bytes], line_bytes: int) -> int:
    written = 0
    for records in _oracle_records(chunks, line_bytes):
        stream.write(records.tobytes())
        written += len(records)
    return written


@TRACE_WRITERS.register(
    "libcachesim-csv", summary="libCacheSim text: time, object, size, next request; objects are lines"
)
def _libcachesim_csv(chunks: Iterable[Chunk], stream: IO[bytes], line_bytes: int) -> int:
    stream.write(b"time,obj_id,obj_size,next_access_vtime\n")
    written = 0
    for records in _oracle_records(chunks, line_bytes):
        stream.write("".join([f"{t},{o},{n},{later}\n" for t, o, n, later in records.tolist()]).encode())
        written += len(records)
    return written


def _oracle_records(chunks: Iterable[Chunk], line_bytes: int) -> Iterator[npt.NDArray[np.void]]:
    """Yield oracleGeneral records. The next request must be known, so all line numbers are held: 16 bytes a request."""
    parts = [touched_lines(chunk.address, chunk.size, line_bytes)[0] for chunk in chunks]
    lines = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
    del parts
    later = next_uses(lines)
    for start in range(0, len(lines), _LINES_AT_ONCE):
        part = slice(start, start + _LINES_AT_ONCE)
        records = np.zeros(len(lines[part]), ORACLE_GENERAL)
        records["clock"] = np.minimum(np.arange(start, start + len(records)), np.iinfo(np.uint32).max)
        records["object"], records["size"] = lines[part], line_bytes
        records["next"] = np.where(later[part] == NEVER, -1, later[part])
        yield records
