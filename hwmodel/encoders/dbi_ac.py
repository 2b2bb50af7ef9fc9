"""dbi-ac: data bus inversion against toggles.

A byte is inverted where more than four of its lane's eight data wires would flip against the byte last sent on that
lane; the flag wire has no part in the decision, but its toggles count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bitarray import bitarray
from bitarray.util import count_xor, zeros

import cython_ext.wires.encode as kernels
from hwmodel.coding.bits import Bits, each_byte
from hwmodel.coding.stage import ENCODERS, Coded, LaneStage, Role, Stage, packed_flags


@ENCODERS.register("dbi-ac", summary="invert bytes that would flip more than four wires of their lane")
class DbiAc(LaneStage):
    """Data bus inversion against toggles."""

    role = Role.BUS_CODE
    flag_wires = 1
    inverts = True

    @classmethod
    def objection(cls, others: Sequence[type[Stage]]) -> str | None:
        """Its toggles are those of plain levels."""
        if any(stage.role is Role.SIGNALLING for stage in others):
            return "saves toggles of plain levels, signalling turns ones into toggles (try a code against ones)"
        return None

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Invert bytes that are far from what their lane carries."""
        n, last = len(coded.data), state.copy()
        out, flags = np.empty(n, np.uint8), packed_flags(n)
        kernels.encode_dbi_ac(coded.data, out, flags, last, self.lane(offset))
        return Coded(out, flags, order=coded.order), last

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Invert flagged bytes."""
        out = np.empty_like(coded.data)
        kernels.invert_flagged(coded.data, coded.flags, out)
        return Coded(out, order=coded.order), state

    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """More than four wires of the lane would flip: invert. State: the byte each lane carries."""
        out, flags = bitarray(endian="little"), bitarray(endian="little")
        lanes = list(state or [zeros(8, endian="little")] * self.geometry.bus_bytes)
        for i, byte in enumerate(each_byte(sent.data)):
            lane = self.lane(offset + i)
            flags.append(count_xor(byte, lanes[lane]) > 4)
            lanes[lane] = ~byte if flags[-1] else byte
            out += lanes[lane]
        return Bits(out, flags, order=sent.order), lanes
