"""An order for a memory that keeps what was touched last (LRU), from another one: what would go too soon is used
early."""

cimport cython
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int8_t, int32_t, int64_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport within32

cdef enum:
    MOST_SCANNED = 64  # connections of a value at most when one of them is to be done early
    BEHIND = 2  # values considered besides those to go; one is 0.3 to 1.8 % worse, eight are no better (measured)


@cython.final
cdef class _Walk:
    """An order as it is made: what is done, what fast memory holds, and which connections of each value are left."""

    cdef const int32_t[::1] sources, targets
    cdef int64_t w, n, capacity, horizon, n_held, n_done
    cdef int32_t[::1] out
    cdef int32_t[::1] of_source, of_target  # the next connection in the order given with the same source, or target
    cdef int32_t[::1] first  # of each value, the first connection that is left
    cdef int32_t[::1] left  # of each value, connections into it that are left
    cdef int32_t[::1] older, newer  # a ring of the values held: N lies behind the newest and before the oldest
    cdef int64_t[::1] touched  # when each value was touched last, -1 where it is not held
    cdef int8_t[::1] done

    def __init__(self, const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, int64_t capacity,
                 int64_t horizon):
        cdef int64_t k, w = sources.shape[0]
        self.sources, self.targets = sources, targets
        self.w, self.n, self.capacity, self.horizon = w, n_neurons, capacity, horizon
        self.out, self.of_source, self.of_target = np.empty(w, np.int32), np.empty(w, np.int32), np.empty(w, np.int32)
        self.first, self.left = np.full(n_neurons, w, np.int32), np.zeros(n_neurons, np.int32)
        self.older, self.newer = np.full(n_neurons + 1, n_neurons, np.int32), np.full(n_neurons + 1, n_neurons, np.int32)
        self.touched, self.done = np.full(n_neurons, -1, np.int64), np.zeros(w + 1, np.int8)
        with nogil:
            for k in range(w - 1, -1, -1):
                self.of_source[k] = self.first[sources[k]]
                self.of_target[k] = self.first[targets[k]]
                self.first[sources[k]] = self.first[targets[k]] = <int32_t> k
                self.left[targets[k]] += 1

    cdef inline int32_t next_of(self, int32_t x, int32_t k) noexcept nogil:
        return self.of_source[k] if self.sources[k] == x else self.of_target[k]

    cdef inline void let_go(self, int32_t x) noexcept nogil:
        self.newer[self.older[x]] = self.newer[x]
        self.older[self.newer[x]] = self.older[x]

    cdef inline void touch(self, int32_t x) noexcept nogil:
        cdef int32_t oldest
        if self.touched[x] >= 0:
            self.let_go(x)
        elif self.n_held == self.capacity:
            oldest = self.newer[self.n]
            self.let_go(oldest)
            self.touched[oldest] = -1
        else:
            self.n_held += 1
        self.older[x] = self.older[self.n]
        self.newer[x] = <int32_t> self.n
        self.newer[self.older[x]] = x
        self.older[self.n] = x
        self.touched[x] = self.n_done

    cdef inline void do(self, int32_t k) noexcept nogil:
        self.touch(self.sources[k])
        self.touch(self.targets[k])
        self.left[self.targets[k]] -= 1
        self.done[k] = 1
        self.out[self.n_done] = k
        self.n_done += 1

    cdef inline bint is_needed(self, int32_t x, int64_t ends) noexcept nogil:
        """Whether a connection of x is left before the one at `ends`."""
        cdef int32_t k = self.first[x]
        while k < self.w and self.done[k]:
            k = self.next_of(x, k)
        self.first[x] = k
        return k < min(ends, self.w)

    cdef int32_t early(self, int32_t x, int64_t ends, bint may_begin) noexcept nogil:
        """Return a connection of x that may be done now, -1 if there is none: with the value touched longest ago among
        those held, else (may_begin) with a target that is not."""
        cdef int32_t k = self.first[x], other, best = -1, begins = -1, scanned = 0
        cdef int64_t longest = self.n_done
        while k < ends and k < self.w and scanned < MOST_SCANNED:
            scanned += 1
            if not self.done[k] and self.left[self.sources[k]] == 0:
                other = self.targets[k] if self.sources[k] == x else self.sources[k]
                if self.touched[other] >= 0:
                    if self.touched[other] < longest:
                        best, longest = k, self.touched[other]
                elif begins < 0 and self.sources[k] == x:
                    begins = k
            k = self.next_of(x, k)
        return begins if best < 0 and may_begin else best

    cdef int32_t before(self, int32_t k) noexcept nogil:
        """Return a connection to do before k, so that nothing goes that is needed soon; -1: there is none."""
        cdef int32_t s = self.sources[k], x, found
        cdef int64_t seen = 0
        cdef int64_t missing = (self.touched[s] < 0) + (self.touched[self.targets[k]] < 0), ends = k + self.horizon
        if missing == 0 or self.n_held + missing <= self.capacity:
            return -1
        x = self.newer[self.n]
        while seen < missing + BEHIND and x != self.n:
            if x != s:  # which is touched before anything goes
                if self.is_needed(x, ends):
                    found = self.early(x, ends, seen == 0)
                    if found >= 0:
                        return found
                seen += 1
            x = self.newer[x]
        return -1


def refreshed(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, int64_t memory,
              int64_t horizon):
    """Return int32[W]: the places of an order, but connections of a value are done early that LRU would lose too soon.

    sources, targets: int32[W], the ends of the connections in an order that computes everything before it is used;
    memory: M. Where room is needed for one or two values, those to go are the ones touched longest ago. They and the
    next two are considered in turn: if one has a connection within `horizon`, one of those is done first, with another
    value in fast memory, the one touched longest ago; the very first one may also begin a target, early. O(W), 64 for
    each connection done early.
    """
    cdef int32_t k, found
    cdef int64_t w = sources.shape[0]
    need(targets.shape[0] == w and w < 1 << 31, "two ends of each connection")
    need(within32(sources, 0, n_neurons) and within32(targets, 0, n_neurons), "neurons that are there")
    need(memory >= 3 and horizon >= 0, "a memory of three values or more, a horizon")
    cdef _Walk walk = _Walk(sources, targets, n_neurons, memory - 1, horizon)
    with nogil:
        for k in range(<int32_t> w):
            while not walk.done[k]:
                found = walk.before(k)
                walk.do(found if found >= 0 else k)
    PyErr_CheckSignals()
    return np.asarray(walk.out)
