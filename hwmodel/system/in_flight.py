"""Requests of one engine between the caches and the wires, by number."""

from __future__ import annotations

import numpy as np

from hwmodel.caches.hierarchy import Bursts


class Pending:
    """Stream, direction, run or flush, and bytes of the requests on their way, which leave in any order."""

    def __init__(self, block_bytes: int, has_data: bool) -> None:
        self.block_bytes, self.has_data = block_bytes, has_data
        self.total = 0
        self._new: list[tuple[np.ndarray, ...]] = []
        empty = np.zeros(0, np.uint8)
        self._held: tuple[np.ndarray, ...] = (
            np.zeros(0, np.int64), empty, empty, empty, np.zeros((0, block_bytes if has_data else 0), np.uint8)
        )  # fmt: skip

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
        self._forget(self._find(number))

    def _find(self, number: np.ndarray) -> np.ndarray:
        if self._new:
            self._held = tuple(np.concatenate(c) for c in zip(self._held, *self._new, strict=True))
            self._new.clear()
        at = np.searchsorted(self._held[0], number)
        assert np.array_equal(self._held[0][at], number), "a burst was served twice or never asked for"
        return at

    def _forget(self, at: np.ndarray) -> None:
        keep = np.ones(len(self._held[0]), bool)
        keep[at] = False
        self._held = tuple(column[keep] for column in self._held)
