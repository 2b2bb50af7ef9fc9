"""Checks of what callers hand over: numbers and arrays, refused with a sentence that names them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, brief, shown


def is_whole(text: str) -> bool:
    """Whether a text is a whole number from 0 of at most 18 digits, as int() reads it and an int64 holds it."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def plain_digits(text: str) -> str:
    """Return a text for int() or float(). Raises ValueError for what they alone take: 1_0, digits of other scripts."""
    if "_" in text or not text.isascii():
        raise ValueError(f"{shown(text)} is not a plain number")
    return text


def as_array(value: Any, what: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:  # rows of different lengths, for instance
        raise InputError(f"{what} is not an array ({brief(error)})") from None


def whole_number(value: object, what: str, least: int = 1, most: int | None = None, *, why: str = "") -> int:
    """Return a whole number from `least` to `most`; True and 1.0 are none. why: what it is, for the InputError."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if whole and value >= least and (most is None or value <= most):  # type: ignore[operator]
        return int(value)  # type: ignore[call-overload, no-any-return]
    bounds = f"of at least {least}" if most is None else f"from {least} to {_short(most)}"
    raise InputError(f"{what} must be a whole number {bounds}, not {shown(value)}{why and ': ' + why}")


def check_seed(seed: object) -> None:
    whole_number(seed, "seed", 0, 2**63 - 1)


def whole_numbers(
    values: npt.ArrayLike,
    what: str,
    dtype: npt.DTypeLike = np.int64,
    *,
    item: str = "entry",
    first: int = 0,
    most: int | None = None,
) -> npt.NDArray[Any]:
    """Return whole numbers (or truth values) from 0 to `most` as a contiguous array [n] of `dtype`.

    most: None takes what the type can hold. item: what an element is called. first: the number of the first one. Raises
    InputError naming `what` and the first element at fault.
    """
    given = as_array(values, what)
    if given.ndim != 1:
        raise InputError(f"{what} must be one-dimensional, not of shape {given.shape}")
    if given.size and given.dtype.kind not in "bui":
        raise InputError(f"{what} must hold whole numbers, not {given.dtype}")
    top = int(np.iinfo(dtype).max) if most is None else most
    may_leave = given.size and (given.dtype != dtype or most is not None or given.dtype.kind == "i")
    if may_leave and (int(given.min()) < 0 or int(given.max()) > top):
        at = int(np.argmax((given < 0) | (given > top)))
        sign = ", it is negative" if given[at] < 0 else ""
        raise InputError(f"{item} {first + at}: {what} {given[at]} is out of range (0 to {_short(top)}){sign}")
    return np.ascontiguousarray(given, dtype)


def _short(number: int) -> str:
    for power, tail in ((number, ""), (number + 1, " - 1")):
        if power >= 2**20 and not power & (power - 1):
            return f"2^{power.bit_length() - 1}{tail}"
    return str(number)
