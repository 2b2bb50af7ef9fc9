"""Checks of what callers hand over: numbers and arrays, refused with a sentence that names them."""

from __future__ import annotations

from traces.base.errors import InputError


def whole_number(value: object, what: str, least: int = 1) -> int:
    """Return a whole number of at least `least`. Raises InputError naming `what`; True and 1.0 are none."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{what} must be a whole number of at least {least}, not {value!r}")
    return value
