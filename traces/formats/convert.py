"""float32 values to the bits that travel over the wires, and back, with a report of what was lost.

Integer formats have one step for the whole tensor, ``max|value| / code_max``, or one step per channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.formats.format import FORMATS, BitsArray, Float32Array, Format

Scale = float | Float32Array


@dataclass(frozen=True)
class ConversionReport:
    """What a conversion did to `n_values` numbers.

    zeroed: stored non-zeros that became zero. saturated: values beyond the range, set to the largest finite value.
    max_error: the largest |converted - given|, in the values' own unit.
    """

    format: str
    n_values: int
    zeroed: int
    saturated: int
    max_error: float


def element_bits(name: str) -> int:
    """Return the bits of one element in memory."""
    return FORMATS[name].item.bits


def symmetric_scale(values: npt.ArrayLike, name: str, *, channel: npt.ArrayLike | None = None) -> Scale:
    """Return the step of an integer format: ``max|value| / code_max``, 1 where every value is zero.

    channel: int64[n] channel of each value; then the result is float32[max(channel) + 1].
    """
    form = FORMATS[name].item
    if not form.needs_scale:
        raise InputError(f"{name} is a floating-point format: it has no scale")
    magnitude = np.abs(_finite(values))
    if channel is None:
        return _step(magnitude.max(initial=0.0), form)
    channels = _channels(channel, len(magnitude))
    largest = np.zeros(int(channels.max(initial=-1)) + 1)
    np.maximum.at(largest, channels, magnitude)
    return np.array([_step(value, form) for value in largest], np.float32)


def to_bits(
    values: npt.ArrayLike, name: str, *, scale: Scale | None = None, channel: npt.ArrayLike | None = None
) -> tuple[BitsArray, Scale | None, ConversionReport]:
    """Convert float32[n] to ``(bits, scale, report)``; bits is uint8, uint16 or uint32[n], one element each.

    scale: step of an integer format; None takes the tensor's own (see symmetric_scale). Floating point has none.
    channel: int64[n] channel of each value, for one step per channel; `scale` is then float32[channels].
    Raises InputError on a NaN or infinite value, an unknown format, or a scale that does not fit.
    """
    form = FORMATS[name].item
    given = _finite(values)
    if form.needs_scale and scale is None:
        scale = symmetric_scale(given, name, channel=channel)
    if not form.needs_scale and (scale is not None or channel is not None):
        raise InputError(f"{name} is a floating-point format: it takes no scale and no channel")
    step = None if scale is None else _per_value(scale, channel, len(given))
    bits, saturated = form.encode(given, step)
    converted = form.decode(bits, step)
    error = np.abs(converted.astype(np.float64) - given)
    report = ConversionReport(
        format=name,
        n_values=len(given),
        zeroed=int(np.count_nonzero((given != 0) & (converted == 0))),
        saturated=int(np.count_nonzero(saturated)),
        max_error=float(error.max(initial=0.0)),
    )
    return bits, scale, report


def from_bits(
    bits: npt.ArrayLike, name: str, *, scale: Scale | None = None, channel: npt.ArrayLike | None = None
) -> Float32Array:
    """Convert one element's bits per entry back to float32[n]. Integer formats need the `scale` of the conversion."""
    form = FORMATS[name].item
    raw = np.ascontiguousarray(bits).astype(form.bits_dtype, copy=False).reshape(-1)
    if not form.needs_scale:
        return form.decode(raw, None)
    if scale is None:
        raise InputError(f"{name} needs the scale of the conversion to become numbers again")
    return form.decode(raw, _per_value(scale, channel, len(raw)))


def pack(bits: npt.ArrayLike, name: str) -> npt.NDArray[np.uint8]:
    """Return the bytes in memory: little-endian elements; those below a byte share it, the first in the lowest bits."""
    form = FORMATS[name].item
    raw = np.ascontiguousarray(bits).astype(form.bits_dtype.newbyteorder("<"), copy=False).reshape(-1)
    if form.bits >= 8:
        return raw.view(np.uint8)
    in_byte = 8 // form.bits
    padded = np.zeros(-(-len(raw) // in_byte) * in_byte, np.uint8)
    padded[: len(raw)] = raw
    packed = padded[0::in_byte] & np.uint8((1 << form.bits) - 1)
    for k in range(1, in_byte):
        packed |= padded[k::in_byte] << np.uint8(k * form.bits)
    return packed


def _finite(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    given = np.asarray(values, dtype=np.float64).reshape(-1)
    bad = np.flatnonzero(~np.isfinite(given))
    if bad.size:
        raise InputError(f"value {bad[0]} is {given[bad[0]]}: only finite numbers can be converted")
    return given


def _step(largest: float, form: Format) -> float:
    step = float(np.float32(largest / form.code_max))
    return step if step > 0 else 1.0


def _channels(channel: npt.ArrayLike, n: int) -> npt.NDArray[np.int64]:
    channels = np.asarray(channel)
    if channels.shape != (n,) or (n and (not np.issubdtype(channels.dtype, np.integer) or channels.min() < 0)):
        raise InputError(f"channel must be {n} non-negative integers, one per value")
    return channels.astype(np.int64)


def _per_value(scale: Scale, channel: npt.ArrayLike | None, n: int) -> npt.NDArray[np.float64]:
    steps = np.asarray(scale, dtype=np.float64)
    if not (np.isfinite(steps).all() and (steps > 0).all()):
        raise InputError("a scale must be a positive finite number")
    if channel is None:
        if steps.ndim:
            raise InputError("one scale per channel needs the channel of each value")
        return steps
    channels = _channels(channel, n)
    if steps.ndim != 1 or len(steps) <= channels.max(initial=-1):
        raise InputError(f"{int(channels.max(initial=-1)) + 1} channels need as many scales, not shape {steps.shape}")
    return steps[channels]
