"""Runs that a kernel for two targets takes together: two that follow each other and begin with the same sources."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t


def shared_quads(const int32_t[::1] sources, const int32_t[::1] targets, const int64_t[::1] starts,
                 const uint8_t[::1] outside):
    """Return int64[R]: of a run that makes a pair with the next one, how many quads of sources they begin with alike.

    0: no pair. Nothing is in two pairs, and the second run does not read what the first one writes. O(W).
    """
    cdef int64_t n_runs = starts.shape[0] - 1, r = 0, k, most
    found = np.zeros(n_runs, np.int64)
    cdef int64_t[::1] shared = found
    with nogil:
        while r + 1 < n_runs:
            most = min(starts[r + 1] - starts[r], starts[r + 2] - starts[r + 1])
            k = 0
            if outside[r] == outside[r + 1] and targets[starts[r]] != targets[starts[r + 1]]:
                while k < most and sources[starts[r] + k] == sources[starts[r + 1] + k]:
                    k += 1
            if k >= 4:
                for most in range(starts[r + 1], starts[r + 2]):
                    if sources[most] == targets[starts[r]]:
                        k = 0
                        break
            if k >= 4:
                shared[r] = k // 4
                r += 1
            r += 1
    return found
