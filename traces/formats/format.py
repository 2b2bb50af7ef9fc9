"""What a number format declares, and the registry: most members are one line with `FloatFormat`
(`traces.formats.floats`) or `IntegerFormat` (`traces.formats.integers`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from traces.base.registry import Registry

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
ELEMENT_BITS = (1, 2, 4, 8, 16, 32)
BitsArray = npt.NDArray[np.unsignedinteger[Any]]


class Format(ABC):
    """One number format: `bits` of an element in memory (1, 2, 4, 8, 16 or 32) and the two conversions.

    needs_scale: whether values are multiples of a step that the conversion chooses (integers). code_max: the largest
    code of such a format, which the tensor's largest magnitude becomes; 0 for formats without a scale.
    """

    needs_scale: ClassVar[bool] = False
    code_max: int = 0

    def __init__(self, bits: int) -> None:
        if bits not in ELEMENT_BITS:
            raise ValueError(f"an element takes 1, 2, 4, 8, 16 or 32 bits in memory, not {bits}")
        self.bits = bits

    @property
    def significand_bits(self) -> int:
        """Bits that a multiplier multiplies, hidden one and sign of integers counted; here the most there can be."""
        return self.bits

    @property
    def bits_dtype(self) -> np.dtype[Any]:
        """The unsigned integer that carries one element's bits (int4: uint8 holding 0 to 15)."""
        return np.dtype(f"u{max(1, self.bits // 8)}")

    @abstractmethod
    def encode(self, values: Float64Array, step: Float64Array | None) -> tuple[BitsArray, npt.NDArray[np.bool_]]:
        """Return (bits[n] of `bits_dtype`, bool[n] of the values set to the largest finite one) for float64[n].

        step: of all values (float64[]), None for formats without a scale.
        """

    @abstractmethod
    def decode(self, bits: BitsArray, step: Float64Array | None) -> Float32Array:
        """Return float32[n] of the elements' bits."""


FORMATS: Registry[Format] = Registry("number format", "edgewatt.formats", folder="traces.formats", instances_of=Format)
