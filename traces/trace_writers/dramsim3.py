"""DRAMsim3: ``0x1F40 READ 12`` (address, READ or WRITE, clock of arrival)."""

from __future__ import annotations

from typing import IO

from traces.access.trace import Trace
from traces.trace_writers.writer import TRACE_WRITERS, TraceWriter, columns


class Dramsim3(TraceWriter):
    suffix = ".trace"

    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        written = 0
        for _, address, _, op, cycle in columns(trace):
            rows = zip(address, op, cycle, strict=True)
            stream.write("".join([f"0x{a:X} {'WRITE' if o else 'READ'} {c}\n" for a, o, c in rows]).encode())
            written += len(address)
        return written


TRACE_WRITERS.register("dramsim3", summary="DRAMsim3: address, READ or WRITE, clock")(Dramsim3())
