"""Requests between the caches and the wires: remembered until the memory says that their burst is on the wires.

Only commands that happened drive wires: a request that another's burst answers, that a waiting write answers, or that a
later write replaces, has no burst.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from traces.access.trace import STREAMS

if TYPE_CHECKING:
    from hwmodel.replay.hierarchy import Bursts


class SendsBursts(Protocol):
    """The wires of one channel (hwmodel.replay.Wires)."""

    def send(self, data: np.ndarray, stream: np.ndarray, is_write: np.ndarray, which_set: np.ndarray) -> None:
        """Send bursts: uint8[n * block_bytes] bytes, uint8[n] stream, direction and set of each."""


class InFlight:
    """Requests on their way, numbered over all sources, and the bursts that were on the wires.

    wires: of each channel, None for address-only traces. counts: int64[2, 2, len(STREAMS)], bursts on the wires by set
    (run, final flush), direction (reads, writes) and stream.
    """

    def __init__(self, block_bytes: int, n_sources: int, wires: Sequence[SendsBursts] | None) -> None:
        self._wires = wires
        self._size = 0 if wires is None else block_bytes
        self.pending = [Pending(block_bytes, wires is not None) for _ in range(n_sources)]
        self.counts = np.zeros((2, 2, len(STREAMS)), np.int64)

    def add(self, source: int, bursts: Bursts, which: int) -> np.ndarray:
        """Keep the requests of a source and return their numbers, int64[n]. which: 0 run, 1 final flush."""
        first = self.pending[source].add(bursts, which)
        return (first + np.arange(len(bursts), dtype=np.int64)) * len(self.pending) + source

    def split(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the source of each number, and its number within that source."""
        return number % len(self.pending), number // len(self.pending)

    def served(self, sent: np.ndarray, channel: np.ndarray, unsent: np.ndarray) -> None:
        """Send the bursts that left, int64[n] numbers in the order of their commands with uint8[n] channels, over the
        wires of their channels, and forget int64[m] requests that have none."""
        if len(unsent):
            source, number = self.split(unsent)
            for s, pending in enumerate(self.pending):
                if len(mine := number[source == s]):
                    pending.drop(mine)
        if not len(sent):
            return
        stream, write, which, data = self._take(sent)
        kind = (which * np.int64(2) + write) * len(STREAMS) + stream
        self.counts += np.bincount(kind, minlength=self.counts.size).reshape(self.counts.shape)
        wires = self._wires or ()
        for c, each in enumerate(wires):
            at = np.flatnonzero(channel == c) if len(wires) > 1 else slice(None)
            if len(stream[at]):
                each.send(data[at].reshape(-1), stream[at], write[at], which[at])

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


class Pending:
    """Stream, direction, run or flush, and bytes of the requests on their way, which leave in any order."""

    def __init__(self, block_bytes: int, has_data: bool) -> None:
        self.block_bytes, self.has_data = block_bytes, has_data
        self.total = 0
        self._new: list[tuple[np.ndarray, ...]] = []
        empty = np.zeros(0, np.uint8)
        self._none: tuple[np.ndarray, ...] = (
            np.zeros(0, np.int64), empty, empty, empty, np.zeros((0, block_bytes if has_data else 0), np.uint8)
        )  # fmt: skip
        self._held: tuple[np.ndarray, ...] = self._none

    def __len__(self) -> int:
        return len(self._held[0]) + sum(len(block[0]) for block in self._new)

    def add(self, bursts: Bursts, which: int) -> int:
        """Keep bursts and return the number of the first."""
        first, n = self.total, len(bursts)
        self.total += n
        data = bursts.data if bursts.data is not None else np.zeros(0, np.uint8)
        self._new.append(
            (
                np.arange(first, first + n), bursts.stream, bursts.is_write, np.full(n, which, np.uint8),
                data.reshape(n, self.block_bytes if self.has_data else 0),
            )
        )  # fmt: skip
        return first

    def take(self, number: np.ndarray) -> tuple[np.ndarray, ...]:
        """Forget some numbers and return, in their order, stream, is_write, which, data uint8[n, block_bytes or 0]."""
        at = self._find(number)
        taken = tuple(column[at] for column in self._held[1:])
        self._forget(at)
        return taken

    def drop(self, number: np.ndarray) -> None:
        """Forget requests without a burst of their own."""
        number = np.sort(number)
        self._forget(self._find(number))

    def _find(self, number: np.ndarray) -> np.ndarray:
        if self._new:
            blocks = [self._held, *self._new] if len(self._held[0]) else self._new
            self._held = blocks[0] if len(blocks) == 1 else tuple(map(np.concatenate, zip(*blocks, strict=True)))
            self._new = []
        at = np.searchsorted(self._held[0], number)
        assert np.array_equal(self._held[0][at], number), "a burst was served twice or never asked for"
        return at

    def _forget(self, at: np.ndarray) -> None:
        if len(at) == len(self._held[0]):
            self._held = self._none
            return
        keep = np.ones(len(self._held[0]), bool)
        keep[at] = False
        self._held = tuple(column[keep] for column in self._held)
