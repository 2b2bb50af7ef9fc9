"""DRAMSys' trace player (.stl): ``12: read 0x1f40``, a write followed by its bytes where they are known."""

from __future__ import annotations

from itertools import pairwise
from typing import IO

from traces.trace.chunks import Trace
from traces.trace_files.reader import TRACE_READERS
from traces.trace_files.text import (
    DIGITS,
    PlainLine,
    Record,
    Refused,
    TextReader,
    access_size,
    need,
    number,
    operation,
)
from traces.trace_files.writer import TRACE_WRITERS, TraceWriter, columns


def _dramsys(words: list[str]) -> Record:
    size = 0
    if len(words) > 1 and words[1].startswith("("):
        size = access_size(words.pop(1).strip("()"), 10, "length")
    if len(words) == 4 and words[1] == "write":
        _data(words.pop())
    need(words, "CLOCK: read|write ADDRESS")
    op = operation(words[1], ("read",), ("write",))
    return number(words[2], 16, "address"), size, op, number(words[0].removesuffix(":"), 10, "clock")


def _data(word: str) -> None:
    digits = word.removeprefix("0x")
    if len(digits) % 2 or not DIGITS[16].issuperset(digits):
        raise Refused(f"data {word[:40]!r} is not a hexadecimal string of whole bytes")


TRACE_READERS.register("dramsys", summary="DRAMSys trace player (.stl): clock, read or write, address")(
    TextReader(_dramsys, (PlainLine(("clock:", "op", "address"), {b"read": 0, b"write": 1}),))
)


class Dramsys(TraceWriter):
    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        written = 0
        for piece, address, _, op, cycle in columns(trace):
            data = [""] * len(address)
            if piece.payload is not None and piece.payload_offset is not None:
                raw, ends = piece.payload.data, pairwise(piece.payload_offset.tolist())
                data = [f"\t0x{raw[a:b].hex()}" if o else "" for o, (a, b) in zip(op, ends, strict=True)]
            rows = zip(address, op, cycle, data, strict=True)
            text = [f"{c}:\t{'write' if o else 'read'}\t0x{a:x}{bytes_}\n" for a, o, c, bytes_ in rows]
            stream.write("".join(text).encode())
            written += len(address)
        return written


TRACE_WRITERS.register("dramsys", summary="DRAMSys trace player (.stl): clock, read or write, address, data of writes")(
    Dramsys()
)
