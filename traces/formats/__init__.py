"""Number formats: float32 values to the bits that travel over the wires, and back. See `traces.formats.format`."""

from traces.formats.convert import (
    ConversionReport,
    element_bits,
    from_bits,
    pack,
    symmetric_scale,
    to_bits,
)
from traces.formats.format import FORMATS, BitsArray, Float32Array, Format

__all__ = [
    "FORMATS",
    "BitsArray",
    "ConversionReport",
    "Float32Array",
    "Format",
    "element_bits",
    "from_bits",
    "pack",
    "symmetric_scale",
    "to_bits",
]
