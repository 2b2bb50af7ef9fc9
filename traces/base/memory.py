"""How much memory a file may ask for: checked against what it claims, before anything is taken."""

from __future__ import annotations

import contextlib
import os
import re
from functools import cache
from pathlib import Path

from traces.base.errors import InputError

VARIABLE = "EDGEWATT_MAX_BYTES"
JSON_TIMES = 30  # text: of memory for a byte of JSON, at most, while it is parsed
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def max_bytes() -> int:
    given = os.environ.get(VARIABLE, "").strip()
    if not given:
        return _half_of_memory()
    match = re.fullmatch(r"([0-9]{1,18})\s*([KMGT]?)(?:i?B)?", given, re.IGNORECASE)
    if match is None or not int(match[1]):
        raise InputError(
            f"{VARIABLE}={given[:40]!r} is not a size in bytes: write a number, with K, M, G or T behind it"
        )
    return int(match[1]) * _UNITS[match[2].upper()]


def claim(n_bytes: int, where: str, what: str = "it") -> None:
    """Raise InputError unless `n_bytes` are within the bound. where: the file; what: what takes them."""
    bound = max_bytes()
    if n_bytes > bound:
        raise InputError(
            f"{where}: {what} would take {n_bytes:,} bytes of memory, more than the bound of {bound:,}: refused "
            f"({VARIABLE} raises the bound)"
        )


def read_within(path: Path, times: int = 1) -> bytes:
    """Return the bytes of a file. times: how many times its size is taken for what it holds.

    Raises InputError where that is beyond the bound, OSError where the file cannot be read.
    """
    size = path.stat().st_size
    claim(times * size, str(path))
    with path.open("rb") as stream:
        data = stream.read(size + 1)
        while len(data) > size and (part := stream.read(max(1 << 20, len(data)))):  # pipes and devices need not end
            data += part
            claim(times * len(data), str(path))
    return data


@cache
def _half_of_memory() -> int:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        total = 8 << 30
    with contextlib.suppress(OSError, ValueError):  # a container may be given less than the machine has
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return total // 2
