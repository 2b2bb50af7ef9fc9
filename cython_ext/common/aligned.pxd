"""Memory that starts on a cache line, so that long results can be written past the caches."""

from libc.stdint cimport int64_t, uint8_t


cdef inline int64_t ahead(const uint8_t[::1] room) noexcept:
    """Return how many bytes lie before the first cache line of `room`, which has a byte."""
    return <int64_t>(-<size_t>&room[0] & 63)
