"""Requests on their way from a source to the wires, with the bytes they bring; they leave in any order."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memmove, memset

from cython_ext.common.checks cimport need

import numpy as np

cdef extern from "common/copy.h" nogil:
    void ew_copy_block(uint8_t *to, const uint8_t *source, int64_t n)


cdef class Held:
    """Requests numbered as they came, sorted by that number. Those that left stay until the next ones come.

    block_bytes: bytes that each request brings, 0 for none. Memory: what is held at most between two calls of `add`.
    """

    cdef readonly int64_t total
    cdef int64_t _rows, _left, _block, _hint
    cdef int64_t[::1] _number
    cdef uint8_t[::1] _here, _stream, _write, _which, _data

    def __init__(self, int64_t block_bytes):
        need(0 <= block_bytes < 2**31, "blocks of 0 to 2^31 - 1 bytes")
        self._block = block_bytes
        self._number = np.zeros(0, np.int64)
        self._here = self._stream = self._write = self._which = self._data = np.zeros(0, np.uint8)

    def __len__(self):
        return self._rows - self._left

    def add(self, const uint8_t[::1] stream, const uint8_t[::1] write, const uint8_t[::1] data, uint8_t which):
        """Take requests: uint8[n] stream and direction, uint8[n * block_bytes]. Returns the number of the first."""
        cdef int64_t k, n = stream.shape[0], first = self.total, at
        need(write.shape[0] == n and data.shape[0] == n * self._block, "a direction and a block for each request")
        self._forget()
        self._make_room(self._rows + n)
        at = self._rows
        if n:
            for k in range(n):
                self._number[at + k] = first + k
            memset(&self._here[at], 1, n)
            memset(&self._which[at], which, n)
            memcpy(&self._stream[at], &stream[0], n)
            memcpy(&self._write[at], &write[0], n)
            if self._block:
                memcpy(&self._data[at * self._block], &data[0], n * self._block)
        self._rows += n
        self.total += n
        return first

    def take(self, const int64_t[::1] number):
        """Let requests go; return (stream, direction, which, uint8[n, block_bytes]) of them, in the order given."""
        cdef int64_t k, at, n = number.shape[0]
        out_stream, out_write, out_which = (np.empty(n, np.uint8) for _ in range(3))
        out_data = np.empty((n, self._block), np.uint8)
        cdef uint8_t[::1] stream = out_stream, write = out_write, which = out_which, data = out_data.reshape(-1)
        cdef bint lost = False
        with nogil:
            for k in range(n):
                at = self._find(number[k])
                if at < 0:
                    lost = True
                    break
                stream[k] = self._stream[at]
                write[k] = self._write[at]
                which[k] = self._which[at]
                if self._block:
                    ew_copy_block(&data[k * self._block], &self._data[at * self._block], self._block)
        need(not lost, "a burst was served twice or never asked for")
        return out_stream, out_write, out_which, out_data

    def drop(self, const int64_t[::1] number):
        """Let requests go that have no burst of their own."""
        cdef int64_t k
        cdef bint lost = False
        with nogil:
            for k in range(number.shape[0]):
                lost |= self._find(number[k]) < 0
        need(not lost, "a burst was served twice or never asked for")

    cdef int64_t _find(self, int64_t number) noexcept nogil:
        """Return the row of a request, which has left then; -1 if it is not here."""
        cdef int64_t low = 0, high = self._rows, at
        if self._rows:  # without a gap in between, rows are as far apart as numbers
            at = self._hint + number - self._number[self._hint]
            if 0 <= at < self._rows and self._number[at] == number:
                low = at
                high = at
        while low < high:
            at = (low + high) >> 1
            if self._number[at] < number:
                low = at + 1
            else:
                high = at
        if low >= self._rows or self._number[low] != number or not self._here[low]:
            return -1
        self._here[low] = 0
        self._left += 1
        self._hint = low
        return low

    cdef void _forget(self) noexcept nogil:
        """Move what is still here to the front."""
        cdef int64_t k, to = 0
        self._hint = 0
        if not self._left:
            return
        for k in range(self._rows if self._left < self._rows else 0):
            if self._here[k]:
                self._number[to] = self._number[k]
                self._here[to] = 1
                self._stream[to] = self._stream[k]
                self._write[to] = self._write[k]
                self._which[to] = self._which[k]
                if self._block:
                    memmove(&self._data[to * self._block], &self._data[k * self._block], self._block)
                to += 1
        self._rows = to
        self._left = 0

    cdef int _make_room(self, int64_t rows) except -1:
        cdef int64_t room = self._here.shape[0]
        if rows <= room:
            return 0
        room = max(rows, room + room // 2)
        self._number = _longer(self._number, self._rows, room)
        self._here = _longer(self._here, self._rows, room)
        self._stream = _longer(self._stream, self._rows, room)
        self._write = _longer(self._write, self._rows, room)
        self._which = _longer(self._which, self._rows, room)
        self._data = _longer(self._data, self._rows * self._block, room * self._block)
        return 0


def _longer(old, int64_t kept, int64_t room):
    array = np.asarray(old)
    new = np.empty(room, array.dtype)
    new[:kept] = array[:kept]
    return new
