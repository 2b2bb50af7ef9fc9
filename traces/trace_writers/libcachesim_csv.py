"""libCacheSim as text: time, object, size and position of the object's next request; objects are memory lines."""

from __future__ import annotations

from typing import IO

from traces.access.trace import Trace
from traces.trace_writers.libcachesim import oracle_records
from traces.trace_writers.writer import TRACE_WRITERS, TraceWriter


class LibcachesimCsvWriter(TraceWriter):
    suffix = ".csv"
    by_lines = True

    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        stream.write(b"time,obj_id,obj_size,next_access_vtime\n")
        written = 0
        for records in oracle_records(trace, line_bytes):
            stream.write("".join([f"{t},{o},{n},{later}\n" for t, o, n, later in records.tolist()]).encode())
            written += len(records)
        return written


TRACE_WRITERS.register(
    "libcachesim-csv", summary="libCacheSim text: time, object, size, next request; objects are lines"
)(LibcachesimCsvWriter())
