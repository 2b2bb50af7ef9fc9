"""One cache level: accesses in, counts and line transactions out. State is kept from call to call."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc

import numpy as np

ctypedef const uint8_t const_uint8_t
ctypedef const uint16_t const_uint16_t
ctypedef fused size_type:
    const_uint8_t
    const_uint16_t


cdef extern from "cache/level.h" nogil:
    uint64_t EDGEWATT_NO_LINE, EDGEWATT_NO_FILL
    ctypedef struct edgewatt_cache:
        uint64_t *words
        int64_t *next
        uint8_t *tree
        uint32_t *pointer
        uint64_t set_mask, dirty, random
        int64_t ways, stride
        int policy, allocate
    int64_t edgewatt_cache_lookups(edgewatt_cache *cache, const uint64_t *keys, const int64_t *next_use, int64_t n,
                                   uint32_t *missed, uint64_t *displaced)
    int edgewatt_cache_all_good(const uint64_t *address, const uint8_t *bytes, const uint16_t *halves,
                                const uint8_t *op, int64_t n, uint64_t limit)
    int64_t edgewatt_cache_keys(const uint64_t *address, const uint8_t *bytes, const uint16_t *halves,
                                const uint8_t *op, int64_t n, int shift, uint64_t *keys)
    int64_t edgewatt_cache_emit(const uint64_t *keys, const uint32_t *missed, const uint64_t *displaced, int64_t misses,
                                const int64_t *access, int64_t first, int shift, uint64_t *to_address,
                                uint16_t *to_size, uint8_t *to_write, int64_t *to_access)
    int64_t edgewatt_find_baseline(const uint64_t *words, int64_t stride, uint64_t key)


cdef extern from "cache/prefetch.h" nogil:
    ctypedef struct edgewatt_prediction:
        int32_t stream
    ctypedef struct edgewatt_line_set:
        uint64_t *slots
        uint64_t mask
        int64_t n
    void edgewatt_line_add(edgewatt_line_set *set, uint64_t line)
    bint edgewatt_line_remove(edgewatt_line_set *set, uint64_t line)
    int64_t edgewatt_predict(edgewatt_prediction *table, int64_t entries, int32_t stream, int64_t line)
    int64_t edgewatt_target(int64_t line, int64_t stride, int64_t k, int64_t first, int64_t last)


cdef enum:
    BLOCK = 4096  # look-ups per call of the core: keys, misses and victims together stay in the host's first cache

POLICY_NUMBER = {"lru": 0, "fifo": 1, "rr": 1, "random": 2, "plru": 3, "min": 4}

cdef struct Transactions:
    uint64_t *address
    uint16_t *size
    uint8_t *is_write
    int64_t *access
    int64_t n, capacity


cdef int reserve(Transactions *out, int64_t extra) noexcept nogil:
    """Make room for `extra` more; return 0, or -1 without memory."""
    cdef int64_t capacity = out.capacity
    if out.n + extra <= capacity:
        return 0
    while capacity < out.n + extra:
        capacity = 2 * capacity + 4096
    cdef void *grown = realloc(out.address, capacity * sizeof(uint64_t))
    if grown == NULL:
        return -1
    out.address = <uint64_t *>grown
    grown = realloc(out.size, capacity * sizeof(uint16_t))
    if grown == NULL:
        return -1
    out.size = <uint16_t *>grown
    grown = realloc(out.is_write, capacity * sizeof(uint8_t))
    if grown == NULL:
        return -1
    out.is_write = <uint8_t *>grown
    grown = realloc(out.access, capacity * sizeof(int64_t))
    if grown == NULL:
        return -1
    out.access = <int64_t *>grown
    out.capacity = capacity
    return 0


cdef void release(Transactions *out) noexcept nogil:
    free(out.address)
    free(out.size)
    free(out.is_write)
    free(out.access)


cdef inline void put(Transactions *out, uint64_t address, int64_t size, int is_write, int64_t access) noexcept nogil:
    out.address[out.n] = address
    out.size[out.n] = <uint16_t>size
    out.is_write[out.n] = <uint8_t>is_write
    out.access[out.n] = access
    out.n += 1


def first_bad_access(const uint64_t[::1] address, size_type[::1] size, const uint8_t[::1] op, uint64_t limit):
    """Return the index of the first access that is empty, not 0 or 1 in `op`, or does not end by `limit`; or -1."""
    cdef Py_ssize_t i, n = address.shape[0]
    cdef const uint8_t *bytes = NULL
    cdef const uint16_t *halves = NULL
    if n == 0:
        return -1
    if size_type is const_uint8_t:
        bytes = &size[0]
    else:
        halves = &size[0]
    if edgewatt_cache_all_good(&address[0], bytes, halves, &op[0], n, limit):
        return -1
    for i in range(n):
        if address[i] >= limit or address[i] + size[i] > limit or size[i] == 0 or op[i] > 1:
            return i


cdef class CacheKernel:
    """The state of one level. The caller has checked the geometry (hwmodel.machine.CacheSpec) and the accesses."""

    cdef edgewatt_cache core
    cdef Transactions out  # kept between calls; all zero at first
    cdef object _arrays
    cdef uint64_t[::1] keys, displaced
    cdef uint32_t[::1] missed
    cdef int64_t[::1] access_of
    cdef const int64_t[::1] next_use
    cdef bint knows_future
    cdef int64_t position, sets, first_access
    cdef int line_shift, through, one_to_one
    cdef readonly int64_t loads, stores, load_lookups, store_lookups, load_misses, store_misses, evictions, writebacks
    cdef readonly int64_t fills, through_writes

    def __init__(self, int64_t sets, int64_t ways, int line_shift, str policy, bint through, bint allocate, uint64_t seed):
        stride = (ways + 7) // 8 * 8
        store = np.full(sets * stride + 8, EDGEWATT_NO_LINE, np.uint64)
        skip = (-store.ctypes.data // 8) % 8  # words up to the next 64-byte boundary
        cdef uint64_t[::1] words = store[skip:]
        next_of = np.zeros(sets * stride if policy == "min" else 1, np.int64)
        tree_of = np.zeros(sets * ways if policy == "plru" else 1, np.uint8)
        pointer_of = np.zeros(sets, np.uint32)
        cdef int64_t[::1] next_view = next_of
        cdef uint8_t[::1] tree = tree_of
        cdef uint32_t[::1] pointer = pointer_of
        self._arrays = store, next_of, tree_of, pointer_of
        self.core.words, self.core.next, self.core.tree, self.core.pointer = &words[0], &next_view[0], &tree[0], &pointer[0]
        self.core.set_mask, self.core.dirty, self.core.random = sets - 1, not through, seed
        self.core.ways, self.core.stride = ways, stride
        self.core.policy, self.core.allocate = POLICY_NUMBER[policy], allocate
        self.sets, self.line_shift, self.through = sets, line_shift, through
        self.keys, self.displaced = np.zeros(BLOCK, np.uint64), np.zeros(BLOCK, np.uint64)
        self.missed, self.access_of = np.zeros(BLOCK, np.uint32), np.zeros(BLOCK, np.int64)

    def set_future(self, const int64_t[::1] next_use):
        """Give MIN the position of the next look-up of the same line (or a large number) for every look-up to come."""
        self.next_use = next_use
        self.knows_future = True
        self.position = 0

    def access(self, const uint8_t[::1] op, const uint64_t[::1] address, size_type[::1] size, bint emit):
        """Make the accesses; return (address, size, is_write, access index) of the transactions, or None if not `emit`."""
        cdef int64_t i = 0, line = -1, m
        cdef int failed = 0
        self.out.n = 0
        if self.core.policy == 4:
            self._check_future(op, address, size)
        with nogil:
            while i < address.shape[0]:
                m = self._expand(op, address, size, &i, &line)
                failed = self._look_up(m, emit, address, size, &self.out)
                if failed:
                    break
        if failed:
            raise MemoryError("no memory for the line transactions: use smaller chunks")
        if emit:
            return self._arrays_of(&self.out)

    def __dealloc__(self):
        release(&self.out)

    cdef _check_future(self, const uint8_t[::1] op, const uint64_t[::1] address, size_type[::1] size):
        cdef int64_t i, n = 0
        for i in range(address.shape[0]):
            n += <int64_t>((address[i] + size[i] - 1) >> self.line_shift) - <int64_t>(address[i] >> self.line_shift) + 1
        if not self.knows_future or self.position + n > self.next_use.shape[0]:
            raise ValueError("policy 'min' has been given no future for these look-ups")

    cdef int64_t _expand(self, const uint8_t[::1] op, const uint64_t[::1] address, size_type[::1] size,
                         int64_t *access, int64_t *line) noexcept nogil:
        """Fill the block with keys from access `access[0]`, line `line[0]` (-1: its first) on; return their number."""
        cdef int64_t i = access[0], n = min(address.shape[0] - i, <int64_t>BLOCK), m = 0, at, last, stores = -1
        cdef int shift = self.line_shift
        cdef const uint8_t *bytes = NULL
        cdef const uint16_t *halves = NULL
        self.first_access = i
        self.one_to_one = 0
        if line[0] < 0:
            if size_type is const_uint8_t:
                bytes = &size[i]
            else:
                halves = &size[i]
            stores = edgewatt_cache_keys(&address[i], bytes, halves, &op[i], n, shift, &self.keys[0])
        if stores >= 0:
            self.one_to_one = 1
            self.stores += stores
            self.loads += n - stores
            self.store_lookups += stores
            self.load_lookups += n - stores
            access[0] = i + n
            return n
        stores, n = 0, address.shape[0]
        while i < n and m < BLOCK:
            at = line[0] if line[0] >= 0 else <int64_t>(address[i] >> shift)
            last = <int64_t>((address[i] + size[i] - 1) >> shift)
            line[0] = -1
            while True:
                self.keys[m] = <uint64_t>at << 1 | op[i]
                self.access_of[m] = i
                m += 1
                stores += op[i]
                if at == last:
                    break
                at += 1
                if m == BLOCK:
                    line[0] = at
                    break
            if line[0] < 0:
                self.stores += op[i]
                self.loads += 1 - op[i]
                i += 1
        self.store_lookups += stores
        self.load_lookups += m - stores
        access[0] = i
        return m

    cdef inline int64_t _access_of(self, int64_t k) noexcept nogil:
        return self.first_access + k if self.one_to_one else self.access_of[k]

    cdef int _look_up(self, int64_t m, bint emit, const uint64_t[::1] address, size_type[::1] size,
                      Transactions *out) noexcept nogil:
        cdef const int64_t *next_use = NULL
        cdef int64_t misses, j, k, store_misses = 0, evictions = 0, writebacks = 0, skipped = 0
        cdef uint64_t victim
        if self.core.policy == 4:
            next_use = &self.next_use[self.position]
        misses = edgewatt_cache_lookups(&self.core, &self.keys[0], next_use, m, &self.missed[0], &self.displaced[0])
        self.position += m
        for j in range(misses):
            victim = self.displaced[j]
            store_misses += self.keys[self.missed[j]] & 1
            evictions += victim < EDGEWATT_NO_FILL
            writebacks += (victim < EDGEWATT_NO_FILL) & (victim & 1)
            skipped += victim == EDGEWATT_NO_FILL
        self.store_misses += store_misses
        self.load_misses += misses - store_misses
        self.evictions += evictions
        self.writebacks += writebacks
        self.fills += misses - skipped
        if not emit:
            if self.through or skipped:
                self.through_writes += self._count_through(m) if self.through else skipped
            return 0
        if reserve(out, 3 * m if self.through else 2 * misses + 1):
            return -1
        if self.core.allocate and not self.through:
            k = out.n
            out.n += edgewatt_cache_emit(
                &self.keys[0], &self.missed[0], &self.displaced[0], misses, NULL if self.one_to_one else &self.access_of[0],
                self.first_access, self.line_shift, out.address + k, out.size + k, out.is_write + k, out.access + k)
            return 0
        if not self.through:
            for j in range(misses):
                self._emit_miss(self.missed[j], self.displaced[j], address, size, out)
            return 0
        j = 0
        for k in range(m):
            if j < misses and self.missed[j] == k:
                if self.displaced[j] != EDGEWATT_NO_FILL:
                    self._emit_miss(k, self.displaced[j], address, size, out)
                j += 1
            if self.keys[k] & 1:
                self._emit_store(k, address, size, out)
        return 0

    cdef int _look_up_one(self, const uint64_t[::1] address, const_uint16_t[::1] size) noexcept nogil:
        return self._look_up(1, True, address, size, &self.out)

    cdef int64_t _count_through(self, int64_t m) noexcept nogil:
        cdef int64_t k, stores = 0
        for k in range(m):
            stores += self.keys[k] & 1
        return stores

    cdef inline void _emit_miss(self, int64_t k, uint64_t victim, const uint64_t[::1] address, size_type[::1] size,
                                Transactions *out) noexcept nogil:
        """A write-back comes before the fill that causes it. A store that does not allocate goes on as it is."""
        if victim == EDGEWATT_NO_FILL:
            self._emit_store(k, address, size, out)
            return
        if victim < EDGEWATT_NO_FILL and victim & 1:
            put(out, (victim >> 1) << self.line_shift, 1 << self.line_shift, 1, self._access_of(k))
        put(out, (self.keys[k] >> 1) << self.line_shift, 1 << self.line_shift, 0, self._access_of(k))

    cdef inline void _emit_store(self, int64_t k, const uint64_t[::1] address, size_type[::1] size,
                                 Transactions *out) noexcept nogil:
        cdef int64_t i = self._access_of(k)
        cdef uint64_t start = (self.keys[k] >> 1) << self.line_shift, end = start + (<uint64_t>1 << self.line_shift)
        start = max(start, address[i])
        end = min(end, address[i] + size[i])
        put(out, start, <int64_t>(end - start), 1, i)
        self.through_writes += 1

    cdef _arrays_of(self, Transactions *out):
        if out.n == 0:
            return np.zeros(0, np.uint64), np.zeros(0, np.uint16), np.zeros(0, np.uint8), np.zeros(0, np.int64)
        return (
            np.array(<uint64_t[:out.n]>out.address),
            np.array(<uint16_t[:out.n]>out.size),
            np.array(<uint8_t[:out.n]>out.is_write),
            np.array(<int64_t[:out.n]>out.access),
        )

    def lookups(self, const uint64_t[::1] address, size_type[::1] size):
        """Return uint64: the line number of every look-up these accesses would make; the state stays as it is."""
        cdef int64_t i, n = 0, k = 0
        cdef uint64_t line, last
        for i in range(address.shape[0]):
            n += <int64_t>((address[i] + size[i] - 1) >> self.line_shift) - <int64_t>(address[i] >> self.line_shift) + 1
        cdef uint64_t[::1] lines = np.empty(n, np.uint64)
        for i in range(address.shape[0]):
            line = address[i] >> self.line_shift
            last = (address[i] + size[i] - 1) >> self.line_shift
            while line <= last:
                lines[k] = line
                k += 1
                line += 1
        return np.asarray(lines)

    def resident(self):
        """Return (line numbers, dirty) of the lines held, uint64 and bool, by ascending line."""
        cdef uint64_t[::1] words = <uint64_t[:self.sets * self.core.stride]>self.core.words
        held = np.asarray(words)
        held = np.sort(held[held != EDGEWATT_NO_LINE])
        return held >> np.uint64(1), (held & np.uint64(1)).astype(bool)

    def clean(self):
        """Mark every resident line clean (after a flush)."""
        cdef int64_t i
        for i in range(self.sets * self.core.stride):
            if self.core.words[i] != EDGEWATT_NO_LINE:
                self.core.words[i] &= ~<uint64_t>1


cdef class PrefetchingKernel(CacheKernel):
    """A level whose demand look-ups make it fetch further lines. Not for policy 'min', which would need their future."""

    cdef Transactions triggers, prefetched  # (line, stride in `access`) of one access; the prefetches of a call
    cdef edgewatt_line_set unused
    cdef edgewatt_prediction *table
    cdef object _own
    cdef bint by_stride
    cdef int64_t degree, distance, entries, first_line, last_line
    cdef readonly int64_t prefetches, useful, useless

    def set_prefetch(self, bint by_stride, int64_t degree, int64_t distance, int64_t entries, int64_t first_line,
                     int64_t last_line):
        """Say what to fetch: stride or next-line, and the lines [first_line, last_line] that may be fetched."""
        cdef int64_t lines = self.sets * self.core.ways, slots = 4
        while slots < 2 * lines:
            slots *= 2
        slots_of = np.full(slots, EDGEWATT_NO_LINE, np.uint64)
        table_of = np.full(entries * sizeof(edgewatt_prediction), 255, np.uint8)  # stream -1: unused
        cdef uint64_t[::1] slot_view = slots_of
        cdef uint8_t[::1] table_view = table_of
        self._own = slots_of, table_of
        self.unused.slots, self.unused.mask = &slot_view[0], slots - 1
        self.table = <edgewatt_prediction *>&table_view[0]
        self.by_stride, self.degree, self.distance, self.entries = by_stride, degree, distance, entries
        self.first_line, self.last_line = first_line, last_line

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
        self.out.n = self.prefetched.n = 0
        self.one_to_one = 0
        with nogil:
            for i in range(address.shape[0]):
                failed = self._demand(i, op[i], address, size, stream[i]) or self._prefetch(i, address, size)
                if failed:
                    break
        if failed:
            raise MemoryError("no memory for the line transactions: use smaller chunks")
        return self._arrays_of(&self.out), self._arrays_of(&self.prefetched)

    cdef int _one(self, int64_t i, uint64_t key, const uint64_t[::1] address, const_uint16_t[::1] size,
                  int64_t *missed) noexcept nogil:
        """One look-up for access i. missed[0]: 0 hit, 1 filled, 2 passed on. Return -1 without memory."""
        cdef int64_t t, start = self.out.n, misses = self.load_misses + self.store_misses, fills = self.fills
        self.keys[0], self.access_of[0] = key, i
        if self._look_up_one(address, size):
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
            if self.by_stride:
                stride = edgewatt_predict(self.table, self.entries, stream, <int64_t>line)
            else:
                stride = missed == 1 or first_use
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
                if edgewatt_find_baseline(self.core.words + (<uint64_t>line & self.core.set_mask) * self.core.stride,
                                          self.core.stride, key) >= 0:
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

    def __dealloc__(self):
        release(&self.triggers)
        release(&self.prefetched)
