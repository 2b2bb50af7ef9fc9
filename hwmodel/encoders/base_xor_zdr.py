"""base-xor-zdr: Base+XOR with zero data remapping.

OUR READING of Lee et al. 2018, of which only the abstract was at hand. Compare energies with and without it.
"""

from __future__ import annotations

from typing import Any

import cython_ext.wires.encode as kernels
from hwmodel.coding.coded import Coded
from hwmodel.coding.stage import ENCODERS, ElementStage, same_bytes


@ENCODERS.register("base-xor-zdr", summary="Base+XOR with zero data remapping (our reading of Lee et al. 2018)")
class BaseXorZdr(ElementStage):
    """Zeros send a one-bit constant instead of their predecessor."""

    def _run(self, coded: Coded, offset: int, state: Any, decode: bool) -> tuple[Coded, Any]:
        g, data = self.geometry, coded.data
        whole, out = self.whole(offset, len(data)), data.copy()
        kernels.code_zdr(data[:whole], out, state, g.element_bytes, g.block_bytes, offset % g.block_bytes, decode)
        return same_bytes(coded, out), self.after(state, out if decode else data)

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Remap zeros, XOR the others."""
        return self._run(coded, offset, state, decode=False)

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Undo it."""
        return self._run(coded, offset, state, decode=True)
