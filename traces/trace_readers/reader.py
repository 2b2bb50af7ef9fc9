"""What a trace reader declares, and the registry of trace readers.

A member is a `TraceReader` registered under the format's name, one module of this folder each. For a text format whose
lines are accesses that is a `traces.trace_readers.text.TextReader` with a function that reads the words of a line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from traces.access.trace import STREAMS, Chunk, Memory, Trace
from traces.base.errors import InputError
from traces.base.registry import Registry
from traces.trace_readers.source import Source

EXTERNAL = STREAMS.index("external")


class TraceReader(ABC):
    """One format. Subclasses give `chunks`, or `open` where the file says more than a list of accesses.

    is_text: whether the format is lines of text. last_resort: `recognises` is a weak guess, asked after all others.
    """

    is_text: ClassVar[bool] = False
    last_resort: ClassVar[bool] = False

    def recognises(self, head: bytes, n_bytes: int | None) -> bool:
        """Return whether a file that starts with `head` (up to a megabyte) and has n_bytes may be of this format."""
        return False

    @abstractmethod
    def chunks(self, source: Source, access_bytes: int) -> Iterator[Chunk]:
        """Yield the accesses in order; called once per walk. access_bytes: size of an access the file does not say.

        Raises InputError naming file and line or record.
        """

    def open(self, source: Source, access_bytes: int, format: str) -> Trace:
        """Read through once, so that every record is checked before anything is simulated, and return the trace."""
        n, low, high = 0, 2**63, 0
        for chunk in self.chunks(source, access_bytes):
            n += len(chunk)
            low = min(low, int(chunk.address.min()))
            high = max(high, int((chunk.address + chunk.size).max()))
        if not n:
            raise InputError(f"{source.name}: no accesses in it")
        description = {"file": Path(source.name).name, "format": format, "access_bytes": access_bytes}
        return Trace(lambda: self.chunks(source, access_bytes), Memory(low, high - low, None), n, description)


def external_chunk(
    address: np.ndarray, size: np.ndarray, op: np.ndarray | None = None, cycle: np.ndarray | None = None
) -> Chunk:
    """Return a chunk of accesses made elsewhere. address: uint64[n]. size: up to 65535 bytes. op: None, all loads."""
    n = len(address)
    op = np.zeros(n, np.uint8) if op is None else op
    return Chunk(address, size.astype(np.uint16), op, np.full(n, EXTERNAL, np.uint8), cycle=cycle)


TRACE_READERS: Registry[TraceReader] = Registry(
    "trace format", "edgewatt.trace_readers", folder="traces.trace_readers", instances_of=TraceReader
)
