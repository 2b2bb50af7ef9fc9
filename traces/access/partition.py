"""One trace cut into several, one per engine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traces.access.trace import Chunk, Trace
from traces.base.errors import InputError


def partition(trace: Trace, engine: np.ndarray, n_engines: int | None = None) -> list[Trace]:
    """Cut a trace into one per engine: access i goes to engine[i] (int array, one entry per access of the trace).

    The traces share memory and walk the original on the fly. Raises InputError for a wrong length or negative numbers.
    """
    engine = np.asarray(engine)
    if engine.ndim != 1 or (engine.size and (engine.dtype.kind not in "ui" or int(engine.min()) < 0)):
        raise InputError("the assignment must be a one-dimensional array of engine numbers from 0")
    if trace.n_accesses is not None and trace.n_accesses != len(engine):
        raise InputError(f"the assignment has {len(engine)} entries, but the trace has {trace.n_accesses} accesses")
    n = int(engine.max(initial=-1)) + 1 if n_engines is None else n_engines
    if engine.size and int(engine.max()) >= n:
        raise InputError(f"the assignment names engine {int(engine.max())}, but there are {n}")

    def walk(mine: int) -> Iterator[Chunk]:
        start = 0
        for chunk in trace:
            chosen = np.flatnonzero(engine[start : start + len(chunk)] == mine)
            if start + len(chunk) > len(engine):
                raise InputError(f"the assignment has {len(engine)} entries, but the trace goes on")
            start += len(chunk)
            if len(chosen):
                yield _choose(chunk, chosen)

    counts = np.bincount(engine, minlength=n) if engine.size else np.zeros(n, np.int64)
    return [
        Trace(lambda e=e: walk(e), trace.memory, int(counts[e]), {**trace.description, "engine": e})  # type: ignore[misc]
        for e in range(n)
    ]


def _choose(chunk: Chunk, chosen: np.ndarray) -> Chunk:
    offset = payload = None
    if chunk.payload_offset is not None and chunk.payload is not None:
        starts = chunk.payload_offset[:-1][chosen]
        sizes = chunk.payload_offset[1:][chosen] - starts
        offset = np.concatenate(([0], np.cumsum(sizes)))
        payload = chunk.payload[np.repeat(starts - offset[:-1], sizes) + np.arange(offset[-1])]
    cycle = None if chunk.cycle is None else chunk.cycle[chosen]
    columns = (chunk.address[chosen], chunk.size[chosen], chunk.op[chosen], chunk.stream[chosen])
    return Chunk(*columns, offset, payload, cycle)
