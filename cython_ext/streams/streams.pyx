"""The stream of runs that a kernel works through: offsets, weights and heads of every run (layout: stream.h); rows of
the arena that values lie in.

A *run* is a maximal stretch of consecutive connections into one target. All arrays are in processing order.
"""

import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport rises, within32

cdef extern from "streams/stream.h" nogil:
    enum: EW_BF16, EW_NARROW, EW_HEADER_INT8, EW_ACTIVATION_SHIFT
    uint32_t EW_FIRST, EW_LAST, EW_WIDE, EW_OUTSIDE, EW_PAIRED

cdef extern from *:
    """
    #include "common/heap.h"
    static inline int row_before(const int64_t *a, const int64_t *b) { return *a < *b; }
    EW_HEAP(row, int64_t)
    """
    void row_put(int64_t *heap, int64_t *count, int64_t row) noexcept nogil
    int64_t row_pop(int64_t *heap, int64_t *count) noexcept nogil

RUN_WORDS = 4  # of a run of a float stream
PAD_WORDS = 16  # the last vector of a run, and the quad behind the last run, may be read past the end


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


cdef int _check_runs(const int32_t[::1] sources, const int32_t[::1] targets, const int64_t[::1] starts,
                     const uint8_t[::1] outside) except -1:
    need(targets.shape[0] == sources.shape[0] and rises(starts, sources.shape[0])
         and outside.shape[0] == starts.shape[0] - 1 and np.all(np.diff(starts) > 0), "runs of connections")
    return 0


cdef int _check_sources(const int32_t[::1] sources, const int64_t[::1] starts, const uint8_t[::1] outside, int64_t n,
                       int64_t n_inputs) except -1:
    cdef int64_t r, k, most
    for r in range(outside.shape[0]):
        most = n_inputs if outside[r] else n
        for k in range(starts[r], starts[r + 1]):
            need(0 <= sources[k] < most, "sources that have an offset")
    return 0


def shared_quads(const int32_t[::1] sources, const int32_t[::1] targets, const int64_t[::1] starts,
                 const uint8_t[::1] outside):
    """Return int64[R]: for a kernel that takes two targets together, of a run that makes a pair with the next one, how
    many quads of sources they begin with alike.

    0: no pair. Nothing is in two pairs, and the second run does not read what the first one writes. O(W).
    """
    cdef int64_t n_runs = starts.shape[0] - 1, r = 0, k, most
    _check_runs(sources, targets, starts, outside)
    found = np.zeros(n_runs, np.int64)
    cdef int64_t[::1] shared = found
    with nogil:
        while r + 1 < n_runs:
            most = min(starts[r + 1] - starts[r], starts[r + 2] - starts[r + 1])
            k = 0
            if outside[r] == outside[r + 1] and targets[starts[r]] != targets[starts[r + 1]]:
                while k < most and sources[starts[r] + k] == sources[starts[r + 1] + k]:
                    k += 1
            if k >= 4:
                for most in range(starts[r + 1], starts[r + 2]):
                    if sources[most] == targets[starts[r]]:
                        k = 0
                        break
            if k >= 4:
                shared[r] = k // 4
                r += 1
            r += 1
    return found


def float_stream(const int32_t[::1] sources, const int32_t[::1] targets, const float[::1] weights,
                 const int64_t[::1] starts, const uint32_t[::1] offset, const float[::1] start_values,
                 const uint8_t[::1] activation, const int64_t[::1] in_degree, const uint8_t[::1] outside,
                 const uint32_t[::1] input_offset, int kind, uint32_t line_units, const int64_t[::1] shared):
    """Return the tables (runs, offsets, weights) of a float stream, uint32 each, RUN_WORDS per run.

    offset: offset of each neuron's row, in units. outside: of each run, whether its sources are rows of the table of
    inputs; input_offset: their offsets there. start_values: bias of each neuron. activation: code of each neuron.
    kind: F32, or BF16 (weights are rounded to nearest, ties to even), plus NARROW for 16-bit
    offsets, which count in `line_units` units. shared: of each run, what shared_quads says (zeros: no pairs); the quads
    that a pair shares lie side by side, then come the others of its first and of its second run.
    """
    cdef int64_t n_runs = starts.shape[0] - 1, r, k, n, at_quad, quad = 0, before = 0
    cdef bint bf16 = kind & EW_BF16, narrow = kind & EW_NARROW, second = False
    n = offset.shape[0]
    _check_runs(sources, targets, starts, outside)
    _check_sources(sources, starts, outside, n, input_offset.shape[0])
    need(within32(targets, 0, n) and start_values.shape[0] == n == activation.shape[0] and in_degree.shape[0] == n
         and weights.shape[0] == sources.shape[0] and shared.shape[0] == n_runs and (line_units > 0 or not narrow),
         "an offset, a start, an activation and a degree for each target, a weight for each connection")
    for r in range(n_runs):
        k = min(starts[r + 1] - starts[r], starts[r + 2] - starts[r + 1]) if r + 1 < n_runs else 0
        need(0 <= shared[r] <= k // 4 and not (r and shared[r] and shared[r - 1]), "quads that two runs have")
    cdef int64_t quads = ((np.diff(np.asarray(starts)) + 3) // 4).sum()
    if quads >= 2**32:
        raise ValueError("more than 2^34 connections")
    runs = np.zeros(RUN_WORDS * n_runs + PAD_WORDS, np.uint32)
    offset_words = np.zeros(quads * (2 if narrow else 4) + PAD_WORDS, np.uint32)
    weight_words = np.zeros(quads * (2 if bf16 else 4) + PAD_WORDS, np.uint32)
    cdef uint32_t[::1] run = runs
    cdef uint32_t[::1] wide_offset = offset_words
    cdef uint16_t[::1] narrow_offset = offset_words.view(np.uint16)
    cdef uint32_t[::1] weight_f32 = weight_words
    cdef uint16_t[::1] weight_bf16 = weight_words.view(np.uint16)
    cdef const uint32_t[::1] weight_bits = np.asarray(weights).view(np.uint32)
    cdef const uint32_t[::1] start_bits = np.asarray(start_values).view(np.uint32)
    cdef int64_t[::1] seen = np.zeros(in_degree.shape[0], np.int64)
    cdef uint32_t bits, at
    cdef const uint32_t *source_offset
    cdef int32_t t
    with nogil:
        for r in range(n_runs):
            t = targets[starts[r]]
            n = starts[r + 1] - starts[r]
            source_offset = &input_offset[0] if outside[r] else &offset[0]
            run[4 * r] = offset[t]
            run[4 * r + 1] = (_head(seen, t, n, in_degree[t], activation[t]) | (EW_OUTSIDE if outside[r] else 0)
                              | (EW_PAIRED if shared[r] else 0))
            run[4 * r + 2] = start_bits[t]
            run[4 * r + 3] = <uint32_t>(shared[r - 1] if second else quad)
            for k in range(n):
                if second:  # `before`: quads of the first run of the pair
                    at_quad = quad - before + 2 * (k // 4) + 1 if k // 4 < shared[r - 1] else quad + k // 4
                else:
                    at_quad = quad + (2 * (k // 4) if k // 4 < shared[r] else k // 4 + shared[r])
                at = source_offset[sources[starts[r] + k]]
                bits = weight_bits[starts[r] + k]
                if narrow:
                    narrow_offset[4 * at_quad + k % 4] = <uint16_t>(at // line_units)
                else:
                    wide_offset[4 * at_quad + k % 4] = at
                if bf16:
                    weight_bf16[4 * at_quad + k % 4] = <uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)
                else:
                    weight_f32[4 * at_quad + k % 4] = bits
            before = (n + 3) // 4
            quad += before
            second = shared[r] > 0
    return runs, offset_words, weight_words


def int8_stream(const int32_t[::1] sources, const int32_t[::1] targets, const int8_t[::1] weights,
                const int64_t[::1] starts, const uint32_t[::1] offset, const uint32_t[::1] sum_offset,
                const int32_t[::1] start_values, const float[::1] multipliers, const int32_t[::1] zeros,
                const uint8_t[::1] activation, const uint8_t[::1] wide, const int64_t[::1] in_degree,
                const uint8_t[::1] outside, const uint32_t[::1] input_offset):
    """Return (words, first word of every run) of an integer stream. sum_offset: rows of 32-bit sums, in units."""
    cdef int64_t n_runs = starts.shape[0] - 1, r, k, n, padded, at = 0
    n = offset.shape[0]
    _check_runs(sources, targets, starts, outside)
    _check_sources(sources, starts, outside, n, input_offset.shape[0])
    need(within32(targets, 0, n) and sum_offset.shape[0] == n == start_values.shape[0] and multipliers.shape[0] == n
         and zeros.shape[0] == n == activation.shape[0] and wide.shape[0] == n == in_degree.shape[0]
         and weights.shape[0] == sources.shape[0], "offsets, starts, factors, an activation and a degree for each target")
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
    cdef const uint32_t *source_offset
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
            source_offset = &input_offset[0] if outside[r] else &offset[0]
            word[at] = offset[t]
            word[at + 1] = head
            word[at + 2] = <uint32_t>start_values[t]
            word[at + 3] = sum_offset[t]
            word[at + 4] = factor_bits[t]
            word[at + 5] = <uint32_t>zeros[t]
            at += EW_HEADER_INT8
            for k in range(padded):
                word[at + k] = source_offset[sources[starts[r] + (k if k < n else n - 1)]]
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


def assign_rows(const int32_t[::1] sources, const int32_t[::1] targets, const int64_t[::1] last_use,
                const uint8_t[::1] keep, const int32_t[::1] resident):
    """Return int64[N], rows of the arena so that rows are used again, and the number of rows. O(W + N log N).

    A row is taken at a neuron's first touch, the lowest free one, and is free again after the step of its last use.
    resident: neurons that hold rows from the start. keep: neurons whose rows are never free again. -1: not touched.
    """
    cdef int64_t w = sources.shape[0], n = last_use.shape[0], k, rows = 0, free = 0, side
    cdef int32_t v
    cdef bint outside = False
    need(targets.shape[0] == w and keep.shape[0] == n and within32(resident, 0, n), "neurons that are there")
    found = np.full(n, -1, np.int64)
    cdef int64_t[::1] row = found
    cdef int64_t[::1] heap = np.empty(2 * n + 1, np.int64)  # a connection from a neuron to itself frees its row twice
    with nogil:
        for k in range(resident.shape[0]):
            row[resident[k]] = rows
            rows += 1
        for k in range(w):
            v = targets[k]
            if v < 0 or v >= n or sources[k] < 0 or sources[k] >= n:
                outside = True
                break
            if row[v] < 0:
                if free:
                    row[v] = row_pop(&heap[0], &free)
                else:
                    row[v] = rows
                    rows += 1
            for side in range(2):
                v = targets[k] if side else sources[k]
                if last_use[v] == k and not keep[v]:
                    row_put(&heap[0], &free, row[v])
    need(not outside, "neurons that are there")
    return found, rows
