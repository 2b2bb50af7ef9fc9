"""DRAMsim3: ``0x1F40 READ 12`` (address, READ or WRITE, clock of arrival)."""

from __future__ import annotations

from typing import IO

from traces.trace.chunks import Trace
from traces.trace_files.reader import TRACE_READERS
from traces.trace_files.text import PlainLine, Record, TextReader, need, number, operation
from traces.trace_files.writer import TRACE_WRITERS, TraceWriter, columns


def _dramsim3(words: list[str]) -> Record:
    need(words, "ADDRESS READ|WRITE CLOCK")
    op = operation(words[1], ("READ", "read", "P_MEM_RD"), ("WRITE", "write", "P_MEM_WR", "BOFF"))
    return number(words[0], 16, "address"), 0, op, number(words[2], 10, "clock")


TRACE_READERS.register("dramsim3", summary="DRAMsim3: address, READ or WRITE, clock")(
    TextReader(_dramsim3, (PlainLine(("address", "op", "clock"), {b"READ": 0, b"WRITE": 1}),))
)


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
