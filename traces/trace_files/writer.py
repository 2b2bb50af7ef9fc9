"""What a trace writer declares, and the registry of trace writers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, ClassVar

from traces.base.checks import whole_number
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.base.progress import Progress
from traces.base.registry import Registry
from traces.trace.chunks import Chunk, Trace

_AT_ONCE = 2**16


class TraceWriter(ABC):
    """One format. needs_data: refuses address-only traces."""

    needs_data: ClassVar[bool] = False

    @abstractmethod
    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        """Write the trace, which can be walked once, and return the number of records written."""


def columns(chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, list[int], list[int], list[int], list[int]]]:
    """Yield pieces of chunks with address, size, op and arrival as lists; without arrivals, the request's number."""
    first = 0
    for chunk in chunks:
        for start in range(0, len(chunk), _AT_ONCE):
            piece = chunk.part(start, start + _AT_ONCE)
            n = len(piece)
            cycle = list(range(first, first + n)) if piece.cycle is None else piece.cycle.tolist()
            yield piece, piece.address.tolist(), piece.size.tolist(), piece.op.tolist(), cycle
            first += n


class LineWriter(TraceWriter):
    """A format with a line an access. lines: of address, size, op and arrival of some accesses."""

    def __init__(self, lines: Callable[[list[int], list[int], list[int], list[int]], list[str]]) -> None:
        self.lines = lines

    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        written = 0
        for _, *parts in columns(trace):
            stream.write("".join(self.lines(*parts)).encode())
            written += len(parts[0])
        return written


TRACE_WRITERS: Registry[TraceWriter] = Registry(
    "trace format", "edgewatt.trace_writers", folder="traces.trace_files", instances_of=TraceWriter
)


def export_trace(
    trace: Trace, path: str | Path, format: str, *, line_bytes: int = 64, progress: Progress | None = None
) -> int:
    """Write a trace in a format of TRACE_WRITERS ('npz' is our own); return the records written.

    The file is complete or absent. line_bytes: size of an object in the libcachesim formats, where an access that
    touches k lines makes k requests. Formats without a clock for a trace without arrivals count requests: one a clock.
    Raises InputError for an unknown format, a trace without accesses or data the format needs, or a path that cannot be
    written.
    """
    whole_number(line_bytes, "line_bytes", 1, 2**32 - 1)
    writer = TRACE_WRITERS[format].item
    if writer.needs_data and not trace.has_data:
        raise InputError(f"the format {format!r} holds the bytes moved, and this trace has addresses only")
    watched = replace(trace, make_chunks=lambda: _watched(trace, progress))
    with whole_file(path) as stream:
        written = writer.write(watched, stream, line_bytes)
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
