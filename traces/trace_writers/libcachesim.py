"""libCacheSim's binary oracleGeneral records of 24 bytes, objects being memory lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np
import numpy.typing as npt

from traces.access.trace import NEVER, ORACLE_GENERAL, Chunk, Trace, next_uses, touched_lines
from traces.trace_writers.writer import TRACE_WRITERS, TraceWriter

_RECORDS_AT_ONCE = 2**16


def oracle_records(chunks: Iterable[Chunk], line_bytes: int) -> Iterator[npt.NDArray[np.void]]:
    """Yield oracleGeneral records. The next request must be known, so all line numbers are held: 16 bytes a request."""
    parts = [touched_lines(chunk.address, chunk.size, line_bytes)[0] for chunk in chunks]
    lines = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
    del parts
    later = next_uses(lines)
    for start in range(0, len(lines), _RECORDS_AT_ONCE):
        part = slice(start, start + _RECORDS_AT_ONCE)
        records = np.zeros(len(lines[part]), ORACLE_GENERAL)
        records["clock"] = np.minimum(np.arange(start, start + len(records)), np.iinfo(np.uint32).max)
        records["object"], records["size"] = lines[part], line_bytes
        records["next"] = np.where(later[part] == NEVER, -1, later[part])
        yield records


class OracleGeneralWriter(TraceWriter):
    suffix = ".oracleGeneral"
    is_text = False
    by_lines = True

    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        written = 0
        for records in oracle_records(trace, line_bytes):
            stream.write(records.tobytes())
            written += len(records)
        return written


TRACE_WRITERS.register("libcachesim", summary="libCacheSim oracleGeneral (binary), objects are lines")(
    OracleGeneralWriter()
)
