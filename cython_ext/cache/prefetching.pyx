"""A cache level that fetches further lines than the engine asks for."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from cython_ext.cache.level cimport EDGEWATT_NO_LINE, CacheKernel, Transactions, const_uint16_t, \
    edgewatt_find_baseline, edgewatt_wide_place, put, release, reserve
from cython_ext.common.checks cimport need

import numpy as np

from cython_ext.cache.level import first_bad_access


cdef extern from "cache/prefetch.h" nogil:
    ctypedef struct edgewatt_prefetcher:
        int64_t entry_bytes
        int64_t (*step)(void *table, int64_t entries, int32_t stream, int64_t line, int missed,
                        int first_use) noexcept nogil
    const edgewatt_prefetcher *edgewatt_prefetcher_of(const char *name)
    ctypedef struct edgewatt_line_set:
        uint64_t *slots
        uint64_t mask
        int64_t n
    void edgewatt_line_add(edgewatt_line_set *set, uint64_t line)
    bint edgewatt_line_remove(edgewatt_line_set *set, uint64_t line)
    int64_t edgewatt_target(int64_t line, int64_t stride, int64_t k, int64_t first, int64_t last)


cdef class PrefetchingKernel(CacheKernel):
    """A level whose demand look-ups make it fetch further lines. Not for policies that need the future."""

    cdef Transactions triggers, prefetched  # (line, stride in `access`) of one access; the prefetches of a call
    cdef edgewatt_line_set unused
    cdef void *table
    cdef object _own, _prefetcher, _raised
    cdef const edgewatt_prefetcher *prefetcher  # null: `_prefetcher` decides
    cdef int64_t degree, distance, entries, first_line, last_line
    cdef readonly int64_t prefetches, useful, useless

    def set_prefetch(self, prefetcher, int64_t degree, int64_t distance, int64_t entries, int64_t first_line,
                     int64_t last_line):
        """Say what to fetch: the name of a compiled prefetcher or an object with a method `step`
        (hwmodel.caches.prefetcher), and the lines [first_line, last_line] that may be fetched."""
        need(0 < entries <= 1 << 32 and 0 < degree <= 1 << 32 and 0 <= distance <= 1 << 32, "entries, degree and distance")
        need(first_line >= 0 and not self.needs_future, "lines, and a policy that needs no future")
        cdef int64_t lines = self.sets * self.core.ways, slots = 4
        cdef bytes name
        while slots < 2 * lines:
            slots *= 2
        entry_bytes = 0
        if isinstance(prefetcher, str):
            name = prefetcher.encode()
            self.prefetcher = edgewatt_prefetcher_of(name)
            if self.prefetcher == NULL:
                raise ValueError(f"no compiled prefetcher {prefetcher!r} (cython_ext/cache/prefetchers/prefetch_{prefetcher}.h)")
            entry_bytes = self.prefetcher.entry_bytes
        else:
            need(callable(getattr(prefetcher, "step", None)), f"{prefetcher!r} is no compiled prefetcher and has no method 'step'")
        slots_of = np.full(slots, EDGEWATT_NO_LINE, np.uint64)
        table_of = np.full(entries * entry_bytes // 8 + 1, EDGEWATT_NO_LINE, np.uint64)
        cdef uint64_t[::1] slot_view = slots_of
        cdef uint64_t[::1] table_view = table_of
        self._own, self._prefetcher = (slots_of, table_of), prefetcher
        self.unused.slots, self.unused.mask = &slot_view[0], slots - 1
        self.table = &table_view[0]
        self.degree, self.distance, self.entries = degree, distance, entries
        self.first_line, self.last_line = first_line, last_line

    cdef int64_t _step(self, int32_t stream, int64_t line, int missed, int first_use) noexcept nogil:
        if self.prefetcher != NULL:
            return self.prefetcher.step(self.table, self.entries, stream, line, missed, first_use)
        with gil:
            if self._raised is not None:
                return 0
            try:
                return self._prefetcher.step(stream, line, bool(missed), bool(first_use))
            except BaseException as error:
                self._raised = error
                return 0

    @property
    def waiting(self):
        """Lines fetched, still resident and not used yet."""
        return self.unused.n

    def access_prefetching(self, const uint8_t[::1] op, const uint64_t[::1] address, const_uint16_t[::1] size,
                           const uint8_t[::1] stream):
        """Make the accesses; return (address, size, is_write, index) of the transactions, and the prefetches likewise.

        The index of a prefetch is the access that caused it; that of a transaction counts the prefetches as accesses,
        each after the access that caused it.
        """
        cdef int64_t i
        cdef int failed = 0
        need(self.table != NULL, "set_prefetch before accesses")
        need(stream.shape[0] == op.shape[0], "a stream for each access")
        need(first_bad_access(address, size, op, (<uint64_t>1 << 63) - (self.line_shift == 0)) < 0,
             "accesses that a level takes")
        self.out.n = self.prefetched.n = 0
        self.one_to_one = 0
        with nogil:
            for i in range(address.shape[0]):
                failed = self._demand(i, op[i], address, size, stream[i]) or self._prefetch(i, address, size)
                if failed:
                    break
        if self._raised is not None:
            raise self._raised
        if failed:
            self.fail()
        return self.arrays_of(&self.out), self.arrays_of(&self.prefetched)

    cdef int _one(self, int64_t i, uint64_t key, const uint64_t[::1] address, const_uint16_t[::1] size,
                  int64_t *missed) noexcept nogil:
        """One look-up for access i. missed[0]: 0 hit, 1 filled, 2 passed on. Return -1 without memory."""
        cdef int64_t t, start = self.out.n, misses = self.load_misses + self.store_misses, fills = self.fills
        self.keys[0], self.access_of[0] = key, i
        if self.look_up_one(address, size):
            return -1
        for t in range(start, self.out.n):
            self.out.access[t] += self.prefetched.n  # those made so far come before
        missed[0] = 0
        if self.load_misses + self.store_misses > misses:
            missed[0] = 1 if self.fills > fills else 2
            if missed[0] == 1 and self.displaced[0] != EDGEWATT_NO_LINE:
                self.useless += edgewatt_line_remove(&self.unused, self.displaced[0] >> 1)
        return 0

    cdef int _demand(self, int64_t i, uint8_t op, const uint64_t[::1] address, const_uint16_t[::1] size,
                     uint8_t stream) noexcept nogil:
        cdef uint64_t line = address[i] >> self.line_shift, last = (address[i] + size[i] - 1) >> self.line_shift
        cdef int64_t missed, stride
        cdef bint first_use
        self.triggers.n = 0
        if op:
            self.stores += 1
            self.store_lookups += <int64_t>(last - line) + 1
        else:
            self.loads += 1
            self.load_lookups += <int64_t>(last - line) + 1
        while line <= last:
            if self._one(i, line << 1 | op, address, size, &missed):
                return -1
            first_use = missed == 0 and edgewatt_line_remove(&self.unused, line)
            self.useful += first_use
            stride = self._step(stream, <int64_t>line, missed == 1, first_use)
            if stride:
                if reserve(&self.triggers, 1):
                    return -1
                put(&self.triggers, line, 0, 0, stride)
            line += 1
        return 0

    cdef int _prefetch(self, int64_t i, const uint64_t[::1] address, const_uint16_t[::1] size) noexcept nogil:
        """Fetch what the look-ups of access i asked for."""
        cdef int64_t j, k, line, missed
        cdef uint64_t key
        for j in range(self.triggers.n):
            for k in range(self.distance, self.distance + self.degree):
                line = edgewatt_target(<int64_t>self.triggers.address[j], self.triggers.access[j], k, self.first_line,
                                       self.last_line)
                if line < 0:
                    continue
                key = <uint64_t>line << 1
                if self._holds(<uint64_t>line):
                    continue  # held already: nothing to fetch, and its place in the set stays
                if reserve(&self.prefetched, 1):
                    return -1
                put(&self.prefetched, <uint64_t>line << self.line_shift, 1 << self.line_shift, 0, i)
                if self._one(i, key, address, size, &missed):
                    return -1
                self.load_misses -= 1  # no demand
                self.prefetches += 1
                edgewatt_line_add(&self.unused, <uint64_t>line)
        return 0

    cdef bint _holds(self, uint64_t line) noexcept nogil:
        if self.core.wide != NULL:
            return self.wide.place[edgewatt_wide_place(self.core.wide, self.core.words, line)] != 0
        return edgewatt_find_baseline(
            self.core.words + (line & self.core.set_mask) * self.core.stride, self.core.stride, line << 1) >= 0

    def __dealloc__(self):
        release(&self.triggers)
        release(&self.prefetched)
