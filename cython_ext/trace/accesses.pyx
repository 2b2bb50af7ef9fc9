"""One pass over the accesses of a chunk each: their counts, the lines and blocks they touch, when a line comes
again."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memset

from cython_ext.common.checks cimport need

import numpy as np

ctypedef fused size_type:
    const uint8_t
    const uint16_t
    const int64_t

ctypedef fused chunk_size_type:
    const uint8_t
    const uint16_t


def count_accesses(const uint8_t[::1] op, const uint8_t[::1] stream, chunk_size_type[::1] size, int64_t n_streams):
    """Return int64[2 (load, store), 2 (accesses, bytes), n_streams]. Operations above 1 are not counted."""
    cdef int64_t i, way, start, n = op.shape[0]
    cdef uint64_t table[2][2][256]  # accesses << 40 | bytes; twice: equal accesses follow each other, and additions wait
    cdef uint64_t each
    cdef bint beyond = False
    need(stream.shape[0] == n and size.shape[0] == n, "a stream and a size for each access")
    found = np.zeros((2, 2, n_streams), np.int64)
    cdef int64_t[:, :, ::1] counts = found
    with nogil:
        for start in range(0, n, 16777216):  # as many as one entry counts
            memset(table, 0, sizeof(table))
            for i in range(start, min(n, start + 16777216)):
                if op[i] < 2:
                    table[i & 1][op[i]][stream[i]] += (<uint64_t>1 << 40) + size[i]
            for way in range(4):
                for i in range(256):
                    each = table[way >> 1][way & 1][i]
                    if i < n_streams:
                        counts[way & 1, 0, i] += each >> 40
                        counts[way & 1, 1, i] += each & ((<uint64_t>1 << 40) - 1)
                    else:
                        beyond |= each != 0
    need(not beyond, "streams below n_streams")
    return found


def count_values(const uint8_t[::1] values, int64_t n_values):
    """Return int64[n_values]: how often each value occurs. Raises ValueError for a value that is not below n_values."""
    cdef int64_t i, n = values.shape[0], even = n - n % 2
    cdef int64_t[:, ::1] table = np.zeros((2, 256), np.int64)
    with nogil:
        for i in range(0, even, 2):  # two tables: equal values follow each other
            table[0, values[i]] += 1
            table[1, values[i + 1]] += 1
        if n > even:
            table[0, values[even]] += 1
    found = np.asarray(table).sum(axis=0)
    need(not found[n_values:].any(), "values below n_values")
    return found[:n_values]


def first_outside(const uint64_t[::1] address, chunk_size_type[::1] size, uint64_t base, uint64_t total):
    """Return the first access that does not lie in [base, base + total), -1 if all do."""
    cdef int64_t i, n = address.shape[0]
    cdef uint64_t within, seen = total | total << 1  # nothing that is below 2^62 wraps when sizes are taken off it
    need(size.shape[0] == n, "a size for each access")
    with nogil:
        for i in range(n):
            within = address[i] - base  # a large number below the base
            seen |= within | within << 1 | total - within - size[i]
        if not seen >> 63:
            i = -1
        else:
            for i in range(n):
                within = address[i] - base
                if within > total or size[i] > total - within:
                    break
            else:
                i = -1
    return i


def offsets_hold(const int64_t[::1] offset, chunk_size_type[::1] size, int64_t total):
    """Return whether offsets, int64[n + 1], ascend by the sizes and lie in [0, total]."""
    cdef int64_t i, n = size.shape[0], differing = 0
    if offset.shape[0] != n + 1 or offset[0] < 0 or offset[n] > total:
        return False
    with nogil:
        for i in range(n):
            differing |= (offset[i + 1] - offset[i]) ^ <int64_t>size[i]
    return differing == 0


def count_blocks(const uint64_t[::1] address, size_type[::1] size, uint64_t block_bytes):
    """Return how many blocks these accesses touch, each for itself. Sizes are at least 1, ends at most 2^63."""
    cdef int64_t i, total = 0, n = address.shape[0]
    cdef uint64_t last
    cdef int shift = _power_of(block_bytes)
    need(size.shape[0] == n, "a size for each access")
    with nogil:
        for i in range(n):
            last = _block_of(address[i] + <uint64_t>size[i] - 1, block_bytes, shift)
            total += <int64_t>(last - _block_of(address[i], block_bytes, shift)) + 1
    return total


def touched_blocks(const uint64_t[::1] address, size_type[::1] size, uint64_t block_bytes):
    """Return (uint64[m] number of each block touched, ascending within an access, int64[m] access); see
    `count_blocks`."""
    cdef int64_t i, m = 0, n = address.shape[0], room = count_blocks(address, size, block_bytes)
    cdef uint64_t at, last
    cdef int shift = _power_of(block_bytes)
    out_block, out_access = np.empty(room, np.uint64), np.empty(room, np.int64)
    cdef uint64_t[::1] block = out_block
    cdef int64_t[::1] access = out_access
    with nogil:
        for i in range(n):
            at = _block_of(address[i], block_bytes, shift)
            last = _block_of(address[i] + <uint64_t>size[i] - 1, block_bytes, shift)
            while m < room and at <= last:
                block[m] = at
                access[m] = i
                m += 1
                at += 1
    need(m == room, "as many blocks as counted")
    return out_block, out_access


def cut(const uint64_t[::1] address, size_type[::1] size, const uint8_t[::1] op, const uint8_t[::1] stream,
        const int64_t[::1] access, uint64_t block_bytes):
    """Cut accesses into whole blocks; return (uint64[m] address of the block, uint8[m] op, uint8[m] stream, int64[m]
    access), the last three those of the access it is cut from."""
    cdef int64_t i, m = 0, n = address.shape[0], room = count_blocks(address, size, block_bytes)
    cdef uint64_t at, last
    cdef int shift = _power_of(block_bytes)
    need(op.shape[0] == n and stream.shape[0] == n and access.shape[0] == n, "columns of one length")
    out_block, out_access = np.empty(room, np.uint64), np.empty(room, np.int64)
    out_op, out_stream = np.empty(room, np.uint8), np.empty(room, np.uint8)
    cdef uint64_t[::1] to_block = out_block
    cdef int64_t[::1] to_access = out_access
    cdef uint8_t[::1] to_op = out_op, to_stream = out_stream
    with nogil:
        for i in range(n):
            at = _block_of(address[i], block_bytes, shift) * block_bytes
            last = address[i] + <uint64_t>size[i] - 1
            while m < room and at <= last:
                to_block[m] = at
                to_op[m] = op[i]
                to_stream[m] = stream[i]
                to_access[m] = access[i]
                m += 1
                at += block_bytes
    need(m == room, "as many blocks as counted")
    return out_block, out_op, out_stream, out_access


def next_in_table(const uint64_t[::1] lines, uint64_t first, int64_t[::1] table, int64_t never):
    """Return int64[n]: for each position the next with the same line, `never` for the last.

    table: int64, all `never`, at least as long as the span of the lines from `first` on.
    """
    cdef int64_t i, n = lines.shape[0]
    cdef int64_t[::1] upcoming = np.empty(n, np.int64)
    cdef uint64_t span = <uint64_t>table.shape[0], at
    cdef bint bad = False
    with nogil:
        for i in range(n):
            bad |= lines[i] - first >= span
    need(not bad, "lines within the table")
    with nogil:
        for i in range(n - 1, -1, -1):
            at = lines[i] - first
            upcoming[i] = table[at]
            table[at] = i
    return np.asarray(upcoming)


cdef inline uint64_t _block_of(uint64_t address, uint64_t block_bytes, int shift) noexcept nogil:
    """shift: of `_power_of`."""
    return address >> shift if shift >= 0 else address / block_bytes


cdef int _power_of(uint64_t number) except -2:
    """Return log2 of a power of two, -1 for another number."""
    cdef int shift = 0
    need(number > 0, "blocks of at least a byte")
    if number & (number - 1):
        return -1
    while number >> shift != 1:
        shift += 1
    return shift
