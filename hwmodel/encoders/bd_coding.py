"""bd-coding: bitwise-difference coding after Seol et al. 2016.

A table of the values last sent; each word goes as its XOR with the entry nearest in bits, and the entry's index beside
it. OUR READING (the paper's body was not at hand): words of 8 bytes, 63 entries replaced in turn, entry 0 is always
zero (the word as it is), the 6-bit index on the flag wires of the word's 8 bytes (bit i with byte i). Ties go to the
lowest index. Index wires are counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cython_ext.wires.encode as kernels
from hwmodel.coding.coded import Bytes, Coded
from hwmodel.coding.stage import ENCODERS, Role, Stage

BD_WORD_BYTES, BD_ENTRIES = 8, 64


@ENCODERS.register(
    "bd-coding", summary="XOR with the nearest of the last 63 words, index beside it (after Seol et al.)"
)
class BdCoding(Stage):
    """State: uint64[64] table and the next entry to replace, as uint64[65]."""

    role = Role.BUS_CODE
    flag_wires = 1

    def start(self) -> Any:
        """A table of zeros."""
        return np.append(np.zeros(BD_ENTRIES, np.uint64), np.uint64(1))

    def cut(self, end: int) -> int:
        """A stream may be cut between words."""
        return end - end % BD_WORD_BYTES

    def _run(self, coded: Coded, state: Any, decode: bool) -> tuple[Bytes, Bytes, Any]:
        table, n = state.copy(), len(coded.data)
        whole = n // BD_WORD_BYTES
        out = coded.data.copy()  # an incomplete last word is sent with index 0
        index = np.zeros((n + 7) // 8, np.uint8)
        if decode and coded.flags is not None:
            index[: len(coded.flags)] = coded.flags
        kernels.code_bit_difference(
            np.ascontiguousarray(coded.data[: whole * BD_WORD_BYTES]), out, index, table, decode
        )
        return out, index, table

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """XOR with the nearest word of the table."""
        out, index, table = self._run(coded, state, decode=False)
        return Coded(out, index, order=coded.order), table

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Undo it with the same table."""
        out, _, table = self._run(coded, state, decode=True)
        return Coded(out, order=coded.order), table
