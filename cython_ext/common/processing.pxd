"""An order of connections, checked while it is played; common/processing.h."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef extern from "common/processing.h" nogil:
    enum: EW_AHEAD, EW_BLOCK
    ctypedef struct ew_processing:
        const int32_t *ends
        const int64_t *order
        int64_t w
        uint64_t *met
        uint8_t *closed
        int32_t previous_target
        int64_t runs
    bint ew_take_forwards(ew_processing *, int64_t, int64_t, int32_t *, int32_t *)
    bint ew_take_backwards(ew_processing *, int64_t, int64_t, int32_t *, int32_t *)
    bint ew_take_asked(ew_processing *, int64_t, int64_t, int32_t *, int32_t *)
