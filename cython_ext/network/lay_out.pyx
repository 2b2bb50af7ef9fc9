"""Checking an order of connections, and laying their ends out as they are processed in the same pass."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from cython_ext.common.processing cimport EW_BLOCK, ew_processing, ew_take_forwards


def lay_out(const int32_t[:, ::1] ends, const int64_t[::1] order, Py_ssize_t n):
    """Return (sources int32[W], targets int32[W], runs, whether the order is a valid one) in processing order.

    ends: int32[W, 2], source and target of each connection, neurons in [0, n). order: int64[W], any values; None: as
    the connections are stored. Valid: a permutation in which no connection out of a neuron stands before one into it.
    Arrays of an order that is not valid mean nothing. runs: stretches of consecutive connections with one target.
    O(W + n) time, 8 W + W / 8 + n bytes.
    """
    cdef int64_t w = ends.shape[0]
    cdef bint stored = order is None, valid
    sources, targets = np.empty(w, np.int32), np.empty(w, np.int32)
    cdef int32_t[::1] source = sources
    cdef int32_t[::1] target = targets
    cdef uint8_t[::1] closed = np.zeros(n, np.uint8)
    cdef uint64_t[::1] met = np.zeros(1 if stored else (w + 63) // 64, np.uint64)
    cdef ew_processing given
    if not stored and order.shape[0] != w:
        return sources, targets, 0, False
    if w == 0:
        return sources, targets, 0, True
    given.ends, given.w = &ends[0, 0], w
    given.order = NULL
    if not stored:
        given.order = &order[0]
    given.met, given.closed, given.beside, given.runs = &met[0], &closed[0], -1, 0
    with nogil:
        valid = ew_take_forwards(&given, 0, w, &source[0], &target[0])
    return sources, targets, given.runs, valid


def is_valid(const int32_t[:, ::1] ends, const int64_t[::1] order, Py_ssize_t n):
    """Return whether an order is valid, as `lay_out` says. O(W + n) time, W / 8 + n bytes."""
    cdef int64_t w = ends.shape[0], begin = 0
    cdef int32_t source[EW_BLOCK]
    cdef int32_t target[EW_BLOCK]
    cdef bint stored = order is None, valid = True
    cdef uint8_t[::1] closed = np.zeros(n, np.uint8)
    cdef uint64_t[::1] met = np.zeros(1 if stored else (w + 63) // 64, np.uint64)
    cdef ew_processing given
    if w == 0 or (not stored and order.shape[0] != w):
        return stored or order.shape[0] == w
    given.ends, given.w = &ends[0, 0], w
    given.order = NULL
    if not stored:
        given.order = &order[0]
    given.met, given.closed, given.beside, given.runs = &met[0], &closed[0], -1, 0
    with nogil:
        while valid and begin < w:
            valid = ew_take_forwards(&given, begin, min(begin + EW_BLOCK, w), source, target)
            begin += EW_BLOCK
    return valid
