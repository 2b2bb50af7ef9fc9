"""nibble-dbi: each half of a byte is sent inverted where more than two of its four bits are ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from hwmodel.bus import Coded
from hwmodel.coding.stage import ENCODERS, Role, Stage

LOW, HIGH = np.uint8(0x0F), np.uint8(0xF0)
MANY = np.array([n.bit_count() > 2 for n in range(16)])


@ENCODERS.register("nibble-dbi", summary="invert each half of a byte that has more than two ones, a flag wire for each")
class NibbleDbi(Stage):
    """The lower half's flag on the first flag wire, the upper half's on the second. Stateless."""

    role = Role.BUS_CODE
    flag_wires = 2
    inverts = True

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Invert halves."""
        low, high = MANY[coded.data & LOW], MANY[coded.data >> 4]
        data = coded.data ^ np.where(low, LOW, 0) ^ np.where(high, HIGH, 0)
        flags = np.packbits(low, bitorder="little")
        return Coded(data.astype(np.uint8), flags, high.astype(np.uint8)), state

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Invert the flagged halves back."""
        assert coded.flags is not None and coded.extra is not None
        low = np.unpackbits(coded.flags, bitorder="little", count=len(coded.data))
        data = coded.data ^ np.where(low, LOW, 0) ^ np.where(coded.extra, HIGH, 0)
        return Coded(data.astype(np.uint8)), state
