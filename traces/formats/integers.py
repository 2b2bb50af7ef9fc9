"""Integer formats: symmetric two's complement times a step; the lowest code stays unused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traces.formats.format import ELEMENT_BITS, FORMATS, BitsArray, Float32Array, Float64Array, Format


class IntegerFormat(Format):
    """Codes from -(2^(bits-1) - 1) to 2^(bits-1) - 1, the largest magnitude of the tensor at the end.

    An element takes as many bits in memory as fit: one of 5 bits a byte, sign and all.
    """

    needs_scale = True

    def __init__(self, bits: int) -> None:
        super().__init__(next((size for size in ELEMENT_BITS if size >= bits), bits))
        if bits == 1:
            raise ValueError("one bit holds no symmetric integer")
        self.code_max = (1 << (bits - 1)) - 1

    @property
    def significand_bits(self) -> int:
        return self.code_max.bit_length() + 1

    def encode(self, values: Float64Array, step: Float64Array | None) -> tuple[BitsArray, npt.NDArray[np.bool_]]:
        assert step is not None
        codes = np.rint(values / step)
        saturated = np.abs(codes) > self.code_max
        np.clip(codes, -self.code_max, self.code_max, out=codes)
        carrier = self.bits_dtype
        bits = codes.astype(f"i{carrier.itemsize}").view(carrier) & carrier.type((1 << self.bits) - 1)
        return bits, saturated

    def decode(self, bits: BitsArray, step: Float64Array | None) -> Float32Array:
        assert step is not None
        carrier = self.bits_dtype
        unused = 8 * carrier.itemsize - self.bits
        codes = (bits << unused).view(f"i{carrier.itemsize}") >> unused  # the arithmetic shift extends the sign
        return (codes * step).astype(np.float32)


for _bits, _summary in (
    (8, "symmetric two's complement, step max|value| / 127"),
    (4, "symmetric two's complement, step max|value| / 7, two to a byte"),
):
    FORMATS.register(f"int{_bits}", summary=_summary)(IntegerFormat(_bits))
