"""The weighted greedy over residency intervals: the state of streaming.h, its arrays, and running it in slices."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int8_t, int32_t, int64_t
from libc.math cimport log

cdef extern from "edges/streaming.h" nogil:
    enum: EW_STREAM
    enum: EW_MULT
    enum: EW_OPEN
    ctypedef struct ew_heat:
        float hot
    ctypedef struct ew_waiting:
        int32_t *item
        double *base, *since
    ctypedef struct ew_streaming:
        int64_t n, n_sources, slots, early, window, widest, credit, work, n_opens, n_drops, loads
        const int32_t *in_start, *in_source
        const int64_t *out_start
        const int32_t *out_target, *own, *item, *depth
        const double *log
        double stream[9]
        double mult[4]
        double open[12]
        double mean_in, mean_out, log_mean_in, log_mean_out
        int8_t *life, *solid
        int32_t *remaining, *weighed, *unfinished, *missing, *opened, *place, *left_n
        ew_heat *warmth
        double *weight
        int8_t *stale, *done
        int32_t *target, *left, *next
        int8_t *available, *resident
        int32_t *pending, *unserved, *head, *candidate_place, *waiting_n, *waiting
        ew_heat *heat
        double *sum, *factor
        int32_t *open_list, *stale_list
        ew_waiting ready
        ew_waiting early_list
        double *scores
        int32_t *candidates, *complete, *stack
        double *value
        int32_t *opens, *drops, *events
        int64_t n_events
    void ew_streaming_begin(ew_streaming *)
    int ew_streaming_run(ew_streaming *, int64_t, int64_t)

cdef int64_t SLICE = 1 << 20  # connections and list entries between two looks at Ctrl-C and the clock: some 20 ms
WEIGHTS = (EW_STREAM, EW_MULT, EW_OPEN)  # how many of each kind


cdef class _Streaming:
    """One run of the greedy. Memory: 21 bytes per connection."""

    cdef ew_streaming r
    cdef list arrays

    def __init__(self, const int32_t[::1] in_start, const int32_t[::1] in_source, const int64_t[::1] out_start,
                 const int32_t[::1] out_target, const int32_t[::1] own, const int32_t[::1] item,
                 const int32_t[::1] depth, int64_t slots, int64_t early, const double[::1] stream,
                 const double[::1] mult, const double[::1] open, int64_t window, int64_t widest, int64_t credit,
                 bint record=False):
        """Arrays as reorder.edges.search.intervals.Items has them; depth: int32[n] of the items.

        early: items that may be open while a source of theirs has not even opened, below `slots`. window: items looked
        at per opening. widest: a source with more waiting targets makes none of them warmer. credit: candidates looked
        at beyond 1024 per connection served. record: keep every choice (`events`).
        """
        cdef int64_t n = own.shape[0], n_sources = item.shape[0], w = in_source.shape[0], k
        cdef double[::1] logs
        if stream.shape[0] != EW_STREAM or mult.shape[0] != EW_MULT or open.shape[0] != EW_OPEN:
            raise ValueError(f"{WEIGHTS} weights are needed")
        widest_degree = max(int(np.diff(in_start).max(initial=1)), int(np.diff(out_start).max(initial=1)))
        table = np.log(np.maximum(1, np.arange(widest_degree + 1)), dtype=np.float64)
        logs = table
        self.arrays = [in_start, in_source, out_start, out_target, own, item, depth, table]
        self.r.n, self.r.n_sources, self.r.slots = n, n_sources, slots
        self.r.early = max(0, min(early, slots - 2))
        self.r.window, self.r.widest, self.r.credit = window, widest, credit
        self.r.in_start, self.r.in_source = &in_start[0], &in_source[0]
        self.r.out_start, self.r.out_target = &out_start[0], &out_target[0]
        self.r.own, self.r.item, self.r.depth, self.r.log = &own[0], &item[0], &depth[0], &logs[0]
        for k in range(EW_STREAM):
            self.r.stream[k] = stream[k]
        for k in range(EW_MULT):
            self.r.mult[k] = mult[k]
        for k in range(EW_OPEN):
            self.r.open[k] = open[k]
        self.r.mean_in, self.r.mean_out = <double> w / n, <double> w / n_sources
        self.r.log_mean_in, self.r.log_mean_out = log(self.r.mean_in), log(self.r.mean_out)
        self.r.life, self.r.solid, self.r.done = self._int8(n), self._int8(n), self._int8(w)
        self.r.remaining, self.r.weighed, self.r.unfinished = self._int32(n), self._int32(n), self._int32(n)
        self.r.missing, self.r.opened, self.r.stale_list = self._int32(n), self._int32(n), self._int32(n)
        self.r.place, self.r.left_n = self._int32(n, -1), self._int32(n)
        self.r.warmth, self.r.heat = <ew_heat *> self._int32(4 * n), <ew_heat *> self._int32(4 * n_sources)
        self.r.weight, self.r.stale, self.r.scores = self._double(n), self._int8(n), self._double(n)
        self.r.sum, self.r.factor = self._double(n_sources), self._double(n_sources)
        self.r.target, self.r.left, self.r.next, self.r.waiting = (
            self._int32(w), self._int32(w), self._int32(w), self._int32(w))
        self.r.available, self.r.resident = self._int8(n_sources), self._int8(n_sources)
        self.r.pending, self.r.unserved, self.r.head = (
            self._int32(n_sources), self._int32(n_sources), self._int32(n_sources, -1))
        self.r.candidate_place, self.r.waiting_n = self._int32(n_sources, -1), self._int32(n_sources)
        self.r.open_list, self.r.ready.item, self.r.early_list.item = self._int32(n), self._int32(n), self._int32(n)
        self.r.ready.base, self.r.ready.since = self._double(n), self._double(n)
        self.r.early_list.base, self.r.early_list.since = self._double(n), self._double(n)
        self.r.candidates, self.r.value = self._int32(n_sources), self._double(n_sources)
        self.r.complete, self.r.stack = self._int32(n), self._int32(n)
        self.r.events = self._int32(n + w) if record else NULL
        self.r.opens, self.r.drops = self._int32(n), self._int32(n)
        with nogil:
            ew_streaming_begin(&self.r)

    cdef int8_t *_int8(self, int64_t size) except NULL:
        cdef int8_t[::1] view = np.zeros(size, np.int8)
        self.arrays.append(view.base)
        return &view[0]

    cdef int32_t *_int32(self, int64_t size, int32_t value=0) except NULL:
        cdef int32_t[::1] view = np.full(size, value, np.int32)
        self.arrays.append(view.base)
        return &view[0]

    cdef double *_double(self, int64_t size) except NULL:
        cdef double[::1] view = np.zeros(size, np.float64)
        self.arrays.append(view.base)
        return &view[0]

    def run(self, int64_t sources, over=None):
        """Stream up to so many sources, fewer where `over()` says to stop; return whether all items are done with."""
        cdef int64_t until = self.r.loads + sources
        cdef int done = 0
        while not done and self.r.loads < until and not (over is not None and over()):
            with nogil:
                done = ew_streaming_run(&self.r, until, SLICE)
            PyErr_CheckSignals()
        return bool(done)

    @property
    def finished(self):
        """How many items are done with."""
        return self.r.n_drops

    @property
    def loads(self):
        """How many sources have been streamed."""
        return self.r.loads

    @property
    def events(self):
        """int32: an item that opened, or -1 less a source that streamed, in order; only where they are recorded."""
        return self.arrays[len(self.arrays) - 3][:self.r.n_events] if self.r.events else np.empty(0, np.int32)

    @property
    def so_far(self):
        """(items in order of opening, items in order of finishing), int32 each: views of what has been done."""
        return (self.arrays[len(self.arrays) - 2][:self.r.n_opens], self.arrays[len(self.arrays) - 1][:self.r.n_drops])

    def state(self):
        """Return (opens, drops), int32[n] each, once all items are done with."""
        if self.r.n_drops < self.r.n:
            raise ValueError("items are left")
        return self.arrays[len(self.arrays) - 2], self.arrays[len(self.arrays) - 1]
