"""A scratchpad machine in time: DMA brings the next block while the engine computes on the one before it.

A block is what goes with one piece of the connections: half of the double buffer, and the rows its steps move. DMA and
engine are SimPy processes. DMA starts block k when the engine has ended block k - 2, whose half it overwrites; the
engine starts block k when all of it has arrived and block k - 1 is done.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from hwmodel.replay.hierarchy import Bursts, CacheHierarchy, EngineSide
from hwmodel.system.bounds import data_clocks
from hwmodel.system.engine import EngineRun
from hwmodel.system.memory import MemorySystem
from traces.trace.chunks import STREAMS, slices

STARTS_BLOCK = np.isin(STREAMS, ("tuples", "values"))  # bool by stream: a piece of these begins a block
SLICE_TRANSFERS = 2**12


class _Block:
    """One block on its way. first, end: its request numbers. work: cycles of the engine before it. held: clocks in
    which DMA could not ask for it, with as many bytes in flight as may be (until all is asked for: those before it)."""

    __slots__ = ("arrival", "compute_cycles", "end", "first", "free", "held", "ready", "work")

    def __init__(self, first: int, work: float, held: int, env: Any) -> None:
        self.first = self.end = first
        self.work, self.held = work, held
        self.ready, self.free = env.event(), env.event()
        self.arrival = self.compute_cycles = 0


class DmaEngine:
    """The engine of a scratchpad machine with its DMA, the one source (0) of the memory."""

    def __init__(
        self,
        side: EngineSide,
        caches: CacheHierarchy,
        memory: MemorySystem,
        *,
        clocks_per_cycle: float,
        on_accesses: Callable[[], None],
    ) -> None:
        self.env, self.side, self.caches, self.memory = memory.env, side, caches, memory
        self._clocks_per_cycle, self.on_accesses = clocks_per_cycle, on_accesses
        self._blocks: list[_Block] = []
        # By request number: cycle of arrival, -1 before, and the bursts begun by then.
        self._done, self._bursts = np.full((2, SLICE_TRANSFERS), -1, np.int64)
        self._finish = self._computing = 0
        self._moving = self._held = 0.0
        memory.arrived = self._arrived

    def process(self) -> Generator[Any, Any, None]:
        """Move everything (a SimPy process); the engine's own process runs beside it."""
        engine, accepted = None, 0
        for begins, work, numbers, address, is_write, gaps in self._pieces():
            if begins or not self._blocks:
                if self._blocks:
                    accepted = self._accepted()
                    engine = engine or self.env.process(self._engine())
                    self._blocks[-1].compute_cycles = self._cycles(self._blocks[-1].work, work)
                if len(self._blocks) > 1:
                    yield self._blocks[-2].free
                held = self.memory.waited_for_line()
                self._blocks.append(_Block(int(numbers[0]), work, held, self.env))
                gaps[0] = max(self.env.now - accepted, 0)
            yield from self.memory.hand_over(0, numbers, address, is_write, gaps)
            self._blocks[-1].end += len(numbers)
        if self._blocks:
            self._accepted()
            engine = engine or self.env.process(self._engine())
        self.memory.park(0)
        self._computing = int(self.side.work.cycles * self._clocks_per_cycle)
        if engine is not None:
            tail = self._blocks[-1]
            tail.compute_cycles = self._cycles(tail.work, self.side.work.cycles)
            self._hand_over(tail)
            yield engine

    def result(self) -> EngineRun:
        """Return what the engine did; accesses are those to its scratchpad."""
        finish = max(self._finish, int(self.memory.last_done[0]))
        requests, accesses = self.memory.requests_of(0), self.side.work.accesses
        return EngineRun(accesses, requests, finish, self._computing, int(self._moving), int(self._held))

    def _engine(self) -> Generator[Any, Any, None]:
        k = 0
        while True:
            block = self._blocks[k]
            yield block.ready
            begin = max(self._finish, block.arrival, int(self._done[block.first : block.end].max()))
            self._note_waiting(block, begin)
            self._finish = begin + block.compute_cycles
            if self._finish > self.env.now:
                yield self.env.timeout(self._finish - self.env.now)
            block.free.succeed()
            k += 1
            if k == len(self._blocks):  # DMA is always a block ahead, but at the end
                return

    def _note_waiting(self, block: _Block, begin: int) -> None:
        """Split the clocks that the engine waited for a block: data moves on the channels, or DMA has as many bytes in
        flight as it may. What was held while data moved is bandwidth."""
        waited = begin - self._finish
        if waited <= 0:
            return
        part = slice(block.first, block.end)
        order = np.argsort(self._done[part], kind="stable")
        done, bursts = self._done[part][order], np.maximum.accumulate(self._bursts[part][order])
        before, after = np.interp((self._finish, begin), done, bursts)
        moving = min(data_clocks(after - before, self.memory.part), waited)
        self._moving += moving
        self._held += min(max(block.held - moving, 0.0), waited - moving)

    def _accepted(self) -> int:
        """The controller has taken all of the newest block: the one before it counts as arrived. Return the cycle."""
        newest = self._blocks[-1]
        newest.held = self.memory.waited_for_line() - newest.held
        if len(self._blocks) > 1:
            self._hand_over(self._blocks[-2])
        self.on_accesses()
        return int(self.env.now)

    def _hand_over(self, block: _Block) -> None:
        """Notify the engine that a block has arrived."""
        self.memory.collect()
        if self._done[block.first : block.end].min() < 0:
            block.arrival = int(self.env.now)
        block.ready.succeed()

    def _arrived(self, number: np.ndarray, done: np.ndarray, bursts: np.ndarray) -> None:
        self._done[number], self._bursts[number] = done, bursts

    def _cycles(self, before: float, after: float) -> int:
        return int(after * self._clocks_per_cycle) - int(before * self._clocks_per_cycle)

    def _pieces(self) -> Iterator[tuple[bool, float, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield bursts of one block that were noted together: whether they begin it, cycles of the engine before, their
        numbers, addresses, directions and gaps (-1 for a further burst of the same transfer, else 0).
        """
        last: Bursts | None = None
        for chunk in slices(self.side.trace, SLICE_TRANSFERS):
            bursts = self.caches.feed(chunk)
            if not len(bursts):
                continue
            numbers = self.memory.note(0, bursts)
            self._make_room(self.memory.requests_of(0))
            gaps = np.where(_goes_on(bursts, last, self.memory.burst_bytes), -1, 0)
            main = STARTS_BLOCK[bursts.stream]
            begins = main.copy()
            begins[1:] &= ~main[:-1]
            starts = np.flatnonzero(begins).tolist()
            bounds = [*([] if begins[0] else [0]), *starts, len(bursts)]
            work = bursts.work[bounds[:-1]].tolist()
            for k, (start, end) in enumerate(pairwise(bounds)):
                part = slice(start, end)
                burst = bursts.address[part], bursts.is_write[part]
                yield start > 0 or bool(begins[0]), work[k], numbers[part], *burst, gaps[part]
            last = bursts

    def _make_room(self, n: int) -> None:
        if n > len(self._done):
            more = np.full(n, -1, np.int64)
            self._done, self._bursts = (np.concatenate((kept, more)) for kept in (self._done, self._bursts))


def _goes_on(bursts: Bursts, last: Bursts | None, burst_bytes: int) -> np.ndarray:
    """Return bool[n]: whether a burst goes on with the transfer of the one before it, the last of `last` for the
    first."""
    goes_on = np.zeros(len(bursts), bool)
    stream, write, address = bursts.stream, bursts.is_write, bursts.address
    size = np.uint64(burst_bytes)
    goes_on[1:] = (stream[1:] == stream[:-1]) & (write[1:] == write[:-1]) & (address[1:] - address[:-1] == size)
    if last is not None:
        same = stream[0] == last.stream[-1] and write[0] == last.is_write[-1]
        goes_on[0] = same and address[0] == last.address[-1] + size  # the other way round wraps where it goes back
    return goes_on
