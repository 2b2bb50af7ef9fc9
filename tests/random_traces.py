"""Traces of random accesses that carry their bytes."""

import numpy as np

from traces.trace.chunks import STREAMS, Chunk, Memory, Trace

FOOTPRINT = 1 << 13


def random_trace(seed, n_accesses, *, footprint=FOOTPRINT, chunk=500):
    """Loads and stores of 4 bytes that say what memory holds, or will hold, there."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, footprint).astype(np.uint8)
    now, chunks = image.copy(), []
    for start in range(0, n_accesses, chunk):
        n = min(chunk, n_accesses - start)
        address = rng.integers(0, footprint // 4, n).astype(np.uint64) * np.uint64(4)
        op = (rng.random(n) < 0.3).astype(np.uint8)
        payload = np.empty((n, 4), np.uint8)
        for i in range(n):
            at = slice(int(address[i]), int(address[i]) + 4)
            if op[i]:
                now[at] = rng.integers(0, 256, 4)
            payload[i] = now[at]
        stream = rng.integers(0, len(STREAMS), n).astype(np.uint8)
        offset = np.arange(n + 1, dtype=np.int64) * 4
        chunks.append(Chunk(address, np.full(n, 4, np.uint8), op, stream, offset, payload.reshape(-1)))
    return Trace.from_chunks(chunks, Memory(0, footprint, image))
