"""What the memory side is asked for, and the cache levels, one feeding the next: accesses in, bursts out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.trace.accesses as kernel
from cython_ext.trace.ports import EngineClock
from hwmodel.bus import Bytes
from hwmodel.caches.cache import CacheLevel, LineTransactions
from hwmodel.caches.spec import CacheSpec
from hwmodel.fastmemory.scratchpad import Scratchpad, ScratchpadCounts
from hwmodel.machine import EngineSpec, Machine
from hwmodel.parts.part_file import load_part
from traces.base.errors import InputError
from traces.base.memory import claim
from traces.trace.chunks import STREAMS, Chunk, Memory, Trace, claim_lookups, slices, touched_lines

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EngineWork:
    """What an engine did: accesses to its caches or its scratchpad, none wider than its access_bytes; cycles, were it
    never to wait; multiply-adds of all lanes and passes, padding included (0 of a trace that another program recorded);
    instructions, of a core."""

    accesses: int = 0
    cycles: float = 0.0
    multiply_adds: int = 0
    instructions: int = 0


class EngineSide:
    """A trace as a machine's engine makes it. One per run.

    trace: what the memory side sees; its chunks say how many cycles of the engine come before (`work`). A row wider
    than `access_bytes` of the engine stays one access, which takes the engine several.
    """

    def __init__(self, trace: Trace, machine: Machine) -> None:
        self._clock = _engine_clock(trace, machine.engine)
        self._issues = machine.engine.instructions_per_cycle is not None
        self._multiply_adds = trace.multiply_adds
        self._scratchpad: Scratchpad | None = None
        if machine.scratchpad is not None:
            self._scratchpad = Scratchpad(trace, machine.scratchpad, machine.engine)
            self.trace = self._scratchpad.transfers.trace
        else:
            self.trace = replace(trace, make_chunks=lambda: self._timed(trace, machine.engine), plan=None)

    @property
    def work(self) -> EngineWork:
        done: Any = self._clock if self._scratchpad is None else self._scratchpad.transfers.engine
        added = self._multiply_adds if self._scratchpad is None else done.multiply_adds
        return EngineWork(done.accesses, done.cycles, added, done.instructions if self._issues else 0)

    @property
    def scratchpad(self) -> ScratchpadCounts | None:
        return None if self._scratchpad is None else self._scratchpad.counts

    def _timed(self, trace: Trace, engine: EngineSpec) -> Iterator[Chunk]:
        self._clock = clock = _engine_clock(trace, engine)
        for chunk in slices(trace):
            yield replace(chunk, work=clock.feed(chunk.op, chunk.stream, chunk.size))


_PARTS_OF_A_CONNECTION = {"values": 0, "ids": 0, "tuples": 0, "biases": 0, "row_pointers": 1, "external": 3}


def _engine_clock(trace: Trace, engine: EngineSpec) -> EngineClock:
    kinds = np.array([_PARTS_OF_A_CONNECTION.get(name, 2) for name in STREAMS], np.uint8)
    return EngineClock(engine, kinds, STREAMS.index("inputs"), int(trace.description.get("lanes", 1)))


@dataclass(frozen=True, eq=False)
class Bursts:
    """Bursts in program order: uint64[n] addresses, uint8[n] is_write, uint8[n] stream, int64[n] accesses of the trace
    before the one that caused each, float64[n] cycles of the engine before it, their bytes uint8[n * block_bytes] (None
    in an address-only trace), and the arrival int64[n] of that access in clocks of the memory, where the trace records
    it."""

    address: npt.NDArray[np.uint64]
    is_write: Bytes
    stream: Bytes
    access: Int64Array
    work: npt.NDArray[np.float64]
    data: Bytes | None
    cycle: Int64Array | None = None

    def __len__(self) -> int:
        return len(self.address)


def count_requests(bursts: Bursts) -> Int64Array:
    """Return int64[2 (reads, writes), len(STREAMS)] of bursts."""
    kind = bursts.is_write * np.uint8(len(STREAMS)) + bursts.stream
    counts: Int64Array = kernel.count_values(kind, 2 * len(STREAMS)).reshape(2, len(STREAMS))
    return counts


def count_accesses(chunk: Chunk) -> Int64Array:
    """Return int64[2 (load, store), 2 (accesses, bytes), len(STREAMS)] of a chunk."""
    counts: Int64Array = kernel.count_accesses(chunk.op, chunk.stream, chunk.size, len(STREAMS))
    return counts


class Uncached:
    """No cache: every access asks for the whole blocks it touches."""

    def __init__(self, block_bytes: int) -> None:
        self.block_bytes = block_bytes

    def access(
        self, op: np.ndarray, address: npt.NDArray[np.uint64], size: np.ndarray, stream: np.ndarray
    ) -> LineTransactions:
        """Return one transaction per block touched, in program order."""
        block, access = touched_lines(address, size, self.block_bytes)
        sizes = np.full(len(block), self.block_bytes, np.uint16)
        return LineTransactions(block * np.uint64(self.block_bytes), sizes, op[access], access)


class CacheHierarchy:
    """The levels of a machine; state is kept between calls. `levels` is empty for a machine without a cache.

    access_counts: of what was fed, as of `count_accesses`.
    """

    def __init__(self, machine: Machine, memory: Memory) -> None:
        self.block_bytes = machine.bus.block_bytes
        self.levels = [CacheLevel(spec) for spec in machine.caches]
        self.partial_writes = 0
        self.access_counts = np.zeros((2, 2, len(STREAMS)), np.int64)
        self._stages: list[CacheLevel | Uncached] = [*self.levels] or [Uncached(self.block_bytes)]
        self._whole_bytes = machine.caches[-1].line_bytes if machine.caches else self.block_bytes
        self._memory = memory
        self._data = _views(machine, memory) if memory.image is not None else None
        self._accesses = 0
        self._last_store_stream = 0

    def feed(self, chunk: Chunk) -> Bursts:
        """Make the accesses of a chunk and return the bursts they cause."""
        if self._data is not None:
            self._check_footprint(chunk)
        self.access_counts += count_accesses(chunk)
        first, cycle, work = self._accesses, chunk.cycle, chunk.work
        self._accesses += len(chunk)
        if work is None:
            work = np.zeros(len(chunk))
        if self._data is None and (stores := chunk.stream[chunk.op == 1]).size:
            self._last_store_stream = int(stores[-1])
        index: Int64Array | None = None
        for k, stage in enumerate(self._stages):
            out = stage.access(chunk.op, chunk.address, chunk.size, chunk.stream)
            chunk = self._next(chunk, k, out)
            index = out.access_index if index is None else index[out.access_index]
        assert index is not None
        return self._bursts(chunk, index, first, cycle, work)

    def _check_footprint(self, chunk: Chunk) -> None:
        base, total = self._memory.base_address, self._memory.total_bytes
        bad = kernel.first_outside(chunk.address, chunk.size, base, total)
        if bad >= 0:
            raise InputError(
                f"access {self._accesses + bad}: {chunk.size[bad]} bytes at {int(chunk.address[bad]):#x} lie "
                f"outside the trace's memory, {base:#x} to {base + total:#x}"
            )
        offset, payload = chunk.payload_offset, chunk.payload
        if offset is None or payload is None or not kernel.offsets_hold(offset, chunk.size, len(payload)):
            raise InputError("the trace has a memory image, but its accesses do not carry their bytes")

    def flush(self, cycles: float = 0.0) -> Iterator[Bursts]:
        """Write dirty lines back, the first level's first; yield the bursts (their access: the number of accesses).

        cycles: of the engine before it.

        Without data nothing remembers who stored to which line: all of them go to the stream of the last store.
        """
        for k, level in enumerate(self.levels):
            out = level.flush()
            if not len(out):
                continue
            if self._data is None:
                stream = np.full(len(out), self._last_store_stream, np.uint8)
                chunk = Chunk(out.address, out.size, out.is_write, stream)
            else:
                stream, offset, payload = self._data[k].flush(out.address)
                chunk = Chunk(out.address, out.size, out.is_write, stream, offset, payload)
            for deeper in range(k + 1, len(self.levels)):
                chunk = self._next(chunk, deeper, self.levels[deeper].access(chunk.op, chunk.address, chunk.size))
            yield self._bursts(chunk, np.zeros(len(chunk), np.int64), self._accesses, None, np.array([cycles]))

    def _next(self, chunk: Chunk, k: int, out: LineTransactions) -> Chunk:
        """Return the transactions of level k as the accesses of the next one."""
        if self._data is None:
            return Chunk(out.address, out.size, out.is_write, chunk.stream[out.access_index])
        stream, offset, payload = self._data[k].move(
            chunk.address, chunk.size, chunk.op, chunk.stream, chunk.payload_offset, chunk.payload,
            out.address, out.size, out.is_write, out.access_index,
        )  # fmt: skip
        return Chunk(out.address, out.size, out.is_write, stream, offset, payload)

    def _bursts(
        self, chunk: Chunk, access: Int64Array, first: int, cycle: Int64Array | None, work: npt.NDArray[np.float64]
    ) -> Bursts:
        """Cut transactions into bursts of block_bytes, ascending."""
        self.partial_writes += int(np.count_nonzero(chunk.size % self._whole_bytes))
        address, op, stream, access = kernel.cut(
            chunk.address, chunk.size, chunk.op, chunk.stream, access, self.block_bytes
        )
        if chunk.payload is not None:
            assert len(chunk.payload) == len(address) * self.block_bytes, "bytes were lost or made up"
        return Bursts(
            address,
            op,
            stream,
            access + first,
            work.take(access),
            chunk.payload,
            None if cycle is None else cycle.take(access),
        )


def _views(machine: Machine, memory: Memory) -> list[Any]:
    """Return one _LineData per level, each with its own copy of the footprint, padded to whole lines.

    Without a cache, blocks are the lines, and every store passes through.
    """
    from cython_ext.cache.contents import _LineData

    assert memory.image is not None
    block = machine.bus.block_bytes
    levels = [(spec.line_bytes, spec.write == "through", not spec.allocate) for spec in machine.caches]
    levels = levels or [(block, True, True)]
    base, end = _whole_lines(machine, memory)
    claim(len(levels) * (end - base), "caches", "what each level holds of the trace's memory")
    views = []
    for k, (line, through, no_allocate) in enumerate(levels):
        widen = block if k == len(levels) - 1 else 1
        image = _padded_image(memory, base, end)
        views.append(_LineData(image, base, line.bit_length() - 1, through, no_allocate, widen))
    return views


def _whole_lines(machine: Machine, memory: Memory) -> tuple[int, int]:
    """Return the first and the last + 1 address of the footprint in whole lines of the widest level."""
    widest = max([machine.bus.block_bytes, *(spec.line_bytes for spec in machine.caches)])
    end = memory.base_address + memory.total_bytes
    return memory.base_address // widest * widest, -(-end // widest) * widest


def _padded_image(memory: Memory, start: int, end: int) -> Bytes:
    assert memory.image is not None
    image = np.zeros(end - start, np.uint8)
    image[memory.base_address - start :][: memory.total_bytes] = memory.image
    return image


def open_hierarchy(trace: Trace, machine: Machine) -> CacheHierarchy:
    """Return the hierarchy of a machine, ready for a trace: policies that need the future know their look-ups.

    Raises InputError where the memory of the trace is larger than the machine's.
    """
    if machine.part is not None:
        part, end = load_part(machine.part), trace.memory.base_address + trace.memory.total_bytes
        if end > part.organisation.capacity_bytes:
            raise InputError(
                f"the trace's memory ends at byte {end:,}, beyond the {part.organisation.capacity_bytes:,} bytes of "
                f"{part.name!r}"
            )
    hierarchy = CacheHierarchy(machine, trace.memory)
    for k, spec in enumerate(machine.caches):
        if spec.policy_type.needs_future:
            hierarchy.levels[k].set_future(lookups_of_level(trace, machine.caches[: k + 1], flush=machine.flush))
    return hierarchy


def open_loop_clock(machine: Machine) -> Callable[[npt.NDArray[np.float64]], Int64Array] | None:
    """Return the function from cycles of the engine to clocks of the memory part; None without a part."""
    if machine.part is None:
        return None
    clocks = machine.engine.cycle_ns / load_part(machine.part).tck_ns
    return lambda work: (work * clocks).astype(np.int64)


def burst_trace(trace: Trace, machine: Machine) -> Trace:
    """Return the bursts a trace causes on a machine, the final flush included, as a trace of its own (for export).

    Arrivals are those of replay where the trace or the machine (its part's clock) tells them.
    """
    side = EngineSide(trace, machine)
    block, memory = machine.bus.block_bytes, side.trace.memory
    start, end = _whole_lines(machine, memory)
    image = None if memory.image is None else _padded_image(memory, start, end)

    def chunks() -> Iterator[Chunk]:
        hierarchy = open_hierarchy(side.trace, machine)
        for chunk in slices(side.trace):
            yield as_chunk(hierarchy.feed(chunk))
        if machine.flush:
            for bursts in hierarchy.flush(side.work.cycles):
                yield as_chunk(bursts)

    clock = open_loop_clock(machine)

    def as_chunk(bursts: Bursts) -> Chunk:
        cycle = bursts.cycle if bursts.cycle is not None or clock is None else clock(bursts.work)
        size = np.full(len(bursts), block, np.uint16)
        offset = None if bursts.data is None else np.arange(len(bursts) + 1) * block
        return Chunk(bursts.address, size, bursts.is_write, bursts.stream, offset, bursts.data, cycle)

    description = {**trace.description, "bursts_of_bytes": block}
    return Trace(chunks, Memory(start, end - start, image, memory.regions), None, description)


def lookups_of_level(trace: Trace, specs: tuple[CacheSpec, ...], *, flush: bool) -> npt.NDArray[np.uint64]:
    """Return uint64: every line look-up the last of these levels will see, found by running the levels before it.

    flush: the levels before it write their dirty lines back at the end, which it sees too.
    """
    levels = [CacheLevel(spec) for spec in specs]
    for k, spec in enumerate(specs[:-1]):
        if spec.policy_type.needs_future:
            levels[k].set_future(lookups_of_level(trace, specs[: k + 1], flush=flush))
    seen = []
    for chunk in slices(trace):
        op, address, size, stream = chunk.op, chunk.address, np.asarray(chunk.size, np.uint16), chunk.stream
        for level in levels[:-1]:
            out = level.access(op, address, size, stream)
            op, address, size, stream = out.is_write, out.address, out.size, stream[out.access_index]
        seen.append(levels[-1].lines(address, size, stream))
        claim_lookups(sum(map(len, seen)))
    for k, level in enumerate(levels[:-1] if flush else []):
        out = level.flush()
        op, address, size = out.is_write, out.address, out.size
        for deeper in levels[k + 1 : -1]:
            out = deeper.access(op, address, size)
            op, address, size = out.is_write, out.address, out.size
        seen.append(levels[-1].lines(address, size))
    return np.concatenate(seen) if seen else np.zeros(0, np.uint64)
