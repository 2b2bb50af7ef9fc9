"""Accesses as sequences of memory lines: which lines they touch, and when each is touched next."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import cython_ext.trace.accesses as kernel

DENSE = 4  # lines of the table for each look-up, at most
NEVER = np.iinfo(np.int64).max  # "not touched again"

ORACLE_GENERAL = np.dtype([("clock", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
"""One record of libCacheSim's oracleGeneral format; `next` is -1 where the object is not asked for again."""


def touched_lines(
    address: npt.NDArray[np.uint64], size: npt.NDArray[np.integer], line_bytes: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return (line number uint64[m], access int64[m]): the lines each access touches, ascending within an access.

    address, size: [n] bytes, sizes at least 1, ends at most 2^63. line_bytes: any whole number of bytes.
    """
    sizes = np.asarray(size)
    kept = sizes.dtype if sizes.dtype in (np.uint8, np.uint16) else np.int64
    touched = kernel.touched_blocks(
        np.ascontiguousarray(address, np.uint64), np.ascontiguousarray(sizes, kept), line_bytes
    )
    block, access = touched
    return block, access


def next_uses(lines: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return int64[n]: for each position the next one with the same line, NEVER for the last.

    O(n) where the lines lie within a few times as many as there are look-ups, O(n log n) elsewhere.
    """
    if not len(lines):
        return np.zeros(0, np.int64)
    first, span = lines.min(), int(lines.max() - lines.min()) + 1
    if span <= DENSE * len(lines):
        uses: npt.NDArray[np.int64] = kernel.next_in_table(lines, first, np.full(span, NEVER, np.int64), NEVER)
        return uses
    order = np.argsort(lines, kind="stable")
    upcoming = np.full(len(lines), NEVER, np.int64)
    same = lines[order[1:]] == lines[order[:-1]]
    upcoming[order[:-1][same]] = order[1:][same]
    return upcoming
