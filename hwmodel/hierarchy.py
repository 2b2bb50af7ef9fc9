"""The cache levels of a machine, one feeding the next, with the bytes each would hold: accesses in, bursts out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hwmodel.cache import CacheLevel, LineTransactions
from hwmodel.machine import Machine
from traces.lines import touched_lines
from traces.trace import Chunk, Memory

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bursts:
    """Bursts in program order: uint64[n] addresses, uint8[n] is_write, uint8[n] stream, int64[n] index of the access
    that caused each, their bytes uint8[n * block_bytes] (None in an address-only trace), and the arrival int64[n] of
    that access in clocks of the memory, where the trace records it."""

    address: npt.NDArray[np.uint64]
    is_write: npt.NDArray[np.uint8]
    stream: npt.NDArray[np.uint8]
    access: Int64Array
    data: npt.NDArray[np.uint8] | None
    cycle: Int64Array | None = None

    def __len__(self) -> int:
        return len(self.address)


class Uncached:
    """No cache: every access asks for the whole blocks it touches."""

    def __init__(self, block_bytes: int) -> None:
        self.block_bytes = block_bytes

    def access(self, op: np.ndarray, address: npt.NDArray[np.uint64], size: np.ndarray) -> LineTransactions:
        """Return one transaction per block touched, in program order."""
        block, access = touched_lines(address, size, self.block_bytes)
        sizes = np.full(len(block), self.block_bytes, np.uint16)
        return LineTransactions(block * np.uint64(self.block_bytes), sizes, op[access], access)


class CacheHierarchy:
    """The levels of a machine; state is kept between calls. `levels` is empty for a machine without a cache."""

    def __init__(self, machine: Machine, memory: Memory) -> None:
        self.block_bytes = machine.bus.block_bytes
        self.levels = [CacheLevel(spec) for spec in machine.caches]
        self.partial_writes = 0
        self._stages: list[CacheLevel | Uncached] = [*self.levels] or [Uncached(self.block_bytes)]
        self._whole_bytes = machine.caches[-1].line_bytes if machine.caches else self.block_bytes
        self._data = _views(machine, memory) if memory.image is not None else None
        self._accesses = 0

    def feed(self, chunk: Chunk) -> Bursts:
        """Make the accesses of a chunk and return the bursts they cause."""
        first, cycle = self._accesses, chunk.cycle
        self._accesses += len(chunk)
        index: Int64Array | None = None
        for k, stage in enumerate(self._stages):
            out = stage.access(chunk.op, chunk.address, chunk.size)
            chunk = self._next(chunk, k, out)
            index = out.access_index if index is None else index[out.access_index]
        assert index is not None
        return self._bursts(chunk, index, first, cycle)

    def flush(self) -> Iterator[Bursts]:
        """Write dirty lines back, the first level's first; yield the bursts (their access: the number of accesses)."""
        for k, level in enumerate(self.levels):
            out = level.flush()
            if not len(out):
                continue
            if self._data is None:
                chunk = Chunk(out.address, out.size, out.is_write, np.zeros(len(out), np.uint8))
            else:
                stream, offset, payload = self._data[k].flush(out.address)
                chunk = Chunk(out.address, out.size, out.is_write, stream, offset, payload)
            for deeper in range(k + 1, len(self.levels)):
                chunk = self._next(chunk, deeper, self.levels[deeper].access(chunk.op, chunk.address, chunk.size))
            yield self._bursts(chunk, np.zeros(len(chunk), np.int64), self._accesses, None)

    def _next(self, chunk: Chunk, k: int, out: LineTransactions) -> Chunk:
        """Return the transactions of level k as the accesses of the next one."""
        if self._data is None:
            return Chunk(out.address, out.size, out.is_write, chunk.stream[out.access_index])
        stream, offset, payload = self._data[k].move(
            chunk.address, chunk.size, chunk.op, chunk.stream, chunk.payload_offset, chunk.payload,
            out.address, out.size, out.is_write, out.access_index,
        )  # fmt: skip
        return Chunk(out.address, out.size, out.is_write, stream, offset, payload)

    def _bursts(self, chunk: Chunk, access: Int64Array, first: int, cycle: Int64Array | None) -> Bursts:
        """Cut transactions into bursts of block_bytes, ascending."""
        self.partial_writes += int(np.count_nonzero(chunk.size % self._whole_bytes))
        block, which = touched_lines(chunk.address, chunk.size, self.block_bytes)
        if chunk.payload is not None:
            assert len(chunk.payload) == len(block) * self.block_bytes, "bytes were lost or made up"
        access = access[which]
        return Bursts(
            block * np.uint64(self.block_bytes),
            chunk.op[which],
            chunk.stream[which],
            access + first,
            chunk.payload,
            None if cycle is None else cycle[access],
        )


def _views(machine: Machine, memory: Memory) -> list[Any]:
    """Return one LineData per level, each with its own copy of the footprint, padded to whole lines.

    Without a cache, blocks are the lines, and every store passes through.
    """
    from cython_ext.replay import LineData

    assert memory.image is not None
    block = machine.bus.block_bytes
    levels = [(spec.line_bytes, spec.write == "through", not spec.allocate) for spec in machine.caches]
    levels = levels or [(block, True, True)]
    widest = max(line for line, _, _ in levels)
    base = memory.base_address // widest * widest
    end = -(-(memory.base_address + memory.total_bytes) // widest) * widest
    views = []
    for k, (line, through, no_allocate) in enumerate(levels):
        image = np.zeros(end - base, np.uint8)
        image[memory.base_address - base :][: memory.total_bytes] = memory.image
        widen = block if k == len(levels) - 1 else 1
        views.append(LineData(image, base, line.bit_length() - 1, through, no_allocate, widen))
    return views
