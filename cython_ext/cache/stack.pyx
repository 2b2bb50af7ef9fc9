"""LRU stack distances of a sequence of line look-ups (Mattson et al. 1970), with a Fenwick tree of last uses."""

from libc.stdint cimport int32_t, int64_t

from cython_ext.common.checks cimport need

import numpy as np


def stack_distances(const int64_t[::1] previous):
    """Return int64[n]: the different lines looked up since the look-up of the same line before; -1 at its first.

    previous: int64[n], position of the look-up of the same line before, -1 for none. A look-up hits in a fully
    associative LRU cache of more lines than its distance. O(n log n) time, 12 bytes a look-up.
    """
    cdef int64_t n = previous.shape[0], i, at, seen, before
    result_of = np.empty(n, np.int64)
    cdef int64_t[::1] result = result_of
    cdef int32_t[::1] tree = np.zeros(n + 1, np.int32)  # of marks at the last use of each line so far
    cdef bint known = True
    need(n < 2**31, "at most 2**31 - 1 uses")
    with nogil:
        for i in range(n):
            before = previous[i]
            if before >= i:
                known = False
                break
            if before < 0:
                result[i] = -1
            else:
                seen = 0
                at = i  # marks at positions below i
                while at > 0:
                    seen += tree[at]
                    at &= at - 1
                at = before + 1
                while at > 0:
                    seen -= tree[at]
                    at &= at - 1
                result[i] = seen
                at = before + 1
                while at <= n:
                    tree[at] -= 1
                    at += at & -at
            at = i + 1
            while at <= n:
                tree[at] += 1
                at += at & -at
    need(known, "look-ups before those that name them")
    return result_of
