"""The memory in a SimPy simulation: sources send bursts, and wait until the controller has taken them.

A source is an engine, or anything else that moves data, and has a port of the controller, which takes its bursts in
order. Each burst drives the wires of its channel when it is served.

A source hands over a block and waits until the controller has accepted all of it. The memory runs as far as it can
without knowing what a port brings next, so there is one event per block, not per request, and the result does not
depend on the size of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import cython_ext.dram.engine as kernel
from hwmodel.dram.controller import ControllerSpec
from hwmodel.dram.engine import collect_result, open_memory, stuck_error, waiting
from hwmodel.dram.result import DramResult
from hwmodel.dram.tables import check_addresses
from hwmodel.machine import Machine
from hwmodel.parts.part import Part
from hwmodel.replay import ChannelWires, Traffic, wire_traffic
from hwmodel.replay.bus_traffic import InFlight
from hwmodel.replay.hierarchy import Bursts, count_requests
from hwmodel.system.bounds import data_clocks
from traces.trace.chunks import NEVER, STREAMS

if TYPE_CHECKING:
    import simpy

RUN, FLUSH = 0, 1
# Requests in the order of their bursts, the channel of each, and requests that turned out to have no burst.
Served = Callable[[np.ndarray, np.ndarray, np.ndarray], None]
Done = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]
"""Requests, clocks of acceptance and of completion, and the bursts begun on all channels by then."""


BLOCKS_SERVED = 64  # handed on together


class Channels:
    """All channels of a part as one SimPy process; simulated time is in clocks of the part.

    Each port offers its requests in order over all channels. limits: lines in flight allowed per port, None for any
    number; line_reads: bursts of a line, which a port reads one after the other. Arrivals are clocks after the
    port's last access, -1 for a further request of the same access. on_served and on_done are called with blocks of
    requests as they leave.
    """

    def __init__(
        self,
        env: simpy.Environment,
        part: Part,
        controller: ControllerSpec,
        limits: Sequence[int | None],
        *,
        line_reads: int = 1,
        on_served: Served | None = None,
        on_done: Done | None = None,
    ) -> None:
        self.env = env
        self.part = part
        self._on_served, self._on_done = on_served, on_done
        self.memory = open_memory(part, controller, ports=len(limits), sent=on_served is not None)
        for port, limit in enumerate(limits):
            self.memory.set_port(port, limit=limit, line_reads=line_reads, relative=True)
        self._accepted: list[simpy.Event | None] = [None] * len(limits)
        self._fed: simpy.Event | None = None
        self._served: list[tuple[np.ndarray, ...]] = []
        self.process = env.process(self._serve())

    def hand_over(
        self,
        port: int,
        request: np.ndarray,
        address: np.ndarray,
        is_write: np.ndarray,
        arrival: np.ndarray,
        *,
        more: bool = False,
    ) -> simpy.Event:
        """Give a port its next block (request numbers int64, addresses uint64, uint8, int64); fires when accepted.

        more: another block follows at once: fires when all are accepted that do not wait for requests of that block,
        which may enter in one clock with them. The event of the port's previous block must have fired, and addresses
        must be those of bursts of the part (hwmodel.dram.tables.check_addresses).
        """
        self.memory.feed(port, request, address, is_write, arrival, more)
        event = self._accepted[port] = self.env.event()
        self._wake()
        return event

    def close(self, port: int) -> None:
        """Say that a port gets no more requests."""
        self.memory.close(port)
        self._wake()

    def park(self, port: int) -> None:
        """Say that a port gets no requests before all other ports are closed, or something that they do."""
        self.memory.park(port)
        self._wake()

    def sleep(self, port: int, until: int) -> None:
        """Say that a port gets no requests before clock `until`."""
        self.memory.sleep(port, until)
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
                self.collect(hand_on=True)
                continue
            if status == kernel.DONE:
                self.collect(hand_on=True)
                return
            wait = memory.now() - env.now
            if wait > 0:
                yield env.timeout(wait)
            while hungry := memory.hungry_ports():  # also one that was fed too little to go on
                for port in hungry:
                    event, self._accepted[port] = self._accepted[port], None
                    if event is not None:
                        event.succeed()
                fed = self._fed = env.event()
                yield fed

    def collect(self, hand_on: bool = False) -> None:
        """Call on_done with what is done so far; what was served is kept and handed on in larger blocks."""
        self._take_done()
        if self._on_served is not None:  # taken with it: the memory's buffers fill together
            self._served.append(self.memory.take_sent())
            if hand_on or len(self._served) == BLOCKS_SERVED:
                self._on_served(*(np.concatenate(column) for column in zip(*self._served, strict=True)))
                self._served = []

    def _take_done(self) -> None:
        if self._on_done is None:
            self.memory.take_done()
        elif self.memory.waiting_output():
            bursts = self.memory.done_bursts()
            self._on_done(*self.memory.take_done(), bursts)


@dataclass(frozen=True, eq=False)
class Requests:
    """Every request of a run, by number: uint64 address, uint8 is_write and stream, int64 accept_cycle, done_cycle.

    served: request numbers in the order of their bursts on the wires of each channel (a request that was merged with
    another, or answered by a waiting write, has no burst).
    """

    address: np.ndarray
    is_write: np.ndarray
    stream: np.ndarray
    accept_cycle: np.ndarray
    done_cycle: np.ndarray
    served: tuple[np.ndarray, ...]


class RequestLog:
    """Collects blocks of requests in whatever order they come; `requests` sorts them by number."""

    def __init__(self, n_channels: int) -> None:
        empty, byte = np.zeros(0, np.int64), np.zeros(0, np.uint8)
        self._made: list[tuple[np.ndarray, ...]] = [(empty, empty.astype(np.uint64), byte, byte)]
        self._done: list[tuple[np.ndarray, ...]] = [(empty, empty, empty)]
        self._served: list[list[np.ndarray]] = [[empty] for _ in range(n_channels)]

    def made(self, number: np.ndarray, bursts: Bursts) -> None:
        """Note requests with the numbers they were given."""
        self._made.append((number, bursts.address, bursts.is_write, bursts.stream))

    def done(self, number: np.ndarray, accepted: np.ndarray, done: np.ndarray) -> None:
        """Note the cycles at which requests were accepted and completed."""
        self._done.append((number, accepted, done))

    def served(self, number: np.ndarray, channel: np.ndarray) -> None:
        """Note bursts in the order in which they were on the wires of their channels."""
        for c, blocks in enumerate(self._served):
            blocks.append(number[channel == c])

    def requests(self) -> Requests:
        """Return all of them by number."""
        number, address, write, stream = (np.concatenate(column) for column in zip(*self._made, strict=True))
        order = np.argsort(number, kind="stable")
        done_number, accepted, done = (np.concatenate(column) for column in zip(*self._done, strict=True))
        done_order = np.argsort(done_number, kind="stable")
        ids = number[order]
        assert np.array_equal(ids, done_number[done_order]), "a request was lost or made up"
        served = tuple(np.searchsorted(ids, np.concatenate(blocks)) for blocks in self._served)
        return Requests(
            address[order], write[order], stream[order], accepted[done_order], done[done_order], served
        )  # fmt: skip


class MemorySystem:
    """Channels, wires and requests on their way. Simulated time is in clocks of the part.

    n_sources: sources, each with `outstanding_misses` lines, or `dma_bytes`, in flight at most.
    has_data: bursts carry their bytes. description: of the trace, which says how large its elements are.
    """

    def __init__(
        self,
        env: Any,
        part: Part,
        machine: Machine,
        n_sources: int,
        *,
        has_data: bool,
        description: Mapping[str, Any],
        block_requests: int,
        keep: bool,
    ) -> None:
        n_channels = part.organisation.channels
        self.channels = Channels(
            env,
            part,
            machine.memory_controller(),
            [self._limit(machine)] * n_sources,
            line_reads=machine.caches[-1].line_bytes // machine.bus.block_bytes if machine.caches else 1,
            on_served=self._on_served,
            on_done=self._on_done,
        )
        self.last_done = np.zeros(n_sources, np.int64)  # cycle at which a source was last given something it asked for
        self.log = RequestLog(n_channels) if keep else None
        self._watched: dict[int, Callable[[np.ndarray, np.ndarray, np.ndarray], None]] = {}
        self._block_requests = block_requests
        self._flush_from: int | None = None  # number of the flush's first request
        self.burst_bytes = machine.bus.block_bytes
        self._wires = ChannelWires(machine, n_channels, description) if has_data else None
        self._in_flight = InFlight(machine.bus.block_bytes, n_sources, self._wires)
        self._asked = np.zeros((2, 2, len(STREAMS)), np.int64)  # run and flush; reads and writes

    @staticmethod
    def _limit(machine: Machine) -> int:
        """Return lines of the last cache, without one bursts, that a source may have in flight."""
        if machine.scratchpad is not None:
            return max(machine.engine.dma_bytes // machine.bus.block_bytes, 1)
        return machine.engine.outstanding_misses

    def waited_moving(self, source: int) -> int:
        """Return the clocks in which a source's requests waited to be accepted, or all were and the last answers came,
        and data moved on the channels."""
        memory, part = self.channels.memory, self.channels.part
        waited, _, bursts = memory.waited(source)
        accepted, after = memory.bursts_since(source)
        tail = max(int(self.last_done[source]) - accepted, 0)
        return min(waited, int(data_clocks(bursts, part))) + min(tail, int(data_clocks(after, part)))

    def waited_for_line(self, source: int) -> int:
        """Return the clocks in which a source's reads waited because as many as may be were in flight."""
        return self.channels.memory.waited(source)[1]

    def send(self, source: int, bursts: Bursts, gaps: np.ndarray, which: int = RUN) -> Generator[Any, Any, None]:
        """Send bursts block by block; ends (a SimPy process yields from it) when the controller has taken the last.

        gaps: int64[n] clocks after the source's last access, -1 for a further burst of the same access. which: RUN or
        FLUSH, counted apart.
        """
        if which == FLUSH and self._flush_from is None:  # of the first source
            self._flush_from = self.requests_of(0)
        numbers = self.note(source, bursts, which)
        yield from self.hand_over(source, numbers, bursts.address, bursts.is_write, gaps)

    def note(self, source: int, bursts: Bursts, which: int = RUN) -> np.ndarray:
        """Take note of bursts that a source is about to hand over, and return their numbers, int64[n]."""
        self._asked[which] += count_requests(bursts)
        check_addresses(bursts.address, self.channels.part, self._in_flight.pending[source].total)
        numbers = self._in_flight.add(source, bursts, which)
        if self.log is not None:
            self.log.made(numbers, bursts)
        return numbers

    def hand_over(
        self, source: int, numbers: np.ndarray, address: np.ndarray, is_write: np.ndarray, gaps: np.ndarray
    ) -> Generator[Any, Any, None]:
        """Hand noted bursts over block by block; ends when the controller has taken the last (see `send`)."""
        size, n = self._block_requests, len(numbers)
        for start in range(0, n, size):
            part, more = slice(start, start + size), start + size < n
            yield self.channels.hand_over(source, numbers[part], address[part], is_write[part], gaps[part], more=more)

    def watch(self, source: int, arrived: Callable[[np.ndarray, np.ndarray, np.ndarray], None]) -> None:
        """Call arrived(request numbers of the source, cycles done, bursts begun by then; int64[n] each) with what is
        done."""
        self._watched[source] = arrived

    def requests_of(self, source: int) -> int:
        """Return how many bursts a source has asked for."""
        return int(self._in_flight.pending[source].total)

    def traffic(self, which: int) -> Traffic:
        """Return the requests of the run or of the flush and what they did on the wires of all channels."""
        return wire_traffic(self._asked[which], self._in_flight.counts[which], self._wires, which)

    def result(self) -> DramResult:
        """Return the result of the DRAM once everything was served."""
        assert len(self._in_flight) == 0, "a request was never served"
        none = np.zeros(0, np.int64)
        return self.channels.result(none, none)

    def _on_done(self, request: np.ndarray, accepted: np.ndarray, done: np.ndarray, bursts: np.ndarray) -> None:
        if len(self.last_done) == 1:
            run = done if self._flush_from is None else done[request < self._flush_from]
            self.last_done[0] = max(int(self.last_done[0]), int(run.max(initial=0)))
            for arrived in self._watched.values():
                arrived(request, done, bursts)
        else:
            source, number = self._in_flight.split(request)
            requested = (source != 0) | (number < (NEVER if self._flush_from is None else self._flush_from))
            np.maximum.at(self.last_done, source[requested], done[requested])
            for s, arrived in self._watched.items():
                mine = source == s
                arrived(number[mine], done[mine], bursts[mine])
        if self.log is not None:
            self.log.done(request, accepted, done)

    def _on_served(self, sent: np.ndarray, channel: np.ndarray, unsent: np.ndarray) -> None:
        if self.log is not None:
            self.log.served(sent, channel)
        self._in_flight.served(sent, channel, unsent)
