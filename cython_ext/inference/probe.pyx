"""What a core can do at most: multiply-adds per second."""

from libc.stdint cimport int64_t

cdef extern from "inference/probe.h" nogil:
    int ew_fma(int64_t, int)


def multiply_add(int64_t steps, int level):
    """Work through `steps` steps without the GIL; return the floating-point operations of one step."""
    cdef int flops
    with nogil:
        flops = ew_fma(steps, level)
    return flops
