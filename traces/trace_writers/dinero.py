"""Dinero IV's extended format: ``r 1f40 4``, address and size hexadecimal."""

from __future__ import annotations

from typing import IO

from traces.access.trace import Trace
from traces.trace_writers.writer import TRACE_WRITERS, TraceWriter, columns


class DineroWriter(TraceWriter):
    suffix = ".xdin"

    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        written = 0
        for _, address, size, op, _ in columns(trace):
            rows = zip(address, size, op, strict=True)
            stream.write("".join([f"{'w' if o else 'r'} {a:x} {n:x}\n" for a, n, o in rows]).encode())
            written += len(address)
        return written


TRACE_WRITERS.register("dinero", summary="Dinero IV extended: r or w, hexadecimal address and size")(DineroWriter())
