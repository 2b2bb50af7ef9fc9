"""The memory as the sources of a system see it: they send bursts, and wait until the controller has taken them.

A source is an engine, or anything else that moves data (a DMA channel). Each has a port of the controller, which takes
its bursts in order. What is on its way is remembered, so that each burst drives the wires of its channel when it is
served, in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

import numpy as np

from hwmodel.dram.result import DramResult
from hwmodel.dram.tables import check_addresses
from hwmodel.machine import Machine
from hwmodel.parts.part import Part
from hwmodel.replay import ChannelWires, Traffic, wire_traffic
from hwmodel.replay.bus_traffic import InFlight
from hwmodel.replay.hierarchy import Bursts, count_requests
from hwmodel.system.channels import Channels
from hwmodel.system.request_log import RequestLog
from traces.trace.chunks import STREAMS

RUN, FLUSH = 0, 1


class MemorySystem:
    """Channels, wires and requests on their way. Simulated time is in clocks of the part.

    n_sources: sources, each with `outstanding` reads in flight at most. has_data: bursts carry their bytes.
    description: of the trace, which says how large its elements are.
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
            [machine.engine.outstanding_misses] * n_sources,
            on_served=self._on_served,
            on_done=self._on_done,
        )
        self.last_done = np.zeros(n_sources, np.int64)  # cycle at which a source was last given something
        self.log = RequestLog(n_channels) if keep else None
        self._watched: dict[int, Callable[[np.ndarray, np.ndarray], None]] = {}
        self._block_requests = block_requests
        self.burst_bytes = machine.bus.block_bytes
        self._wires = ChannelWires(machine, n_channels, description) if has_data else None
        self._in_flight = InFlight(machine.bus.block_bytes, n_sources, self._wires)
        self._asked = np.zeros((2, 2, len(STREAMS)), np.int64)  # run and flush; reads and writes

    def send(self, source: int, bursts: Bursts, gaps: np.ndarray, which: int = RUN) -> Generator[Any, Any, None]:
        """Send bursts block by block; ends (a SimPy process yields from it) when the controller has taken the last.

        gaps: int64[n] clocks after the source's last access, -1 for a further burst of the same access. which: RUN or
        FLUSH, counted apart.
        """
        numbers = self.note(source, bursts, which)
        yield from self.hand_over(source, numbers, bursts.address, bursts.is_write, gaps)

    def note(self, source: int, bursts: Bursts, which: int = RUN) -> np.ndarray:
        """Take note of bursts that a source is about to hand over, and return their numbers, int64[n].

        Raises InputError for addresses outside the part.
        """
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
        size = self._block_requests
        for start in range(0, len(numbers), size):
            part = slice(start, start + size)
            yield self.channels.hand_over(source, numbers[part], address[part], is_write[part], gaps[part])

    def watch(self, source: int, arrived: Callable[[np.ndarray, np.ndarray], None]) -> None:
        """Call arrived(request numbers of the source int64[n], cycles done int64[n]) with what is done."""
        self._watched[source] = arrived

    def collect(self) -> None:
        """Hand out at once what is done; else it comes when a channel's buffer is full."""
        self.channels.collect_done()

    def close(self, source: int) -> None:
        """Say that a source sends nothing more."""
        self.channels.close(source)

    def park(self, source: int) -> None:
        """Say that a source sends nothing more before all others are closed."""
        self.channels.park(source)

    def requests_of(self, source: int) -> int:
        """Return how many bursts a source has asked for."""
        return self._in_flight.pending[source].total

    def traffic(self, which: int) -> Traffic:
        """Return the requests of the run or of the flush and what they did on the wires of all channels."""
        return wire_traffic(self._asked[which], self._in_flight.counts[which], self._wires, which)

    def result(self) -> DramResult:
        """Return the result of the DRAM once everything was served."""
        assert len(self._in_flight) == 0, "a request was never served"
        none = np.zeros(0, np.int64)
        return self.channels.result(none, none)

    def _on_done(self, request: np.ndarray, accepted: np.ndarray, done: np.ndarray) -> None:
        if len(self.last_done) == 1:
            self.last_done[0] = max(int(self.last_done[0]), int(done.max()))
            for arrived in self._watched.values():
                arrived(request, done)
        else:
            source, number = self._in_flight.split(request)
            np.maximum.at(self.last_done, source, done)
            for s, arrived in self._watched.items():
                mine = source == s
                arrived(number[mine], done[mine])
        if self.log is not None:
            self.log.done(request, accepted, done)

    def _on_served(self, sent: np.ndarray, channel: np.ndarray, unsent: np.ndarray) -> None:
        if self.log is not None:
            self.log.served(sent, channel)
        self._in_flight.served(sent, channel, unsent)
