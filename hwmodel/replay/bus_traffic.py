"""What crosses the wires between the last cache level and memory: bursts in, counts by way, stream and wire out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cython_ext.dram.in_flight import Held
from cython_ext.trace.accesses import count_values
from cython_ext.wires.counting import segments_by_kind
from hwmodel.bus import Bus, Bytes, WireCounts
from hwmodel.coding import Coded, StreamChain
from hwmodel.machine import Machine
from traces.trace.chunks import STREAMS

if TYPE_CHECKING:
    from hwmodel.replay.hierarchy import Bursts


Int64Array = npt.NDArray[np.int64]

HANDED_ON = 1 << 14  # bursts that go to the wires together: many for a call, few enough for the processor's caches


@dataclass(frozen=True, eq=False)
class Traffic:
    """Requests between the last cache level and memory, int64[len(STREAMS)] each, and what was on the wires.

    way_bursts int64[2, len(STREAMS)], reads and writes: with a DRAM part the commands that happened (merged requests
    and those answered by a waiting write have none), else every request. A fill belongs to the stream of the access
    that missed, a write-back to that of the line's last store. way_wires, way_extra_wires: int64[2, len(STREAMS), ...];
    None where the trace has no data or the encoder no such wires.
    """

    reads: Int64Array
    writes: Int64Array
    way_wires: WireCounts | None
    way_extra_wires: WireCounts | None
    way_bursts: Int64Array

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


class _Channel(NamedTuple):
    """An encoder and the wires behind it. extra: flag wires beyond the first, None for an encoder without."""

    chain: StreamChain
    bus: Bus
    extra: Bus | None


class Wires:
    """Encoder and bus: bursts in; ones, toggles and rising edges per way, stream and wire; state kept between calls.

    Counts are kept in `n_sets` sets apart, e.g. that of a run and that of its final flush. description: of the trace,
    which says how large the elements of its streams are.
    """

    def __init__(self, machine: Machine, n_sets: int = 1, description: Mapping[str, Any] | None = None) -> None:
        chain = machine.encoder_chain((description or {}).get("element_bytes"))
        lanes, kinds = machine.bus.bus_bytes, 2 * len(STREAMS) * n_sets
        extra = Bus(lanes, n_streams=kinds) if chain.flag_wires > 1 else None
        self._at_rest = _Channel(chain, Bus(lanes, n_streams=kinds), extra)

    def another_channel(self) -> Wires:
        """Return the wires of another channel: at rest, and counted together with these."""
        other = Wires.__new__(Wires)
        other._at_rest = self._at_rest
        return other

    @property
    def chain(self) -> StreamChain:
        """The encoder chain of all channels."""
        return self._at_rest.chain

    @cached_property
    def _channel(self) -> _Channel:
        """What this channel has of its own, made when it is used: a part may have 32 of them."""
        rest = self._at_rest
        extra = None if rest.extra is None else rest.extra.another_channel()
        return _Channel(rest.chain if rest.chain.by_block else rest.chain.fresh(), rest.bus.another_channel(), extra)

    def send(self, data: Bytes, stream: Bytes, is_write: Bytes, which_set: Bytes | int = 0) -> None:
        """Send bursts: uint8[n * block_bytes] bytes, uint8[n] stream, direction and set of each."""
        size = self._at_rest.chain.block_bytes
        for start in range(0, len(stream), HANDED_ON):
            end = min(start + HANDED_ON, len(stream))
            sets = which_set[start:end] if isinstance(which_set, np.ndarray) else which_set
            coded = self._channel.chain.encode(data[start * size : end * size], stream[start:end])
            self.drive(coded, stream[start:end], is_write[start:end], sets)

    def drive(self, coded: Coded, stream: Bytes, is_write: Bytes, which_set: Bytes | int) -> None:
        """Put encoded bursts on the wires; stream, direction and set of each as of `send`."""
        chain, bus, extra = self._channel
        ends, streams = segments_by_kind(stream, is_write, which_set, len(STREAMS), chain.sent_bytes)
        bus.send(coded.data, coded.flags, ends=ends, streams=streams)
        if extra is not None and coded.extra is not None:
            extra.send(coded.extra, ends=ends, streams=streams)

    def traffic(
        self, reads: Int64Array, writes: Int64Array, which_set: int = 0, bursts: Int64Array | None = None
    ) -> Traffic:
        """Return one set so far, with the requests per stream given (int64[len(STREAMS)] each).

        bursts: int64[2, len(STREAMS)] of reads and writes; None: each request is one. Channels are
        counted together.
        """
        _, bus, extra = self._at_rest
        extra_wires = None if extra is None else _by_way(extra.counts.data, which_set)
        sent = np.stack((reads, writes)) if bursts is None else bursts
        return Traffic(reads, writes, _by_way(bus.counts, which_set), extra_wires, sent)


class ChannelWires:
    """The wires of all channels of a memory, whose counts of a run and of its flush are apart.

    first: the wires of channel 0.
    """

    def __init__(self, machine: Machine, channels: int, description: Mapping[str, Any]) -> None:
        self.first = Wires(machine, 2, description)
        self._each: list[Wires | None] = [self.first, *repeat(None, channels - 1)]

    def send(self, data: Bytes, stream: Bytes, is_write: Bytes, which_set: Bytes, channel: Bytes) -> None:
        """Send bursts over the wires of their channels.

        uint8[n, block_bytes] bytes, uint8[n] stream, direction, set and channel of each.
        """
        if len(self._each) == 1:
            self.first.send(data.reshape(-1), stream, is_write, which_set)
            return
        step = HANDED_ON if self.first.chain.by_block else max(len(stream), 1)
        for start in range(0, len(stream), step):
            part = slice(start, start + step)
            self._send(data[part], stream[part], is_write[part], which_set[part], channel[part])

    def _send(self, data: Bytes, stream: Bytes, is_write: Bytes, which_set: Bytes, channel: Bytes) -> None:
        by_channel = np.argsort(channel, kind="stable")
        data, stream, is_write, which_set = (column[by_channel] for column in (data, stream, is_write, which_set))
        size = self.first.chain.sent_bytes
        coded = self.first.chain.encode(data.reshape(-1), stream) if self.first.chain.by_block else None
        start = 0
        for c, n in enumerate(count_values(channel, len(self._each)).tolist()):
            if not n:
                continue
            wires = self._each[c]
            if wires is None:  # made when they are used: a part may have 32 of them
                wires = self._each[c] = self.first.another_channel()
            end = start + n
            about = stream[start:end], is_write[start:end], which_set[start:end]
            if coded is None:
                wires.send(data[start:end].reshape(-1), *about)
            else:
                wires.drive(coded.part(start * size, end * size), *about)
            start = end


def wire_traffic(requests: Int64Array, bursts: Int64Array, wires: ChannelWires | None, which_set: int = 0) -> Traffic:
    """Return the traffic of one set: requests asked for and bursts on the wires, int64[2, len(STREAMS)] each."""
    reads, writes = requests
    if wires is None:
        return Traffic(reads.copy(), writes.copy(), None, None, bursts.copy())
    return wires.first.traffic(reads.copy(), writes.copy(), which_set, bursts.copy())


def _by_way(wires: WireCounts, which_set: int) -> WireCounts:
    return WireCounts(wires.counts.reshape(-1, 2, len(STREAMS), *wires.counts.shape[1:])[which_set])


NO_BYTES = np.zeros(0, np.uint8)


class InFlight:
    """Requests on their way, numbered over all sources, and the bursts that were on the wires.

    wires: of all channels, None for address-only traces. counts: int64[2, 2, len(STREAMS)], bursts on the wires by set
    (run, final flush), direction (reads, writes) and stream.
    """

    def __init__(self, block_bytes: int, n_sources: int, wires: ChannelWires | None) -> None:
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
