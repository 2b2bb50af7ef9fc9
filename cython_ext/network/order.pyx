"""Checking an order of connections and laying their ends out as they are processed, in one pass."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define ew_fetch(address) __builtin_prefetch(address)
    #else
    #define ew_fetch(address) ((void)0)
    #endif
    """
    void ew_fetch(const void *) nogil

cdef int64_t AHEAD = 32  # connections: far enough ahead for a miss of all caches


def lay_out(const int32_t[:, ::1] ends, const int64_t[::1] order, Py_ssize_t n):
    """Return (sources int32[W], targets int32[W], runs, whether the order is a valid one) in processing order.

    ends: int32[W, 2], source and target of each connection, neurons in [0, n). order: int64[W], any values.
    Valid: a permutation in which no connection out of a neuron stands before one into it. Arrays of an order that is not
    valid mean nothing. runs: stretches of consecutive connections with one target. O(W + n) time, 8 W + W / 8 + n bytes.
    """
    cdef int64_t w = ends.shape[0], i, e
    sources, targets = np.empty(w, np.int32), np.empty(w, np.int32)
    cdef int32_t[::1] source = sources
    cdef int32_t[::1] target = targets
    cdef uint64_t[::1] met = np.zeros((w + 63) // 64, np.uint64)
    cdef uint8_t[::1] fed_later = np.zeros(n, np.uint8)  # a connection into the neuron stands behind the present one
    cdef int32_t a, b, after = -1
    cdef int64_t runs = 0
    cdef uint64_t wrong = 0
    if order.shape[0] != w:
        return sources, targets, 0, False
    with nogil:
        for i in range(w - 1, -1, -1):
            if i >= AHEAD and 0 <= order[i - AHEAD] < w:
                ew_fetch(&ends[order[i - AHEAD], 0])
                ew_fetch(&met[order[i - AHEAD] >> 6])
            e = order[i]
            if not 0 <= e < w:
                wrong = 1
                break
            wrong |= met[e >> 6] >> (e & 63) & 1
            met[e >> 6] |= <uint64_t>1 << (e & 63)
            a, b = ends[e, 0], ends[e, 1]
            source[i], target[i] = a, b
            wrong |= fed_later[a]
            fed_later[b] = 1
            runs += b != after
            after = b
    return sources, targets, runs, wrong == 0


def in_stored_order(const int32_t[:, ::1] ends, Py_ssize_t n):
    """Return what `lay_out` does for the order in which the connections are stored. O(W + n)."""
    cdef int64_t w = ends.shape[0], i
    sources, targets = np.empty(w, np.int32), np.empty(w, np.int32)
    cdef int32_t[::1] source = sources
    cdef int32_t[::1] target = targets
    cdef uint8_t[::1] fed_later = np.zeros(n, np.uint8)
    cdef int32_t a, b, after = -1
    cdef int64_t runs = 0
    cdef uint64_t wrong = 0
    with nogil:
        for i in range(w - 1, -1, -1):
            a, b = ends[i, 0], ends[i, 1]
            source[i], target[i] = a, b
            wrong |= fed_later[a]
            fed_later[b] = 1
            runs += b != after
            after = b
    return sources, targets, runs, wrong == 0
