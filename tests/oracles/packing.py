"""Packed elements taken apart bit by bit: little-endian, those below a byte from its lowest bits up."""

import numpy as np

from traces.formats import FORMATS


def unpack(data, name: str, n: int) -> np.ndarray:
    form = FORMATS[name].item
    bits = np.unpackbits(data, bitorder="little")[: n * form.bits].reshape(n, form.bits).astype(np.uint64)
    return (bits << np.arange(form.bits, dtype=np.uint64)).sum(axis=1, dtype=np.uint64).astype(form.bits_dtype)
