"""What a core can do at most: bytes read per second from a buffer of a given size, and multiply-adds per second."""

from libc.stdint cimport int64_t, uintptr_t

cdef extern from "inference/probe.h" nogil:
    void ew_read(const char *, int64_t, int64_t, int)
    int ew_fma(int64_t, int)


def read(uintptr_t address, int64_t size_bytes, int64_t times, int level):
    """Read `size_bytes` (a multiple of 512, aligned to 64) `times` times without the GIL."""
    with nogil:
        ew_read(<const char *>address, size_bytes, times, level)


def multiply_add(int64_t steps, int level):
    """Work through `steps` steps without the GIL; return the floating-point operations of one step."""
    cdef int flops
    with nogil:
        flops = ew_fma(steps, level)
    return flops
