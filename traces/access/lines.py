"""Accesses as sequences of memory lines: which lines they touch, and when each is touched next."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

NEVER = np.iinfo(np.int64).max  # "not touched again"

ORACLE_GENERAL = np.dtype([("clock", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
"""One record of libCacheSim's oracleGeneral format; `next` is -1 where the object is not asked for again."""


def touched_lines(
    address: npt.NDArray[np.uint64], size: npt.NDArray[np.integer], line_bytes: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return (line number uint64[m], access int64[m]): the lines each access touches, ascending within an access.

    address, size: [n] bytes, sizes at least 1, ends at most 2^63. line_bytes: any whole number of bytes.
    """
    width = np.uint64(line_bytes)
    first = address // width
    counts = ((address + size.astype(np.uint64) - np.uint64(1)) // width - first).astype(np.int64) + 1
    access = np.repeat(np.arange(len(address)), counts)
    start = np.cumsum(counts) - counts
    within = np.arange(len(access)) - start[access]
    return first[access] + within.astype(np.uint64), access


def next_uses(lines: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return int64[n]: for each position the next one with the same line, NEVER for the last. O(n log n)."""
    order = np.argsort(lines, kind="stable")
    upcoming = np.full(len(lines), NEVER, np.int64)
    same = lines[order[1:]] == lines[order[:-1]]
    upcoming[order[:-1][same]] = order[1:][same]
    return upcoming
