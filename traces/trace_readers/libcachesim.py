"""libCacheSim's binary oracleGeneral records.

24 bytes each: clock uint32, object uint64, size uint32, position of the object's next request int64 (-1 for none).
Objects are taken for line numbers; every request is a load of a line.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traces.access.trace import ORACLE_GENERAL, Chunk
from traces.base.errors import InputError
from traces.trace_readers.reader import TRACE_READERS, TraceReader, external_chunk
from traces.trace_readers.source import Source
from traces.trace_readers.text import first_words

_CHUNK = 2**16


class OracleGeneralReader(TraceReader):
    """Nothing marks such a file: a length of whole records is all there is to recognise it by."""

    last_resort = True

    def recognises(self, head: bytes, n_bytes: int | None) -> bool:
        return n_bytes is not None and n_bytes > 0 and n_bytes % ORACLE_GENERAL.itemsize == 0 and not first_words(head)

    def chunks(self, source: Source, access_bytes: int) -> Iterator[Chunk]:
        with source.open() as stream:
            first = 0
            while raw := stream.read(_CHUNK * ORACLE_GENERAL.itemsize):
                if len(raw) % ORACLE_GENERAL.itemsize:
                    raise InputError(
                        f"{source.name}: the last record is cut: {len(raw) % ORACLE_GENERAL.itemsize} of 24 bytes"
                    )
                lines = np.frombuffer(raw, ORACLE_GENERAL)["object"]
                far = np.flatnonzero(lines >= np.uint64(2**63 // access_bytes))
                if far.size:
                    raise InputError(
                        f"{source.name}: record {first + far[0]}: object {lines[far[0]]} times {access_bytes} bytes is "
                        "beyond 2^63: its objects are no line numbers"
                    )
                n = len(lines)
                yield external_chunk(lines * np.uint64(access_bytes), np.full(n, access_bytes))
                first += n


TRACE_READERS.register("libcachesim", summary="libCacheSim oracleGeneral (binary), objects are lines")(
    OracleGeneralReader()
)
