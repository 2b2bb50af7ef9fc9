"""Inference in the order of the work: the kernels that work through a stream of runs (streams/streams.pyx).

The partial sums of a run stay in registers. All arrays are in processing order and have been checked by the caller.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint32_t, uintptr_t
from libc.string cimport memcpy

cdef extern from "inference/runs.h" nogil:
    enum: EW_F32, EW_BF16, EW_INT8, EW_NARROW, EW_LINE_UNITS, EW_UNIT
    ctypedef struct ew_run:
        pass
    void ew_columns(const ew_run *, const ew_run *, const char *, const char *, char *, const char *, int64_t, int, int)

cdef extern from "inference/single.h" nogil:
    void ew_single(const ew_run *, const ew_run *, const char *, const char *, float *, const float *, int, int)

cdef extern from "inference/int8.h" nogil:
    void ew_int8(const uint32_t *, const uint32_t *, char *, const char *, int64_t, int)
    void ew_sums_out(const char *, const int64_t *, int64_t, const double *, float *, int64_t, int64_t, int)

cdef extern from "inference/row_copies.h" nogil:
    void ew_rows_in(char *, const int64_t *, const int64_t *, int64_t, const float *, int64_t, int64_t, int64_t, int64_t)
    void ew_bytes_in(char *, const int64_t *, const int64_t *, int64_t, const float *, int64_t, int64_t, int64_t,
                     const double *, const double *, int)
    void ew_rows_out(const char *, const int64_t *, int64_t, float *, int64_t, int64_t)

cdef extern from "common/simd.h" nogil:
    int ew_simd_level()

F32, BF16, INT8, NARROW = EW_F32, EW_BF16, EW_INT8, EW_NARROW
NARROW_OFFSETS = 1 << 16
LINE_UNITS = EW_LINE_UNITS
UNIT_BYTES = EW_UNIT
LEVELS = ("baseline", "avx2", "avx512")


def level_number(name="avx512"):
    """Return the number of a SIMD level, at most what this machine (or EDGEWATT_SIMD) allows."""
    return min(LEVELS.index(name), ew_simd_level())


def _write_bytes(uintptr_t table, const int64_t[::1] offsets, const int64_t[::1] columns, const float[:, :] batch,
                int64_t first, int64_t lanes, const double[::1] scales, const double[::1] zeros, int level):
    """Write input vectors from the `first` on, at most `lanes`, as bytes: rows at offsets of a table, in steps of
    scales.

    columns: of the batch, float32[B, I]. Rounded half to even, clamped to 0 to 255.
    """
    cdef int64_t n = columns.shape[0]
    if not 0 <= first < batch.shape[0] or offsets.shape[0] != n or scales.shape[0] != n or zeros.shape[0] != n:
        raise ValueError("no such vectors")
    if n:
        with nogil:
            ew_bytes_in(<char *>table, &offsets[0], &columns[0], n, &batch[first, 0], batch.strides[0] // 4,
                        batch.strides[1] // 4, min(lanes, batch.shape[0] - first), &scales[0], &zeros[0], level)


def _read_sums(uintptr_t arena, const int64_t[::1] offsets, const double[::1] scales, float[:, :] out, int level):
    """Fill out, float32[rows, vectors] with vectors side by side, with the 32-bit sums of int8 rows times their scales.

    offsets: of the rows of sums, in bytes; rows have as many values as a multiple of 64 vectors.
    """
    cdef int64_t n = offsets.shape[0]
    if out.shape[0] != n or scales.shape[0] != n or out.strides[1] != 4:
        raise ValueError("sizes that do not fit")
    if n and out.shape[1]:
        with nogil:
            ew_sums_out(<const char *>arena, &offsets[0], n, &scales[0], &out[0, 0], out.strides[0] // 4, out.shape[1],
                        level)


cdef class _Passes:
    """Passes without the GIL: input vectors into the table of inputs, the stream, rows out.

    tables: of float_stream, or the words of int8_stream and nothing, nothing; end: words of its runs, at least one.
    columns: values of a row, 1 or a multiple of 16, of 64 for int8; pitch: its bytes. fed: columns of the batch for the
    table, fed_to: where; copied_from: its rows that go to rows of the arena, copied_to: where; output_rows: the
    outputs'. All offsets are in bytes. scales: int8: of the outputs' 32-bit sums, whose rows output_rows then are.
    """

    cdef const uint32_t[::1] runs, offsets, weights
    cdef const int64_t[::1] fed, fed_to, copied_from, copied_to, output_rows
    cdef const double[::1] scales
    cdef int64_t columns, end, pitch, table_bytes
    cdef int kind, level

    def __init__(self, tables, int64_t end, int64_t columns, int kind, int level, fed, fed_to, copied_from, copied_to,
                 output_rows, int64_t pitch, int64_t table_bytes, scales):
        self.runs, self.offsets, self.weights = tables
        self.end, self.columns, self.pitch, self.kind, self.level = end, columns, pitch, kind, level
        self.fed, self.fed_to, self.copied_from, self.copied_to = fed, fed_to, copied_from, copied_to
        self.output_rows, self.table_bytes, self.scales = output_rows, table_bytes, scales

    def pack(self, uintptr_t table, const float[:, :] batch, int64_t first, int64_t lanes):
        """Write the table of `lanes` vectors of float32[B, I] from the `first` on; values beyond the batch become 0."""
        if lanes > self.columns or not 0 <= first < batch.shape[0]:
            raise ValueError("no such vectors")
        with nogil:
            self._pack(<char *>table, batch, first, min(lanes, batch.shape[0] - first))

    cdef void _pack(self, char *table, const float[:, :] batch, int64_t first, int64_t here) noexcept nogil:
        if self.fed.shape[0]:
            ew_rows_in(table, &self.fed_to[0], &self.fed[0], self.fed.shape[0], &batch[first, 0],
                       batch.strides[0] // 4, batch.strides[1] // 4, here, self.columns)

    def execute(self, uintptr_t arena, uintptr_t table):
        """Do one pass between addresses of the arena's rows and of the table of inputs, aligned to 64 bytes."""
        with nogil:
            self._execute(<char *>arena, <const char *>table)

    cdef void _execute(self, char *values, const char *table) noexcept nogil:
        cdef int64_t k
        cdef const uint32_t *p = &self.runs[0]
        cdef const uint32_t *end = p + self.end
        cdef const char *offsets = <const char *>&self.offsets[0] if self.offsets.shape[0] else NULL
        cdef const char *weights = <const char *>&self.weights[0] if self.weights.shape[0] else NULL
        for k in range(self.copied_to.shape[0]):
            memcpy(values + self.copied_to[k], table + self.copied_from[k], self.pitch)
        if p == end:
            return
        if self.kind == EW_INT8:
            ew_int8(p, end, values, table, self.columns, self.level)
        elif self.columns == 1:
            ew_single(<const ew_run *>p, <const ew_run *>end, offsets, weights, <float *>values, <const float *>table,
                      self.kind, self.level)
        else:
            ew_columns(<const ew_run *>p, <const ew_run *>end, offsets, weights, values, table, self.columns, self.kind,
                       self.level)

    def run(self, uintptr_t arena, uintptr_t table, const float[:, :] batch or None, out, int64_t first, int64_t lanes,
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
        while vector < n:
            here = min(lanes, n - vector)
            inputs = table
            if packed:
                inputs += vector // lanes * self.table_bytes
            else:
                self._pack(inputs, batch, vector, here)
            self._execute(values, inputs)
            if self.output_rows.shape[0] and self.kind == EW_INT8:
                ew_sums_out(values, &self.output_rows[0], self.output_rows.shape[0], &self.scales[0], out + vector, n,
                            here, self.level)
            elif self.output_rows.shape[0]:
                ew_rows_out(values, &self.output_rows[0], self.output_rows.shape[0], out + vector, n, here)
            vector += step
