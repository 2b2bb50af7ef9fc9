"""libCacheSim's binary oracleGeneral records, objects being memory lines.

24 bytes each: clock uint32, object uint64, size uint32, position of the object's next request int64 (-1 for none).
Objects that are read are taken for line numbers; every request is a load of a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import numpy as np

from traces.base.errors import InputError
from traces.trace.chunks import NEVER, ORACLE_GENERAL, Chunk, Trace, claim_lookups, next_uses, slices, touched_lines
from traces.trace_files.reader import TRACE_READERS, TraceReader, external_chunk, first_words
from traces.trace_files.source import Source
from traces.trace_files.writer import TRACE_WRITERS, TraceWriter

_AT_ONCE = 2**16  # records


class OracleGeneralReader(TraceReader):
    """Nothing marks such a file: a length of whole records is all there is to recognise it by."""

    last_resort = True

    def recognises(self, head: bytes, n_bytes: int | None) -> bool:
        return n_bytes is not None and n_bytes > 0 and n_bytes % ORACLE_GENERAL.itemsize == 0 and not first_words(head)

    def chunks(self, source: Source, access_bytes: int) -> Iterator[Chunk]:
        with source.open() as stream:
            first = 0
            while raw := stream.read(_AT_ONCE * ORACLE_GENERAL.itemsize):
                if cut := len(raw) % ORACLE_GENERAL.itemsize:
                    raise InputError(f"{source.name}: the last record is cut: {cut} of 24 bytes")
                lines = np.frombuffer(raw, ORACLE_GENERAL)["object"]
                far = np.flatnonzero(lines >= np.uint64(2**63 // access_bytes))
                if far.size:
                    raise InputError(
                        f"{source.name}: record {first + far[0]}: object {lines[far[0]]} times {access_bytes} bytes is "
                        "beyond 2^63: its objects are not line numbers"
                    )
                yield external_chunk(lines * np.uint64(access_bytes), np.full(len(lines), access_bytes))
                first += len(lines)


TRACE_READERS.register("libcachesim", summary="libCacheSim oracleGeneral (binary), objects are lines")(
    OracleGeneralReader()
)


class OracleGeneralWriter(TraceWriter):
    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        """The next request must be known, so all line numbers are held: 16 bytes a request."""
        parts = [np.zeros(0, np.uint64)]
        for chunk in slices(trace):
            parts.append(touched_lines(chunk.address, chunk.size, line_bytes)[0])
            claim_lookups(sum(map(len, parts)))
        lines = np.concatenate(parts)
        later = next_uses(lines)
        for start in range(0, len(lines), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            records = np.zeros(len(lines[part]), ORACLE_GENERAL)
            records["clock"] = np.minimum(np.arange(start, start + len(records)), np.iinfo(np.uint32).max)
            records["object"], records["size"] = lines[part], line_bytes
            records["next"] = np.where(later[part] == NEVER, -1, later[part])
            stream.write(records.tobytes())
        return len(lines)


TRACE_WRITERS.register("libcachesim", summary="libCacheSim oracleGeneral (binary), objects are lines")(
    OracleGeneralWriter()
)
