"""Sizes as people write them: 8192, '8 KiB', '8KiB', '1.5 MiB', '64 kB'."""

from __future__ import annotations

import re
from fractions import Fraction

from traces.base.errors import InputError

_SIZE = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([kmgt]?i?b?)\s*", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def is_size(text: str) -> bool:
    """Return whether a text is a size with a unit."""
    found = _SIZE.fullmatch(text)
    return found is not None and found[2] != ""


def size_in_bytes(text: str) -> int:
    """Return a size in bytes. Ki, Mi, Gi and Ti are powers of 1024; k, M, G and T of 1000. Raises InputError."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise InputError(f"{text!r} is no size: write a number of bytes, or 8 KiB, 1.5 MiB, 64 kB")
    letters = found[2].lower().removesuffix("b")
    base = 1024 if letters.endswith("i") else 1000
    size = Fraction(found[1]) * base ** _POWER[letters.removesuffix("i")]
    if size.denominator != 1:
        raise InputError(f"{text!r} is no whole number of bytes")
    return int(size)
