"""Number formats: float32 values to the bits that travel over the wires, and back. See `traces.formats.format`."""

from traces.formats.convert import element_bits, from_bits, pack, symmetric_scale, to_bits
from traces.formats.format import FORMATS

__all__ = ["FORMATS", "element_bits", "from_bits", "pack", "symmetric_scale", "to_bits"]
