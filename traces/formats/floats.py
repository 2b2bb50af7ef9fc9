"""Floating-point formats: rounded to nearest, ties to even, straight from float32. Values beyond the range
are set to the largest finite one and counted.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from traces.formats.format import FORMATS, BitsArray, Float32Array, Float64Array, Format


class FloatFormat(Format):
    def __init__(self, bits: int, numpy_name: str) -> None:
        super().__init__(bits)
        self.numpy_name = numpy_name

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        import ml_dtypes  # registers bfloat16 and the float8 types

        return np.dtype(getattr(ml_dtypes, self.numpy_name, self.numpy_name))

    @property
    def significand_bits(self) -> int:
        return int(self._limits.nmant) + 1

    @cached_property
    def _limits(self) -> Any:
        import ml_dtypes

        return cast(Any, ml_dtypes.finfo)(self.dtype)

    @cached_property
    def largest(self) -> float:
        return float(self._limits.max)

    @cached_property
    def beyond(self) -> float:
        if not np.isfinite(np.array([np.inf], np.float32).astype(self.dtype))[0]:
            return float(np.inf)
        above = float(self._limits.eps) * 2.0 ** np.floor(np.log2(self.largest)) / 2
        return float(self.largest + above)  # a type without infinity and NaN saturates silently

    def encode(self, values: Float64Array, step: Float64Array | None) -> tuple[BitsArray, npt.NDArray[np.bool_]]:
        with np.errstate(over="ignore"):  # overflow is what is looked for
            single = values.astype(np.float32)
            converted = single.astype(self.dtype)
        lost = ~np.isfinite(converted)
        converted[lost] = np.copysign(self.largest, values[lost]).astype(self.dtype)
        saturated = lost if np.isinf(self.beyond) else lost | (np.abs(single) >= self.beyond)
        return converted.view(self.bits_dtype), saturated

    def decode(self, bits: BitsArray, step: Float64Array | None) -> Float32Array:
        return bits.view(self.dtype).astype(np.float32)


for _name, _bits, _numpy_name, _summary in (
    ("fp32", 32, "float32", "IEEE 754 binary32"),
    ("fp16", 16, "float16", "IEEE 754 binary16"),
    ("bf16", 16, "bfloat16", "bfloat16: 8 exponent, 7 mantissa bits"),
    ("fp8_e4m3", 8, "float8_e4m3fn", "OCP 8-bit float: 4 exponent, 3 mantissa bits, no infinity"),
    ("fp8_e5m2", 8, "float8_e5m2", "OCP 8-bit float: 5 exponent, 2 mantissa bits"),
):
    FORMATS.register(_name, summary=_summary)(FloatFormat(_bits, _numpy_name))
