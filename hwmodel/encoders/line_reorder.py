"""line-reorder: cache-line reordering (Childers and Nakra 2000).

The words of a line are sent in the order of fewest toggles (nearest neighbour from what the bus carries). Words are one
beat. The order is kept at the controller, not sent; count it as table bits: `Encoded.order`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cython_ext.wires.encode as kernels
from hwmodel.coding.coded import Coded
from hwmodel.coding.stage import ENCODERS, Geometry, Role, Stage
from traces.base.errors import InputError

MAX_LINE_BEATS = 4096


@ENCODERS.register("line-reorder", summary="words of a line in the order of fewest toggles (Childers and Nakra 2000)")
class LineReorder(Stage):
    """A line is a block; its words are beats of the bus. State: uint8[bus_bytes] last beat sent."""

    role = Role.ORDER

    def __init__(self, geometry: Geometry) -> None:
        super().__init__(geometry)
        beats, rest = divmod(geometry.block_bytes, geometry.bus_bytes)
        if rest or beats > MAX_LINE_BEATS:
            raise InputError(
                f"line-reorder: a line of {geometry.block_bytes} bytes must be 1 to {MAX_LINE_BEATS} whole beats "
                f"of {geometry.bus_bytes} bytes"
            )

    def start(self) -> Any:
        """An idle bus."""
        return np.zeros(self.geometry.bus_bytes, np.uint8)

    def cut(self, end: int) -> int:
        """A stream may be cut between lines."""
        return end - end % self.geometry.block_bytes

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Send the nearest word next."""
        g, last = self.geometry, state.copy()
        lines = len(coded.data) // g.block_bytes
        out, order = coded.data.copy(), np.zeros(lines * (g.block_bytes // g.bus_bytes), np.int64)
        kernels.reorder_lines(coded.data, out, order, last, g.block_bytes)
        if len(out) >= g.bus_bytes:
            last = out[len(out) - g.bus_bytes :].copy()
        return Coded(out, coded.flags, order=order), last

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Put the words back by the order kept."""
        g = self.geometry
        if coded.order is None:
            raise InputError("line-reorder needs the order of each line's words, which the controller keeps")
        words = g.block_bytes // g.bus_bytes
        lines = len(coded.order) // words
        out, whole = coded.data.copy(), lines * g.block_bytes
        kept = coded.order[: lines * words].reshape(lines, words)
        if len(coded.order) % words or whole > len(out) or (np.sort(kept, axis=1) != np.arange(words)).any():
            raise InputError(f"order must be a permutation of the {words} words of each of at most {lines} lines")
        sent = coded.data[:whole].reshape(lines, words, g.bus_bytes)
        plain = np.empty_like(sent)
        np.put_along_axis(plain, coded.order.reshape(lines, words, 1), sent, axis=1)
        out[:whole] = plain.reshape(-1)
        return Coded(out, coded.flags), state
