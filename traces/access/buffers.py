"""The arrays a walk writes its accesses into, chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np

from traces.access.trace import STREAMS, Chunk

NEURON_STREAMS = tuple(STREAMS.index(name) for name in ("inputs", "partial_sums", "outputs"))
MOST_PAYLOAD_BYTES = 2**25  # per chunk, unless that leaves fewer than LEAST_ACCESSES
LEAST_ACCESSES = 64


class ChunkBuffers:
    """Columns of one chunk of at most `chunk_accesses` accesses, none wider than `widest` bytes."""

    def __init__(self, chunk_accesses: int, widest: int) -> None:
        self.capacity = min(chunk_accesses, max(MOST_PAYLOAD_BYTES // widest, LEAST_ACCESSES))
        self.widest = widest

    def fresh(self) -> tuple[np.ndarray, ...]:
        """Return new arrays address, size, op, stream, payload_offset, payload for a walk's `fill`."""
        n = self.capacity
        size = np.empty(n, np.uint8 if self.widest < 256 else np.uint16)
        columns: tuple[Any, ...] = (np.empty(n, np.uint64), size, np.empty(n, np.uint8), np.empty(n, np.uint8))
        self.columns = (*columns, np.empty(n + 1, np.int64), np.empty(n * self.widest, np.uint8))
        return self.columns

    def chunk(self, n: int, work: np.ndarray | None = None) -> Chunk:
        """Return the first n accesses of the arrays last handed out."""
        address, size, op, stream, offset, payload = self.columns
        return Chunk(address[:n], size[:n], op[:n], stream[:n], offset[: n + 1], payload[: offset[n]], work=work)
