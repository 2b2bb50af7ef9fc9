"""What the memory side of a machine is asked for: the accesses of its engine, or the transfers of its scratchpad."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hwmodel.fastmemory.scratchpad import Scratchpad, ScratchpadCounts
from hwmodel.machine import Machine
from traces.access.trace import Chunk, Trace


class EngineSide:
    """A trace as a machine's engine makes it. One per run.

    trace: what the memory side sees. A row wider than `access_bytes` of the engine stays one access, which takes the
    engine several; the chunks then say how many it has made before (`work`). multiply_adds: of all lanes and passes; 0
    for a recorded trace.
    """

    def __init__(self, trace: Trace, machine: Machine) -> None:
        self._access_bytes = machine.engine.access_bytes
        self._made = 0
        self.multiply_adds = trace.multiply_adds
        self._scratchpad: Scratchpad | None = None
        if machine.scratchpad is not None:
            self._scratchpad = Scratchpad(trace, machine.scratchpad, access_bytes=self._access_bytes)
            self.trace = self._scratchpad.trace
        else:
            self.trace = replace(trace, make_chunks=lambda: self._counted(trace), plan=None)

    @property
    def accesses(self) -> int:
        """Accesses the engine has made so far: to its caches or its scratchpad, none wider than access_bytes."""
        return self._made if self._scratchpad is None else self._scratchpad.accesses

    @property
    def scratchpad(self) -> ScratchpadCounts | None:
        """What the scratchpad has moved so far; None for a machine without one."""
        return None if self._scratchpad is None else self._scratchpad.counts

    def _counted(self, trace: Trace) -> Iterator[Chunk]:
        self._made, wide = 0, False
        for chunk in trace:
            wide = wide or (bool(len(chunk)) and int(chunk.size.max()) > self._access_bytes)
            if not wide:
                self._made += len(chunk)
                yield chunk
                continue
            taken = -(-chunk.size.astype(np.int64) // self._access_bytes)
            yield replace(chunk, work=self._made + np.cumsum(taken) - taken)
            self._made += int(taken.sum())
