"""One cache level, for the kernels of cython_ext.cache that build on it."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef const uint8_t const_uint8_t
ctypedef const uint16_t const_uint16_t
ctypedef fused size_type:
    const_uint8_t
    const_uint16_t


cdef extern from "cache/policy.h" nogil:
    int EDGEWATT_POLICY_VERSION, EDGEWATT_IN_ORDER, EDGEWATT_IN_TURN, EDGEWATT_EVERY_LOOKUP
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


cdef extern from "cache/wide.h" nogil:
    int EDGEWATT_WIDE_WAY_BITS
    ctypedef struct edgewatt_wide:
        uint32_t *place
        uint64_t mask
        int bits
        uint64_t *last
        uint32_t *recent
        uint64_t *heap
        int64_t room
        int64_t *now
        int64_t *tail


cdef extern from "cache/sets.h" nogil:
    uint64_t EDGEWATT_NO_LINE, EDGEWATT_NO_FILL
    ctypedef struct edgewatt_cache:
        edgewatt_sets sets
        uint64_t *words
        uint32_t *filled
        uint64_t set_mask, dirty
        int64_t ways, stride
        int allocate
        edgewatt_wide *wide
    ctypedef int64_t (*edgewatt_loop)(edgewatt_cache *cache, const uint64_t *keys, const int64_t *next_use, int64_t n,
                                      uint32_t *missed, uint64_t *displaced) noexcept nogil


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


cdef class CacheKernel:
    cdef edgewatt_cache core
    cdef edgewatt_loop loop  # of a compiled policy; null: the policy decides through its functions
    cdef const edgewatt_policy *policy
    cdef edgewatt_policy in_python
    cdef edgewatt_wide wide  # where it looks up sets of many ways
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

    cdef arrays_of(self, Transactions *out)
    cdef fail(self)
