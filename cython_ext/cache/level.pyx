"""One cache level: accesses in, counts and line transactions out. State is kept from call to call."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid

import numpy as np

ctypedef const uint8_t const_uint8_t
ctypedef const uint16_t const_uint16_t
ctypedef fused size_type:
    const_uint8_t
    const_uint16_t


cdef extern from "cache/policy.h" nogil:
    int EDGEWATT_POLICY_VERSION, EDGEWATT_EVERY_LOOKUP
    ctypedef struct edgewatt_sets:
        int64_t sets, ways, set_bytes
        uint8_t *state
        uint8_t *shared
        uint64_t random
        void *owner
        int failed
    ctypedef struct edgewatt_policy:
        int32_t version, flags
        int64_t bytes_per_way, bytes_per_set, shared_bytes
        void (*hit)(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next) noexcept nogil
        void (*fill)(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next) noexcept nogil
        int64_t (*victim)(edgewatt_sets *sets, uint64_t set) noexcept nogil


cdef extern from "cache/level.h" nogil:
    uint64_t EDGEWATT_NO_LINE, EDGEWATT_NO_FILL
    ctypedef struct edgewatt_cache:
        edgewatt_sets sets
        uint64_t *words
        uint32_t *filled
        uint64_t set_mask, dirty
        int64_t ways, stride
        int allocate
    ctypedef int64_t (*edgewatt_loop)(edgewatt_cache *cache, const uint64_t *keys, const int64_t *next_use, int64_t n,
                                      uint32_t *missed, uint64_t *displaced) noexcept nogil
    edgewatt_loop edgewatt_loop_of(const char *name, int64_t stride, const edgewatt_policy **policy)
    int64_t edgewatt_lookups_outside(const edgewatt_policy *policy, edgewatt_cache *cache, const uint64_t *keys,
                                     const int64_t *next_use, int64_t n, uint32_t *missed, uint64_t *displaced)
    int edgewatt_cache_all_good(const uint64_t *address, const uint8_t *bytes, const uint16_t *halves,
                                const uint8_t *op, int64_t n, uint64_t limit)
    int64_t edgewatt_cache_keys(const uint64_t *address, const uint8_t *bytes, const uint16_t *halves,
                                const uint8_t *op, int64_t n, int shift, uint64_t *keys)
    int64_t edgewatt_cache_emit(const uint64_t *keys, const uint32_t *missed, const uint64_t *displaced, int64_t misses,
                                const int64_t *access, int64_t first, int shift, uint64_t *to_address,
                                uint16_t *to_size, uint8_t *to_write, int64_t *to_access)
    int64_t edgewatt_find_baseline(const uint64_t *words, int64_t stride, uint64_t key)


cdef extern from "cache/transactions.h" nogil:
    ctypedef struct Transactions "edgewatt_transactions":
        uint64_t *address
        uint16_t *size
        uint8_t *is_write
        int64_t *access
        int64_t n, capacity
    int reserve "edgewatt_reserve"(Transactions *out, int64_t extra)
    void release "edgewatt_release"(Transactions *out)
    void put "edgewatt_put"(Transactions *out, uint64_t address, int64_t size, int is_write, int64_t access)


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


cdef enum:
    BLOCK = 4096  # look-ups per call of the core: keys, misses and victims together stay in the host's first cache


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


# A policy written in Python: its methods are called for each decision. The first exception ends the look-ups.

cdef void _python_hit(edgewatt_sets *sets, uint64_t set_, int64_t way, int64_t next_) noexcept with gil:
    _call(sets, "hit", (set_, way, next_))


cdef void _python_fill(edgewatt_sets *sets, uint64_t set_, int64_t way, int64_t next_) noexcept with gil:
    _call(sets, "fill", (set_, way, next_))


cdef int64_t _python_victim(edgewatt_sets *sets, uint64_t set_) noexcept with gil:
    way = _call(sets, "victim", (set_,))
    owner = <list>sets.owner
    if owner[1] is None and not (isinstance(way, int) and 0 <= way < sets.ways):
        owner[1] = ValueError(f"{type(owner[0]).__name__}.victim returned {way!r}, not a way from 0 to {sets.ways - 1}")
    return -1 if owner[1] is not None else <int64_t>way


cdef object _call(edgewatt_sets *sets, str method, tuple arguments):
    owner = <list>sets.owner  # the policy and what it raised
    if owner[1] is not None:
        return None
    try:
        return getattr(owner[0], method)(*arguments)
    except BaseException as error:
        owner[1] = error
        sets.failed = 1


cdef class CacheKernel:
    """The state of one level. The caller has checked the geometry (hwmodel.machine.CacheSpec) and the accesses.

    policy: name of a compiled policy, the address (int) or PyCapsule "edgewatt.cache_policy" of an edgewatt_policy
    (cache/policy.h), or an object with the methods hit, fill and victim. needs_future: it is told next uses.
    """

    cdef edgewatt_cache core
    cdef edgewatt_loop loop  # of a compiled policy; null: the policy decides through its functions
    cdef const edgewatt_policy *policy
    cdef edgewatt_policy in_python
    cdef Transactions out  # kept between calls; all zero at first
    cdef object _arrays, _owner
    cdef uint64_t[::1] keys, displaced
    cdef uint32_t[::1] missed
    cdef int64_t[::1] access_of
    cdef const int64_t[::1] next_use
    cdef uint8_t[::1] noted  # of the next call of `access`: whether each look-up missed
    cdef int64_t noted_from
    cdef bint needs_future, knows_future, noting
    cdef int64_t position, sets, first_access
    cdef int line_shift, through, one_to_one
    cdef readonly int64_t loads, stores, load_lookups, store_lookups, load_misses, store_misses, evictions, writebacks
    cdef readonly int64_t fills, through_writes

    def __init__(self, int64_t sets, int64_t ways, int line_shift, policy, bint needs_future, bint through, bint allocate,
                 uint64_t seed):
        stride = (ways + 7) // 8 * 8
        store = np.full(sets * stride + 8, EDGEWATT_NO_LINE, np.uint64)
        skip = (-store.ctypes.data // 8) % 8  # words up to the next 64-byte boundary
        cdef uint64_t[::1] words = store[skip:]
        self._find_policy(policy, stride)
        each = int(self.policy.bytes_per_set) + int(ways) * int(self.policy.bytes_per_way)
        state = np.zeros(sets * each // 8 + 1, np.uint64)
        shared = np.zeros(int(self.policy.shared_bytes) // 8 + 1, np.uint64)
        filled_of = np.zeros(sets, np.uint32)
        cdef uint64_t[::1] state_view = state, shared_view = shared
        cdef uint32_t[::1] filled = filled_of
        self._arrays = store, state, shared, filled_of
        self.core.words, self.core.filled = &words[0], &filled[0]
        self.core.sets.sets, self.core.sets.ways, self.core.sets.set_bytes = sets, ways, each
        self.core.sets.state, self.core.sets.shared = <uint8_t *>&state_view[0], <uint8_t *>&shared_view[0]
        self.core.sets.random = seed
        self.core.set_mask, self.core.dirty = sets - 1, not through
        self.core.ways, self.core.stride, self.core.allocate = ways, stride, allocate
        self.needs_future = needs_future
        self.sets, self.line_shift, self.through = sets, line_shift, through
        self.keys, self.displaced = np.zeros(BLOCK, np.uint64), np.zeros(BLOCK, np.uint64)
        self.missed, self.access_of = np.zeros(BLOCK, np.uint32), np.zeros(BLOCK, np.int64)

    cdef _find_policy(self, policy, int64_t stride):
        cdef bytes name
        if isinstance(policy, str):
            name = policy.encode()
            self.loop = edgewatt_loop_of(name, stride, &self.policy)
            if self.loop == NULL:
                raise ValueError(f"no compiled policy {policy!r} (cython_ext/cache/policy_{policy}.h)")
        elif isinstance(policy, int):
            self.policy = <const edgewatt_policy *><size_t>policy
        elif PyCapsule_IsValid(policy, "edgewatt.cache_policy"):
            self.policy = <const edgewatt_policy *>PyCapsule_GetPointer(policy, "edgewatt.cache_policy")
            self._owner = policy
        else:
            self._owner = [policy, None]
            self.core.sets.owner = <void *>self._owner
            self.in_python.version, self.in_python.flags = EDGEWATT_POLICY_VERSION, EDGEWATT_EVERY_LOOKUP
            self.in_python.hit, self.in_python.fill, self.in_python.victim = _python_hit, _python_fill, _python_victim
            self.policy = &self.in_python
        if self.policy == NULL or self.policy.version != EDGEWATT_POLICY_VERSION:
            raise ValueError(f"a compiled policy of another version than {EDGEWATT_POLICY_VERSION} of cache/policy.h")
        if min(self.policy.bytes_per_set, self.policy.bytes_per_way, self.policy.shared_bytes) < 0:
            raise ValueError("a compiled policy with a negative size of its state")

    def _raise(self):
        """Raise what ended the look-ups."""
        if self.core.sets.owner != NULL and self._owner[1] is not None:
            raise self._owner[1]
        if self.core.sets.failed:
            raise ValueError("the replacement policy chose a way that its set does not have")
        raise MemoryError("no memory for the line transactions: use smaller chunks")

    def set_future(self, const int64_t[::1] next_use):
        """Give the policy the position of the next look-up of the same line (or a large number) for every look-up to come."""
        self.next_use = next_use
        self.knows_future = True
        self.position = 0

    def note_misses(self, uint8_t[::1] missed):
        """Have the next call of `access` write 1 for each of its look-ups that misses."""
        self.noted, self.noting, self.noted_from = missed, True, 0

    def access(self, const uint8_t[::1] op, const uint64_t[::1] address, size_type[::1] size, bint emit):
        """Make the accesses; return (address, size, is_write, access index) of the transactions, or None if not `emit`."""
        cdef int64_t i = 0, line = -1, m
        cdef int failed = 0
        self.out.n = 0
        if self.needs_future:
            self._check_future(op, address, size)
        with nogil:
            while i < address.shape[0]:
                m = self._expand(op, address, size, &i, &line)
                failed = self._look_up(m, emit, address, size, &self.out)
                if failed:
                    break
        self.noting = False
        if failed:
            self._raise()
        if emit:
            return self._arrays_of(&self.out)

    def __dealloc__(self):
        release(&self.out)

    cdef _check_future(self, const uint8_t[::1] op, const uint64_t[::1] address, size_type[::1] size):
        cdef int64_t i, n = 0
        for i in range(address.shape[0]):
            n += <int64_t>((address[i] + size[i] - 1) >> self.line_shift) - <int64_t>(address[i] >> self.line_shift) + 1
        if not self.knows_future or self.position + n > self.next_use.shape[0]:
            raise ValueError("the policy has been given no future for these look-ups")

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
        if self.needs_future:
            next_use = &self.next_use[self.position]
        if self.loop != NULL:
            misses = self.loop(&self.core, &self.keys[0], next_use, m, &self.missed[0], &self.displaced[0])
        else:
            misses = edgewatt_lookups_outside(
                self.policy, &self.core, &self.keys[0], next_use, m, &self.missed[0], &self.displaced[0])
            if self.core.sets.failed:
                return -1
        self.position += m
        if self.noting:
            for j in range(misses):
                self.noted[self.noted_from + self.missed[j]] = 1
            self.noted_from += m
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
        cdef int64_t lines = self.sets * self.core.ways, slots = 4
        cdef bytes name
        while slots < 2 * lines:
            slots *= 2
        entry_bytes = 0
        if isinstance(prefetcher, str):
            name = prefetcher.encode()
            self.prefetcher = edgewatt_prefetcher_of(name)
            if self.prefetcher == NULL:
                raise ValueError(f"no compiled prefetcher {prefetcher!r} (cython_ext/cache/prefetch_{prefetcher}.h)")
            entry_bytes = self.prefetcher.entry_bytes
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
            self._raise()
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
