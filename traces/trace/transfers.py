"""What a memory that software manages fetches and writes back, for given moves of neuron rows.

The trace of transfers carries the same forward pass as the trace it comes from. Connections are read once a pass, each
array from start to end through its half of a double buffer; neuron rows move when `moves` says so, with the bytes they
hold then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.trace.chunks import STREAMS, Chunk, Memory, Region, Trace
from traces.trace.plan import NEURON_STREAMS, ChunkBuffers, Plan

MOST_PIECE_BYTES = 2**15
SCALAR_BYTES = 4  # a bias as kernels keep it: fp32
BIASES = "biases"

RowMoves = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.uint8]]


@dataclass
class EngineAccesses:
    """What the engine has done so far: rows read and written in fast memory, accesses to connections, accesses of no
    more than its width in all, cycles and instructions."""

    rows_read: int = 0
    rows_written: int = 0
    connections: int = 0
    accesses: int = 0
    cycles: float = 0.0
    instructions: int = 0


@dataclass(frozen=True, eq=False)
class Transfers:
    """A trace of transfers. `trace.plan` is None: it is not to be cut into transfers again.

    engine: filled while the trace is walked.
    """

    trace: Trace
    engine: EngineAccesses


def plan_of(trace: Trace) -> Plan:
    """Return the plan a trace was built from. Raises InputError for one that was read from a file."""
    if not isinstance(trace.plan, Plan):
        raise InputError(
            "a scratchpad moves rows by the order of work, which a recorded trace does not hold: "
            "build the trace from a network and its order, or use caches"
        )
    if trace.plan.element[:, 3].any():
        raise InputError(
            "a scratchpad streams connections from start to end, and here several connections read one stored weight: "
            "use the layout 'tuples', which stores a weight with each connection"
        )
    return trace.plan


def transfers(
    trace: Trace,
    moves: RowMoves,
    *,
    buffer_bytes: int,
    engine_spec: Any,
    scalar_biases: npt.NDArray[np.bool_] | None = None,
    chunk_accesses: int = 2**18,
) -> Transfers:
    """Return the transfers of a built trace for given moves of its neuron rows.

    moves: step int32[E] (ascending: the step before whose update it happens, or the number of steps), neuron int32[E],
    kind uint8[E] (0 load, else store). buffer_bytes: the double buffer of the connections; its halves are shared by the
    arrays. engine_spec: hwmodel.machine.EngineSpec; a row takes several accesses of its width. scalar_biases: bool[E],
    loads that bring one fp32 bias from an array of its own, in the order of use, instead of a row.
    """
    plan = plan_of(trace)
    starts, ends = _connection_arrays(plan)
    memory, scalars = plan.memory, np.full(len(moves[0]), -1, np.int64)
    streams = [_stream_at(plan, start, end) for start, end in zip(starts, ends, strict=True)]
    if scalar_biases is not None and scalar_biases.any():
        memory, offset = _with_biases(plan, moves[1][scalar_biases])
        scalars[scalar_biases] = offset + SCALAR_BYTES * np.arange(int(scalar_biases.sum()))
        starts, ends = np.r_[starts, offset], np.r_[ends, memory.total_bytes]
        streams.append(STREAMS.index(BIASES))
    piece = piece_bytes(buffer_bytes, len(starts))
    arrays = np.stack((starts, ends, np.full(len(starts), piece), np.array(streams)), axis=1).astype(np.int64)
    lookup: Any = lambda offsets: np.searchsorted(starts, offsets, side="right") - 1  # noqa: E731
    engine = EngineAccesses()

    def walk() -> Iterator[Chunk]:
        from cython_ext.trace.transfers import TransferWalk

        assert memory.image is not None
        engine.__dict__.update(EngineAccesses().__dict__)
        made = TransferWalk(
            plan, memory.image.copy(), NEURON_STREAMS, moves, scalars, arrays, lookup(plan.element[:, 0]),
            lookup(plan.event_offset), len(starts) - 1, -(-plan.row_bytes // engine_spec.access_bytes), engine_spec,
        )  # fmt: skip
        buffers = ChunkBuffers(chunk_accesses, max(piece, plan.widest_access))
        while not made.done:
            work = np.empty(buffers.capacity, np.float64)
            address, size, op, stream, offset, payload = buffers.fresh()
            n = made.fill_transfers(address, size, op, stream, offset, payload, work)
            engine.rows_read, engine.rows_written, engine.connections = made.counts
            engine.accesses, engine.cycles, engine.instructions = made.accesses, made.cycles, made.instructions
            if n:
                yield buffers.chunk(n, work[:n])

    return Transfers(Trace(walk, memory, None, trace.description), engine)


def piece_bytes(buffer_bytes: int, n_arrays: int) -> int:
    """Return the bytes fetched at a time from each of n arrays that share the halves of a buffer: a power of two."""
    share = max(buffer_bytes // (2 * n_arrays), 1)
    return min(1 << (share.bit_length() - 1), MOST_PIECE_BYTES)


def _connection_arrays(plan: Plan) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return start and end (image offsets) of each array that holds connections, ascending."""
    regions = [region for region in plan.memory.regions if region.name != "neurons"]
    starts = np.array([region.base_address - plan.base_address for region in regions], np.int64)
    ends = starts + np.array([region.n_bytes for region in regions], np.int64)
    return starts, ends


def _stream_at(plan: Plan, start: int, end: int) -> int:
    for offset, _, stream, _ in plan.element.tolist():
        if start <= offset < end:
            return int(stream)
    here = np.flatnonzero((plan.event_offset >= start) & (plan.event_offset < end))
    return int(plan.event_stream[here[0]])


def _with_biases(plan: Plan, neurons: npt.NDArray[np.int32]) -> tuple[Memory, int]:
    """Return the memory with an array of the biases of these neurons behind it, and where that starts."""
    old = plan.memory
    assert old.image is not None
    offset = -(-old.total_bytes // 64) * 64
    image = np.zeros(offset + SCALAR_BYTES * len(neurons), np.uint8)
    image[: old.total_bytes] = old.image
    image[offset:] = plan.bias[neurons].astype("<f4").view(np.uint8)
    image.setflags(write=False)
    region = Region(BIASES, old.base_address + offset, SCALAR_BYTES * len(neurons))
    return Memory(old.base_address, len(image), image, (*old.regions, region)), offset
