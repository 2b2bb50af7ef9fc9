"""dbi-ac: data bus inversion against toggles.

A byte is inverted where more than four of its lane's eight data wires would flip against the byte last sent on that
lane; the flag wire has no part in the decision, but its toggles count. Where a flag covers a share of several bytes and
travels inside the burst (LPDDR6), a share is inverted where more than half of its wires would flip when its bits begin:
inside a share inversion changes no edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bitarray import bitarray
from bitarray.util import count_xor, zeros

import cython_ext.wires.encode as kernels
from hwmodel.coding.bits import Bits, each_byte
from hwmodel.coding.coded import Coded
from hwmodel.coding.in_burst import BitWires, ShareFlags
from hwmodel.coding.stage import ENCODERS, LaneStage, Role, Stage, packed_flags


@ENCODERS.register("dbi-ac", summary="invert bytes that would flip more than four wires of their lane")
class DbiAc(LaneStage):
    """Data bus inversion against toggles."""

    role = Role.BUS_CODE
    flag_wires = 1
    inverts = True
    inverts_shares = True

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
        """Invert bytes that are far from what their lane carries."""
        n, last, shares = len(coded.data), state.copy(), self.geometry.shares
        if shares is not None:
            turned = shares.far(coded.data, last)
            return Coded(*shares.inverted(coded.data, turned), order=coded.order), last
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
        if self.geometry.shares is not None:
            return self._shares_bits(sent, self.geometry.shares, state)
        out, flags = bitarray(endian="little"), bitarray(endian="little")
        lanes = list(state or [zeros(8, endian="little")] * self.geometry.bus_bytes)
        for i, byte in enumerate(each_byte(sent.data)):
            lane = self.lane(offset + i)
            flags.append(count_xor(byte, lanes[lane]) > 4)
            lanes[lane] = ~byte if flags[-1] else byte
            out += lanes[lane]
        return Bits(out, flags, order=sent.order), lanes

    def _shares_bits(self, sent: Bits, shares: ShareFlags, state: Any) -> tuple[Bits, Any]:
        """More than half of the wires on which a share begins would flip: invert. State: what each wire carries."""
        out, flags, level = bitarray(endian="little"), bitarray(endian="little"), state
        for burst in each_byte(sent.data, shares.cells.burst_bytes):
            wires = BitWires(shares, burst, level)
            turned = [False] * shares.cells.flags
            for share in range(len(turned)):
                begins = [(beat, wire) for beat, wire in wires.places(share) if wires.share(beat - 1, wire) != share]
                flips = [wires.carried(beat - 1, wire, turned) != wires.plain(beat, wire) for beat, wire in begins]
                turned[share] = 2 * sum(flips) > len(flips)
            level = wires.after(turned)
            for share, bits in enumerate(each_byte(burst, shares.cells.share_bytes)):
                out += ~bits if turned[share] else bits
                flags += shares.cells.share_bytes * bitarray([turned[share]])
        return Bits(out, flags, order=sent.order), level
