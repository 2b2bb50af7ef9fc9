"""The encoders of the papers' comparisons: raw, data bus inversion, the Base+XOR family, transition signalling.

dbi-dc: invert a byte with five or more ones; exactly four is left alone (LPDDR4, DDR4, GDDR5). Stateless.
dbi-ac: invert where more than four of the lane's eight data wires would flip against the byte last sent on that lane;
    the flag wire has no part in the decision but its toggles count.
base-xor: the first element of each block is sent as is, each later one XORed with its predecessor (Lee et al. 2018; the
    CDR paper, section III). Blocks are counted from the start of the stream; bytes after the last whole element pass.
base-xor-zdr, universal-xor: OUR READING of zero data remapping and universal Base+XOR (Lee et al. 2018, of which only
    the abstract was at hand). Compare energies with and without them.
transition: a wire flips for every 1 (unterminated buses), so toggles equal the ones of the input.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cython_ext.wires.encode as kernels
from hwmodel.encoders.base import ENCODERS, Bytes, Coded, Geometry, Role, Stage, aligned_empty, same_bytes
from traces.base.errors import InputError

NO_BYTES = np.zeros(0, np.uint8)


def _flag_bytes(n: int) -> Bytes:
    return np.zeros((n + 7) // 8, np.uint8)


@ENCODERS.register("raw", summary="bytes as they are")
class Raw(Stage):
    """No encoding."""

    role = Role.SIMILARITY

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        return coded, state

    decode = encode


@ENCODERS.register("dbi-dc", summary="invert bytes with five or more ones (LPDDR4 data bus inversion)")
class DbiDc(Stage):
    """Data bus inversion against ones."""

    role = Role.BUS_CODE

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        n = len(coded.data)
        out, flags = aligned_empty(n), _flag_bytes(n)
        kernels.encode_xor_dbi(coded.data, out, flags, NO_BYTES, 0, 64, 0, True)
        return Coded(out, flags, order=coded.order), state

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        out = np.empty_like(coded.data)
        kernels.invert_flagged(coded.data, coded.flags, out)
        return Coded(out, order=coded.order), state


class _LaneStage(Stage):
    """A stage whose state is what each lane carries, uint8[bus_bytes]."""

    def start(self) -> Any:
        return np.zeros(self.geometry.bus_bytes, np.uint8)

    def lane(self, offset: int) -> int:
        return offset % self.geometry.bus_bytes


@ENCODERS.register("dbi-ac", summary="invert bytes that would flip more than four wires of their lane")
class DbiAc(_LaneStage):
    """Data bus inversion against toggles."""

    role = Role.BUS_CODE

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        n, last = len(coded.data), state.copy()
        out, flags = np.empty(n, np.uint8), _flag_bytes(n)
        kernels.encode_dbi_ac(coded.data, out, flags, last, self.lane(offset))
        return Coded(out, flags, order=coded.order), last

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        out = np.empty_like(coded.data)
        kernels.invert_flagged(coded.data, coded.flags, out)
        return Coded(out, order=coded.order), state


@ENCODERS.register("transition", summary="a wire flips for every 1 (unterminated buses): toggles = ones of the input")
class Transition(_LaneStage):
    """Transition signalling, on the flag wires too where a bus code added some."""

    role = Role.SIGNALLING

    def start(self) -> Any:
        return np.zeros((2, self.geometry.bus_bytes), np.uint8)

    def _run(self, kernel: Any, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        levels, lane, n = state.copy(), self.lane(offset), len(coded.data)
        out = np.empty(n, np.uint8)
        kernel(coded.data, out, levels[0], lane)
        flags = coded.flags
        if flags is not None:
            bits = np.unpackbits(flags, bitorder="little", count=n)
            sent = np.empty(n, np.uint8)
            kernel(bits, sent, levels[1], lane)
            flags = np.packbits(sent, bitorder="little")
        return Coded(out, flags, order=coded.order), levels

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        return self._run(kernels.encode_transition, coded, offset, state)

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        return self._run(kernels.decode_transition, coded, offset, state)


class _ElementStage(Stage):
    """A stage that works on whole elements inside blocks; its state is the last element, as plain bytes."""

    role = Role.SIMILARITY

    def start(self) -> Any:
        return np.zeros(self.geometry.element_bytes, np.uint8)

    def cut(self, end: int) -> int:
        return end - end % self.geometry.element_bytes

    def _after(self, state: Bytes, data: Bytes) -> Bytes:
        return np.concatenate((state, data))[-self.geometry.element_bytes :]

    def _whole(self, offset: int, n: int) -> int:
        return self.cut(offset + n) - offset


@ENCODERS.register(
    "base-xor", summary="first element of a block as is, the others XOR their predecessor (Lee et al. 2018)"
)
class BaseXor(_ElementStage):
    """Base+XOR; with `dbi` also DBI-DC in the same pass (what the chain base-xor+dbi-dc becomes)."""

    def __init__(self, geometry: Geometry, dbi: bool = False) -> None:
        super().__init__(geometry)
        self.dbi = dbi

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        g, data, n = self.geometry, coded.data, len(coded.data)
        whole = self._whole(offset, n)
        out, flags = aligned_empty(n), _flag_bytes(n)
        position = offset % g.block_bytes
        kernels.encode_xor_dbi(data[:whole], out, flags, state, g.element_bytes, g.block_bytes, position, self.dbi)
        if whole < n:  # a broken last element passes unchanged
            tail, tail_flags = np.empty(n - whole, np.uint8), _flag_bytes(n - whole)
            kernels.encode_xor_dbi(data[whole:], tail, tail_flags, NO_BYTES, 0, 64, 0, self.dbi)
            out[whole:] = tail
            marks = np.unpackbits(tail_flags, bitorder="little", count=n - whole).astype(bool)
            for i in whole + np.flatnonzero(marks) if self.dbi else ():
                flags[i >> 3] |= np.uint8(1 << (i & 7))
        return Coded(out, flags if self.dbi else None, order=coded.order), self._after(state, data)

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        g, data = self.geometry, coded.data
        if self.dbi:
            data = np.empty_like(coded.data)
            kernels.invert_flagged(coded.data, coded.flags, data)
        whole, out = self._whole(offset, len(data)), data.copy()
        kernels.decode_base_xor(data[:whole], out, state, g.element_bytes, g.block_bytes, offset % g.block_bytes)
        return Coded(out, order=coded.order), self._after(state, out)


@ENCODERS.register("base-xor-zdr", summary="Base+XOR with zero data remapping (our reading of Lee et al. 2018)")
class BaseXorZdr(_ElementStage):
    """Zeros send a one-bit constant instead of their predecessor."""

    def _run(self, coded: Coded, offset: int, state: Any, decode: bool) -> tuple[Coded, Any]:
        g, data = self.geometry, coded.data
        whole, out = self._whole(offset, len(data)), data.copy()
        kernels.code_zdr(data[:whole], out, state, g.element_bytes, g.block_bytes, offset % g.block_bytes, decode)
        return same_bytes(coded, out), self._after(state, out if decode else data)

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        return self._run(coded, offset, state, decode=False)

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        return self._run(coded, offset, state, decode=True)


@ENCODERS.register(
    "universal-xor", summary="halves of a block XORed, down to one element (our reading of Lee et al. 2018)"
)
class UniversalXor(Stage):
    """Universal Base+XOR: needs no element size to find similarity at any distance that is a power of two."""

    role = Role.SIMILARITY

    def __init__(self, geometry: Geometry) -> None:
        super().__init__(geometry)
        elements = geometry.block_bytes // geometry.element_bytes
        if elements & (elements - 1):
            raise InputError(f"universal-xor halves blocks: {elements} elements per block is no power of two")

    def cut(self, end: int) -> int:
        return end - end % self.geometry.block_bytes

    def _run(self, coded: Coded, decode: bool) -> Coded:
        out = np.empty_like(coded.data)
        if len(out):
            g = self.geometry
            kernels.code_universal(coded.data, out, g.element_bytes, g.block_bytes, decode)
        return same_bytes(coded, out)

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        return self._run(coded, decode=False), state

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        return self._run(coded, decode=True), state
