"""Sizes as people write them (8192, '8 KiB', '8KiB', '64 kB'), and amounts as people read them (engineering notation).

There is one function for every table, page and sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor, log10

from traces.base.errors import InputError

_SIZE = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([kmgt]?i?b?)\s*", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_PREFIXES = {-15: "f", -12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"}
SCALES = {"pj": (1e-12, "J"), "ns": (1e-9, "s"), "us": (1e-6, "s"), "bytes": (1.0, "B")}
"""Unit at the end of a column's name -> (factor to the SI unit, its symbol)."""


def is_size(text: str) -> bool:
    match = _SIZE.fullmatch(text)
    return match is not None and match[2] != ""


def size_in_bytes(text: str) -> int:
    """Return a size in bytes. Ki, Mi, Gi and Ti are powers of 1024; k, M, G and T of 1000. Raises InputError."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a size: write a number of bytes, or 8 KiB, 1.5 MiB, 64 kB")
    letters = match[2].lower().removesuffix("b")
    base = 1024 if letters.endswith("i") else 1000
    size = Fraction(match[1]) * base ** _POWER[letters.removesuffix("i")]
    if size.denominator != 1:
        raise InputError(f"{text!r} is not a whole number of bytes")
    return int(size)


def engineering(value: float | None, unit: str, digits: int = 3) -> str:
    if value is None:
        return "-"
    power = _power([value], digits)
    return f"{significant(value / 10.0**power, digits)} {_PREFIXES[power]}{unit}"


def energy(pj: float | None, digits: int = 3) -> str:
    return engineering(None if pj is None else pj * 1e-12, "J", digits)


def duration(ns: float | None, digits: int = 3) -> str:
    return engineering(None if ns is None else ns * 1e-9, "s", digits)


def prefixed(values: Sequence[float | None], unit: str) -> tuple[float, str]:
    power = _power([value for value in values if value is not None], 3)
    return 10.0**power, f"{_PREFIXES[power]}{unit}"


def in_one_unit(values: Sequence[float | None], factor: float, unit: str, digits: int = 3) -> tuple[str, list[str]]:
    scaled = [None if value is None else value * factor for value in values]
    by, name = prefixed(scaled, unit)
    return name, ["-" if value is None else significant(value / by, digits) for value in scaled]


def significant(value: float, digits: int = 3) -> str:
    if value == 0:
        return "0"
    return f"{value:.{max(0, digits - 1 - _exponent(value, digits))}f}"


def _exponent(value: float, digits: int) -> int:
    """Return that of the leading digit, once the value is rounded: 9.996 -> 10.0."""
    return floor(log10(abs(float(f"{value:.{digits - 1}e}"))))


def _power(values: Sequence[float], digits: int) -> int:
    """Return the multiple of 3 at which the largest value, rounded, has one to three whole digits."""
    largest = max((abs(value) for value in values), default=0.0)
    if largest == 0:
        return 0
    return min(max(3 * (_exponent(largest, digits) // 3), min(_PREFIXES)), max(_PREFIXES))


def describe_shares(shares: Mapping[str, float]) -> str:
    """Return shares by name in per cent, largest first, without those below 5 %."""
    most = sorted(shares.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{name} {100 * share:.0f}" for name, share in most if share >= 0.05)
