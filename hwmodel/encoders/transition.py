"""transition: a wire flips for every 1 (unterminated buses), so toggles equal the ones of the input."""

from __future__ import annotations

from typing import Any

import numpy as np

import cython_ext.wires.encode as kernels
from hwmodel.bus import Coded
from hwmodel.coding.stage import ENCODERS, LaneStage, Role


@ENCODERS.register("transition", summary="a wire flips for every 1 (unterminated buses): toggles = ones of the input")
class Transition(LaneStage):
    """Transition signalling, on the flag wires too where a bus code added some.

    State: uint8[3, bus_bytes], what the data wires, the first flag wire and the further flag wires of each lane carry.
    """

    role = Role.SIGNALLING

    def start(self) -> Any:
        return np.zeros((3, self.geometry.bus_bytes), np.uint8)

    def _run(self, kernel: Any, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        levels, lane, n = state.copy(), self.lane(offset), len(coded.data)

        def signalled(data: np.ndarray, row: int) -> np.ndarray:
            out = np.empty(n, np.uint8)
            kernel(data, out, levels[row], lane)
            return out

        flags, extra = coded.flags, coded.extra
        if flags is not None:
            bits = np.unpackbits(flags, bitorder="little", count=n)
            flags = np.packbits(signalled(bits, 1), bitorder="little")
        if extra is not None:
            extra = signalled(extra, 2)
        return Coded(signalled(coded.data, 0), flags, extra), levels

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        return self._run(kernels.encode_transition, coded, offset, state)

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        return self._run(kernels.decode_transition, coded, offset, state)
