"""Number formats: float32 values to the bits that travel over the wires, and back."""

from traces.formats.convert import (
    FORMATS,
    BitsArray,
    ConversionReport,
    Float32Array,
    Format,
    Scale,
    element_bits,
    from_bits,
    pack,
    packed_bytes,
    symmetric_scale,
    to_bits,
    unpack,
)

__all__ = [
    "FORMATS",
    "BitsArray",
    "ConversionReport",
    "Float32Array",
    "Format",
    "Scale",
    "element_bits",
    "from_bits",
    "pack",
    "packed_bytes",
    "symmetric_scale",
    "to_bits",
    "unpack",
]
