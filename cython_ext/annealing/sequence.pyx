"""Annealing of the sequence of connections by full counts of its I/Os (sequence.h), for small networks."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport within32

cdef extern from "annealing/sequence.h" nogil:
    enum:
        EW_NEVER
    ctypedef struct ew_sequence:
        int32_t n, w, room, policy, pin_both
        const int32_t *source, *target, *in_start, *in_edge, *out_start, *out_edge
        const uint8_t *output
        int32_t *sequence, *place, *moved, *next, *last, *slot, *use, *held
        uint8_t *dirty
        uint64_t random
    int32_t ew_sequence_count(ew_sequence *, int32_t)
    int32_t ew_sequence_run(ew_sequence *, int64_t, double, int32_t, int32_t *, int32_t *)


cdef class Sequence:
    """A sequence of connections, its cost (reads and writes of values) and the least found with its sequence.

    sources, targets: int32[W]. outputs: uint8[N]. memory: M. policy, pinning: codes of cython_ext.iomodel.counts.
    """

    cdef ew_sequence c
    cdef list arrays
    cdef int32_t now
    cdef readonly int32_t least
    cdef int32_t[::1] best, order, place

    def __init__(self, const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons,
                 const uint8_t[::1] outputs, int64_t memory, int64_t policy, int64_t pinning, uint64_t seed):
        cdef int64_t w = sources.shape[0]
        need(2 <= w < EW_NEVER // 4 and targets.shape[0] == w and outputs.shape[0] == n_neurons, "sizes that fit")
        need(memory >= 3 and 0 <= policy <= 2, "a memory and a policy")
        need(within32(sources, 0, n_neurons) and within32(targets, 0, n_neurons), "neurons that are there")
        grouped = []
        for ends in (np.asarray(targets), np.asarray(sources)):
            start = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=n_neurons)))).astype(np.int32)
            grouped += [start, np.argsort(ends, kind="stable").astype(np.int32)]
        cdef int32_t[::1] in_start = grouped[0], in_edge = grouped[1], out_start = grouped[2], out_edge = grouped[3]
        cdef int32_t[::1] moved = np.empty(w, np.int32), next = np.empty(2 * w, np.int32)
        cdef int32_t[:, ::1] of_neuron = np.zeros((3, n_neurons), np.int32)
        cdef int32_t[::1] held = np.empty(min(memory - 1, n_neurons), np.int32)
        cdef uint8_t[::1] dirty = np.zeros(n_neurons, np.uint8)
        self.order, self.place, self.best = np.empty(w, np.int32), np.empty(w, np.int32), np.empty(w, np.int32)
        self.arrays = [sources, targets, outputs, in_start, in_edge, out_start, out_edge, moved, next, of_neuron, held,
                       dirty]
        self.c.n, self.c.w, self.c.room, self.c.policy, self.c.pin_both = n_neurons, w, held.shape[0], policy, pinning
        self.c.source, self.c.target, self.c.output = &sources[0], &targets[0], &outputs[0]
        self.c.in_start, self.c.in_edge = &in_start[0], &in_edge[0]
        self.c.out_start, self.c.out_edge = &out_start[0], &out_edge[0]
        self.c.sequence, self.c.place, self.c.moved, self.c.next = &self.order[0], &self.place[0], &moved[0], &next[0]
        self.c.last, self.c.slot, self.c.use = &of_neuron[0, 0], &of_neuron[1, 0], &of_neuron[2, 0]
        self.c.held, self.c.dirty, self.c.random = &held[0], &dirty[0], seed
        self.least = EW_NEVER

    def start(self, const int64_t[::1] edges):
        """Go on from an order (int64[W], topological) and return its cost."""
        cdef int64_t k
        need(edges.shape[0] == self.c.w, "a place for each connection")
        cdef int32_t[::1] place = np.full(self.c.w, -1, np.int32)
        for k in range(self.c.w):
            need(0 <= edges[k] < self.c.w and place[edges[k]] < 0, "an order of all connections")
            place[edges[k]] = <int32_t> k
        np.asarray(self.order)[:] = edges
        self.place[:] = place
        self.now = ew_sequence_count(&self.c, EW_NEVER)
        if self.now < self.least:
            self.least = self.now
            self.best[:] = self.order
        return self.now

    def run(self, int64_t moves, double temperature):
        """Propose so many moves at a temperature in I/Os, and return the cost after them. Behind `start`."""
        need(self.least < EW_NEVER, "an order to start from")
        with nogil:
            self.now = ew_sequence_run(&self.c, moves, temperature, self.now, &self.least, &self.best[0])
        return self.now

    def best_found(self):
        """Return int64[W], the sequence of the least cost."""
        return np.array(self.best, np.int64)
