"""DRAMSys' trace player: ``12: read 0x1f40``, a write followed by its bytes where they are known."""

from __future__ import annotations

from typing import IO

from traces.access.trace import Trace
from traces.trace_writers.writer import TRACE_WRITERS, TraceWriter, columns


class Dramsys(TraceWriter):
    suffix = ".stl"

    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        written = 0
        for piece, address, size, op, cycle in columns(trace):
            data = [""] * len(address)
            if piece.payload is not None and piece.payload_offset is not None:
                start = piece.payload_offset.tolist()
                raw = piece.payload[start[0] : start[-1]].tobytes().hex()
                for i, store in enumerate(op):
                    if store:
                        at = 2 * (start[i] - start[0])
                        data[i] = "\t0x" + raw[at : at + 2 * size[i]]
            rows = zip(address, op, cycle, data, strict=True)
            text = [f"{c}:\t{'write' if o else 'read'}\t0x{a:x}{bytes_}\n" for a, o, c, bytes_ in rows]
            stream.write("".join(text).encode())
            written += len(address)
        return written


TRACE_WRITERS.register("dramsys", summary="DRAMSys trace player (.stl): clock, read or write, address, data of writes")(
    Dramsys()
)
