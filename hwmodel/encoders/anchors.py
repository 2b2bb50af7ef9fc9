"""Encoders to compare with: bitwise-difference coding, a limited-weight code, cache-line reordering, a scrambler.

bd-coding: bitwise-difference coding after Seol et al. 2016: a table of the values last sent; each word goes as its XOR
    with the entry nearest in bits, and the entry's index beside it. OUR READING (the paper's body was not at hand):
    words of 8 bytes, 63 entries replaced in turn, entry 0 is always zero (the word as it is), the 6-bit index on the
    flag wires of the word's 8 bytes (bit i with byte i). Ties go to the lowest index. Index wires are counted.
3-lwc: the perfect 3-limited-weight code (Stan and Zhang 2004; used by Song and Ipek 2015): 8 bits as a 17-bit word with
    at most three ones. Codewords in ascending weight then value go to bytes in ascending weight then value, so that
    light bytes stay light (our assignment; the set of codewords is the code's).
line-reorder: cache-line reordering (Childers and Nakra 2000): the words of a line are sent in the order of fewest
    toggles (nearest neighbour from what the bus carries). Words are one beat. The order is kept at the controller, not
    sent; count it as table bits: `Encoded.order`.
scrambler: XOR with a pseudo-random sequence (period 2^15 - 1, x^15 + x^14 + 1, all-ones seed), as an anchor for systems
    that whiten instead of inverting.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import cython_ext.wires.encode as kernels
from hwmodel.encoders.base import ENCODERS, Bytes, Coded, Geometry, Role, Stage, same_bytes
from traces.base.errors import InputError

BD_WORD_BYTES, BD_ENTRIES = 8, 64
MAX_LINE_BEATS = 4096


@ENCODERS.register(
    "bd-coding", summary="XOR with the nearest of the last 63 words, index beside it (after Seol et al.)"
)
class BdCoding(Stage):
    """State: uint64[64] table and the next entry to replace, as uint64[65]."""

    role = Role.BUS_CODE

    def start(self) -> Any:
        return np.append(np.zeros(BD_ENTRIES, np.uint64), np.uint64(1))

    def cut(self, end: int) -> int:
        return end - end % BD_WORD_BYTES

    def _run(self, coded: Coded, state: Any, decode: bool) -> tuple[Bytes, Bytes, Any]:
        table, n = state.copy(), len(coded.data)
        whole = n // BD_WORD_BYTES
        out = coded.data.copy()  # a broken last word passes with index 0
        index = np.zeros((n + 7) // 8, np.uint8)
        if decode and coded.flags is not None:
            index[: len(coded.flags)] = coded.flags
        kernels.code_bit_difference(
            np.ascontiguousarray(coded.data[: whole * BD_WORD_BYTES]), out, index, table, decode
        )
        return out, index, table

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        out, index, table = self._run(coded, state, decode=False)
        return Coded(out, index, order=coded.order), table

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        out, _, table = self._run(coded, state, decode=True)
        return Coded(out, order=coded.order), table


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
    """Bits 0-7 on the data wires, bit 8 on the flag wire, bits 9-16 on eight extra wires per lane. Stateless."""

    role = Role.BUS_CODE

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        words = limited_weight_code()[0][coded.data]
        flags = np.packbits((words >> 8 & 1).astype(np.uint8), bitorder="little")
        return Coded(words.astype(np.uint8), flags, (words >> 9).astype(np.uint8), coded.order), state

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        if coded.flags is None or coded.extra is None:
            raise InputError("3-lwc needs the flags and extra wires that were sent beside the data")
        flags = np.unpackbits(coded.flags, bitorder="little", count=len(coded.data)).astype(np.uint32)
        words = coded.data.astype(np.uint32) | flags << 8 | coded.extra.astype(np.uint32) << 9
        plain = limited_weight_code()[1][words]
        if (plain < 0).any():
            raise InputError(f"byte {int(np.argmax(plain < 0))}: not a word of the 3-limited-weight code")
        return Coded(plain.astype(np.uint8), order=coded.order), state


@ENCODERS.register("line-reorder", summary="words of a line in the order of fewest toggles (Childers and Nakra 2000)")
class LineReorder(Stage):
    """A line is a block; its words are beats of the bus. State: uint8[bus_bytes] last beat sent."""

    role = Role.ORDER

    def __init__(self, geometry: Geometry) -> None:
        super().__init__(geometry)
        beats, rest = divmod(geometry.block_bytes, geometry.bus_bytes)
        if rest or beats > MAX_LINE_BEATS:
            raise InputError(
                f"line-reorder: a line of {geometry.block_bytes} bytes must be 1 to {MAX_LINE_BEATS} whole beats "
                f"of {geometry.bus_bytes} bytes"
            )

    def start(self) -> Any:
        return np.zeros(self.geometry.bus_bytes, np.uint8)

    def cut(self, end: int) -> int:
        return end - end % self.geometry.block_bytes

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        g, last = self.geometry, state.copy()
        lines = len(coded.data) // g.block_bytes
        out, order = coded.data.copy(), np.zeros(lines * (g.block_bytes // g.bus_bytes), np.int64)
        kernels.reorder_lines(coded.data, out, order, last, g.block_bytes)
        if len(out) >= g.bus_bytes:
            last = out[len(out) - g.bus_bytes :].copy()
        return Coded(out, coded.flags, order=order), last

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        g = self.geometry
        if coded.order is None:
            raise InputError("line-reorder needs the order of each line's words, which the controller keeps")
        words = g.block_bytes // g.bus_bytes
        lines = len(coded.order) // words
        out, whole = coded.data.copy(), lines * g.block_bytes
        sent = coded.data[:whole].reshape(lines, words, g.bus_bytes)
        plain = np.empty_like(sent)
        np.put_along_axis(plain, coded.order.reshape(lines, words, 1), sent, axis=1)
        out[:whole] = plain.reshape(-1)
        return Coded(out, coded.flags), state


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
