"""universal-xor: the upper half of a block XORed with the lower, again on the lower half, down to one element.

OUR READING of Lee et al. 2018, of which only the abstract was at hand. It finds similarity at any distance that is a
power of two. An incomplete last block is sent unchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cython_ext.wires.encode as kernels
from hwmodel.bus import Coded
from hwmodel.coding.stage import ENCODERS, Geometry, Role, Stage, same_bytes
from traces.base.errors import InputError


@ENCODERS.register(
    "universal-xor", summary="halves of a block XORed, down to one element (our reading of Lee et al. 2018)"
)
class UniversalXor(Stage):
    """Universal Base+XOR."""

    role = Role.SIMILARITY
    uses_elements = True

    def __init__(self, geometry: Geometry) -> None:
        super().__init__(geometry)
        elements = geometry.block_bytes // geometry.element_bytes
        if elements & (elements - 1):
            raise InputError(f"universal-xor halves blocks: {elements} elements per block is not a power of two")

    def cut(self, end: int) -> int:
        """A stream may be cut between blocks."""
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
