"""dbi-dc: data bus inversion against ones, as LPDDR4, DDR4 and GDDR5 do it.

A byte with five or more ones is sent inverted and its flag wire is 1; exactly four is left alone. Stateless.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from bitarray import bitarray

import cython_ext.wires.encode as kernels
from hwmodel.coding.bits import Bits, each_byte
from hwmodel.coding.stage import ENCODERS, Coded, Role, Stage, aligned_empty, packed_flags

NO_BYTES = np.zeros(0, np.uint8)


@ENCODERS.register("dbi-dc", summary="invert bytes with five or more ones (LPDDR4 data bus inversion)")
class DbiDc(Stage):
    """Data bus inversion against ones."""

    role = Role.BUS_CODE
    flag_wires = 1
    inverts = True

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Invert heavy bytes."""
        n = len(coded.data)
        out, flags = aligned_empty(n), packed_flags(n)
        kernels.encode_xor_dbi(coded.data, out, flags, NO_BYTES, 0, 64, 0, True)
        return Coded(out, flags, order=coded.order), state

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Invert flagged bytes."""
        out = np.empty_like(coded.data)
        kernels.invert_flagged(coded.data, coded.flags, out)
        return Coded(out, order=coded.order), state

    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """Five or more ones: invert."""
        out, flags = bitarray(endian="little"), bitarray(endian="little")
        for byte in each_byte(sent.data):
            heavy = byte.count(1) >= 5
            out += ~byte if heavy else byte
            flags.append(heavy)
        return Bits(out, flags, order=sent.order), state
