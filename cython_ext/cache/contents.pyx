"""The bytes of line transactions: what a cache level fetches and writes back, from the content it would hold."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t

import numpy as np

cdef extern from "common/copy.h" nogil:
    void ew_copy_block(uint8_t *to, const uint8_t *source, int64_t n)

ctypedef fused size_type:
    const uint8_t
    const uint16_t


cdef class _LineData:
    """One level's view of memory: `image` is what a load at this level returns, wherever the bytes are held below.

    A fill brings the image's bytes of the line (a line that is not in the level is as the levels below have it), a
    write-back sends the image's bytes, a store that passes through sends its own. `owner` remembers per line the stream
    of the last store, to which a write-back belongs. The caller has checked that all addresses lie in the image.
    """

    cdef uint8_t[::1] image, owner
    cdef uint64_t base
    cdef int line_shift
    cdef bint all_through, no_allocate
    cdef uint64_t block_mask

    def __init__(self, uint8_t[::1] image, uint64_t base, int line_shift, bint all_through, bint no_allocate,
                 uint64_t block_bytes):
        """base is a multiple of the line; the image ends with a whole line. block_bytes widens passing stores (1:
        no)."""
        self.image, self.base, self.line_shift = image, base, line_shift
        self.owner = np.zeros(len(image) >> line_shift, np.uint8)
        self.all_through, self.no_allocate = all_through, no_allocate
        self.block_mask = ~(block_bytes - 1)

    def move(self, const uint64_t[::1] address, size_type[::1] size, const uint8_t[::1] op, const uint8_t[::1] stream,
             const int64_t[::1] offset, const uint8_t[::1] payload,
             uint64_t[::1] to_address, uint16_t[::1] to_size, const uint8_t[::1] to_write, const int64_t[::1] caused_by):
        """Follow the accesses (a chunk's columns) and the transactions they caused; return (stream, offset, payload).

        Passing stores are widened in place (to_address, to_size). `offset` may start anywhere in `payload`.
        """
        cdef int64_t i, t = 0, m = to_address.shape[0], n = address.shape[0], k
        cdef int64_t room = 0
        cdef uint64_t line_bytes = <uint64_t>1 << self.line_shift, line, last, start, end
        for k in range(m):
            room += to_size[k] if to_size[k] == line_bytes else to_size[k] + 2 * (~self.block_mask)
        cdef uint8_t[::1] out_stream = np.empty(m, np.uint8), out = np.empty(max(room, 1), np.uint8)
        cdef int64_t[::1] out_offset = np.empty(m + 1, np.int64)
        cdef bint through
        out_offset[0] = 0
        with nogil:
            for i in range(n):
                if not op[i] and (t == m or caused_by[t] != i):
                    continue  # a load that hits
                through = self.all_through or (self.no_allocate and op[i])
                line = address[i] >> self.line_shift << self.line_shift
                last = (address[i] + size[i] - 1) >> self.line_shift << self.line_shift
                while True:
                    if t < m and caused_by[t] == i and not through and to_write[t] and to_address[t + 1] == line:
                        k = <int64_t>((to_address[t] - self.base) >> self.line_shift)
                        self._copy(to_address[t], to_size[t], self.owner[k], out, out_offset, out_stream, t)
                        t += 1
                    if t < m and caused_by[t] == i and not to_write[t] and to_address[t] == line:
                        self._copy(line, line_bytes, stream[i], out, out_offset, out_stream, t)
                        t += 1
                    if op[i]:
                        start, end = max(line, address[i]), min(line + line_bytes, address[i] + size[i])
                        ew_copy_block(&self.image[start - self.base], &payload[offset[i] + <int64_t>(start - address[i])],
                                            <int64_t>(end - start))
                        self.owner[(line - self.base) >> self.line_shift] = stream[i]
                        if through and t < m and caused_by[t] == i and to_write[t] and to_address[t] >= line \
                                and to_address[t] - line < line_bytes:
                            to_address[t] &= self.block_mask
                            to_size[t] = <uint16_t>(((end + ~self.block_mask) & self.block_mask) - to_address[t])
                            self._copy(to_address[t], to_size[t], stream[i], out, out_offset, out_stream, t)
                            t += 1
                    if line == last:
                        break
                    line += line_bytes
        if t != m:
            raise AssertionError(f"{m - t} line transactions belong to no access")
        return np.asarray(out_stream), np.asarray(out_offset), np.asarray(out)[: out_offset[m]]

    def flush(self, const uint64_t[::1] lines):
        """Return (stream, offset, payload) of the write-backs of these lines (byte addresses)."""
        cdef int64_t t, m = lines.shape[0]
        cdef uint64_t line_bytes = <uint64_t>1 << self.line_shift
        cdef uint8_t[::1] out_stream = np.empty(m, np.uint8), out = np.empty(max(m * <int64_t>line_bytes, 1), np.uint8)
        cdef int64_t[::1] out_offset = np.empty(m + 1, np.int64)
        out_offset[0] = 0
        for t in range(m):
            self._copy(lines[t], line_bytes, self.owner[(lines[t] - self.base) >> self.line_shift], out, out_offset,
                       out_stream, t)
        return np.asarray(out_stream), np.asarray(out_offset), np.asarray(out)[: out_offset[m]]

    cdef inline void _copy(self, uint64_t at, uint64_t n, uint8_t stream, uint8_t[::1] out, int64_t[::1] out_offset,
                           uint8_t[::1] out_stream, int64_t t) noexcept nogil:
        ew_copy_block(&out[out_offset[t]], &self.image[at - self.base], <int64_t>n)
        out_offset[t + 1] = out_offset[t] + <int64_t>n
        out_stream[t] = stream
