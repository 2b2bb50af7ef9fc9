"""NVMain: ``CLOCK R|W 0xADDRESS DATA THREAD``, data in hexadecimal, zeros where it is not known."""

from __future__ import annotations

from typing import IO

from traces.trace.chunks import Trace
from traces.trace_files.writer import TRACE_WRITERS, TraceWriter, columns


class NvMain(TraceWriter):
    """One line an access."""

    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        """Write the lines; return how many."""
        written = 0
        for _, address, size, op, cycle in columns(trace):
            rows = zip(cycle, op, address, size, strict=True)
            stream.write("".join(f"{c} {'RW'[o]} 0x{a:x} {'00' * n} 0\n" for c, o, a, n in rows).encode())
            written += len(address)
        return written


TRACE_WRITERS.register("nvmain", summary="NVMain: clock, R or W, address, data, thread")(NvMain())
