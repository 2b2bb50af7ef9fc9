"""Whether ids and pointers stay within what a kernel makes of them: one pass over each, before any is followed."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint32_t, uint64_t


cdef inline bint _within32(const int32_t* ids, Py_ssize_t n, int64_t low, int64_t high) noexcept nogil:
    # The sign of id - low or of last - id says that it is outside, also where the difference wraps around: then the
    # other one's does. Vectors have no minimum of such numbers before SSE 4.1.
    cdef Py_ssize_t k
    cdef uint32_t first = <uint32_t> low, last = <uint32_t> min(high - 1, <int64_t> INT32_MAX), signs = 0
    if high <= low:
        return n == 0
    for k in range(n):
        signs |= (<uint32_t> ids[k] - first) | (last - <uint32_t> ids[k])
    return signs >> 31 == 0


cdef inline bint within32(const int32_t[::1] ids, int64_t low, int64_t high) noexcept nogil:
    """low <= id < high for all; low >= -2^31, no more than 2^31 numbers in the range."""
    return ids.shape[0] == 0 or _within32(&ids[0], ids.shape[0], low, high)


cdef inline bint within64(const int64_t[::1] ids, int64_t low, int64_t high) noexcept nogil:
    """low <= id < high for all; no more than 2^63 numbers in the range."""
    cdef Py_ssize_t k
    cdef uint64_t first = <uint64_t> low, last = <uint64_t> high - 1, signs = 0
    if high <= low:
        return ids.shape[0] == 0
    for k in range(ids.shape[0]):
        signs |= (<uint64_t> ids[k] - first) | (last - <uint64_t> ids[k])
    return signs >> 63 == 0


cdef inline bint ends_within(const int32_t[:, ::1] ends, int64_t n) noexcept nogil:
    """int32[W, 2], all of it from 0 to n - 1."""
    return ends.shape[1] == 2 and (ends.shape[0] == 0 or _within32(&ends[0, 0], 2 * ends.shape[0], 0, n))


ctypedef fused pointer:
    const int32_t
    const int64_t


cdef inline bint rises(pointer[::1] pointers, int64_t last) noexcept nogil:
    """From 0 to `last`, none below the one before."""
    cdef Py_ssize_t k, n = pointers.shape[0]
    cdef bint rising = True
    if n == 0 or pointers[0] != 0 or pointers[n - 1] != last:
        return False
    for k in range(1, n):
        rising &= pointers[k - 1] <= pointers[k]
    return rising
