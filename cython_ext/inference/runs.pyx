"""Inference in the order of the work: the stream of runs, and the kernels that work through it.

A *run* is a maximal stretch of consecutive connections into one target; its partial sums stay in registers. Layout of
the stream: stream.h. All arrays are in processing order and have been checked by the caller.
"""

import numpy as np

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uintptr_t
from libc.string cimport memcpy

cdef extern from "inference/runs.h" nogil:
    enum: EW_F32, EW_BF16, EW_INT8, EW_NARROW, EW_LINE_UNITS, EW_UNIT, EW_HEADER_INT8, EW_MAX_RUN, EW_ACTIVATION_SHIFT
    uint32_t EW_FIRST, EW_LAST, EW_WIDE, EW_OUTSIDE, EW_PAIRED
    ctypedef struct ew_run:
        pass
    void ew_columns(const ew_run *, const ew_run *, const char *, const char *, char *, const char *, int64_t, int, int)

cdef extern from "inference/single.h" nogil:
    void ew_single(const ew_run *, const ew_run *, const char *, const char *, float *, const float *, int, int)

cdef extern from "inference/int8.h" nogil:
    void ew_int8(const uint32_t *, const uint32_t *, char *, const char *, int64_t, int)
    void ew_sums_out(const char *, const int64_t *, int64_t, const double *, float *, int64_t, int64_t, int)

cdef extern from "inference/rows.h" nogil:
    void ew_rows_in(char *, const int64_t *, const int64_t *, int64_t, const float *, int64_t, int64_t, int64_t, int64_t)
    void ew_bytes_in(char *, const int64_t *, const int64_t *, int64_t, const float *, int64_t, int64_t, int64_t,
                     const double *, const double *, int)
    void ew_rows_out(const char *, const int64_t *, int64_t, float *, int64_t, int64_t)

cdef extern from "inference/barrier.h" nogil:
    void ew_barrier(int64_t *, int64_t)

cdef extern from "common/simd.h" nogil:
    int edgewatt_simd_level()

F32, BF16, INT8, NARROW = EW_F32, EW_BF16, EW_INT8, EW_NARROW
NARROW_PLACES = 1 << 16
LINE_UNITS = EW_LINE_UNITS
UNIT_BYTES = EW_UNIT
LEVELS = ("baseline", "avx2", "avx512")
RUN_WORDS = 4  # of a run of a float stream
PAD_WORDS = 16  # the last vector of a run, and the quad behind the last run, may be read past the end


def level_number(name):
    """Return the number of a SIMD level, at most what this machine (or EDGEWATT_SIMD) allows; None: that."""
    return edgewatt_simd_level() if name is None else min(LEVELS.index(name), edgewatt_simd_level())


def run_starts(const int32_t[::1] targets, bint single_steps=False):
    """Return int64[R + 1]: where each run begins, and W. single_steps: every connection is a run of its own."""
    cdef int64_t w = targets.shape[0], k, r = 0
    starts = np.empty(w + 1, np.int64)
    cdef int64_t[::1] start = starts
    with nogil:
        for k in range(w):
            if k == 0 or single_steps or targets[k] != targets[k - 1]:
                start[r] = k
                r += 1
    start[r] = w
    return starts[: r + 1].copy()


def float_stream(const int32_t[::1] sources, const int32_t[::1] targets, const float[::1] weights,
                 const int64_t[::1] starts, const uint32_t[::1] place, const float[::1] start_values,
                 const uint8_t[::1] activation, const int64_t[::1] in_degree, const uint8_t[::1] outside,
                 const uint32_t[::1] input_place, int kind, uint32_t line_units, const int64_t[::1] shared):
    """Return the tables (runs, places, weights) of a float stream, uint32 each, RUN_WORDS per run.

    place: offset of each neuron's row, in units. outside: of each run, whether its sources are rows of the table of
    inputs; input_place: their offsets there. start_values: bias of each neuron. activation: code of each neuron.
    kind: F32, or BF16 (weights are rounded to nearest, ties to even), plus NARROW for 16-bit
    places, which count in `line_units` units. shared: of each run, what shared.pyx says (zeros: no pairs); the quads
    that a pair shares lie side by side, then come the others of its first and of its second run.
    """
    cdef int64_t n_runs = starts.shape[0] - 1, r, k, n, at_quad, quad = 0, before = 0
    cdef bint bf16 = kind & EW_BF16, narrow = kind & EW_NARROW, second = False
    cdef int64_t quads = ((np.diff(np.asarray(starts)) + 3) // 4).sum()
    if quads >= 2**32:
        raise ValueError("more than 2^34 connections")
    runs = np.zeros(RUN_WORDS * n_runs + PAD_WORDS, np.uint32)
    place_words = np.zeros(quads * (2 if narrow else 4) + PAD_WORDS, np.uint32)
    weight_words = np.zeros(quads * (2 if bf16 else 4) + PAD_WORDS, np.uint32)
    cdef uint32_t[::1] run = runs
    cdef uint32_t[::1] wide_place = place_words
    cdef uint16_t[::1] narrow_place = place_words.view(np.uint16)
    cdef uint32_t[::1] weight_f32 = weight_words
    cdef uint16_t[::1] weight_bf16 = weight_words.view(np.uint16)
    cdef const uint32_t[::1] weight_bits = np.asarray(weights).view(np.uint32)
    cdef const uint32_t[::1] start_bits = np.asarray(start_values).view(np.uint32)
    cdef int64_t[::1] seen = np.zeros(in_degree.shape[0], np.int64)
    cdef uint32_t bits, at
    cdef const uint32_t *source_place
    cdef int32_t t
    with nogil:
        for r in range(n_runs):
            t = targets[starts[r]]
            n = starts[r + 1] - starts[r]
            source_place = &input_place[0] if outside[r] else &place[0]
            run[4 * r] = place[t]
            run[4 * r + 1] = (_head(seen, t, n, in_degree[t], activation[t]) | (EW_OUTSIDE if outside[r] else 0)
                              | (EW_PAIRED if shared[r] else 0))
            run[4 * r + 2] = start_bits[t]
            run[4 * r + 3] = <uint32_t>(shared[r - 1] if second else quad)
            for k in range(n):
                if second:  # `before`: quads of the first run of the pair
                    at_quad = quad - before + 2 * (k // 4) + 1 if k // 4 < shared[r - 1] else quad + k // 4
                else:
                    at_quad = quad + (2 * (k // 4) if k // 4 < shared[r] else k // 4 + shared[r])
                at = source_place[sources[starts[r] + k]]
                bits = weight_bits[starts[r] + k]
                if narrow:
                    narrow_place[4 * at_quad + k % 4] = <uint16_t>(at // line_units)
                else:
                    wide_place[4 * at_quad + k % 4] = at
                if bf16:
                    weight_bf16[4 * at_quad + k % 4] = <uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)
                else:
                    weight_f32[4 * at_quad + k % 4] = bits
            before = (n + 3) // 4
            quad += before
            second = shared[r] > 0
    return runs, place_words, weight_words


def int8_stream(const int32_t[::1] sources, const int32_t[::1] targets, const int8_t[::1] weights,
                const int64_t[::1] starts, const uint32_t[::1] place, const uint32_t[::1] sum_place,
                const int32_t[::1] start_values, const float[::1] multipliers, const int32_t[::1] zeros,
                const uint8_t[::1] activation, const uint8_t[::1] wide, const int64_t[::1] in_degree,
                const uint8_t[::1] outside, const uint32_t[::1] input_place):
    """Return (words, first word of every run) of an integer stream. sum_place: rows of 32-bit sums, in units."""
    cdef int64_t n_runs = starts.shape[0] - 1, r, k, n, padded, at = 0
    lengths = np.diff(np.asarray(starts))
    size = int((EW_HEADER_INT8 + 5 * ((lengths + 3) // 4)).sum())
    words = np.zeros(size + PAD_WORDS, np.uint32)
    first = np.empty(n_runs + 1, np.int64)
    cdef uint32_t[::1] word = words
    cdef const uint32_t[::1] factor_bits = np.asarray(multipliers).view(np.uint32)
    cdef int64_t[::1] begin = first
    cdef int64_t[::1] seen = np.zeros(in_degree.shape[0], np.int64)
    cdef uint32_t head
    cdef int32_t t
    cdef const uint32_t *source_place
    with nogil:
        for r in range(n_runs):
            begin[r] = at
            t = targets[starts[r]]
            n = starts[r + 1] - starts[r]
            padded = (n + 3) // 4 * 4
            head = _head(seen, t, n, in_degree[t], activation[t]) - <uint32_t>n + <uint32_t>padded
            if wide[t]:
                head |= EW_WIDE
            if outside[r]:
                head |= EW_OUTSIDE
            source_place = &input_place[0] if outside[r] else &place[0]
            word[at] = place[t]
            word[at + 1] = head
            word[at + 2] = <uint32_t>start_values[t]
            word[at + 3] = sum_place[t]
            word[at + 4] = factor_bits[t]
            word[at + 5] = <uint32_t>zeros[t]
            at += EW_HEADER_INT8
            for k in range(padded):
                word[at + k] = source_place[sources[starts[r] + (k if k < n else n - 1)]]
            at += padded
            for k in range(n):
                word[at + k // 4] |= <uint32_t>(<uint8_t>weights[starts[r] + k]) << (8 * (k % 4))
            at += padded // 4
    begin[n_runs] = at
    return words, first


cdef inline uint32_t _head(int64_t[::1] seen, int32_t t, int64_t n, int64_t degree, uint8_t activation) nogil:
    cdef uint32_t head = <uint32_t>n | (<uint32_t>activation << EW_ACTIVATION_SHIFT)
    if seen[t] == 0:
        head |= EW_FIRST
    seen[t] += n
    if seen[t] == degree:
        head |= EW_LAST
    return head


def find_phases(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons):
    """Return int64[W]: the phase of each connection. A phase reads nothing that it writes. O(W + N).

    A phase is as long as it can be: it ends before the first connection whose source is a target of the phase.
    """
    cdef int64_t w = sources.shape[0], k, phase = 0
    found = np.empty(w, np.int64)
    cdef int64_t[::1] of = found
    cdef int64_t[::1] written = np.full(n_neurons, -1, np.int64)  # the last phase that writes each neuron
    with nogil:
        for k in range(w):
            if written[sources[k]] == phase:
                phase += 1
            written[targets[k]] = phase
            of[k] = phase
    return found


def assign_rows(const int32_t[::1] sources, const int32_t[::1] targets, const int64_t[::1] last_use,
                const uint8_t[::1] keep, const int32_t[::1] resident):
    """Return int64[N], rows of the arena so that rows are used again, and the number of rows. O(W + N log N).

    A row is taken at a neuron's first touch, the lowest free one, and is free again after the step of its last use.
    resident: neurons that hold rows from the start. keep: neurons whose rows are never free again. -1: not touched.
    """
    cdef int64_t w = sources.shape[0], n = last_use.shape[0], k, rows = 0, free = 0, side
    cdef int32_t v
    found = np.full(n, -1, np.int64)
    cdef int64_t[::1] row = found
    cdef int64_t[::1] heap = np.empty(n + 1, np.int64)
    with nogil:
        for k in range(resident.shape[0]):
            row[resident[k]] = rows
            rows += 1
        for k in range(w):
            v = targets[k]
            if row[v] < 0:
                if free:
                    row[v] = _pop(heap, &free)
                else:
                    row[v] = rows
                    rows += 1
            for side in range(2):
                v = targets[k] if side else sources[k]
                if last_use[v] == k and not keep[v]:
                    _push(heap, &free, row[v])
    return found, rows


cdef inline void _push(int64_t[::1] heap, int64_t *size, int64_t value) noexcept nogil:
    cdef int64_t at = size[0], parent
    size[0] += 1
    while at:
        parent = (at - 1) // 2
        if heap[parent] <= value:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = value


cdef inline int64_t _pop(int64_t[::1] heap, int64_t *size) noexcept nogil:
    cdef int64_t least = heap[0], value, at = 0, child
    size[0] -= 1
    value = heap[size[0]]
    while True:
        child = 2 * at + 1
        if child >= size[0]:
            break
        if child + 1 < size[0] and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value
    return least


def write_bytes(uintptr_t table, const int64_t[::1] offsets, const int64_t[::1] columns, const float[:, :] batch,
                int64_t first, int64_t lanes, const double[::1] scales, const double[::1] zeros, int level):
    """Write input vectors from the `first` on, at most `lanes`, as bytes: rows at offsets of a table, in steps of scales.

    columns: of the batch, float32[B, I]. Rounded half to even, clamped to 0 to 255.
    """
    cdef int64_t n = columns.shape[0]
    if not 0 <= first < batch.shape[0] or offsets.shape[0] != n or scales.shape[0] != n or zeros.shape[0] != n:
        raise ValueError("no such vectors")
    if n:
        with nogil:
            ew_bytes_in(<char *>table, &offsets[0], &columns[0], n, &batch[first, 0], batch.strides[0] // 4,
                        batch.strides[1] // 4, min(lanes, batch.shape[0] - first), &scales[0], &zeros[0], level)


def read_sums(uintptr_t arena, const int64_t[::1] offsets, const double[::1] scales, float[:, :] out, int level):
    """Fill out, float32[rows, vectors] with vectors side by side, with the 32-bit sums of int8 rows times their scales.

    offsets: of the rows of sums, in bytes; rows have as many places as a multiple of 64 vectors.
    """
    cdef int64_t n = offsets.shape[0]
    if out.shape[0] != n or scales.shape[0] != n or out.strides[1] != 4:
        raise ValueError("sizes that do not fit")
    if n and out.shape[1]:
        with nogil:
            ew_sums_out(<const char *>arena, &offsets[0], n, &scales[0], &out[0, 0], out.strides[0] // 4, out.shape[1],
                        level)


def execute(tables, const int64_t[:, ::1] segments, int64_t[::1] meeting, uintptr_t arena, uintptr_t table,
            int64_t columns, int kind, int level):
    """Work through segments (first word, end word) of the runs of a stream, for `columns` lanes of every row.

    tables: of float_stream, or the words of int8_stream and nothing, nothing. arena, table: addresses of the first rows
    (of the first lane wanted) of the arena and of the table of inputs, aligned to 64 bytes; columns: 1 (rows of one
    float), else a multiple of 16, of 64 for int8. meeting: int64[2] of zeros shared by all threads of a layer-parallel
    run, which wait for each other after every segment, then meeting[1] is their number; empty where there is one thread.
    """
    cdef const uint32_t[::1] runs = tables[0], places = tables[1], weights = tables[2]
    cdef int64_t s, n = segments.shape[0]
    cdef const uint32_t *base = &runs[0]
    cdef const char *places_at = <const char *>&places[0] if places.shape[0] else NULL
    cdef const char *weights_at = <const char *>&weights[0] if weights.shape[0] else NULL
    with nogil:
        for s in range(n):
            _stream(base + segments[s, 0], base + segments[s, 1], places_at, weights_at, <char *>arena,
                    <const char *>table, columns, kind, level)
            if meeting.shape[0]:
                ew_barrier(&meeting[0], meeting[1])


cdef inline void _stream(const uint32_t *p, const uint32_t *end, const char *places, const char *weights, char *values,
                         const char *inputs, int64_t columns, int kind, int level) noexcept nogil:
    cdef const ew_run *run = <const ew_run *>p
    cdef const ew_run *last = <const ew_run *>end
    if p == end:
        return
    if kind == EW_INT8:
        ew_int8(p, end, values, inputs, columns, level)
    elif columns == 1:
        ew_single(run, last, places, weights, <float *>values, <const float *>inputs, kind, level)
    else:
        ew_columns(run, last, places, weights, values, inputs, columns, kind, level)


cdef class Passes:
    """Passes without the GIL: input vectors into the table of inputs, the stream, rows out.

    tables: of the stream (see execute); end: words of its runs. columns: values of a row, pitch: its bytes. fed:
    columns of the batch that go into the table, fed_to: where; copied_from: rows of the table that go to rows of the
    arena too, copied_to: where; output_rows: the outputs' rows; table_bytes: of one pass. All places are offsets in
    bytes. scales: int8: what the outputs' 32-bit sums, whose rows output_rows then are, are multiplied with.
    """

    def __init__(self, tables, int64_t end, int64_t columns, int kind, int level, fed, fed_to, copied_from, copied_to,
                 output_rows, int64_t pitch, int64_t table_bytes, scales):
        self.runs, self.places, self.weights = tables
        self.end, self.columns, self.pitch, self.kind, self.level = end, columns, pitch, kind, level
        self.fed, self.fed_to, self.copied_from, self.copied_to = fed, fed_to, copied_from, copied_to
        self.output_rows, self.table_bytes, self.scales = output_rows, table_bytes, scales

    def pack(self, uintptr_t table, const float[:, :] batch, int64_t first, int64_t lanes):
        """Write the table of `lanes` vectors of float32[B, I] from the `first` on; places beyond the batch become 0."""
        if lanes > self.columns or not 0 <= first < batch.shape[0]:
            raise ValueError("no such vectors")
        with nogil:
            self._pack(<char *>table, batch, first, min(lanes, batch.shape[0] - first))

    cdef void _pack(self, char *table, const float[:, :] batch, int64_t first, int64_t here) noexcept nogil:
        if self.fed.shape[0]:
            ew_rows_in(table, &self.fed_to[0], &self.fed[0], self.fed.shape[0], &batch[first, 0],
                       batch.strides[0] // 4, batch.strides[1] // 4, here, self.columns)

    def enter(self, uintptr_t arena, uintptr_t table):
        """Copy those inputs that have rows of the arena."""
        self._enter(<char *>arena, <const char *>table)

    cdef void _enter(self, char *values, const char *table) noexcept nogil:
        cdef int64_t k
        for k in range(self.copied_to.shape[0]):
            memcpy(values + self.copied_to[k], table + self.copied_from[k], self.pitch)

    def run(self, uintptr_t arena, uintptr_t table, const float[:, :] batch, out, int64_t first, int64_t lanes,
            int64_t step):
        """Do the passes that begin at vector `first` and every `step` further. out: float32[O, B], C-contiguous.

        batch None: the tables of all passes lie at `table`, one after the other; else `table` has room for one.
        """
        cdef Py_buffer view
        PyObject_GetBuffer(out, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)  # of short runs, a memoryview is 1 %
        try:
            if (view.ndim != 2 or view.itemsize != 4 or lanes > self.columns
                    or view.shape[0] != self.output_rows.shape[0]
                    or (batch is not None and batch.shape[0] != view.shape[1])
                    or (self.kind == EW_INT8 and (batch is not None or self.scales.shape[0] != view.shape[0]))):
                raise ValueError("sizes that do not fit")
            with nogil:
                self._run(<char *>arena, <char *>table, batch, batch is None, <float *>view.buf, view.shape[1], first,
                          lanes, step)
        finally:
            PyBuffer_Release(&view)

    cdef void _run(self, char *values, char *table, const float[:, :] batch, bint packed, float *out, int64_t n,
                   int64_t first, int64_t lanes, int64_t step) noexcept nogil:
        cdef int64_t vector = first, here
        cdef char *inputs
        cdef const uint32_t *p = &self.runs[0]
        cdef const char *places = <const char *>&self.places[0] if self.places.shape[0] else NULL
        cdef const char *weights = <const char *>&self.weights[0] if self.weights.shape[0] else NULL
        while vector < n:
            here = min(lanes, n - vector)
            inputs = table
            if packed:
                inputs += vector // lanes * self.table_bytes
            else:
                self._pack(inputs, batch, vector, here)
            self._enter(values, inputs)
            _stream(p, p + self.end, places, weights, values, inputs, self.columns, self.kind, self.level)
            if self.output_rows.shape[0] and self.kind == EW_INT8:
                ew_sums_out(values, &self.output_rows[0], self.output_rows.shape[0], &self.scales[0], out + vector, n,
                            here, self.level)
            elif self.output_rows.shape[0]:
                ew_rows_out(values, &self.output_rows[0], self.output_rows.shape[0], out + vector, n, here)
            vector += step
