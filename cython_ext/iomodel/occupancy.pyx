"""Which values are in fast memory at each step of an order, slot by slot: one pass, for pictures.

Semantics and codes are those of hwmodel.fastmemory.iomodel; tests/oracles/occupancy_oracle.py plays the same in plain
Python. LRU and MIN keep the slots in a heap whose top is the next victim: the one used longest ago, or the one used
again last (of several without a later use the one whose neuron has the lowest number).
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t

from cython_ext.common.checks cimport need

from cython_ext.iomodel.counts import LRU, MIN, PIN_BOTH, RR

cdef enum:
    EMPTY, INPUT, PARTIAL, FINISHED, KINDS  # of what a slot holds


cdef class _Slots:
    """The slots and what is known of each neuron; `play` takes the next connections."""

    cdef const int32_t[::1] source, target
    cdef const uint8_t[::1] is_output
    cdef int64_t n, capacity, used, pointer, never
    cdef bint round_robin, recency, pin_both
    cdef int64_t[::1] next_use  # [N] position of the next access, 2W for none
    cdef int32_t[::1] after  # [2W] the same after each access
    cdef int64_t[::1] left_in  # [N] connections that are still to come
    cdef int64_t[::1] key, reads, writes  # [N] rank in the heap, the highest is evicted first; moves of each neuron
    cdef int32_t[::1] owner, slot  # [C], [N] or -1
    cdef int32_t[::1] heap, place  # [C] slots as a heap; [C] where each slot stands in it
    cdef uint8_t[::1] is_input, dirty
    cdef int64_t first_reads, writes_outputs
    cdef int64_t[::1] reads_by, writes_by  # [KINDS]

    def __init__(self, const int32_t[::1] sources, const int32_t[::1] targets, const uint8_t[::1] is_output,
                 int64_t memory, int policy, int pinning):
        cdef int64_t w = sources.shape[0], n = is_output.shape[0], k
        need(w > 0 and targets.shape[0] == w and w < 1 << 30, "as many targets as sources, at least one, below 2^30")
        need(memory >= 3 and policy in (LRU, RR, MIN), "memory of at least 3 and a policy's code")
        need(min(np.min(sources), np.min(targets)) >= 0 and max(np.max(sources), np.max(targets)) < n,
             "neurons within the network")
        self.source, self.target, self.is_output = sources, targets, is_output
        self.n, self.capacity, self.never = n, min(memory - 1, n), 2 * w
        self.round_robin, self.recency, self.pin_both = policy == RR, policy == LRU, pinning == PIN_BOTH
        in_degree = np.bincount(targets, minlength=n)
        self.left_in, self.is_input = in_degree.astype(np.int64), (in_degree == 0).astype(np.uint8)
        self.next_use, self.after = np.full(n, 2 * w, np.int64), np.empty(2 * w, np.int32)
        for k in range(w - 1, -1, -1):
            self._link(2 * k + 1, targets[k])
            self._link(2 * k, sources[k])
        self.key, self.reads, self.writes = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.owner, self.slot = np.full(self.capacity, -1, np.int32), np.full(n, -1, np.int32)
        self.heap, self.place = np.zeros(self.capacity, np.int32), np.zeros(self.capacity, np.int32)
        self.dirty = np.zeros(n, np.uint8)
        self.reads_by, self.writes_by = np.zeros(KINDS, np.int64), np.zeros(KINDS, np.int64)
        self.used = self.pointer = self.first_reads = self.writes_outputs = 0

    cdef void _link(self, int64_t access, int32_t x) noexcept:
        self.after[access] = <int32_t> self.next_use[x]
        self.next_use[x] = access

    cdef uint8_t _state(self, int32_t x) noexcept nogil:
        """Return what a value that will be used again is."""
        return INPUT if self.is_input[x] else PARTIAL if self.left_in[x] > 0 else FINISHED

    cdef uint8_t _kind(self, int32_t x) noexcept nogil:
        return EMPTY if self.next_use[x] == self.never else self._state(x)

    cdef void _put(self, int64_t at, int32_t slot) noexcept nogil:
        self.heap[at] = slot
        self.place[slot] = <int32_t> at

    cdef int64_t _rank(self, int64_t at) noexcept nogil:
        return self.key[self.owner[self.heap[at]]]

    cdef void _sift(self, int32_t slot) noexcept nogil:
        """Bring a slot whose key has changed to its place in the heap."""
        cdef int64_t at = self.place[slot], rank = self.key[self.owner[slot]], child
        while at > 0 and self._rank((at - 1) // 2) < rank:
            self._put(at, self.heap[(at - 1) // 2])
            at = (at - 1) // 2
        while True:
            child = 2 * at + 1
            if child + 1 < self.used and self._rank(child + 1) > self._rank(child):
                child += 1
            if child >= self.used or self._rank(child) <= rank:
                break
            self._put(at, self.heap[child])
            at = child
        self._put(at, slot)

    cdef int32_t _victim(self, int32_t pinned) noexcept nogil:
        """Return the slot to be emptied; one value at most is pinned (-1: none), and there are two slots at least."""
        cdef int32_t slot
        if self.round_robin:
            if self.owner[self.pointer] == pinned:
                self.pointer = (self.pointer + 1) % self.capacity
            slot = <int32_t> self.pointer
            self.pointer = (self.pointer + 1) % self.capacity
            return slot
        if self.owner[self.heap[0]] != pinned:
            return self.heap[0]
        if self.used > 2 and self._rank(2) > self._rank(1):
            return self.heap[2]
        return self.heap[1]

    cdef void _evict(self, int32_t x) noexcept nogil:
        self.slot[x] = -1
        if not self.dirty[x]:
            return
        self.dirty[x] = 0
        if self.next_use[x] < self.never:
            self.writes[x] += 1
            self.writes_by[self._state(x)] += 1
        elif self.is_output[x]:
            self.writes_outputs += 1

    cdef void _access(self, int32_t x, int64_t time, int32_t pinned) noexcept nogil:
        cdef int32_t slot = self.slot[x]
        if slot < 0:
            if self.used < self.capacity:
                slot = <int32_t> self.used
                self._put(self.used, slot)
                self.used += 1
            else:
                slot = self._victim(pinned)
                self._evict(self.owner[slot])
            self.slot[x], self.owner[slot] = slot, x
            if self.reads[x]:
                self.reads_by[self._state(x)] += 1
            else:
                self.first_reads += 1
            self.reads[x] += 1
        self.next_use[x] = self.after[time]
        if not self.round_robin:
            self.key[x] = -time if self.recency else self.next_use[x] * self.n + self.n - 1 - x
            self._sift(slot)

    cdef void play(self, int64_t start, int64_t end) noexcept nogil:
        cdef int64_t k
        cdef int32_t a, b
        for k in range(start, end):
            a, b = self.source[k], self.target[k]
            self._access(a, 2 * k, b if self.pin_both else -1)
            self._access(b, 2 * k + 1, a)
            self.dirty[b] = 1
            self.left_in[b] -= 1

    cdef void draw(self, const int64_t[::1] drawn, uint8_t[:, ::1] grid, int64_t column) noexcept nogil:
        cdef int64_t k
        for k in range(drawn.shape[0]):
            grid[k, column] = self._kind(self.owner[drawn[k]]) if drawn[k] < self.used else <uint8_t> EMPTY

    cdef void end(self) noexcept nogil:
        """Write the outputs that are left."""
        cdef int64_t k
        for k in range(self.used):
            self.writes_outputs += self.dirty[self.owner[k]] and self.is_output[self.owner[k]]


def play(const int32_t[::1] sources, const int32_t[::1] targets, const uint8_t[::1] is_output, int64_t memory,
         int policy, int pinning, const int64_t[::1] moments, const int64_t[::1] drawn):
    """Return (grid, reads, writes, reads_by, writes_by, first_reads, writes_outputs) of connections in processing order.

    moments: int64[T], ascending places; drawn: int64[D], numbers of slots, not negative. grid: uint8[D, T], what each
    drawn slot holds after each moment's connection: 0 nothing or nothing that is used again, 1 an input, 2 a partial
    sum, 3 a finished value. reads, writes: int64[N]. reads_by, writes_by: int64[4], repeated reads and live writes by
    that. O(W log M + D T + N) time, O(W + N) memory. Raises ValueError for arrays that do not fit.
    """
    cdef int64_t k, done = 0, w = sources.shape[0]
    need(np.all(np.diff(moments, prepend=-1, append=w) > 0), "moments ascend within the order")
    need(drawn.shape[0] == 0 or np.min(drawn) >= 0, "numbers of slots are not negative")
    cdef _Slots slots = _Slots(sources, targets, is_output, memory, policy, pinning)
    grid = np.zeros((drawn.shape[0], moments.shape[0]), np.uint8)
    cdef uint8_t[:, ::1] view = grid
    for k in range(moments.shape[0]):
        with nogil:
            slots.play(done, moments[k] + 1)
            slots.draw(drawn, view, k)
        PyErr_CheckSignals()
        done = moments[k] + 1
    with nogil:
        slots.play(done, w)
        slots.end()
    moved = np.asarray(slots.reads), np.asarray(slots.writes)
    by_kind = np.asarray(slots.reads_by), np.asarray(slots.writes_by)
    return grid, *moved, *by_kind, slots.first_reads, slots.writes_outputs
