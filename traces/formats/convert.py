"""float32 values to the bits that travel over the wires, and back, with a report of what was lost.

Integer formats have one step for the whole tensor, ``max|value| / code_max``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.formats.format import FORMATS, BitsArray, Float32Array


@dataclass(frozen=True)
class ConversionReport:
    """What a conversion did. zeroed: stored non-zeros that became zero. saturated: values beyond the range, set to the
    largest finite value."""

    zeroed: int
    saturated: int


def element_bits(name: str) -> int:
    return FORMATS[name].item.bits


def symmetric_scale(values: npt.ArrayLike, name: str) -> float:
    """Return the step of an integer format: ``max|value| / code_max``, 1 where every value is zero."""
    form = FORMATS[name].item
    if not form.needs_scale:
        raise InputError(f"{name} is a floating-point format: it has no scale")
    step = float(np.float32(np.abs(_finite(values)).max(initial=0.0) / form.code_max))
    return step if step > 0 else 1.0


def to_bits(
    values: npt.ArrayLike, name: str, *, scale: float | None = None
) -> tuple[BitsArray, float | None, ConversionReport]:
    """Convert float32[n] to ``(bits, scale, report)``; bits is uint8, uint16 or uint32[n], one element each.

    scale: step of an integer format; None takes the tensor's own (see symmetric_scale). Floating point has none.
    """
    form = FORMATS[name].item
    given = _finite(values)
    if form.needs_scale and scale is None:
        scale = symmetric_scale(given, name)
    if not form.needs_scale and scale is not None:
        raise InputError(f"{name} is a floating-point format: it takes no scale")
    step = None if scale is None else _step(scale)
    bits, saturated = form.encode(given, step)
    zeroed = np.count_nonzero((given != 0) & (form.decode(bits, step) == 0))
    return bits, scale, ConversionReport(int(zeroed), int(np.count_nonzero(saturated)))


def from_bits(bits: npt.ArrayLike, name: str, *, scale: float | None = None) -> Float32Array:
    form = FORMATS[name].item
    raw = np.ascontiguousarray(bits).astype(form.bits_dtype, copy=False).reshape(-1)
    if not form.needs_scale:
        return form.decode(raw, None)
    if scale is None:
        raise InputError(f"{name} needs the scale of the conversion to become numbers again")
    return form.decode(raw, _step(scale))


def pack(bits: npt.ArrayLike, name: str) -> npt.NDArray[np.uint8]:
    """Return the bytes in memory: little-endian elements; those below a byte share it, the first in the lowest bits."""
    form = FORMATS[name].item
    raw = np.ascontiguousarray(bits).astype(form.bits_dtype.newbyteorder("<"), copy=False).reshape(-1)
    if form.bits >= 8:
        return raw.view(np.uint8)
    bits_each, packed = form.bits, np.zeros(-(-len(raw) * form.bits // 8) * (8 // form.bits), np.uint8)
    np.bitwise_and(raw, np.uint8((1 << form.bits) - 1), out=packed[: len(raw)])
    while bits_each < 8:  # two neighbours to one
        pairs = packed.view("<u2")
        packed = (pairs | pairs >> np.uint16(8 - bits_each)).astype(np.uint8)
        bits_each *= 2
    return packed


def _finite(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    given = np.asarray(values, dtype=np.float64).reshape(-1)
    bad = np.flatnonzero(~np.isfinite(given))
    if bad.size:
        raise InputError(f"value {bad[0]} is {given[bad[0]]}: only finite numbers can be converted")
    return given


def _step(scale: float) -> npt.NDArray[np.float64]:
    step = np.asarray(scale, np.float64)
    if not (np.isfinite(step) and step > 0):
        raise InputError("a scale must be a positive finite number")
    return step
