"""Stack distances of an access stream; iomodel/lru_stack.h."""

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "iomodel/lru_stack.h" nogil:
    ctypedef struct ew_stack:
        int64_t n, n_slots, n_words, now, marks, cold
        int64_t *slot
        int64_t *owner
        uint64_t *mark
        int64_t *fenwick
        int64_t *longest
        int64_t *reads
        int64_t *writes
    void ew_stack_run(ew_stack *, const int32_t *, const int32_t *, int64_t, int64_t, int)
