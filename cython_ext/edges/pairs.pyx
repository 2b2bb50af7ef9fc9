"""Runs in pairs that share sources, so that a kernel which computes two targets at a time loads those once."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t

cdef int64_t SLICE = 1 << 26  # counted sources between two looks at Ctrl-C


def pair_runs(const int64_t[::1] sources, const int64_t[::1] starts, const int64_t[::1] groups, int64_t n_neurons,
              int64_t least):
    """Return int64[R]: the run that each run makes a pair with, or -1.

    One run after the other takes the later free run of its group that shares most sources with it, at least `least` (1
    or more); ties go to the run that comes first. sources: int64[W], by runs, none twice in a run. starts: int64[R + 1],
    each run's first connection, and W. groups: int64[G + 1], each group's first run, and R. O(sum over sources of the
    square of their runs in a group).
    """
    cdef int64_t n_runs = starts.shape[0] - 1, g, r, last, p, best, counted = 0
    found = np.full(n_runs, -1, np.int64)
    cdef int64_t[::1] mate = found
    cdef int32_t[::1] common = np.zeros(n_runs, np.int32)
    cdef int64_t[::1] head = np.zeros(n_neurons, np.int64), tail = np.zeros(n_neurons, np.int64)
    cdef int64_t[::1] users = np.empty(sources.shape[0], np.int64)  # of each source of a group: its runs, in order
    for g in range(groups.shape[0] - 1):
        last = groups[g + 1]
        with nogil:
            _list_users(sources, starts, groups[g], last, head, tail, users)
        for r in range(groups[g], last):
            with nogil:
                best = _best(r, last, sources, starts, mate, head, tail, users, common, least, &counted)
                if best >= 0:
                    mate[r], mate[best] = best, r
            if counted > SLICE:
                counted = 0
                PyErr_CheckSignals()
    return found


cdef void _list_users(const int64_t[::1] sources, const int64_t[::1] starts, int64_t first, int64_t last,
                      int64_t[::1] head, int64_t[::1] tail, int64_t[::1] users) noexcept nogil:
    """Set users[head[s]:tail[s]] to the runs of the group that source s is in."""
    cdef int64_t p, r, at = starts[first]
    for p in range(starts[first], starts[last]):
        tail[sources[p]] = 0
    for p in range(starts[first], starts[last]):
        tail[sources[p]] += 1
    for p in range(starts[first], starts[last]):
        if tail[sources[p]] > 0:  # seen for the first time
            head[sources[p]] = at
            at += tail[sources[p]]
            tail[sources[p]] = -head[sources[p]] - 1
    for p in range(starts[first], starts[last]):
        tail[sources[p]] = head[sources[p]]
    for r in range(first, last):
        for p in range(starts[r], starts[r + 1]):
            users[tail[sources[p]]] = r
            tail[sources[p]] += 1


cdef int64_t _best(int64_t r, int64_t last, const int64_t[::1] sources, const int64_t[::1] starts,
                   const int64_t[::1] mate, int64_t[::1] head, const int64_t[::1] tail, const int64_t[::1] users,
                   int32_t[::1] common, int64_t least, int64_t *counted) noexcept nogil:
    """Return the free run behind r that shares most sources with it, or -1; r leaves the lists of users."""
    cdef int64_t p, q, other, here = 0, best = -1, most = least - 1
    for p in range(starts[r], starts[r + 1]):
        head[sources[p]] += 1  # itself: all before it have left
        here += tail[sources[p]] - head[sources[p]]
    if mate[r] >= 0:
        return -1
    counted[0] += here
    for p in range(starts[r], starts[r + 1]):
        for q in range(head[sources[p]], tail[sources[p]]):
            common[users[q]] += 1
    if here >= last - r:
        for other in range(r + 1, last):
            if common[other] > most and mate[other] < 0:
                best, most = other, common[other]
            common[other] = 0
        return best
    for p in range(starts[r], starts[r + 1]):
        for q in range(head[sources[p]], tail[sources[p]]):
            other = users[q]
            if mate[other] < 0 and (common[other] > most or (common[other] == most and other < best)):
                best, most = other, common[other]
    for p in range(starts[r], starts[r + 1]):
        for q in range(head[sources[p]], tail[sources[p]]):
            common[users[q]] = 0
    return best
