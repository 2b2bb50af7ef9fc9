"""`export_trace`: a trace as a file another simulator reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from traces.access.trace import Chunk, Trace
from traces.base.checks import whole_number
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.base.progress import Progress
from traces.trace_writers.writer import TRACE_WRITERS


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
    watched = Trace(lambda: _watched(trace, progress), trace.memory, trace.n_accesses, trace.description)
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
