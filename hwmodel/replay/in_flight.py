"""Requests between the caches and the wires: remembered until the memory says that their burst is on the wires.

Only commands that happened drive wires: a request that another's burst answers, that a waiting write answers, or that a
later write replaces, has no burst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from cython_ext.dram.in_flight import Held
from cython_ext.trace.accesses import count_values
from traces.access.trace import STREAMS

if TYPE_CHECKING:
    from hwmodel.replay.hierarchy import Bursts


NO_BYTES = np.zeros(0, np.uint8)


class SendsBursts(Protocol):
    """The wires of all channels (hwmodel.replay.ChannelWires)."""

    def send(
        self, data: np.ndarray, stream: np.ndarray, is_write: np.ndarray, which_set: np.ndarray, channel: np.ndarray
    ) -> None:
        """Send bursts: uint8[n, block_bytes] bytes, uint8[n] stream, direction, set and channel of each."""


class InFlight:
    """Requests on their way, numbered over all sources, and the bursts that were on the wires.

    wires: None for address-only traces. counts: int64[2, 2, len(STREAMS)], bursts on the wires by set
    (run, final flush), direction (reads, writes) and stream.
    """

    def __init__(self, block_bytes: int, n_sources: int, wires: SendsBursts | None) -> None:
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
            return self.pending[0].take(number)
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
