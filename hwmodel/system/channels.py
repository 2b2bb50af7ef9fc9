"""The memory channels of a part in a SimPy simulation: blocks of requests come in on ports, each burst is compiled.

A port belongs to one source, which hands over a block and waits until the controller has accepted all of it. The memory
runs as far as it can without knowing what a port brings next, so there is one event per block, not per request, and the
result does not depend on the size of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import cython_ext.dram.engine as kernel
from hwmodel.dram.controller import ControllerSpec
from hwmodel.dram.engine import collect_result, open_memory, stuck_error, waiting
from hwmodel.dram.result import DramResult
from hwmodel.parts.part import Part

if TYPE_CHECKING:
    import simpy

# Requests in the order of their bursts, the channel of each, and requests that turned out to have no burst.
Served = Callable[[np.ndarray, np.ndarray, np.ndarray], None]
Done = Callable[[np.ndarray, np.ndarray, np.ndarray], None]  # requests, accepted, done


BLOCKS_SERVED = 64  # handed on together


class Channels:
    """All channels of a part as one SimPy process; simulated time is in clocks of the part.

    Each port offers its requests in order over all channels. limits: reads in flight allowed per port, None for any
    number. relative: arrivals are clocks after the port's last access, -1 for a further request of the same access.
    on_served and on_done are called with blocks of requests as they leave.
    """

    def __init__(
        self,
        env: simpy.Environment,
        part: Part,
        controller: ControllerSpec,
        limits: Sequence[int | None],
        *,
        relative: bool = True,
        on_served: Served | None = None,
        on_done: Done | None = None,
    ) -> None:
        self.env = env
        self.part = part
        self._on_served, self._on_done = on_served, on_done
        self.memory = open_memory(part, controller, ports=len(limits), sent=on_served is not None)
        for port, limit in enumerate(limits):
            self.memory.set_port(port, limit=limit, relative=relative)
        self._accepted: list[simpy.Event | None] = [None] * len(limits)
        self._fed: simpy.Event | None = None
        self._served: list[tuple[np.ndarray, ...]] = []
        self.process = env.process(self._serve())

    def hand_over(
        self, port: int, request: np.ndarray, address: np.ndarray, is_write: np.ndarray, arrival: np.ndarray
    ) -> simpy.Event:
        """Give a port its next block (request numbers int64, addresses uint64, uint8, int64); fires when accepted.

        The previous block of the port must have been accepted, and the addresses must be those of bursts of the part
        (hwmodel.dram.tables.check_addresses).
        """
        self.memory.feed(port, request, address, is_write, arrival)
        event = self._accepted[port] = self.env.event()
        self._wake()
        return event

    def close(self, port: int) -> None:
        """Say that a port gets no more requests."""
        self.memory.close(port)
        self._wake()

    def park(self, port: int) -> None:
        """Say that a port gets no requests before all other ports are closed."""
        self.memory.park(port)
        self._wake()

    def result(self, done_cycle: np.ndarray, accept_cycle: np.ndarray) -> DramResult:
        """Return the DRAM's result once the process has ended."""
        return collect_result(self.memory, self.part, done_cycle, accept_cycle, None)

    def waiting(self) -> str:
        """Return what waits in the queues, for the error of a run that does not end."""
        return waiting(self.memory)

    def _wake(self) -> None:
        fed, self._fed = self._fed, None
        if fed is not None:
            fed.succeed()

    def _serve(self) -> Generator[Any, Any, None]:
        memory, env = self.memory, self.env
        while True:
            status = memory.run()
            if status == kernel.STUCK:
                raise stuck_error(memory)
            if status == kernel.OUTPUT_FULL:
                self._collect()
                continue
            if status == kernel.DONE:
                self._collect()
                return
            wait = memory.now() - env.now
            if wait > 0:
                yield env.timeout(wait)
            for port in memory.hungry_ports():
                event, self._accepted[port] = self._accepted[port], None
                if event is not None:
                    event.succeed()
            while memory.hungry_ports():
                fed = self._fed = env.event()
                yield fed

    def collect_done(self) -> None:
        """Call on_done with what is done so far; what was served is kept and handed on in larger blocks."""
        done = self.memory.take_done()
        if self._on_served is not None:  # taken with it: the memory's buffers fill together
            self._served.append(self.memory.take_sent())
        if self._on_done is not None and len(done[0]):
            self._on_done(*done)
        if len(self._served) == BLOCKS_SERVED:
            self._hand_on()

    def _collect(self) -> None:
        done = self.memory.take_done()
        if self._on_done is not None and len(done[0]):
            self._on_done(*done)
        if self._on_served is not None:
            self._served.append(self.memory.take_sent())
            self._hand_on()

    def _hand_on(self) -> None:
        if self._on_served is not None and self._served:
            self._on_served(*(np.concatenate(column) for column in zip(*self._served, strict=True)))
        self._served = []
