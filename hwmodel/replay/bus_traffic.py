"""What crosses the wires between the last cache level and memory: bursts in, counts by way, stream and wire out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cython_ext.dram.in_flight import Held
from cython_ext.trace.accesses import count_values
from cython_ext.wires.counting import segments_by_kind
from hwmodel.bus import Bytes, Counts, WireCounts
from hwmodel.coding.streams import ChannelWires
from hwmodel.machine import Machine
from traces.trace.chunks import STREAMS

if TYPE_CHECKING:
    from hwmodel.replay.hierarchy import Bursts

RUN, FLUSH = 0, 1  # sets of wire counts
HANDED_ON = 1 << 14  # bursts that go to the wires together: many for a call, few enough for the processor's caches


@dataclass(frozen=True, eq=False)
class Traffic:
    """Requests between the last cache level and memory, int64[len(STREAMS)] each, and what was on the wires.

    way_bursts int64[2, len(STREAMS)], reads and writes: with a DRAM part the commands that happened (merged requests
    and those answered by a waiting write have none), else every request. A fill belongs to the stream of the access
    that missed, a write-back to that of the line's last store. way_wires, way_extra_wires: int64[2, len(STREAMS), ...];
    None where the trace has no data or the encoder no such wires.
    """

    reads: Counts
    writes: Counts
    way_wires: WireCounts | None
    way_extra_wires: WireCounts | None
    way_bursts: Counts

    def __add__(self, other: Traffic) -> Traffic:
        def add(a: WireCounts | None, b: WireCounts | None) -> WireCounts | None:
            return None if a is None or b is None else a + b

        return Traffic(
            self.reads + other.reads,
            self.writes + other.writes,
            add(self.way_wires, other.way_wires),
            add(self.way_extra_wires, other.way_extra_wires),
            self.way_bursts + other.way_bursts,
        )

    @property
    def bursts(self) -> int:
        """Bursts on the wires: with a DRAM part, its RD and WR commands."""
        return int(self.way_bursts.sum())

    @cached_property
    def wires(self) -> WireCounts | None:
        """int64[len(STREAMS), ...]: both ways together."""
        return _both_ways(self.way_wires)

    @cached_property
    def extra_wires(self) -> WireCounts | None:
        """int64[len(STREAMS), ...]: both ways together."""
        return _both_ways(self.way_extra_wires)

    @property
    def ones(self) -> int | None:
        """Unit intervals at 1 on all wires, DBI and extra wires included."""
        return self._total("ones")

    @property
    def toggles(self) -> int | None:
        """Edges of both directions on all wires."""
        return self._total("toggles")

    def _total(self, name: str) -> int | None:
        if self.wires is None:
            return None
        return sum(int(getattr(wires, name).sum()) for wires in (self.wires, self.extra_wires) if wires is not None)


def _both_ways(wires: WireCounts | None) -> WireCounts | None:
    return None if wires is None else WireCounts(wires.counts.sum(0))


class Wires:
    """Encoder and bus of all channels: bursts in; ones, toggles and rising edges per way, stream and wire; state kept
    between calls. Counts of the run and of its final flush are apart.

    description: of the trace, which says how large the elements of its streams are.
    """

    def __init__(self, machine: Machine, channels: int, description: Mapping[str, Any]) -> None:
        chain = machine.encoder_chain(description.get("element_bytes"))
        self._each = ChannelWires(chain, machine.bus.bus_bytes, 4 * len(STREAMS), channels)

    def send(self, data: Bytes, stream: Bytes, is_write: Bytes, which_set: Bytes, channel: Bytes | None = None) -> None:
        """Send bursts over the wires of their channels.

        uint8[n, block_bytes] bytes, uint8[n] stream, direction, set and channel of each (None: of the first).
        """
        data = data.reshape(-1, self._each.chain.block_bytes)
        at_once = self._each.chain.by_block or len(self._each) == 1
        step = HANDED_ON if at_once else max(len(stream), 1)
        for start in range(0, len(stream), step):
            part = slice(start, start + step)
            columns = data[part], stream[part], is_write[part], which_set[part]
            if channel is None or len(self._each) == 1:
                self._send(*columns, [len(columns[0])])
            else:
                order = np.argsort(channel[part], kind="stable")
                data_of, stream_of, write_of, set_of = (column[order] for column in columns)
                ends = np.cumsum(count_values(channel[part], len(self._each)))
                self._send(data_of, stream_of, write_of, set_of, ends.tolist())

    def _send(self, data: Bytes, stream: Bytes, is_write: Bytes, which_set: Bytes, ends: list[int]) -> None:
        def counted(start: int, end: int) -> Any:
            about = stream[start:end], is_write[start:end], which_set[start:end]
            return segments_by_kind(*about, len(STREAMS), self._each.chain.sent_bytes)

        self._each.send(data, stream, ends, counted)

    def counts(self, which_set: int) -> tuple[WireCounts, WireCounts | None]:
        """Return what one set did so far by way and stream, and its flag wires beyond the first."""
        extra = None if self._each.extra is None else _by_way(self._each.extra.counts.data, which_set)
        return _by_way(self._each.bus.counts, which_set), extra


def wire_traffic(requests: Counts, bursts: Counts, wires: Wires | None, which_set: int) -> Traffic:
    """Return the traffic of one set: requests asked for and bursts on the wires, int64[2, len(STREAMS)] each."""
    reads, writes = requests.copy()
    way_wires, extra = (None, None) if wires is None else wires.counts(which_set)
    return Traffic(reads, writes, way_wires, extra, bursts.copy())


def _by_way(wires: WireCounts, which_set: int) -> WireCounts:
    return WireCounts(wires.counts.reshape(-1, 2, len(STREAMS), *wires.counts.shape[1:])[which_set])


NO_BYTES = np.zeros(0, np.uint8)


class InFlight:
    """Requests on their way, numbered over all sources, and the bursts that were on the wires.

    wires: of all channels, None for address-only traces. counts: int64[2, 2, len(STREAMS)], bursts on the wires by set
    (run, final flush), direction (reads, writes) and stream.
    """

    def __init__(self, block_bytes: int, n_sources: int, wires: Wires | None) -> None:
        self._wires = wires
        self._size = 0 if wires is None else block_bytes
        self.pending = [Held(self._size) for _ in range(n_sources)]
        self.counts = np.zeros((2, 2, len(STREAMS)), np.int64)

    def add(self, source: int, bursts: Bursts, which: int) -> np.ndarray:
        """Keep the requests of a source and return their numbers, int64[n]. which: 0 run, 1 final flush."""
        data = bursts.data if self._size and bursts.data is not None else NO_BYTES
        first = self.pending[source].add(bursts.stream, bursts.is_write, data, which)
        end, n = first + len(bursts), len(self.pending)
        return np.arange(first * n + source, end * n + source, n)

    def split(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the source of each number, and its number within that source."""
        return number % len(self.pending), number // len(self.pending)

    def served(self, sent: np.ndarray, channel: np.ndarray, unsent: np.ndarray) -> None:
        """Send the bursts that left, int64[n] numbers in the order of their commands with uint8[n] channels, over the
        wires of their channels, and forget int64[m] requests that have none."""
        if len(self.pending) == 1:
            self.pending[0].drop(unsent)
        elif len(unsent):
            source, number = self.split(unsent)
            for s, pending in enumerate(self.pending):
                if len(mine := number[source == s]):
                    pending.drop(mine)
        if not len(sent):
            return
        stream, write, which, data = self._take(sent)
        kind = (which * np.uint8(2) + write) * np.uint8(len(STREAMS)) + stream
        self.counts += count_values(kind, self.counts.size).reshape(self.counts.shape)
        if self._wires is None:
            return
        self._wires.send(data, stream, write, which, channel)

    def _take(self, number: np.ndarray) -> tuple[np.ndarray, ...]:
        """Forget requests and return, in their order, stream, is_write, which and data of each."""
        if len(self.pending) == 1:
            columns: tuple[np.ndarray, ...] = self.pending[0].take(number)
            return columns
        source, number = self.split(number)
        n = len(number)
        columns = (*(np.empty(n, np.uint8) for _ in range(3)), np.empty((n, self._size), np.uint8))
        for s, pending in enumerate(self.pending):
            mine = np.flatnonzero(source == s)
            for column, taken in zip(columns, pending.take(number[mine]), strict=True):
                column[mine] = taken
        return columns

    def __len__(self) -> int:
        return sum(map(len, self.pending))
