"""dbi-ac: data bus inversion against toggles.

A byte is inverted where more than four of its lane's eight data wires would flip against the byte last sent on that
lane; the flag wire has no part in the decision, but its toggles count. A share whose flag
travels inside the burst (LPDDR6) is inverted where more than half of its wires would flip when its bits begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import cython_ext.wires.encode as kernels
from hwmodel.bus import Coded
from hwmodel.coding.stage import ENCODERS, InvertingStage, LaneStage, Role, Stage, packed_flags


@ENCODERS.register("dbi-ac", summary="invert bytes that would flip more than four wires of their lane")
class DbiAc(InvertingStage, LaneStage):
    """Data bus inversion against toggles."""

    @classmethod
    def objection(cls, others: Sequence[type[Stage]]) -> str | None:
        """Its toggles are those of plain levels."""
        if any(stage.role is Role.SIGNALLING for stage in others):
            return "saves toggles of plain levels, signalling turns ones into toggles (try a code against ones)"
        return None

    def start(self) -> Any:
        """All lanes (with shares: all wires) at 0."""
        shares = self.geometry.shares
        return super().start() if shares is None else np.zeros(shares.wires, np.uint8)

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        n, last, shares = len(coded.data), state.copy(), self.geometry.shares
        if shares is not None:
            turned = shares.far(coded.data, last)
            return Coded(*shares.inverted(coded.data, turned)), last
        out, flags = np.empty(n, np.uint8), packed_flags(n)
        kernels.encode_dbi_ac(coded.data, out, flags, last, self.lane(offset))
        return Coded(out, flags), last
