"""base-xor: the first element of each block as is, each later one XORed with its predecessor.

Lee et al. 2018. Blocks count from the start of the stream; bytes behind the last whole element of one pass as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

import cython_ext.wires.encode as kernels
from hwmodel.bus import Bytes, Coded
from hwmodel.coding.stage import ENCODERS, ElementStage, Int64Array, Stage, packed_flags, same_bytes

NO_BYTES = np.zeros(0, np.uint8)


class BaseXorDbi(ElementStage):
    """Base+XOR and DBI-DC in one pass; `dbi` False: Base+XOR alone, with the same kernel."""

    takes_records = True
    by_block = True
    dbi: ClassVar[bool] = True

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        g, data, n = self.geometry, coded.data, len(coded.data)
        whole = self.whole(offset, n)
        out, flags = kernels.aligned_empty(n), packed_flags(n)
        position = offset % g.block_bytes
        kernels.encode_xor_dbi(data[:whole], out, flags, state, g.element_bytes, g.block_bytes, position, self.dbi)
        if whole < n:  # an incomplete last element is sent unchanged
            tail, tail_flags = np.empty(n - whole, np.uint8), packed_flags(n - whole)
            kernels.encode_xor_dbi(data[whole:], tail, tail_flags, NO_BYTES, 0, 64, 0, self.dbi)
            out[whole:] = tail
            marks = np.unpackbits(tail_flags, bitorder="little", count=n - whole).astype(bool)
            for i in whole + np.flatnonzero(marks) if self.dbi else ():
                flags[i >> 3] |= np.uint8(1 << (i & 7))
        return Coded(out, flags if self.dbi else None), self.after(state, data)

    @classmethod
    def encode_blocks(cls, stages: Sequence[Stage], coded: Coded, which: Int64Array, kind: Bytes) -> Coded | None:
        """Blocks begin with a base, so those of all element sizes are one pass."""
        n, block_bytes = len(coded.data), stages[0].geometry.block_bytes
        if block_bytes % 8:
            return None
        out, flags = kernels.aligned_empty(n), packed_flags(n)
        sizes = np.array([stage.geometry.element_bytes for stage in stages], np.int64)
        kernels.encode_xor_dbi_blocks(coded.data, out, flags, sizes, which, kind, block_bytes, cls.dbi)
        return Coded(out, flags if cls.dbi else None)

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        g, data = self.geometry, coded.data
        if self.dbi:
            data = np.empty_like(coded.data)
            kernels.invert_flagged(coded.data, coded.flags, data)
        whole, out = self.whole(offset, len(data)), data.copy()
        kernels.decode_base_xor(data[:whole], out, state, g.element_bytes, g.block_bytes, offset % g.block_bytes)
        return Coded(out), self.after(state, out)


@ENCODERS.register(
    "base-xor", summary="first element of a block as is, the others XOR their predecessor (Lee et al. 2018)"
)
class BaseXor(BaseXorDbi):
    """Base+XOR."""

    dbi = False
    fused: ClassVar = {"dbi-dc": BaseXorDbi}


@ENCODERS.register("base-xor-zdr", summary="Base+XOR with zero data remapping (our reading of Lee et al. 2018)")
class BaseXorZdr(ElementStage):
    """Zeros send a one-bit constant instead of their predecessor.

    OUR READING of Lee et al. 2018, of which only the abstract was at hand. Compare energies with and without it.
    """

    def _run(self, coded: Coded, offset: int, state: Any, decode: bool) -> tuple[Coded, Any]:
        g, data = self.geometry, coded.data
        whole, out = self.whole(offset, len(data)), data.copy()
        kernels.code_zdr(data[:whole], out, state, g.element_bytes, g.block_bytes, offset % g.block_bytes, decode)
        return same_bytes(coded, out), self.after(state, out if decode else data)

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        return self._run(coded, offset, state, decode=False)

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        return self._run(coded, offset, state, decode=True)
