"""The memory channels of a part in a SimPy world: blocks of requests come in on ports, each burst is compiled.

A port belongs to one source, which hands over a block and waits until the controller has accepted all of it. A channel
runs as far as it can without knowing what a port brings next, so there is one event per block, not per request, and the
result does not depend on the size of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import cython_ext.dram.engine as kernel
from hwmodel.dram.controller import ControllerSpec
from hwmodel.dram.engine import DramResult, channel_of, check_addresses, collect_result, open_channel, stuck_error
from hwmodel.dram.part import AddressMap, Part

if TYPE_CHECKING:
    import simpy

Served = Callable[[int, np.ndarray], None]  # channel, request numbers in the order of their bursts
Done = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]  # requests, accepted, done, own burst


class Channels:
    """All channels of a part as SimPy processes; simulated time is in clocks of the part.

    limits: reads in flight allowed per port and channel, None for any number. relative: arrivals are clocks after the
    port's previous acceptance. on_served and on_done are called with blocks of requests as they leave.
    """

    def __init__(
        self,
        env: simpy.Environment,
        part: Part,
        controller: ControllerSpec,
        limits: Sequence[int | None],
        *,
        relative: bool = True,
        trace: bool = False,
        on_served: Served | None = None,
        on_done: Done | None = None,
    ) -> None:
        self.env = env
        self.part = part
        self.map = AddressMap.parse(controller.address_map or part.address_map, part.organisation)
        self._on_served, self._on_done = on_served, on_done
        self._keep_trace = trace
        self._traces: list[list[np.ndarray]] = []
        self.kernels: list[kernel.Channel] = []
        for _ in range(part.organisation.channels):
            want_trace = trace or on_served is not None
            channel = open_channel(part, controller, self.map, ports=len(limits), trace=want_trace)
            for port, limit in enumerate(limits):
                channel.set_port(port, limit=limit, relative=relative)
            self.kernels.append(channel)
            self._traces.append([np.empty(0, kernel.TRACE_DTYPE)])
        self._accepted: list[list[simpy.Event | None]] = [[None] * len(limits) for _ in self.kernels]
        self._fed: list[simpy.Event | None] = [None] * len(self.kernels)
        self.processes = [env.process(self._serve(c)) for c in range(len(self.kernels))]

    def hand_over(
        self, port: int, request: np.ndarray, address: np.ndarray, is_write: np.ndarray, arrival: np.ndarray
    ) -> simpy.Event:
        """Give a port its next block (request numbers int64, addresses uint64, uint8, int64); fires when accepted.

        The previous block of the port must have been accepted. Raises InputError for addresses outside the part.
        """
        check_addresses(address, self.part, int(request[0]) if len(request) else 0)
        if len(self.kernels) == 1:
            return self._feed(0, port, request, address, is_write, arrival)
        channel = channel_of(address, self.map)
        events = []
        for c in np.unique(channel).tolist():
            mine = np.flatnonzero(channel == c)
            events.append(self._feed(c, port, request[mine], address[mine], is_write[mine], arrival[mine]))
        return self.env.all_of(events)

    def close(self, port: int) -> None:
        """Say that a port gets no more requests."""
        for c, channel in enumerate(self.kernels):
            channel.close(port)
            self._wake(c)

    def park(self, port: int) -> None:
        """Say that a port gets no requests before all other ports are closed."""
        for c, channel in enumerate(self.kernels):
            channel.park(port)
            self._wake(c)

    def result(self, done_cycle: np.ndarray, accept_cycle: np.ndarray) -> DramResult:
        """Return the DRAM's result once all processes have ended."""
        commands = tuple(np.concatenate(blocks) for blocks in self._traces) if self._keep_trace else None
        return collect_result(self.kernels, self.part, done_cycle, accept_cycle, commands)

    def waiting(self) -> str:
        """Return what waits in the queues, for the error of a run that does not end."""
        return "; ".join(
            f"channel {c}: " + (", ".join(f"{name} {n}" for name, n in channel.state().items() if n) or "idle")
            for c, channel in enumerate(self.kernels)
        )

    def _feed(self, c: int, port: int, *block: np.ndarray) -> simpy.Event:
        self.kernels[c].feed(port, *block)
        event = self._accepted[c][port] = self.env.event()
        self._wake(c)
        return event

    def _wake(self, c: int) -> None:
        waiting, self._fed[c] = self._fed[c], None
        if waiting is not None:
            waiting.succeed()

    def _serve(self, c: int) -> Generator[Any, Any, None]:
        channel, env = self.kernels[c], self.env
        while True:
            status = channel.run()
            if status == kernel.STUCK:
                raise stuck_error(channel, c)
            if status == kernel.OUTPUT_FULL:
                self._collect(c)
                continue
            if status == kernel.DONE:
                self._collect(c)
                return
            wait = channel.now() - env.now
            if wait > 0:
                yield env.timeout(wait)
            for port in channel.hungry_ports():
                event, self._accepted[c][port] = self._accepted[c][port], None
                if event is not None:
                    event.succeed()
            while channel.hungry_ports():
                fed = self._fed[c] = env.event()
                yield fed

    def _collect(self, c: int) -> None:
        done = self.kernels[c].take_done()
        if self._on_done is not None and len(done[0]):
            self._on_done(*done)
        if self._keep_trace or self._on_served is not None:
            trace = self.kernels[c].take_trace()
            if self._keep_trace:
                self._traces[c].append(trace)
            if self._on_served is not None:
                bursts = trace["request"][trace["request"] >= 0]
                self._on_served(c, bursts)
