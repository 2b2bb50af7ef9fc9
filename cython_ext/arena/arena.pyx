"""Placement of buffers with fixed lifetimes in one arena (algorithms in fit.h; meaning: reorder.arena)."""

import numpy as np

from libc.stdint cimport int64_t

cdef extern from "arena/fit.h" nogil:
    int64_t af_fit(int64_t, const int64_t *, const int64_t *, const int64_t *, const int64_t *, int64_t, int, int64_t *,
                   int64_t *)


def fit(const int64_t[::1] lower, const int64_t[::1] upper, const int64_t[::1] size, const int64_t[::1] sequence,
        int64_t alignment, bint best):
    """Place buffers in `sequence` (a permutation of 0 to n - 1), each in the best or the first gap.

    Returns (height, offsets int64[n]).
    """
    cdef int64_t n = lower.shape[0], height
    assert upper.shape[0] == n and size.shape[0] == n and sequence.shape[0] == n and alignment > 0
    cdef int64_t[::1] offset = np.zeros(n, np.int64), by_offset = np.empty(n, np.int64)
    if n == 0:
        return 0, np.asarray(offset)
    with nogil:
        height = af_fit(n, &lower[0], &upper[0], &size[0], &sequence[0], alignment, best, &by_offset[0], &offset[0])
    return height, np.asarray(offset)
