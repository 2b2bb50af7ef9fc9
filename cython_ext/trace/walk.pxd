"""The walk's state and where its accesses go, for the walks of cython_ext.trace."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t


cdef extern from "trace/walk.h" nogil:
    ctypedef struct ew_sink:
        uint64_t *address
        uint8_t *size8
        uint16_t *size16
        uint8_t *op, *stream
        int64_t *payload_offset
        uint8_t *payload
        double *work
        int64_t n, capacity
    ctypedef struct ew_element:
        int64_t offset, bits, stream
        const int64_t *slot
    ctypedef struct ew_walk:
        const int32_t *source, *target
        const float *weight, *bias, *slope
        const uint8_t *finish, *hand_over
        int64_t n_steps
        ew_element element[4]
        int64_t n_elements
        const int64_t *event_step, *event_offset
        const uint8_t *event_size, *event_stream
        int64_t n_events
        uint8_t *image
        uint64_t base
        int64_t neurons, lanes, value_bytes, row_bytes, row_pitch, pass_bytes, n_passes
        int64_t sums_at, sum_row_bytes, sum_pitch, sum_pass_bytes
        const float *multiplier
        const int32_t *zero
        int format, registers, input_stream, partial_stream, output_stream
        int64_t number
        float *source_row, *sums
        int32_t *integers
    int EDGEWATT_MOST_ELEMENTS
    void ew_start_pass(ew_walk *walk)
    void ew_fill(ew_walk *walk, ew_sink *out)


cdef class ForwardWalk:
    cdef ew_walk walk
    cdef object owners  # the arrays that `walk` points into
    cdef int64_t widest  # bytes of an access


cdef int open_sink(ew_sink *out, int64_t widest, uint64_t[::1] address, size, uint8_t[::1] op, uint8_t[::1] stream,
                   int64_t[::1] payload_offset, uint8_t[::1] payload) except -1
