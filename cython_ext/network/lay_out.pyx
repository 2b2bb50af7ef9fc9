"""Checking an order of connections and laying their ends out as they are processed, in one pass."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    /* Ask for ends[index]. An index may be anything: what lies nowhere is not fetched. */
    static inline void ew_fetch_ends(const int32_t *ends, int64_t index) {
    #if defined(__GNUC__) || defined(__clang__)
        __builtin_prefetch((const void *)((uintptr_t)ends + 8 * (uintptr_t)index));
    #else
        (void)ends, (void)index;
    #endif
    }
    """
    void ew_fetch_ends(const int32_t *ends, int64_t index) nogil

cdef int64_t AHEAD = 64  # connections: far enough ahead for a miss of all caches


cdef struct laid:  # from the last connection to the first
    int32_t *source
    int32_t *target
    uint8_t *fed_later  # of a neuron: a connection into it stands behind the present one
    int32_t after  # the target of the connection behind the present one
    int64_t runs
    uint64_t wrong


cdef inline void lay(laid *so_far, int64_t i, int32_t source, int32_t target) noexcept nogil:
    """Put the connection at place i, in front of those that are laid."""
    so_far.source[i], so_far.target[i] = source, target
    so_far.wrong |= so_far.fed_later[source]
    so_far.fed_later[target] = 1
    so_far.runs += target != so_far.after
    so_far.after = target


def lay_out(const int32_t[:, ::1] ends, const int64_t[::1] order, Py_ssize_t n):
    """Return (sources int32[W], targets int32[W], runs, whether the order is a valid one) in processing order.

    ends: int32[W, 2], source and target of each connection, neurons in [0, n). order: int64[W], any values; None: as
    the connections are stored. Valid: a permutation in which no connection out of a neuron stands before one into it.
    Arrays of an order that is not valid mean nothing. runs: stretches of consecutive connections with one target.
    O(W + n) time, 8 W + W / 8 + n bytes.
    """
    cdef int64_t w = ends.shape[0], i, e
    cdef bint stored = order is None
    sources, targets = np.empty(w, np.int32), np.empty(w, np.int32)
    cdef int32_t[::1] source = sources
    cdef int32_t[::1] target = targets
    cdef uint8_t[::1] fed_later = np.zeros(n, np.uint8)
    cdef uint64_t[::1] met = np.zeros(0 if stored else (w + 63) // 64, np.uint64)
    cdef laid found
    if not stored and order.shape[0] != w:
        return sources, targets, 0, False
    if w == 0:
        return sources, targets, 0, True
    found.source, found.target, found.fed_later = &source[0], &target[0], &fed_later[0]
    found.after, found.runs, found.wrong = -1, 0, 0
    with nogil:
        if stored:
            for i in range(w - 1, -1, -1):
                lay(&found, i, ends[i, 0], ends[i, 1])
        else:
            for i in range(w - 1, -1, -1):
                if i >= AHEAD:
                    ew_fetch_ends(&ends[0, 0], order[i - AHEAD])
                e = order[i]
                if not 0 <= e < w:
                    found.wrong = 1
                    break
                found.wrong |= met[e >> 6] >> (e & 63) & 1
                met[e >> 6] |= <uint64_t>1 << (e & 63)
                lay(&found, i, ends[e, 0], ends[e, 1])
    return sources, targets, found.runs, found.wrong == 0
