"""Our own npz, with all data."""

from __future__ import annotations

from collections.abc import Iterator

from traces.access.stored import load_trace
from traces.access.trace import Chunk, Trace
from traces.base.errors import InputError
from traces.trace_readers.reader import TRACE_READERS, TraceReader
from traces.trace_readers.source import Source


class NpzReader(TraceReader):
    def recognises(self, head: bytes, n_bytes: int | None) -> bool:
        return head[:4] == b"PK\x03\x04"

    def chunks(self, source: Source, access_bytes: int) -> Iterator[Chunk]:
        return iter(load_trace(source.path))

    def open(self, source: Source, access_bytes: int, format: str) -> Trace:
        if source.compression:
            raise InputError(f"{source.name}: an npz is compressed already: unpack the {source.compression} around it")
        trace = load_trace(source.path)
        if not trace.n_accesses:
            raise InputError(f"{source.name}: no accesses in it")
        return trace


TRACE_READERS.register("npz", summary="our own: every column, with the bytes moved")(NpzReader())
