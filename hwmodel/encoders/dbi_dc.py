"""dbi-dc: data bus inversion against the level that costs, as LPDDR4, DDR4 and GDDR5 do it.

Where ones cost (and without wire costs), a byte with five or more ones is sent inverted and its flag wire is 1. Where
zeros cost more than ones (wires terminated to VDDQ), a byte with five or more zeros is, and its flag wire is 0, as
DBI_n pins are. Exactly four is left alone. A flag inside the
burst (LPDDR6) covers a share of several bytes. Stateless.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cython_ext.wires.encode as kernels
from hwmodel.bus import Coded
from hwmodel.coding.stage import ENCODERS, Geometry, InvertingStage, packed_flags

NO_BYTES = np.zeros(0, np.uint8)


@ENCODERS.register("dbi-dc", summary="invert bytes with five or more costly levels (LPDDR4, DDR4 data bus inversion)")
class DbiDc(InvertingStage):
    """Data bus inversion against the costly level."""

    by_block = True

    def __init__(self, geometry: Geometry) -> None:
        super().__init__(geometry)
        self.zeros_cost = geometry.costs.zero_pj > geometry.costs.one_pj
        self.low_active = self.zeros_cost and geometry.shares is None

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        n, shares = len(coded.data), self.geometry.shares
        if shares is not None:
            flags = shares.cells.decide(shares.split(coded.data), self.zeros_cost)
            return Coded(*shares.inverted(coded.data, flags)), state
        out, flags = kernels.aligned_empty(n), packed_flags(n)
        data = ~coded.data if self.low_active else coded.data  # inversion against zeros is that of the complement
        kernels.encode_xor_dbi(data, out, flags, NO_BYTES, 0, 64, 0, True)
        if self.low_active:
            np.invert(out, out=out)
            flags = ~flags
            if n % 8:
                flags[-1] &= np.uint8((1 << n % 8) - 1)
        return Coded(out, flags), state
