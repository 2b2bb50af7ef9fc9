"""scrambler: XOR with a pseudo-random sequence, to compare with systems that whiten instead of inverting.

The sequence has period 2^15 - 1: x^15 + x^14 + 1, all-ones seed.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from hwmodel.bus import Bytes, Coded
from hwmodel.coding.stage import ENCODERS, Role, Stage, same_bytes


@cache
def _scramble_bytes() -> Bytes:
    """One whole period of the sequence in bytes (2^15 - 1 of them, as 8 and the period have no common factor)."""
    register, bits = 0x7FFF, np.zeros(8 * 32767, np.uint8)
    for i in range(32767):
        bit = (register >> 14 ^ register >> 13) & 1
        register = (register << 1 | bit) & 0x7FFF
        bits[i] = bit
    for k in range(1, 8):
        bits[k * 32767 : (k + 1) * 32767] = bits[:32767]
    return np.packbits(bits, bitorder="little")


@ENCODERS.register("scrambler", summary="XOR with a pseudo-random sequence")
class Scrambler(Stage):
    """Additive scrambling: stateless but for the place in the stream."""

    role = Role.SCRAMBLE

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        sequence = _scramble_bytes()
        at = (offset + np.arange(len(coded.data))) % len(sequence)
        return same_bytes(coded, coded.data ^ sequence[at]), state

    decode = encode
