"""The memory in a SimPy simulation: sources send bursts, and wait until the controller has taken them.

A source is an engine, or anything else that moves data, and has a port of the controller, which takes its bursts in
order. Each burst drives the wires of its channel when it is served.

A source hands over a block and waits until the controller has accepted all of it. The memory runs as far as it can
without knowing what a port brings next, so there is one event per block, not per request, and the result does not
depend on the size of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import cython_ext.dram.engine as kernel
from hwmodel.dram.engine import collect_result, open_memory, stuck_error, waiting
from hwmodel.dram.result import DramResult
from hwmodel.dram.tables import check_addresses
from hwmodel.machine import Machine
from hwmodel.parts.part import Part
from hwmodel.replay.bus_traffic import FLUSH, RUN, InFlight, Traffic, Wires, wire_traffic
from hwmodel.replay.hierarchy import Bursts, count_requests
from hwmodel.system.bounds import data_clocks
from traces.trace.chunks import NEVER, STREAMS, Trace

if TYPE_CHECKING:
    import simpy

BLOCKS_SERVED = 64  # handed on together


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
    """Blocks of requests in whatever order they come; `requests` sorts them by number.

    made: numbers, addresses, is_write, streams. done: numbers, cycles of acceptance and of completion. served: numbers
    in the order of their bursts on the wires, and channels.
    """

    def __init__(self, n_channels: int) -> None:
        empty, byte = np.zeros(0, np.int64), np.zeros(0, np.uint8)
        self._n_channels = n_channels
        self.made: list[tuple[np.ndarray, ...]] = [(empty, empty.astype(np.uint64), byte, byte)]
        self.done: list[tuple[np.ndarray, ...]] = [(empty, empty, empty)]
        self.served: list[tuple[np.ndarray, ...]] = [(empty, byte)]

    def requests(self) -> Requests:
        """Return all of them by number."""
        number, address, write, stream = (np.concatenate(column) for column in zip(*self.made, strict=True))
        order = np.argsort(number, kind="stable")
        done_number, accepted, done = (np.concatenate(column) for column in zip(*self.done, strict=True))
        done_order = np.argsort(done_number, kind="stable")
        ids = number[order]
        assert np.array_equal(ids, done_number[done_order]), "a request was lost or made up"
        sent, channel = (np.concatenate(column) for column in zip(*self.served, strict=True))
        served = tuple(np.searchsorted(ids, sent[channel == c]) for c in range(self._n_channels))
        return Requests(
            address[order], write[order], stream[order], accepted[done_order], done[done_order], served
        )  # fmt: skip


class MemorySystem:
    """Channels as one SimPy process, wires and requests on their way. Simulated time is in clocks of the part.

    n_sources: sources, each with `outstanding_misses` lines, or `dma_bytes`, in flight at most; each offers its
    requests in order over all channels. trace: says whether bursts carry their bytes, and how large its elements are.
    """

    def __init__(
        self,
        env: Any,
        part: Part,
        machine: Machine,
        n_sources: int,
        *,
        trace: Trace,
        block_requests: int,
        keep: bool,
    ) -> None:
        n_channels, block_bytes = part.organisation.channels, machine.bus.block_bytes
        self.env, self.part, self.burst_bytes = env, part, block_bytes
        self._memory = open_memory(part, machine.memory_controller(), ports=n_sources, sent=True)
        if machine.scratchpad is None:
            limit = machine.engine.outstanding_misses
        else:
            limit = max(machine.engine.dma_bytes // block_bytes, 1)
        line_reads = machine.caches[-1].line_bytes // block_bytes if machine.caches else 1
        for source in range(n_sources):
            self._memory.set_port(source, limit=limit, line_reads=line_reads, relative=True)
        self._accepted: list[simpy.Event | None] = [None] * n_sources
        self._fed: simpy.Event | None = None
        self._served: list[tuple[np.ndarray, ...]] = []
        self.process = env.process(self._serve())
        self.last_done = np.zeros(n_sources, np.int64)  # cycle at which a source was last given something it asked for
        self.log = RequestLog(n_channels) if keep else None
        # Of one source: called with the requests that are done, int64[n] each: numbers, cycles, bursts begun by then.
        self.arrived: Callable[[np.ndarray, np.ndarray, np.ndarray], None] | None = None
        self._block_requests = block_requests
        self._flush_from: int | None = None  # number of the flush's first request
        self._wires = Wires(machine, n_channels, trace.description) if trace.has_data else None
        self._in_flight = InFlight(block_bytes, n_sources, self._wires)
        self._asked = np.zeros((2, 2, len(STREAMS)), np.int64)  # run and flush; reads and writes

    def close(self, source: int) -> None:
        """Say that a source gets no more requests."""
        self._memory.close(source)
        self._wake()

    def park(self, source: int) -> None:
        """Say that a source gets no requests before all others are closed, or something that they do."""
        self._memory.park(source)
        self._wake()

    def sleep(self, source: int, until: int) -> None:
        """Say that a source gets no requests before clock `until`."""
        self._memory.sleep(source, until)
        self._wake()

    def waiting(self) -> str:
        """Return what waits in the queues, for the error of a run that does not end."""
        return waiting(self._memory)

    def _wake(self) -> None:
        fed, self._fed = self._fed, None
        if fed is not None:
            fed.succeed()

    def _serve(self) -> Generator[Any, Any, None]:
        memory, env = self._memory, self.env
        while True:
            status = memory.run()
            if status == kernel.STUCK:
                raise stuck_error(memory)
            if status in (kernel.OUTPUT_FULL, kernel.DONE):
                self.collect(hand_on=True)
                if status == kernel.DONE:
                    return
                continue
            wait = memory.now() - env.now
            if wait > 0:
                yield env.timeout(wait)
            while hungry := memory.hungry_ports():  # also one that was fed too little to go on
                for source in hungry:
                    event, self._accepted[source] = self._accepted[source], None
                    if event is not None:
                        event.succeed()
                fed = self._fed = env.event()
                yield fed

    def collect(self, hand_on: bool = False) -> None:
        """Note what is done so far; what was served is kept and handed on in larger blocks."""
        if self._memory.waiting_output():
            bursts = self._memory.done_bursts()
            self._on_done(*self._memory.take_done(), bursts)
        self._served.append(self._memory.take_sent())  # taken with it: the memory's buffers fill together
        if hand_on or len(self._served) == BLOCKS_SERVED:
            self._on_served(*(np.concatenate(column) for column in zip(*self._served, strict=True)))
            self._served = []

    def waited_moving(self, source: int) -> int:
        """Return the clocks in which a source's requests waited to be accepted, or all were and the last answers came,
        and data moved on the channels."""
        memory, part = self._memory, self.part
        waited, _, bursts = memory.waited(source)
        accepted, after = memory.bursts_since(source)
        tail = max(int(self.last_done[source]) - accepted, 0)
        return min(waited, int(data_clocks(bursts, part))) + min(tail, int(data_clocks(after, part)))

    def waited_for_line(self) -> int:
        """Return the clocks in which the first source's reads waited because as many as may be were in flight."""
        return int(self._memory.waited(0)[1])

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
        check_addresses(bursts.address, self.part, self._in_flight.pending[source].total)
        numbers = self._in_flight.add(source, bursts, which)
        if self.log is not None:
            self.log.made.append((numbers, bursts.address, bursts.is_write, bursts.stream))
        return numbers

    def hand_over(
        self, source: int, numbers: np.ndarray, address: np.ndarray, is_write: np.ndarray, gaps: np.ndarray
    ) -> Generator[Any, Any, None]:
        """Hand noted bursts over block by block; ends when the controller has taken the last (see `send`)."""
        size, n = self._block_requests, len(numbers)
        for start in range(0, n, size):
            # Where another block follows at once, its requests may enter in one clock with the last of this one.
            part, more = slice(start, start + size), start + size < n
            self._memory.feed(source, numbers[part], address[part], is_write[part], gaps[part], more)
            event = self._accepted[source] = self.env.event()
            self._wake()
            yield event

    def requests_of(self, source: int) -> int:
        return int(self._in_flight.pending[source].total)

    def traffic(self, which: int) -> Traffic:
        """Return the requests of the run or of the flush and what they did on the wires of all channels."""
        return wire_traffic(self._asked[which], self._in_flight.counts[which], self._wires, which)

    def result(self) -> DramResult:
        """Return the result of the DRAM once everything was served."""
        assert len(self._in_flight) == 0, "a request was never served"
        none = np.zeros(0, np.int64)
        return collect_result(self._memory, self.part, none, none, None)

    def _on_done(self, request: np.ndarray, accepted: np.ndarray, done: np.ndarray, bursts: np.ndarray) -> None:
        if len(self.last_done) == 1:
            run = done if self._flush_from is None else done[request < self._flush_from]
            self.last_done[0] = max(int(self.last_done[0]), int(run.max(initial=0)))
            if self.arrived is not None:
                self.arrived(request, done, bursts)
        else:
            source, number = self._in_flight.split(request)
            requested = (source != 0) | (number < (NEVER if self._flush_from is None else self._flush_from))
            np.maximum.at(self.last_done, source[requested], done[requested])
        if self.log is not None:
            self.log.done.append((request, accepted, done))

    def _on_served(self, sent: np.ndarray, channel: np.ndarray, unsent: np.ndarray) -> None:
        if self.log is not None:
            self.log.served.append((sent, channel))
        self._in_flight.served(sent, channel, unsent)
