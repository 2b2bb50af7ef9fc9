"""dbi-opt: data bus inversion of least cost over a burst, per byte lane, by dynamic programming.

The cost is that of the wires: a unit interval at 1, one at 0 and a rising edge (`WireCosts`; a machine takes those of
its part, the mean of reads and writes; without a part a 1 and a rising edge cost alike). An edge in either direction
counts half a rising one: over a stream that is the same, and a burst does not leave its wires low for the next one to
raise. Flag wires count; where zeros cost more than ones a flag is 0 for an inverted byte, as DBI_n pins are. A burst is
a block; a lane starts from what it carried, so a burst is optimal given those before it. Ties are sent plain. It is
the bound that an inversion can reach, no published controller. With flags inside the burst (LPDDR6) all of a burst are
decided together (hwmodel.coding.in_burst).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cython_ext.wires.encode import encode_optimal_dbi
from hwmodel.bus import Coded
from hwmodel.coding.in_burst import LeastCost
from hwmodel.coding.stage import ENCODERS, Geometry, InvertingStage, LaneStage, Role, Stage, packed_flags
from traces.base.errors import InputError

MOST_BEATS = 4096


@ENCODERS.register("dbi-opt", summary="invert the bytes that make a burst cost least (dynamic programming per lane)")
class DbiOptimal(InvertingStage, LaneStage):
    """State: uint8[2, bus_bytes], the byte and the flag each lane carries."""

    def __init__(self, geometry: Geometry) -> None:
        super().__init__(geometry)
        if geometry.block_bytes > MOST_BEATS * geometry.bus_bytes:
            raise InputError(f"dbi-opt: a burst has at most {MOST_BEATS} beats, block_bytes is {geometry.block_bytes}")
        self._least = None if geometry.shares is None else LeastCost(geometry.shares, geometry.costs)
        self.low_active = geometry.costs.zero_pj > geometry.costs.one_pj and self._least is None

    @classmethod
    def objection(cls, others: Sequence[type[Stage]]) -> str | None:
        """Its edges are those of plain levels."""
        if any(stage.role is Role.SIGNALLING for stage in others):
            return "counts edges of plain levels, signalling turns ones into edges (try a code against ones)"
        return None

    def start(self) -> Any:
        if self._least is not None:
            return np.zeros(self._least.shares.wires, np.uint8)
        return np.zeros((2, self.geometry.bus_bytes), np.uint8)

    def cut(self, end: int) -> int:
        """A stream may be cut between bursts."""
        return end - end % self.geometry.block_bytes

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        g, n, level = self.geometry, len(coded.data), state.copy()
        if self._least is not None:
            turned = self._least.flags(coded.data, level)
            return Coded(*self._least.shares.inverted(coded.data, turned)), level
        out, flags, costs = np.empty(n, np.uint8), packed_flags(n), g.costs
        lane = self.lane(offset)
        encode_optimal_dbi(
            coded.data,
            out,
            flags,
            level,
            lane,
            g.block_bytes,
            costs.one_pj,
            costs.zero_pj,
            costs.rise_pj / 2,
            self.low_active,
        )
        return Coded(out, flags), level
