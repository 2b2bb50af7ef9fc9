from libc.stdint cimport int64_t, uint32_t


cdef class Passes:
    cdef const uint32_t[::1] runs, places, weights
    cdef const int64_t[::1] fed, fed_to, copied_from, copied_to, output_rows
    cdef const double[::1] scales
    cdef readonly int64_t columns
    cdef int64_t end, pitch, table_bytes
    cdef int kind, level
    cdef void _pack(self, char *table, const float[:, :] batch, int64_t first, int64_t here) noexcept nogil
    cdef void _execute(self, char *values, const char *table) noexcept nogil
    cdef void _run(self, char *values, char *table, const float[:, :] batch, bint packed, float *out, int64_t n,
                   int64_t first, int64_t lanes, int64_t step) noexcept nogil
