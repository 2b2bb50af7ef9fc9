"""An engine in time: it makes the accesses of its trace at its pace; what misses goes to memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from hwmodel.replay.hierarchy import CacheHierarchy, EngineSide
from hwmodel.system.memory import MemorySystem
from traces.trace.chunks import Chunk, slices


@dataclass(frozen=True)
class EngineRun:
    """One engine: accesses made, requests (bursts) sent to memory, cycle of its end, clocks of pure computing; of those
    that it waited, clocks in which data moved, in which DMA had as many bytes in flight as it may, and in which it
    waited for what another engine computes."""

    accesses: int
    requests: int
    finish_cycle: int
    compute_cycles: int
    bandwidth_cycles: int
    dma_cycles: int = 0
    depends_cycles: int = 0

    @property
    def stall_cycles(self) -> int:
        """Clocks spent waiting for memory."""
        return self.finish_cycle - self.compute_cycles


class Turns:
    """How far each engine is, in accesses of its trace, and who waits for it. waits: of each engine's trace."""

    def __init__(self, env: Any, waits: Sequence[np.ndarray | None]) -> None:
        self._env, self._made = env, [0] * len(waits)
        rows = [np.zeros((0, 3), np.int64) if each is None else each for each in waits]
        self.waits = [{int(at): each[each[:, 0] == at, 1:].tolist() for at in np.unique(each[:, 0])} for each in rows]
        every = np.concatenate(rows)
        self.wakes = [set(every[every[:, 1] == e, 2].tolist()) for e in range(len(waits))]
        """Counts of accesses of each engine that another one waits for."""
        self._waiting: list[dict[int, Any]] = [{} for _ in waits]

    def open(self, engine: int, at: int) -> list[Any]:
        """Return the events that an engine must wait for before its access `at`."""
        events = []
        for other, needed in self.waits[engine].get(at, ()):
            if self._made[other] < needed:
                events.append(self._waiting[other].setdefault(needed, self._env.event()))
        return events

    def reach(self, engine: int, made: int) -> None:
        """Say that an engine has made so many accesses."""
        self._made[engine] = made
        for needed in [n for n in self._waiting[engine] if n <= made]:
            self._waiting[engine].pop(needed).succeed()


class Engine:
    """One engine, the source `number` of the memory.

    slice_accesses: accesses it makes before another engine may. on_accesses: called after each slice.
    """

    def __init__(
        self,
        number: int,
        side: EngineSide,
        caches: CacheHierarchy,
        memory: MemorySystem,
        *,
        clocks_per_cycle: float,
        slice_accesses: int,
        on_accesses: Callable[[], None],
        turns: Turns,
    ) -> None:
        self.number, self.side, self.caches, self.memory = number, side, caches, memory
        self._turns, self._env = turns, memory.env
        self._depends = 0  # clocks of waiting for other engines
        self.accesses = 0
        self._clocks_per_cycle, self._slice = clocks_per_cycle, slice_accesses
        self._on_accesses = on_accesses
        self._computing = 0  # clocks of the accesses alone
        self._tail = self._last = 0  # clocks of computing after the last burst; when it ends, were all answered

    def process(self) -> Generator[Any, Any, None]:
        """Make all accesses (a SimPy process). The first engine keeps its port for the final flush."""
        env, wakes = self._env, self._turns.wakes[self.number]
        position = accepted = 0  # the engine's own clock at its last burst, or when it went on, and the time then
        burst = 0  # when its last burst was accepted
        for chunk, end in self._pieces():
            if events := self._turns.open(self.number, self.accesses):
                self.memory.park(self.number)
                for event in events:  # noqa: UP028 - one by one: with the last this engine goes on before its waker asks for more
                    yield event
                own = self._clocks(float(chunk.work[0])) if chunk.work is not None else position
                ready = accepted + own - position
                self._depends += max(env.now - ready, 0)
                if env.now > ready:
                    accepted, position = int(env.now), own
            bursts = self.caches.feed(chunk)
            when = bursts.cycle
            if when is None:
                when = (bursts.work * self._clocks_per_cycle).astype(np.int64)
            self.accesses += len(chunk)
            gaps = np.maximum(np.diff(when, prepend=position), 0)
            gaps[1:][np.diff(bursts.access) == 0] = -1  # a further burst of the same access
            gaps[:1] += accepted - burst
            yield from self.memory.send(self.number, bursts, gaps)
            if len(when):
                position, accepted = int(when[-1]), int(env.now)
                burst = accepted
            self._on_accesses()
            if self.accesses in wakes:
                yield from self._compute(accepted + self._clocks(end) - position)
                self._turns.reach(self.number, self.accesses)
        self._computing = self._clocks(self.side.work.cycles)
        self._tail = max(self._computing - position, 0)
        self._last = accepted + self._tail
        yield from self._compute(self._last)
        (self.memory.close if self.number else self.memory.park)(self.number)

    def _compute(self, until: int) -> Generator[Any, Any, None]:
        """Let the time pass up to a clock without a request."""
        if until > self._env.now:
            self.memory.sleep(self.number, until)
            yield self._env.timeout(until - self._env.now)

    def _clocks(self, cycles: float) -> int:
        return int(cycles * self._clocks_per_cycle)

    def _pieces(self) -> Iterator[tuple[Chunk, float]]:
        """Yield the trace in slices, which end where an engine is to wait, and the engine's cycles by then."""
        breaks = np.array(sorted({*self._turns.waits[self.number], *self._turns.wakes[self.number]}), np.int64)
        made = 0
        for chunk in slices(self.side.trace, self._slice):
            inside = breaks[(breaks > made) & (breaks < made + len(chunk))] - made
            for start, stop in pairwise((0, *inside.tolist(), len(chunk))):
                part, work = chunk.part(start, stop), chunk.work
                yield part, self.side.work.cycles if work is None or stop == len(work) else float(work[stop])
            made += len(chunk)

    def result(self) -> EngineRun:
        finish = max(int(self.memory.last_done[self.number]) + self._tail, self._computing, self._last)
        depends = min(self._depends, finish - self._computing)
        moving = min(self.memory.waited_moving(self.number), finish - self._computing - depends)
        requests = self.memory.requests_of(self.number)
        return EngineRun(self.accesses, requests, finish, self._computing, moving, depends_cycles=depends)
