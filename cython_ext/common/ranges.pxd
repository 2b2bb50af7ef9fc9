"""Whether ids and pointers stay within what a kernel makes of them: one pass over each, before any is followed."""

from libc.stdint cimport int32_t, int64_t


cdef inline bint within32(const int32_t[::1] ids, int64_t low, int64_t high) noexcept nogil:
    """low <= id < high for all."""
    cdef Py_ssize_t k
    cdef int32_t least = 2147483647, most = -2147483648
    for k in range(ids.shape[0]):
        least, most = min(least, ids[k]), max(most, ids[k])
    return ids.shape[0] == 0 or (least >= low and most < high)


cdef inline bint within64(const int64_t[::1] ids, int64_t low, int64_t high) noexcept nogil:
    """low <= id < high for all."""
    cdef Py_ssize_t k
    cdef int64_t least = high - 1, most = low
    for k in range(ids.shape[0]):
        least, most = min(least, ids[k]), max(most, ids[k])
    return ids.shape[0] == 0 or (least >= low and most < high)


cdef inline bint ends_within(const int32_t[:, ::1] ends, int64_t n) noexcept nogil:
    """int32[W, 2], all of it from 0 to n - 1."""
    cdef Py_ssize_t k
    cdef int32_t least = 2147483647, most = -1
    if ends.shape[1] != 2:
        return False
    for k in range(ends.shape[0]):
        least = min(least, min(ends[k, 0], ends[k, 1]))
        most = max(most, max(ends[k, 0], ends[k, 1]))
    return ends.shape[0] == 0 or (least >= 0 and most < n)


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
