"""One cache level: accesses in, counts and line transactions out. State is kept from call to call."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New, PyCapsule_IsValid

from cython_ext.common.checks cimport need

import numpy as np

ctypedef const uint8_t const_uint8_t
ctypedef const uint16_t const_uint16_t
ctypedef fused size_type:
    const_uint8_t
    const_uint16_t


cdef extern from "cache/policy.h" nogil:
    int EDGEWATT_POLICY_VERSION, EDGEWATT_IN_ORDER, EDGEWATT_IN_TURN, EDGEWATT_EVERY_LOOKUP
    ctypedef struct edgewatt_sets:
        int64_t sets, ways, set_bytes
        uint8_t *state, *shared
        uint64_t random
        void *owner
        int failed
    ctypedef struct edgewatt_policy:
        int32_t version, flags
        int64_t bytes_per_way, bytes_per_set, shared_bytes
        void (*hit)(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next) noexcept nogil
        void (*fill)(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next) noexcept nogil
        int64_t (*victim)(edgewatt_sets *sets, uint64_t set) noexcept nogil


cdef extern from "cache/wide.h" nogil:
    int EW_WIDE_WAY_BITS
    ctypedef struct ew_wide:
        uint32_t *place
        uint64_t mask
        int bits
        uint64_t *last
        uint32_t *recent
        uint64_t *heap
        int64_t room
        int64_t *now, *tail


cdef extern from "cache/sets.h" nogil:
    uint64_t EW_NO_LINE, EW_NO_FILL
    ctypedef struct ew_cache:
        edgewatt_sets sets
        uint64_t *words
        uint32_t *filled
        uint64_t set_mask, dirty
        int64_t ways, stride
        int allocate
        ew_wide *wide
    ctypedef int64_t (*ew_loop)(ew_cache *, const uint64_t *, const int64_t *, int64_t, uint32_t *, uint64_t *) noexcept nogil


cdef extern from "cache/level.h" nogil:
    ctypedef struct Transactions "ew_transactions":
        uint64_t *address
        uint16_t *size
        uint8_t *is_write
        int64_t *access
        int64_t n, capacity
    int reserve "ew_reserve"(Transactions *out, int64_t extra)
    void release "ew_release"(Transactions *out)
    void put "edgewatt_put"(Transactions *out, uint64_t address, int64_t size, int is_write, int64_t access)
    ctypedef struct ew_miss_counts:
        int64_t stores, evictions, writebacks, skipped
    void count_misses "EDGEWATT_WITH_AVX2(ew_count_misses)"(const uint64_t *, const uint32_t *, const uint64_t *, int64_t,
                                                            ew_miss_counts *)
    ew_loop ew_loop_of(const char *name, int64_t stride, const edgewatt_policy **policy)
    ew_loop ew_wide_loop_of(const char *name)
    int64_t lookups_of_any "EDGEWATT_WITH_AVX2(ew_lookups_any)"(
        const edgewatt_policy *, ew_cache *, const uint64_t *, const int64_t *, int64_t, uint32_t *, uint64_t *)
    int64_t find_bad "EDGEWATT_WITH_AVX2(ew_first_bad)"(
        const uint64_t *, const uint8_t *, const uint16_t *, const uint8_t *, int64_t, uint64_t)
    int64_t find_keys "EDGEWATT_WITH_AVX2(ew_keys)"(
        const uint64_t *, const uint8_t *, const uint16_t *, const uint8_t *, int64_t, int, uint64_t *)
    int64_t ew_cache_emit(const uint64_t *, const uint32_t *, const uint64_t *, int64_t, const int64_t *, int64_t, int,
                          uint64_t *, uint16_t *, uint8_t *, int64_t *)


cdef enum:
    MANY_WAYS = 64  # with more, LRU, FIFO and MIN do not search the words of a set (cache/wide.h)
    BLOCK = 4096  # look-ups per call of the core: keys, misses and victims together stay in the host's first cache

cdef int64_t MOST_LINES = <int64_t>1 << 40


cdef int64_t _first_bad(const uint64_t[::1] address, size_type[::1] size, const uint8_t[::1] op, uint64_t limit) except -2:
    cdef const uint8_t *bytes = NULL
    cdef const uint16_t *halves = NULL
    need(size.shape[0] == address.shape[0] and op.shape[0] == address.shape[0], "a size and an operation for each address")
    if address.shape[0] == 0:
        return -1
    if size_type is const_uint8_t:
        bytes = &size[0]
    else:
        halves = &size[0]
    return find_bad(&address[0], bytes, halves, &op[0], address.shape[0], limit)


def first_bad_access(const uint64_t[::1] address, size_type[::1] size, const uint8_t[::1] op, uint64_t limit):
    """Return the index of the first access that is empty, not 0 or 1 in `op`, or does not end by `limit`; or -1."""
    return _first_bad(address, size, op, limit)


# A policy written in Python: its methods are called for each decision. The first exception ends the look-ups.

cdef void _python_hit(edgewatt_sets *sets, uint64_t set_, int64_t way, int64_t next_) noexcept with gil:
    _call(sets, "hit", (set_, way, next_))


cdef void _python_fill(edgewatt_sets *sets, uint64_t set_, int64_t way, int64_t next_) noexcept with gil:
    _call(sets, "fill", (set_, way, next_))


cdef int64_t _python_victim(edgewatt_sets *sets, uint64_t set_) noexcept with gil:
    way = _call(sets, "victim", (set_,))
    owner = <list>sets.owner
    if owner[1] is None and isinstance(way, np.integer):
        way = int(way)
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


cdef const edgewatt_policy *_compiled(policy) except? NULL:
    """Return what a name, address or PyCapsule stands for, as far as can be checked; null for others."""
    cdef const edgewatt_policy *found = NULL
    cdef bytes name
    if isinstance(policy, str):
        name = policy.encode()
        ew_loop_of(name, 8, &found)
        need(found != NULL, f"no compiled policy {policy!r} (cython_ext/cache/policies/policy_{policy}.h)")
    elif isinstance(policy, int):
        # no structure lies in the first page of memory, or across words
        need(4096 <= policy < 2**63 and policy % 8 == 0, f"kernel {policy!r} is no address of an edgewatt_policy")
        found = <const edgewatt_policy *><size_t>policy
    elif PyCapsule_IsValid(policy, "edgewatt.cache_policy"):
        found = <const edgewatt_policy *>PyCapsule_GetPointer(policy, "edgewatt.cache_policy")
    else:
        return NULL
    need(found.version == EDGEWATT_POLICY_VERSION,
         f"a compiled policy of version {found.version} of cache/policy.h: build it again for {EDGEWATT_POLICY_VERSION}")
    need(min(found.bytes_per_set, found.bytes_per_way, found.shared_bytes) >= 0,
         "a compiled policy with a negative size of its state")
    need(found.victim != NULL or found.flags & (EDGEWATT_IN_ORDER | EDGEWATT_IN_TURN),
         "a compiled policy without `victim`, and its flags do not say which line goes")
    return found


def compiled_policy(policy):
    """Return the PyCapsule "edgewatt.cache_policy" of a compiled policy's name or address, or it; None for others.

    Raises ValueError for a name of none and for what cannot be one."""
    cdef const edgewatt_policy *found = _compiled(policy)
    if found == NULL or not isinstance(policy, (str, int)):
        return None if found == NULL else policy
    return PyCapsule_New(<void *>found, "edgewatt.cache_policy", NULL)


cdef class CacheKernel:
    """The state of one level. sets: a power of two. line_shift: to 15. Accesses end by 2^63 and have a byte or more.

    policy: name of a compiled policy, the address (int) or PyCapsule "edgewatt.cache_policy" of an edgewatt_policy
    (cache/policy.h), or an object with the methods hit, fill and victim. needs_future: it gets next uses.
    """

    cdef ew_cache core
    cdef ew_loop loop  # of a compiled policy; null: the policy decides through its functions
    cdef const edgewatt_policy *policy
    cdef edgewatt_policy in_python
    cdef ew_wide wide  # where it looks up sets of many ways
    cdef Transactions out  # kept between calls; all zero at first
    cdef object _arrays, _owner
    cdef uint64_t[::1] keys, displaced
    cdef uint32_t[::1] missed
    cdef int64_t[::1] access_of
    cdef const int64_t[::1] next_use
    cdef uint8_t[::1] noted  # of the next call of `access`: whether each look-up missed
    cdef int64_t noted_from
    cdef bint needs_future, knows_future, noting
    cdef int64_t position, sets, first_access, stores_here  # of the block of look-ups
    cdef int line_shift, through, one_to_one
    cdef readonly int64_t loads, stores, load_lookups, store_lookups, load_misses, store_misses, evictions, writebacks
    cdef readonly int64_t fills, through_writes

    def __init__(self, int64_t sets, int64_t ways, int line_shift, policy, bint needs_future, bint through, bint allocate,
                 uint64_t seed):
        need(sets > 0 and sets & (sets - 1) == 0 and 0 < ways <= MOST_LINES and sets <= MOST_LINES // ways,
             "sets, a power of two, and ways, 2^40 lines at most")
        need(0 <= line_shift <= 15, "lines of 1 to 32768 bytes")
        stride = (ways + 7) // 8 * 8
        store = np.full(sets * stride + 8, EW_NO_LINE, np.uint64)
        cdef uint64_t[::1] words = store
        words = words[(64 - (<size_t>&words[0] & 63)) // 8 % 8 :]  # from the next 64-byte boundary on
        _find_policy(self, policy, stride)
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
        if isinstance(policy, str) and ways > MANY_WAYS:
            _index_ways(self, policy)
        self.needs_future = needs_future
        self.sets, self.line_shift, self.through = sets, line_shift, through
        self.keys, self.displaced = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
        self.missed, self.access_of = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.int64)

    cdef fail(self):
        """Raise what ended the look-ups."""
        if self.core.sets.owner != NULL and self._owner[1] is not None:
            raise self._owner[1]
        if self.core.sets.failed:
            raise ValueError("the replacement policy chose a way that its set does not have")
        raise MemoryError("no memory for the line transactions: use smaller chunks")

    def set_future(self, const int64_t[::1] next_use):
        """Give the policy the position of the next look-up of the same line (or a large number) for every look-up to
        come."""
        self.next_use = next_use
        self.knows_future = True
        self.position = 0

    def note_misses(self, uint8_t[::1] missed):
        """Have the next call of `access` write 1 for each of its look-ups that misses."""
        self.noted, self.noting, self.noted_from = missed, True, 0

    def access(self, const uint8_t[::1] op, const uint64_t[::1] address, size_type[::1] size, bint emit):
        """Make the accesses; return (address, size, is_write, access index) of the transactions, or None if not
        `emit`."""
        cdef int64_t i = 0, line = -1, m, n
        cdef int failed = 0
        self.out.n = 0
        need(_first_bad(address, size, op, _limit(self)) < 0, "accesses that a level takes")
        if self.needs_future or self.noting:
            n = _count_lookups(self, address, size)
            need(not self.needs_future or (self.knows_future and n <= self.next_use.shape[0] - self.position),
                 "the policy has been given no future for these look-ups")
            need(not self.noting or n <= self.noted.shape[0], "a mark for each look-up")
        with nogil:
            while i < address.shape[0]:
                m = _expand(self, op, address, size, &i, &line)
                failed = _look_up(self, m, emit, address, size)
                if failed:
                    break
        self.noting = False
        if failed:
            self.fail()
        if emit:
            return self._transactions()

    def __dealloc__(self):
        release(&self.out)

    cdef _transactions(self):
        cdef Transactions *out = &self.out
        if out.n == 0:
            return np.zeros(0, np.uint64), np.zeros(0, np.uint16), np.zeros(0, np.uint8), np.zeros(0, np.int64)
        return (
            np.array(<uint64_t[:out.n]>out.address),
            np.array(<uint16_t[:out.n]>out.size),
            np.array(<uint8_t[:out.n]>out.is_write),
            np.array(<int64_t[:out.n]>out.access),
        )

    def resident(self):
        """Return (line numbers, dirty) of the lines held, uint64 and bool, by ascending line."""
        cdef uint64_t[::1] words = <uint64_t[:self.sets * self.core.stride]>self.core.words
        held = np.asarray(words)
        held = np.sort(held[held != EW_NO_LINE])
        return held >> np.uint64(1), (held & np.uint64(1)).astype(bool)

    def occupancy(self):
        """Return how many lines are held, and how many of them are dirty."""
        cdef int64_t i, held = 0, dirty = 0
        for i in range(self.sets * self.core.stride):
            if self.core.words[i] != EW_NO_LINE:
                held += 1
                dirty += self.core.words[i] & 1
        return held, dirty

    def clean(self):
        """Mark every resident line clean (after a flush)."""
        cdef int64_t i
        for i in range(self.sets * self.core.stride):
            if self.core.words[i] != EW_NO_LINE:
                self.core.words[i] &= ~<uint64_t>1


cdef _find_policy(CacheKernel self, policy, int64_t stride):
    cdef bytes name
    self.policy = _compiled(policy)
    if self.policy == NULL:
        for method in ("hit", "fill", "victim"):
            need(callable(getattr(policy, method, None)), f"{policy!r} is no compiled policy and has no method {method!r}")
        self._owner = [policy, None]
        self.core.sets.owner = <void *>self._owner
        self.in_python.version, self.in_python.flags = EDGEWATT_POLICY_VERSION, EDGEWATT_EVERY_LOOKUP
        self.in_python.hit, self.in_python.fill, self.in_python.victim = _python_hit, _python_fill, _python_victim
        self.policy = &self.in_python
    elif isinstance(policy, str):
        name = policy.encode()
        self.loop = ew_loop_of(name, stride, &self.policy)
    else:
        self._owner = policy  # a capsule keeps what it holds


cdef _index_ways(CacheKernel self, str policy):
    """Have a level of many ways look up its lines in a table, where its policy can."""
    cdef bytes name = policy.encode()
    cdef int64_t words = self.core.sets.sets * self.core.stride, room = 4
    cdef ew_loop loop = ew_wide_loop_of(name)
    if loop == NULL or words >= 2**31 or self.core.ways >= <int64_t>1 << EW_WIDE_WAY_BITS:
        return
    self.wide.bits = 2
    while <int64_t>1 << self.wide.bits < 2 * words:
        self.wide.bits += 1
    while room < 4 * self.core.ways:
        room *= 2
    self.wide.mask, self.wide.room = (<uint64_t>1 << self.wide.bits) - 1, room
    listed, heaped = (self.core.sets.sets * room if policy == each else 1 for each in ("lru", "min"))
    arrays = (np.zeros(1 << self.wide.bits, np.uint32), np.zeros(words, np.uint64), np.zeros(listed, np.uint32),
              np.zeros(heaped, np.uint64), np.zeros(self.core.sets.sets, np.int64), np.zeros(self.core.sets.sets, np.int64))
    cdef uint32_t[::1] place = arrays[0], recent = arrays[2]
    cdef uint64_t[::1] last = arrays[1], heap = arrays[3]
    cdef int64_t[::1] now = arrays[4], tail = arrays[5]
    self.wide.place, self.wide.last, self.wide.recent, self.wide.heap = &place[0], &last[0], &recent[0], &heap[0]
    self.wide.now, self.wide.tail = &now[0], &tail[0]
    self._arrays += arrays
    self.core.wide, self.loop = &self.wide, loop


cdef uint64_t _limit(CacheKernel self) noexcept nogil:
    """With lines of a byte the last line's number would be the mark of an empty way."""
    return (<uint64_t>1 << 63) - (self.line_shift == 0)


cdef int64_t _count_lookups(CacheKernel self, const uint64_t[::1] address, size_type[::1] size) except -1:
    cdef int64_t i, n = 0
    cdef bint good = True
    need(size.shape[0] == address.shape[0], "a size for each address")
    for i in range(address.shape[0]):
        good &= size[i] > 0 and address[i] < _limit(self) and size[i] <= _limit(self) - address[i]
        n += <int64_t>((address[i] + size[i] - 1) >> self.line_shift) - <int64_t>(address[i] >> self.line_shift) + 1
    need(good, "accesses that a level takes")
    return n


cdef int64_t _expand(CacheKernel self, const uint8_t[::1] op, const uint64_t[::1] address, size_type[::1] size,
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
        stores = find_keys(&address[i], bytes, halves, &op[i], n, shift, &self.keys[0])
    if stores >= 0:
        self.one_to_one = 1
        self.stores_here = stores
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
    self.stores_here = stores
    self.store_lookups += stores
    self.load_lookups += m - stores
    access[0] = i
    return m


cdef inline int64_t _access_of(CacheKernel self, int64_t k) noexcept nogil:
    return self.first_access + k if self.one_to_one else self.access_of[k]


cdef int _look_up(CacheKernel self, int64_t m, bint emit, const uint64_t[::1] address, size_type[::1] size) noexcept nogil:
    cdef Transactions *out = &self.out
    cdef const int64_t *next_use = NULL
    cdef int64_t misses, j, k
    cdef ew_miss_counts found
    if self.needs_future:
        next_use = &self.next_use[self.position]
    if self.loop != NULL:
        misses = self.loop(&self.core, &self.keys[0], next_use, m, &self.missed[0], &self.displaced[0])
    else:
        misses = lookups_of_any(
            self.policy, &self.core, &self.keys[0], next_use, m, &self.missed[0], &self.displaced[0])
        if self.core.sets.failed:
            return -1
    self.position += m
    if self.noting:
        for j in range(misses):
            self.noted[self.noted_from + self.missed[j]] = 1
        self.noted_from += m
    count_misses(&self.keys[0], &self.missed[0], &self.displaced[0], misses, &found)
    self.store_misses += found.stores
    self.load_misses += misses - found.stores
    self.evictions += found.evictions
    self.writebacks += found.writebacks
    self.fills += misses - found.skipped
    if not emit:
        self.through_writes += self.stores_here if self.through else found.skipped
        return 0
    if reserve(out, 3 * m if self.through else 2 * misses + 1):
        return -1
    if self.core.allocate and not self.through:
        k = out.n
        out.n += ew_cache_emit(
            &self.keys[0], &self.missed[0], &self.displaced[0], misses, NULL if self.one_to_one else &self.access_of[0],
            self.first_access, self.line_shift, out.address + k, out.size + k, out.is_write + k, out.access + k)
        return 0
    if not self.through:
        for j in range(misses):
            _emit_miss(self, self.missed[j], self.displaced[j], address, size, out)
        return 0
    j = 0
    for k in range(m):
        if j < misses and self.missed[j] == k:
            if self.displaced[j] != EW_NO_FILL:
                _emit_miss(self, k, self.displaced[j], address, size, out)
            j += 1
        if self.keys[k] & 1:
            _emit_store(self, k, address, size, out)
    return 0


cdef inline void _emit_miss(CacheKernel self, int64_t k, uint64_t victim, const uint64_t[::1] address, size_type[::1] size,
                            Transactions *out) noexcept nogil:
    """A write-back comes before the fill that causes it. A store that does not allocate goes on as it is."""
    if victim == EW_NO_FILL:
        _emit_store(self, k, address, size, out)
        return
    if victim < EW_NO_FILL and victim & 1:
        put(out, (victim >> 1) << self.line_shift, 1 << self.line_shift, 1, _access_of(self, k))
    put(out, (self.keys[k] >> 1) << self.line_shift, 1 << self.line_shift, 0, _access_of(self, k))

cdef inline void _emit_store(CacheKernel self, int64_t k, const uint64_t[::1] address, size_type[::1] size,
                             Transactions *out) noexcept nogil:
    cdef int64_t i = _access_of(self, k)
    cdef uint64_t start = (self.keys[k] >> 1) << self.line_shift, end = start + (<uint64_t>1 << self.line_shift)
    start = max(start, address[i])
    end = min(end, address[i] + size[i])
    put(out, start, <int64_t>(end - start), 1, i)
    self.through_writes += 1
