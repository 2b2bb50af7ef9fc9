"""Where values are: rows of the arena that are used again."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport within32


def assign_rows(const int32_t[::1] sources, const int32_t[::1] targets, const int64_t[::1] last_use,
                const uint8_t[::1] keep, const int32_t[::1] resident):
    """Return int64[N], rows of the arena so that rows are used again, and the number of rows. O(W + N log N).

    A row is taken at a neuron's first touch, the lowest free one, and is free again after the step of its last use.
    resident: neurons that hold rows from the start. keep: neurons whose rows are never free again. -1: not touched.
    """
    cdef int64_t w = sources.shape[0], n = last_use.shape[0], k, rows = 0, free = 0, side
    cdef int32_t v
    cdef bint outside = False
    need(targets.shape[0] == w and keep.shape[0] == n and within32(resident, 0, n), "neurons that are there")
    found = np.full(n, -1, np.int64)
    cdef int64_t[::1] row = found
    cdef int64_t[::1] heap = np.empty(2 * n + 1, np.int64)  # a connection from a neuron to itself frees its row twice
    with nogil:
        for k in range(resident.shape[0]):
            row[resident[k]] = rows
            rows += 1
        for k in range(w):
            v = targets[k]
            if v < 0 or v >= n or sources[k] < 0 or sources[k] >= n:
                outside = True
                break
            if row[v] < 0:
                if free:
                    row[v] = _pop(heap, &free)
                else:
                    row[v] = rows
                    rows += 1
            for side in range(2):
                v = targets[k] if side else sources[k]
                if last_use[v] == k and not keep[v]:
                    _push(heap, &free, row[v])
    need(not outside, "neurons that are there")
    return found, rows


cdef inline void _push(int64_t[::1] heap, int64_t *size, int64_t value) noexcept nogil:
    cdef int64_t at = size[0], parent
    size[0] += 1
    while at:
        parent = (at - 1) // 2
        if heap[parent] <= value:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = value


cdef inline int64_t _pop(int64_t[::1] heap, int64_t *size) noexcept nogil:
    cdef int64_t least = heap[0], value, at = 0, child
    size[0] -= 1
    value = heap[size[0]]
    while True:
        child = 2 * at + 1
        if child >= size[0]:
            break
        if child + 1 < size[0] and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value
    return least
