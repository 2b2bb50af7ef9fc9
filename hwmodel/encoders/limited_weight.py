"""3-lwc: the perfect 3-limited-weight code (Stan and Zhang 2004; used by Song and Ipek 2015).

8 bits as a 17-bit word with at most three ones. Codewords in ascending weight then value go to bytes in ascending
weight then value, so that light bytes stay light (our assignment; the set of codewords is the code's).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from hwmodel.bus import Coded
from hwmodel.coding.stage import ENCODERS, Role, Stage
from traces.base.errors import InputError


@cache
def limited_weight_code() -> tuple[np.ndarray, np.ndarray]:
    """Return (uint32[256] codeword of each byte, int16[2^17] byte of each codeword, -1 for others)."""
    light = sorted((w for w in range(1 << 17) if w.bit_count() <= 3), key=lambda w: (w.bit_count(), w))
    plain = sorted(range(256), key=lambda x: (x.bit_count(), x))
    code, back = np.zeros(256, np.uint32), np.full(1 << 17, -1, np.int16)
    for byte, word in zip(plain, light, strict=False):
        code[byte], back[word] = word, byte
    return code, back


@ENCODERS.register("3-lwc", summary="a byte as 17 bits with at most three ones (limited-weight code)")
class LimitedWeight(Stage):
    """Bits 0-7 on the data wires, bit 8 on the first flag wire, bits 9-16 on eight more per lane. Stateless."""

    role = Role.BUS_CODE
    flag_wires = 9

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        words = limited_weight_code()[0][coded.data]
        flags = np.packbits((words >> 8 & 1).astype(np.uint8), bitorder="little")
        return Coded(words.astype(np.uint8), flags, (words >> 9).astype(np.uint8)), state

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Look the bytes up. Raises InputError for a word that is none of the code."""
        assert coded.flags is not None and coded.extra is not None
        flags = np.unpackbits(coded.flags, bitorder="little", count=len(coded.data)).astype(np.uint32)
        words = coded.data.astype(np.uint32) | flags << 8 | coded.extra.astype(np.uint32) << 9
        plain = limited_weight_code()[1][words]
        if (plain < 0).any():
            raise InputError(f"byte {int(np.argmax(plain < 0))}: not a word of the 3-limited-weight code")
        return Coded(plain.astype(np.uint8)), state
