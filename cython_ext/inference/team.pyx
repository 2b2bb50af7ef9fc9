"""Threads that share the lanes of the passes of one compiled network, without the GIL from call to call."""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uintptr_t

from cython_ext.inference.runs cimport Passes

cdef extern from "inference/team.h" nogil:
    ctypedef struct ew_team:
        int64_t closed
    void ew_team_make(ew_team *)
    int64_t ew_team_wait(ew_team *, int64_t)
    void ew_team_call(ew_team *)
    void ew_team_finish(ew_team *)
    void ew_team_join(ew_team *, int64_t)
    void ew_team_close(ew_team *)


cdef class Team:
    """A caller and `threads` - 1 others, each of which is in `serve` until the team is closed.

    passes: what they do. Thread k does the passes that begin at vectors k * lanes, (k + threads) * lanes, ...
    """

    cdef ew_team team
    cdef Passes passes
    cdef int64_t[::1] arenas, tables
    cdef const float[:, :] batch
    cdef bint packed
    cdef float *out
    cdef int64_t n, lanes, threads

    def __cinit__(self):
        ew_team_make(&self.team)

    def __init__(self, Passes passes, int64_t threads, int64_t lanes):
        self.passes, self.threads, self.lanes = passes, threads, lanes

    def serve(self, int64_t number):
        """Do the part of thread `number` (from 1) of every call, until `close`."""
        cdef int64_t seen = 0
        with nogil:
            while True:
                seen = ew_team_wait(&self.team, seen)
                if self.team.closed:
                    break
                self._part(number)
                ew_team_finish(&self.team)

    def run(self, int64_t[::1] arenas, int64_t[::1] tables, const float[:, :] batch or None, out):
        """Do all passes, as Passes.run. arenas, tables: addresses, one per thread. One call at a time."""
        cdef Py_buffer view
        if arenas.shape[0] != self.threads or tables.shape[0] != self.threads or self.lanes > self.passes.columns:
            raise ValueError("sizes that do not fit")
        PyObject_GetBuffer(out, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
        try:
            if (view.ndim != 2 or view.itemsize != 4 or view.shape[0] != self.passes.output_rows.shape[0]
                    or (batch is not None and batch.shape[0] != view.shape[1])):
                raise ValueError("sizes that do not fit")
            self.arenas, self.tables, self.batch, self.packed = arenas, tables, batch, batch is None
            self.out, self.n = <float *>view.buf, view.shape[1]
            with nogil:
                ew_team_call(&self.team)
                self._part(0)
                ew_team_join(&self.team, self.threads - 1)
        finally:
            self.batch = None
            PyBuffer_Release(&view)

    cdef void _part(self, int64_t number) noexcept nogil:
        self.passes._run(<char *><uintptr_t>self.arenas[number], <char *><uintptr_t>self.tables[number], self.batch,
                         self.packed, self.out, self.n, number * self.lanes, self.lanes, self.threads * self.lanes)

    def close(self):
        """End the others' `serve`. No call may follow."""
        with nogil:
            ew_team_close(&self.team)
