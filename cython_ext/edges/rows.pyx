"""Items put in a row so that few are there at a time. A set of items is a row of 64-bit words."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport within32


cdef extern from *:
    int size_of "__builtin_popcountll"(uint64_t) noexcept nogil


cdef inline int64_t add(uint64_t *there, const uint64_t *more, int64_t words) noexcept nogil:
    """Add a set to another one; return by how many that one grows."""
    cdef int64_t w, grown = 0
    cdef uint64_t new
    for w in range(words):
        new = more[w] & ~there[w]
        if new:
            grown += size_of(new)
            there[w] |= new
    return grown


cdef inline int64_t missing(const uint64_t *there, const uint64_t *wanted, int64_t words) noexcept nogil:
    cdef int64_t w, n = 0
    for w in range(words):
        if wanted[w] & ~there[w]:
            n += size_of(wanted[w] & ~there[w])
    return n


cdef class _Row:
    """Items in `row`, and which others must be there (`needs`) before each is done and goes."""

    cdef uint64_t[:, ::1] needs
    cdef uint64_t[::1] there, beside
    cdef int64_t[::1] row
    cdef int64_t n, words

    def __init__(self, const int32_t[::1] group, const int32_t[::1] item, int64_t n_groups, int64_t n):
        cdef int64_t p, w
        cdef uint64_t bit
        need(n >= 0 and n_groups >= 0 and group.shape[0] == item.shape[0], "as many groups as items")
        need(within32(group, 0, n_groups) and within32(item, 0, n), "known groups and items")
        self.n, self.words = n, (n + 63) // 64
        cdef uint64_t[:, ::1] members = np.zeros((n_groups, self.words), np.uint64)
        self.needs = np.zeros((n, self.words), np.uint64)
        self.there, self.beside = np.zeros(self.words, np.uint64), np.zeros(self.words, np.uint64)
        self.row = np.arange(n)
        for p in range(item.shape[0]):
            bit = <uint64_t>1 << (item[p] & 63)
            members[group[p], item[p] >> 6] |= bit
        for p in range(item.shape[0]):
            for w in range(self.words):
                self.needs[item[p], w] |= members[group[p], w]

    cdef void choose(self, int64_t at) noexcept nogil:
        """Put there, of all from there on, the item that needs the fewest new ones; ties go to the lowest."""
        cdef int64_t i, found = at, least = self.n + 1, more
        for i in range(at, self.n):
            more = missing(&self.there[0], &self.needs[self.row[i], 0], self.words)
            if more < least:
                least, found = more, i
        self.move(found, at)
        add(&self.there[0], &self.needs[self.row[at], 0], self.words)

    cdef void move(self, int64_t at, int64_t to) noexcept nogil:
        cdef int64_t k = self.row[at]
        while at < to:
            self.row[at] = self.row[at + 1]
            at += 1
        while at > to:
            self.row[at] = self.row[at - 1]
            at -= 1
        self.row[to] = k

    cdef bint improve(self, int64_t k) noexcept nogil:
        """Move item k to where the fewest are there at a time, on average; return whether it moved."""
        cdef int64_t at = 0, place = 0, to = 0, i, w, ahead = 0, behind, cost = 0, least = 0, of_own = 0
        for w in range(self.words):
            self.there[w] = self.beside[w] = 0
        behind = add(&self.beside[0], &self.needs[k, 0], self.words)
        for i in range(self.n):
            if self.row[i] == k:
                at, of_own = i, cost
                continue
            ahead += add(&self.there[0], &self.needs[self.row[i], 0], self.words)
            cost += ahead - behind
            behind += add(&self.beside[0], &self.needs[self.row[i], 0], self.words)
            place += 1
            if cost < least:
                least, to = cost, place
        if least < of_own and to != at:
            self.move(at, to)
            return True
        return False


def fewest_at_a_time(
    const int32_t[::1] group, const int32_t[::1] item, int64_t n_groups, int64_t n, over, bint moved=True
):
    """Return int64[n]: items 0 to n - 1 in a row, so that few are there at a time on average.

    group, item: int32[P], who is in which group. All of an item's groups must be there before it is done and goes. Next
    is the item that needs the fewest new ones; then, if `moved`, each moves to where that is least, until none does or
    `over()` says that time is up. O(n^3 / 64) for each time that all are looked at.
    """
    cdef _Row row = _Row(group, item, n_groups, n)
    cdef int64_t k
    for k in range(n):
        if over():
            moved = False
            break
        row.choose(k)
    while moved:
        moved = False
        for k in list(row.row):
            if over():
                moved = False
                break
            moved |= row.improve(k)
    return np.asarray(row.row)
