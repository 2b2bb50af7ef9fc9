"""What a memory that software manages fetches and writes back, for given moves of neuron rows.

Connections are read once a pass, each array through its half of a double buffer; rows move when `moves` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.trace.chunks import STREAMS, Chunk, Memory, Region, Trace
from traces.trace.plan import NEURON_STREAMS, ROW_REGIONS, ChunkBuffers, Plan

MOST_PIECE_BYTES = 2**15
SCALAR_BYTES = 4  # a bias as kernels keep it: fp32, or int32 beside bytes
BIASES = "biases"
DESCRIPTORS, DESCRIPTOR_BYTES = "descriptors", 4
Slots = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]
"""Slots of the rows that move, int32[E], and of the source and the target of each step, int32[K]."""

RowMoves = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.uint8]]


@dataclass
class EngineAccesses:
    """What the engine has done so far: rows read and written in fast memory, those of partial sums among them, accesses
    to connections, accesses of no more than its width in all, cycles, instructions and multiply-adds."""

    rows_read: int = 0
    rows_written: int = 0
    sums_read: int = 0
    sums_written: int = 0
    connections: int = 0
    accesses: int = 0
    cycles: float = 0.0
    instructions: int = 0
    multiply_adds: int = 0


@dataclass(frozen=True, eq=False)
class Transfers:
    """A trace of transfers. `trace.plan` is None: it is not to be cut into transfers again."""

    trace: Trace
    engine: EngineAccesses


def plan_of(trace: Trace) -> Plan:
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
    slots: Slots | None = None,
    chunk_accesses: int = 2**18,
) -> Transfers:
    """Return the transfers of a built trace for given moves of its neuron rows.

    moves: step int32[E] (ascending: the step before whose update it happens, or the number of steps), neuron int32[E],
    kind uint8[E] (0 load, else store). buffer_bytes: the double buffer of the connections; its halves are shared by the
    arrays. engine_spec: hwmodel.machine.EngineSpec; a row takes several accesses of its width. scalar_biases: bool[E],
    loads that bring one bias of 4 bytes from an array of its own, in the order of use, instead of a row. slots: records
    name slots of the memory in place of neurons, and each move has a descriptor.
    """
    plan = plan_of(trace)
    if slots is not None:
        plan = _with_slots(plan, moves, slots)
    starts, ends = _connection_arrays(plan)
    memory, scalars = plan.memory, np.full(len(moves[0]), -1, np.int64)
    streams = [_stream_at(plan, start, end) for start, end in zip(starts, ends, strict=True)]
    if scalar_biases is not None and scalar_biases.any():
        memory, offset = _with_array(memory, BIASES, plan.bias_bytes(moves[1][scalar_biases]))
        scalars[scalar_biases] = offset + SCALAR_BYTES * np.arange(int(scalar_biases.sum()))
        starts, ends = np.r_[starts, offset], np.r_[ends, memory.total_bytes]
        streams.append(STREAMS.index(BIASES))
    descriptors = -1 if slots is None else len(_connection_arrays(plan)[0]) - 1
    piece = piece_bytes(buffer_bytes, len(starts))
    arrays = np.stack((starts, ends, np.full(len(starts), piece), np.array(streams)), axis=1).astype(np.int64)
    lookup: Any = lambda offsets: np.searchsorted(starts, offsets, side="right") - 1  # noqa: E731
    engine = EngineAccesses()

    def walk() -> Iterator[Chunk]:
        from cython_ext.trace.transfers import TransferWalk

        assert memory.image is not None
        engine.__dict__.update(EngineAccesses().__dict__)
        row_accesses = [-(-width // engine_spec.access_bytes) for width in (plan.row_bytes, plan.sum_row_bytes)]
        made = TransferWalk(
            plan, memory.image.copy(), NEURON_STREAMS, moves, scalars, arrays, lookup(plan.element[:, 0]),
            lookup(plan.event_offset), len(starts) - 1, descriptors, row_accesses, engine_spec,
            STREAMS.index("row_pointers"),
        )  # fmt: skip
        buffers = ChunkBuffers(chunk_accesses, max(piece, plan.widest_access))
        while not made.done:
            work = np.empty(buffers.capacity, np.float64)
            address, size, op, stream, offset, payload = buffers.fresh()
            n = made.fill_transfers(address, size, op, stream, offset, payload, work)
            engine.rows_read, engine.rows_written, engine.sums_read, engine.sums_written, engine.connections = (
                made.counts
            )
            engine.accesses, engine.cycles, engine.instructions = made.accesses, made.cycles, made.instructions
            engine.multiply_adds = made.multiply_adds
            if n:
                yield buffers.chunk(n, work[:n])

    return Transfers(Trace(walk, memory, None, trace.description), engine)


def piece_bytes(buffer_bytes: int, n_arrays: int) -> int:
    """Return the bytes fetched at a time from each of n arrays that share the halves of a buffer: a power of two."""
    share = max(buffer_bytes // (2 * n_arrays), 1)
    return min(1 << (share.bit_length() - 1), MOST_PIECE_BYTES)


def _connection_arrays(plan: Plan) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    regions = [region for region in plan.memory.regions if region.name not in ROW_REGIONS]
    starts = np.array([region.base_address - plan.base_address for region in regions], np.int64)
    ends = starts + np.array([region.n_bytes for region in regions], np.int64)
    return starts, ends


def _stream_at(plan: Plan, start: int, end: int) -> int:
    for offset, _, stream, _ in plan.element.tolist():
        if start <= offset < end:
            return int(stream)
    here = np.flatnonzero((plan.event_offset >= start) & (plan.event_offset < end))
    return int(plan.event_stream[here[0]]) if len(here) else STREAMS.index("ids")  # of descriptors


def slot_bytes(n_slots: int) -> int:
    if n_slots > 2**16:
        raise InputError(
            f"addressing 'slots' knows at most 65,536 rows, and this scratchpad holds {n_slots}: use 'ids'"
        )
    return 1 if n_slots <= 2**8 else 2


def _with_slots(plan: Plan, moves: RowMoves, slots: Slots) -> Plan:
    """Return the plan with records of (source slot, target slot, weight) and an array of descriptors behind all others.

    A descriptor is a little-endian word of slot (1 or 2 bytes), neuron and, in its highest bit, whether it is a store.
    """
    if plan.kind != "tuples":
        raise InputError(f"addressing 'slots' needs records that name neurons: use layout 'tuples', not {plan.kind!r}")
    of_move, *of_ends = slots
    width = slot_bytes(int(of_move.max(initial=0)) + 1)
    limit = 1 << (8 * (DESCRIPTOR_BYTES - width) - 1)
    if len(plan.bias) > limit:
        raise InputError(
            f"descriptors of {DESCRIPTOR_BYTES} bytes know {limit} neurons, not {len(plan.bias)}: use 'ids'"
        )
    (offset, bits, stream, by_weight), old = plan.element[0].tolist(), plan.memory
    assert old.image is not None
    n, weight_bytes = len(plan.source), bits // 8 - 2 * plan.id_bytes
    whole = old.image[offset : offset + n * (bits // 8)].reshape(n, -1)
    records = np.concatenate((*(_bytes_of(ends, width) for ends in of_ends), whole[:, -weight_bytes:]), axis=1)
    words = of_move.astype(np.int64) | moves[1].astype(np.int64) << 8 * width
    words |= (moves[2] != 0).astype(np.int64) << 8 * DESCRIPTOR_BYTES - 1
    memory, _ = _with_array(old, DESCRIPTORS, _bytes_of(words, DESCRIPTOR_BYTES).reshape(-1))
    assert memory.image is not None
    image = memory.image.copy()
    image[offset : offset + whole.size] = 0
    image[offset : offset + records.size] = records.reshape(-1)
    image.setflags(write=False)
    base = old.base_address + offset
    regions = tuple(replace(r, n_bytes=records.size) if r.base_address == base else r for r in memory.regions)
    return replace(
        plan,
        memory=replace(memory, image=image, regions=regions),
        element=np.array([(offset, 8 * records.shape[1], stream, by_weight)], np.int64),
    )


def _bytes_of(numbers: npt.NDArray[Any], width: int) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(numbers.astype("<i8")).view(np.uint8).reshape(-1, 8)[:, :width]


def _with_array(old: Memory, name: str, data: npt.NDArray[np.uint8]) -> tuple[Memory, int]:
    assert old.image is not None
    offset = -(-old.total_bytes // 64) * 64
    image = np.zeros(offset + len(data), np.uint8)
    image[: old.total_bytes] = old.image
    image[offset:] = data
    image.setflags(write=False)
    region = Region(name, old.base_address + offset, len(data))
    return Memory(old.base_address, len(image), image, (*old.regions, region)), offset
