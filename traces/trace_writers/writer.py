"""What a trace writer declares, and the registry of trace writers.

A member is a `TraceWriter` registered under the format's name, one module of this folder each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import IO, ClassVar

from traces.access.trace import Chunk, Trace
from traces.base.registry import Registry

_AT_ONCE = 2**16


class TraceWriter(ABC):
    """One format. Subclasses declare:

    suffix: the usual end of a file name. is_text: lines of text, or bytes. needs_data: refuses address-only traces.
    by_lines: records are memory lines of line_bytes, not accesses.
    """

    suffix: ClassVar[str]
    is_text: ClassVar[bool] = True
    needs_data: ClassVar[bool] = False
    by_lines: ClassVar[bool] = False

    @abstractmethod
    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        """Write the trace, which can be walked once, and return the number of records written."""


def columns(chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, list[int], list[int], list[int], list[int]]]:
    """Yield pieces of chunks with address, size, op and arrival as lists; without arrivals, the request's number."""
    first = 0
    for chunk in chunks:
        for start in range(0, len(chunk), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            n = len(chunk.address[part])
            cycle = list(range(first, first + n)) if chunk.cycle is None else chunk.cycle[part].tolist()
            offset = None if chunk.payload_offset is None else chunk.payload_offset[start : start + n + 1]
            piece = Chunk(
                chunk.address[part], chunk.size[part], chunk.op[part], chunk.stream[part], offset, chunk.payload
            )
            yield piece, chunk.address[part].tolist(), chunk.size[part].tolist(), chunk.op[part].tolist(), cycle
            first += n


TRACE_WRITERS: Registry[TraceWriter] = Registry(
    "trace format", "edgewatt.trace_writers", folder="traces.trace_writers", instances_of=TraceWriter
)
