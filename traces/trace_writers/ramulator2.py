"""Ramulator 2, frontend LoadStoreTrace: ``LD 0x1f40`` or ``ST 0x1f40``."""

from __future__ import annotations

from typing import IO

from traces.access.trace import Trace
from traces.trace_writers.writer import TRACE_WRITERS, TraceWriter, columns


class Ramulator2(TraceWriter):
    suffix = ".trace"

    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        written = 0
        for _, address, _, op, _ in columns(trace):
            rows = zip(address, op, strict=True)
            stream.write("".join([f"{'ST' if o else 'LD'} 0x{a:x}\n" for a, o in rows]).encode())
            written += len(address)
        return written


TRACE_WRITERS.register("ramulator2", summary="Ramulator 2 LoadStoreTrace: LD or ST, address")(Ramulator2())
