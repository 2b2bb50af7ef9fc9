"""A scratchpad machine in time: DMA brings the next block while the engine computes on the one before it.

A block is what goes with one piece of the connections: half of the double buffer, and the rows its steps move. DMA and
engine are SimPy processes. DMA starts block k when the engine has ended block k - 2, whose half it overwrites; the
engine starts block k when all of it has arrived and block k - 1 is done.

Choices: rows of the next block come while this one is computed, into the room that the I/O model's decisions give them;
a real scratchpad needs a block's worth of rows more for that. Where part of a block is still queued when the controller
has accepted all of the next one, it is taken to arrive then.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hwmodel.replay.cache_pass import count_accesses
from hwmodel.replay.engine_side import EngineSide
from hwmodel.replay.hierarchy import Bursts, slices
from hwmodel.system.engine import SharedCaches
from hwmodel.system.memory import Memory
from hwmodel.system.results import EngineRun
from traces.access.trace import STREAMS

MAIN_STREAMS = [STREAMS.index(name) for name in ("tuples", "values")]  # a piece of these begins a block
SLICE_TRANSFERS = 2**14


@dataclass
class _Block:
    """One block on its way. first, n: its request numbers. work: engine accesses before it."""

    first: int
    n: int
    work: int
    ready: Any
    free: Any
    seen: int = 0
    done_cycle: int = 0
    compute_cycles: int = field(default=0)


class DmaEngine:
    """The engine of a scratchpad machine with its DMA, the source `number` of the memory."""

    def __init__(
        self,
        env: Any,
        number: int,
        side: EngineSide,
        caches: SharedCaches,
        memory: Memory,
        *,
        cycles_per_access: float,
        on_accesses: Callable[[], None],
    ) -> None:
        self.env, self.number, self.side, self.caches, self.memory = env, number, side, caches, memory
        self._cycles_per_access, self._on_accesses = cycles_per_access, on_accesses
        self._blocks: list[_Block] = []
        self._oldest = 0  # first block that may still miss some of its requests
        self._finish = self._computing = 0
        memory.watch(number, self._arrived)

    def process(self) -> Generator[Any, Any, None]:
        """Move everything (a SimPy process); the engine's own process runs beside it."""
        engine = None
        accepted, last = 0, 0
        for bursts in self._cut():
            k = len(self._blocks)
            work = int(bursts.access[0])
            block = _Block(self.memory.requests_of(self.number), len(bursts), work, self.env.event(), self.env.event())
            if k:
                self._blocks[-1].compute_cycles = self._cycles(self._blocks[-1].work, work)
            if k > 1:
                yield self._blocks[k - 2].free
            self._blocks.append(block)
            gaps = np.where(_goes_on(bursts), -1, 0)
            gaps[0] = max(self.env.now - accepted, 0)
            yield from self.memory.send(self.number, bursts, gaps)
            accepted = self.env.now
            if k:
                self._hand_over(self._blocks[k - 1], accepted)
            if engine is None:
                engine = self.env.process(self._engine())
            self._on_accesses()
            last = k
        (self.memory.close if self.number else self.memory.park)(self.number)
        self._computing = int(self.side.accesses * self._cycles_per_access)
        if engine is not None:
            tail = self._blocks[last]
            tail.compute_cycles = self._cycles(tail.work, self.side.accesses)
            self._hand_over(tail, self.env.now)
            yield engine

    def result(self) -> EngineRun:
        """Return what the engine did; accesses are those to its scratchpad."""
        finish = max(self._finish, int(self.memory.last_done[self.number]))
        return EngineRun(self.side.accesses, self.memory.requests_of(self.number), finish, self._computing)

    def _engine(self) -> Generator[Any, Any, None]:
        k = 0
        while True:
            block = self._blocks[k]
            yield block.ready
            self._finish = max(self._finish, block.done_cycle) + block.compute_cycles
            if self._finish > self.env.now:
                yield self.env.timeout(self._finish - self.env.now)
            block.free.succeed()
            k += 1
            if k == len(self._blocks):  # DMA is always a block ahead, but at the end
                return

    def _hand_over(self, block: _Block, accepted: int) -> None:
        """Tell the engine when a block has arrived."""
        self.memory.collect()
        if block.seen < block.n:
            block.done_cycle = max(block.done_cycle, accepted)
        block.ready.succeed()

    def _arrived(self, number: np.ndarray, done: np.ndarray) -> None:
        while self._oldest < len(self._blocks) - 1 and self._blocks[self._oldest].seen == self._blocks[self._oldest].n:
            self._oldest += 1
        for block in self._blocks[self._oldest :]:
            mine = (number >= block.first) & (number < block.first + block.n)
            if mine.any():
                block.seen += int(mine.sum())
                block.done_cycle = max(block.done_cycle, int(done[mine].max()))

    def _cycles(self, before: int, after: int) -> int:
        return int(after * self._cycles_per_access) - int(before * self._cycles_per_access)

    def _cut(self) -> Iterator[Bursts]:
        """Yield the bursts block by block."""
        held: list[Bursts] = []
        for chunk in slices(self.side.trace, SLICE_TRANSFERS):
            bursts = self.caches.hierarchy.feed(chunk)
            self.caches.asked += count_accesses(chunk)
            self.caches.accesses += len(chunk)
            if not len(bursts):
                continue
            main = np.isin(bursts.stream, MAIN_STREAMS)
            starts = np.flatnonzero(main & ~np.r_[False, main[:-1]])
            for start, end in zip(np.r_[0, starts], np.r_[starts, len(bursts)], strict=True):
                if start == end:
                    continue
                if held and start in starts:
                    yield _joined(held)
                    held = []
                held.append(_part(bursts, int(start), int(end)))
        if held:
            yield _joined(held)


def _goes_on(bursts: Bursts) -> np.ndarray:
    """Return bool[n]: whether a burst goes on with the transfer of the one before it."""
    size = np.uint64(0 if bursts.data is None else len(bursts.data) // len(bursts))
    same = (bursts.stream[1:] == bursts.stream[:-1]) & (bursts.is_write[1:] == bursts.is_write[:-1])
    return np.r_[False, same & (bursts.address[1:] - bursts.address[:-1] == size)]


def _part(bursts: Bursts, start: int, end: int) -> Bursts:
    part = slice(start, end)
    size = 0 if bursts.data is None else len(bursts.data) // len(bursts)
    data = None if bursts.data is None else bursts.data[start * size : end * size]
    return replace(
        bursts,
        address=bursts.address[part],
        is_write=bursts.is_write[part],
        stream=bursts.stream[part],
        access=bursts.access[part],
        data=data,
    )


def _joined(parts: list[Bursts]) -> Bursts:
    if len(parts) == 1:
        return parts[0]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("address", "is_write", "stream", "access")
    }
    data = None if parts[0].data is None else np.concatenate([part.data for part in parts if part.data is not None])
    return Bursts(**columns, data=data)
