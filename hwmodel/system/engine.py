"""An engine in time: it makes the accesses of its trace at its pace; what misses goes to memory."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hwmodel.replay.cache_pass import count_accesses
from hwmodel.replay.hierarchy import CacheHierarchy, EngineSide, slices
from hwmodel.system.memory import MemorySystem
from traces.trace.chunks import STREAMS


@dataclass(frozen=True)
class EngineRun:
    """One engine: accesses made, requests (bursts) sent to memory, cycle of its end, clocks of pure computing; of those
    that it waited, clocks in which data moved, and in which DMA had as many bytes in flight as it may."""

    accesses: int
    requests: int
    finish_cycle: int
    compute_cycles: int
    bandwidth_cycles: int
    dma_cycles: int = 0

    @property
    def stall_cycles(self) -> int:
        """Clocks spent waiting for memory."""
        return self.finish_cycle - self.compute_cycles


class SharedCaches:
    """The caches that all engines feed. asked int64[2, 2, stream]: loads and stores; accesses and bytes."""

    def __init__(self, hierarchy: CacheHierarchy) -> None:
        self.hierarchy = hierarchy
        self.accesses = 0
        self.asked = np.zeros((2, 2, len(STREAMS)), np.int64)


class Engine:
    """One engine, the source `number` of the memory.

    slice_accesses: accesses it makes before another engine may. on_accesses: called after each slice.
    """

    def __init__(
        self,
        number: int,
        side: EngineSide,
        caches: SharedCaches,
        memory: MemorySystem,
        *,
        clocks_per_cycle: float,
        slice_accesses: int,
        on_accesses: Callable[[], None],
    ) -> None:
        self.number, self.side, self.caches, self.memory = number, side, caches, memory
        self.accesses = 0
        self._clocks_per_cycle, self._slice = clocks_per_cycle, slice_accesses
        self._on_accesses = on_accesses
        self._computing = 0  # clocks of the accesses alone
        self._tail = 0  # clocks of computing after the last burst

    def process(self) -> Generator[Any, Any, None]:
        """Make all accesses (a SimPy process). The first engine keeps its port for the final flush."""
        position = 0
        for chunk in slices(self.side.trace, self._slice):
            bursts = self.caches.hierarchy.feed(chunk)
            self.caches.asked += count_accesses(chunk)
            when = bursts.cycle
            if when is None:
                when = (bursts.work * self._clocks_per_cycle).astype(np.int64)
            self.accesses += len(chunk)
            self.caches.accesses += len(chunk)
            gaps = np.maximum(np.diff(when, prepend=position), 0)
            gaps[1:][np.diff(bursts.access) == 0] = -1  # a further burst of the same access
            position = int(when[-1]) if len(when) else position
            yield from self.memory.send(self.number, bursts, gaps)
            self._on_accesses()
        self._computing = int(self.side.work.cycles * self._clocks_per_cycle)
        self._tail = max(self._computing - position, 0)
        (self.memory.close if self.number else self.memory.park)(self.number)

    def result(self) -> EngineRun:
        """Return what the engine did."""
        finish = max(int(self.memory.last_done[self.number]) + self._tail, self._computing)
        moving = min(self.memory.waited_moving(self.number), finish - self._computing)
        return EngineRun(self.accesses, self.memory.requests_of(self.number), finish, self._computing, moving)
