"""What crosses the wires between the last cache level and memory: bursts in, counts by way, stream and wire out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.wires.counting import stretches
from hwmodel.bus import Bus, Bytes, WireCounts
from hwmodel.coding.streams import StreamChain
from hwmodel.machine import Machine
from traces.access.trace import STREAMS

Int64Array = npt.NDArray[np.int64]

HANDED_ON = 1 << 14  # bursts that go to the wires together: many for a call, few enough for the processor's caches


@dataclass(frozen=True, eq=False)
class Traffic:
    """Requests between the last cache level and memory, int64[len(STREAMS)] each, and what was on the wires.

    Each request is for one burst. With a DRAM part the wires carry the bursts of the commands that happened, no others:
    way_bursts int64[2, len(STREAMS)], reads and writes (requests that were merged or answered by a waiting write have
    none). Without a part every request is a burst.

    A fill belongs to the stream of the access that missed, a write-back to the stream of the line's last store.
    way_wires, way_extra_wires: int64[2, len(STREAMS), ...] for reads and writes, which have drivers of their own (data
    wires, then one flag wire per lane; eight places per lane for the flag wires beyond the first); None where the trace
    has no data or the encoder no such wires.
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
    return None if wires is None else WireCounts(wires.ones.sum(0), wires.toggles.sum(0), wires.rising.sum(0))


class Wires:
    """Encoder and bus: bursts in; ones, toggles and rising edges per way, stream and wire; state kept between calls.

    Counts are kept in `n_sets` sets apart, e.g. that of a run and that of its final flush. description: of the trace,
    which says how large the elements of its streams are. used: whether a burst was sent.
    """

    used = False

    def __init__(self, machine: Machine, n_sets: int = 1, description: Mapping[str, Any] | None = None) -> None:
        self._encoder = machine.encoder_chain((description or {}).get("element_bytes"))
        self._bus_bytes, self._n_streams = machine.bus.bus_bytes, 2 * len(STREAMS) * n_sets

    @cached_property
    def _chain(self) -> StreamChain:
        """The encoder at its start: many a channel is never used."""
        return self._encoder.fresh()

    @cached_property
    def _bus(self) -> Bus:
        return Bus(self._bus_bytes, n_streams=self._n_streams)

    @cached_property
    def _extra(self) -> Bus:
        return Bus(self._bus_bytes, n_streams=self._n_streams)

    @classmethod
    def of_channels(
        cls, machine: Machine, channels: int, n_sets: int = 1, description: Mapping[str, Any] | None = None
    ) -> list[Wires]:
        """Return the wires of each channel; what the encoder asks of machine and part is found out once."""
        first = cls(machine, n_sets, description)
        return [first, *(first._like() for _ in range(channels - 1))]

    def _like(self) -> Wires:
        """Return the wires of another channel; nothing has been sent on either."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def send(
        self,
        data: Bytes,
        stream: Bytes,
        is_write: Bytes,
        which_set: Bytes | int = 0,
    ) -> None:
        """Send bursts: uint8[n * block_bytes] bytes, uint8[n] stream, direction and set of each."""
        size = self._chain.block_bytes
        self.used = self.used or len(stream) > 0
        for start in range(0, len(stream), HANDED_ON):
            end = min(start + HANDED_ON, len(stream))
            sets = which_set[start:end] if isinstance(which_set, np.ndarray) else which_set
            self._send(data[start * size : end * size], stream[start:end], is_write[start:end], sets)

    def _send(self, data: Bytes, stream: Bytes, is_write: Bytes, which_set: Bytes | int) -> None:
        coded = self._chain.encode(data, stream)
        ends, streams = stretches(stream, is_write, which_set, len(STREAMS), self._chain.sent_bytes)
        self._bus.send(coded.data, coded.flags, ends=ends, streams=streams)
        if coded.extra is not None:
            self._extra.send(coded.extra, ends=ends, streams=streams)

    def traffic(self, reads: Int64Array, writes: Int64Array, which_set: int = 0) -> Traffic:
        """Return one set so far, with the requests per stream given (int64[len(STREAMS)] each), all of them bursts."""
        extra = _by_way(self._extra.counts.data, which_set) if self._encoder.flag_wires > 1 else None
        return Traffic(reads, writes, _by_way(self._bus.counts, which_set), extra, np.stack((reads, writes)))


def wire_traffic(asked: Int64Array, bursts: Int64Array, wires: Sequence[Wires] | None, which_set: int = 0) -> Traffic:
    """Return the traffic of one set: requests asked for and bursts on the wires, int64[2, len(STREAMS)] each."""
    reads, writes = asked
    if wires is None:
        return Traffic(reads.copy(), writes.copy(), None, None, bursts.copy())
    total = wires[0].traffic(reads.copy(), writes.copy(), which_set)
    for channel in (each for each in wires[1:] if each.used):
        total = total + channel.traffic(0 * reads, 0 * writes, which_set)
    return replace(total, way_bursts=bursts.copy())


def _by_way(counts: WireCounts, which_set: int) -> WireCounts:
    def split(array: Int64Array) -> Int64Array:
        return array.reshape(-1, 2, len(STREAMS), array.shape[-1])[which_set]

    return WireCounts(split(counts.ones), split(counts.toggles), split(counts.rising))
