"""Placement of buffers with fixed lifetimes in one arena (algorithms in search.h; meaning: reorder.operators.arena)."""

import numpy as np

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport within64

cdef extern from "arena/search.h" nogil:
    ctypedef struct ar_change:
        int64_t old
    ctypedef struct ar_search:
        int32_t n, m
        const int64_t *size, *top
        const int32_t *from_ "from"
        const int32_t *to, *near_start, *near, *live_start
        int32_t *live
        int64_t capacity
        int64_t *least, *offset, *floor, *total
        int32_t *rank
        const int32_t *fixed_rank
        int by_load
        int64_t *load
        int32_t *items, *crossing, *stamp
        int32_t stamp_now
        int32_t *touched
        uint8_t *placed
        int64_t *best_offset
        ar_change *trail
        int64_t n_trail, trail_room
        int64_t nodes, limit, next_capacity
        int (*tick)(void *) noexcept nogil
        void *caller
        int status
    int ar_run(ar_search *)

cdef extern from "arena/fit.h" nogil:
    int64_t af_fit(const int64_t *, int64_t, int64_t, int64_t, const int64_t *, const int64_t *, const int64_t *, int64_t,
                   int, int64_t *, int64_t *)
    int64_t af_stack(const int64_t *, int64_t, int64_t, const int64_t *, int64_t, int64_t *)

FOUND, EXHAUSTED, LIMIT, STOPPED, NO_MEMORY = range(5)
NEVER = INT64_MAX


PIECE = 1 << 24  # comparisons, about, between two calls of `late`


def fit(const int64_t[::1] lower, const int64_t[::1] upper, const int64_t[::1] size, const int64_t[::1] sequence,
        int64_t alignment, bint best, object late):
    """Place buffers in `sequence` (a permutation of 0 to n - 1), each in the best or the first gap.

    late: called now and then; once it returns true, the buffers that are left go above all others. Returns (height,
    offsets int64[n], whether that was so).
    """
    cdef int64_t n = lower.shape[0], height = 0, i = 0, stop, piece = PIECE
    need(upper.shape[0] == n and size.shape[0] == n and sequence.shape[0] == n and alignment > 0,
         "arrays of one length, an alignment above 0")
    need(within64(sequence, 0, n), "buffers that are there")
    cdef int64_t[::1] offset = np.zeros(n, np.int64), by_offset = np.empty(n, np.int64)
    while i < n:
        stop = min(n, i + 1 + min(4096, piece // (i + 1)))
        with nogil:
            height = af_fit(&sequence[i], stop - i, i, height, &lower[0], &upper[0], &size[0], alignment, best,
                            &by_offset[0], &offset[0])
        i = stop
        if i < n and late():
            height = af_stack(&sequence[i], n - i, height, &size[0], alignment, &offset[0])
            return height, np.asarray(offset), True
    return height, np.asarray(offset), False


def sections(const int64_t[::1] lower, const int64_t[::1] upper, const int64_t[::1] by_lower,
             const int64_t[::1] by_upper):
    """Return (first, last, count), see reorder.operators.arena.exact_search.sections. by_lower, by_upper: buffers by
    begin, end."""
    cdef int64_t n = lower.shape[0], i, e = 0, b, now = 0
    cdef bint ended = False
    need(upper.shape[0] == n and by_lower.shape[0] == n and by_upper.shape[0] == n and n > 0,
         "arrays of one length, not empty")
    need(within64(by_lower, 0, n) and within64(by_upper, 0, n), "buffers that are there")
    cdef int32_t[::1] first = np.zeros(n, np.int32), last = np.zeros(n, np.int32)
    with nogil:
        for i in range(n):
            b = by_lower[i]
            while e < n and upper[by_upper[e]] <= lower[b]:
                last[by_upper[e]] = now + 1
                e += 1
                ended = True
            if ended:
                now += 1
                ended = False
            first[b] = now
        while e < n:
            last[by_upper[e]] = now + 1
            e += 1
    return np.asarray(first), np.asarray(last), now + 1


cdef class Search:
    """The search of one set of buffers, run at one capacity after another.

    size: int64[n] > 0, in units of the alignment. first, last: int32[n], the sections in which buffer i is live,
    half-open, each below n_sections. load: int64[n_sections], units live in each; most: int64[n], the largest load in
    which each buffer is live.
    """

    cdef readonly object load, most
    cdef ar_search q
    cdef dict arrays
    cdef object stop

    def __init__(self, const int64_t[::1] size, const int32_t[::1] first, const int32_t[::1] last, int32_t n_sections,
                 int64_t max_pairs):
        cdef int32_t n = size.shape[0], i, j, s
        cdef int64_t pairs = 0, members = 0
        need(n > 0 and first.shape[0] == n and last.shape[0] == n and n_sections > 0, "arrays of one length, not empty")
        cdef int32_t[::1] near_start = np.zeros(n + 1, np.int32), live_start = np.zeros(n_sections + 1, np.int32)
        for i in range(n):
            need(size[i] > 0 and 0 <= first[i] < last[i] <= n_sections, "blocks have a size and live in known sections")
            members += last[i] - first[i]
            for j in range(n):
                if i != j and first[i] < last[j] and first[j] < last[i]:
                    pairs += 1
            if pairs > max_pairs or members > max_pairs:
                raise MemoryError("too many overlapping buffers")
            near_start[i + 1] = pairs
        cdef int32_t[::1] near = np.zeros(pairs + 1, np.int32), live = np.zeros(members + 1, np.int32)
        cdef int32_t[::1] next_live = np.zeros(n_sections + 1, np.int32)
        cdef int64_t[::1] load = np.zeros(n_sections, np.int64), most = np.zeros(n, np.int64)
        pairs = 0
        for i in range(n):
            for j in range(n):
                if i != j and first[i] < last[j] and first[j] < last[i]:
                    near[pairs] = j
                    pairs += 1
            for s in range(first[i], last[i]):
                live_start[s + 1] += 1
        for s in range(n_sections):
            live_start[s + 1] += live_start[s]
            next_live[s] = live_start[s]
        for i in range(n):
            for s in range(first[i], last[i]):
                live[next_live[s]] = i
                next_live[s] += 1
                load[s] += size[i]
        for i in range(n):
            for s in range(first[i], last[i]):
                most[i] = max(most[i], load[s])
        self.load, self.most = np.asarray(load), np.asarray(most)
        self.arrays = {"size": size, "first": first, "last": last, "near_start": near_start, "near": near,
                       "live_start": live_start, "live": live}
        self.q.n = n
        self.q.m = n_sections
        self.q.size = &size[0]
        self.q.from_ = &first[0]
        self.q.to = &last[0]
        self.q.near_start = &near_start[0]
        self.q.near = &near[0]
        self.q.live_start = &live_start[0]
        self.q.live = &live[0]
        self.q.least = self._int64("least", n)
        self.q.offset = self._int64("offset", n)
        self.q.load = self._int64("load", n)
        self.q.best_offset = self._int64("best_offset", n)
        self.q.floor = self._int64("floor", n_sections)
        self.q.total = self._int64("total", n_sections)
        self.q.items = self._int32("items", n)
        self.q.crossing = self._int32("crossing", n_sections)
        self.q.stamp = self._int32("stamp", n_sections)
        self.q.touched = self._int32("touched", n_sections)
        cdef uint8_t[::1] placed = np.zeros(n, np.uint8)
        self.arrays["placed"] = placed
        self.q.placed = &placed[0]
        self.q.trail_room = 4 * n + 64
        self.q.trail = <ar_change *>malloc(self.q.trail_room * sizeof(ar_change))
        if self.q.trail == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.q.trail)

    cdef int64_t *_int64(self, str name, int64_t count) except NULL:
        cdef int64_t[::1] made = np.zeros(count, np.int64)
        self.arrays[name] = made
        return &made[0]

    cdef int32_t *_int32(self, str name, int64_t count) except NULL:
        cdef int32_t[::1] made = np.zeros(count, np.int32)
        self.arrays[name] = made
        return &made[0]

    def run(self, int64_t capacity, const int64_t[::1] top, const int32_t[::1] rank, int64_t nodes, bint by_load=False,
            object stop=None):
        """Search for a placement no higher than `capacity` units; return FOUND, EXHAUSTED, LIMIT or STOPPED.

        top: int64[n], the highest offset of each buffer. rank: int32[n], a permutation, the lower the sooner of equal
        offsets. nodes: placements to try. stop: called now and then; a true value ends the search.
        """
        cdef int32_t[::1] order = np.array(rank, np.int32)
        need(top.shape[0] == self.q.n and rank.shape[0] == self.q.n, "one place for each block")
        self.q.capacity = capacity
        self.q.top = &top[0]
        self.q.rank = &order[0]
        self.q.fixed_rank = &rank[0]
        self.q.by_load = by_load
        self.q.limit = nodes
        self.q.tick = NULL
        if stop is not None:
            self.q.tick = _tick
        self.stop = stop
        self.q.caller = <void *>self
        cdef int status
        with nogil:
            status = ar_run(&self.q)
        self.stop = None  # which holds its owner, that holds this search
        if status == NO_MEMORY:
            raise MemoryError("arena placement: out of memory")
        error, self.arrays["error"] = self.arrays.get("error"), None
        if error is not None:
            raise error
        return status

    @property
    def nodes(self):
        """Placements tried by the last run."""
        return self.q.nodes

    @property
    def next_capacity(self):
        """The least capacity (units) at which the last run would have gone further; NEVER if there is none."""
        return self.q.next_capacity

    def offsets(self):
        """Return int64[n] units: the placement of the last run that found one."""
        return np.array(self.arrays["best_offset"], np.int64)


cdef int _tick(void *caller) noexcept with gil:
    cdef Search search = <Search>caller
    try:
        return bool(search.stop())
    except BaseException as error:  # Ctrl-C too: raised again when the kernel has returned
        search.arrays["error"] = error
        return 1
