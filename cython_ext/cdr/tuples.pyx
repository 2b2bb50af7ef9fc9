"""Orders of tuples inside strides that send few ones or toggles (model: cost.h; meaning: reorder.tuples)."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np

from cython_ext.common.checks cimport need

cdef extern from "cdr/stride.h" nogil:
    enum: CDR_OPEN, CDR_CLASSES
    ctypedef struct cdr_stride:
        int n, words, dbi, symmetric
        const uint64_t *out
        const uint64_t *in_ "in"
        uint64_t keep[8][2]
        const uint8_t *slot_class
    int cdr_open(cdr_stride *s)
    void cdr_close(cdr_stride *s)
    int cdr_greedy(const cdr_stride *s, int *tour, int *left, const int *lonely)
    int64_t cdr_total(const cdr_stride *s, const int *tour)
    int cdr_compute(const cdr_stride *s, int c, int64_t a, int64_t b)
    double cdr_bound(const cdr_stride *s, const int *start, double goal, int rounds)

cdef extern from "cdr/search.h" nogil:
    ctypedef struct cdr_search:
        int *tour
        int64_t cost
    int cdr_search_open(cdr_search *q, const cdr_stride *s, const int *tour, uint64_t seed)
    void cdr_search_run(cdr_search *q, int64_t kicks)
    void cdr_search_close(cdr_search *q)
    uint64_t ew_splitmix64(uint64_t *state)

GREEDY = 0
SEARCH = 2

cdef struct Workspace:
    uint64_t *out, *in_
    uint8_t *slot_class
    int *tour, *scratch
    int64_t *place


cdef int _solve(cdr_stride *s, Workspace *w, int method, bint from_order, int64_t kicks, uint64_t seed) noexcept nogil:
    """Fill w.tour[1..n]; from_order: slots start as they are given, and stay if nothing better is found."""
    cdef cdr_search q
    cdef int i, n = s.n
    cdef bint own_start = method == SEARCH_METHOD and not from_order and n > LONG  # shorter ones end as low from any start
    if cdr_open(s):
        return -1
    w.tour[0] = n
    w.tour[n + 1] = n
    if from_order:
        for i in range(n):
            w.tour[i + 1] = i
    elif not own_start and cdr_greedy(s, w.tour, w.scratch, NULL):
        cdr_close(s)
        return -1
    if method == SEARCH_METHOD and n > 1:
        if cdr_search_open(&q, s, NULL if own_start else w.tour, seed):
            cdr_close(s)
            return -1
        cdr_search_run(&q, kicks)
        for i in range(1, n + 1):
            w.tour[i] = q.tour[i]
        cdr_search_close(&q)
    cdr_close(s)
    return 0

cdef enum:
    SEARCH_METHOD = 2
    LONG = 4096


def order_strides(const uint64_t[:, ::1] out_words, const uint64_t[:, ::1] in_words, const uint64_t[:, ::1] keep,
                  const uint8_t[::1] slot_class, const int64_t[::1] bounds,
                  int64_t first, int64_t last, int64_t[::1] order, int method, bint refine, double kicks_per_tuple,
                  uint64_t seed, bint dbi, bint symmetric, int64_t before=0):
    """Order the tuples of strides [first, last), left to right, in place.

    out_words, in_words: uint64[N, 1 or 2], what a tuple leaves on and first puts on its wires. keep: uint64[8, words].
    slot_class: uint8[N]. bounds: int64[S + 1], stride k is order[bounds[k]:bounds[k+1]]. refine: start from `order` and
    look ahead to the tuple after the stride; otherwise order afresh without looking ahead. The work is a number of
    kicks, kicks_per_tuple * n each; stride k draws from a generator seeded by (seed, before + k).
    """
    cdef int64_t k, i, n, start, longest = _longest(bounds, first, last), words = out_words.shape[1]
    cdef Workspace space
    cdef cdr_stride s
    cdef uint64_t state
    cdef int failed = 0
    _check(out_words, in_words, keep, slot_class, bounds, first, last, order)
    held = _reserve(&space, &s, words, longest, keep, dbi, symmetric)
    with nogil:
        for k in range(first, last):
            start = bounds[k]
            n = bounds[k + 1] - start
            if n == 0:
                continue
            _fill(&s, &space, out_words, in_words, slot_class, bounds, k, order, refine)
            state = seed ^ (<uint64_t>(before + k) * 0x9e3779b97f4a7c15u)
            if _solve(&s, &space, method, refine, <int64_t>(kicks_per_tuple * n), ew_splitmix64(&state)):
                failed = 1
                break
            for i in range(n):
                order[start + i] = space.place[space.tour[i + 1]]
    if failed:
        raise MemoryError


def stride_bounds(const uint64_t[:, ::1] out_words, const uint64_t[:, ::1] in_words, const uint64_t[:, ::1] keep,
                  const uint8_t[::1] slot_class, const int64_t[::1] bounds,
                  int64_t first, int64_t last, int64_t[::1] order, int rounds, bint dbi, bint symmetric,
                  double[::1] bound):
    """Write a lower bound on the cost of each stride in [first, last), over all orders of it and of the stride before.

    order: a good order, which sets the step length of the ascent. bound: float64[S].
    """
    cdef int64_t k, i, j, n, start, before, longest = _longest(bounds, first, last), words = out_words.shape[1], w
    cdef Workspace space
    cdef cdr_stride s
    cdef int cost, failed = 0
    cdef double found
    before = max(first - 1, 0)
    while before > 0 and bounds[before + 1] == bounds[before]:
        before -= 1
    _check(out_words, in_words, keep, slot_class, bounds, before, last, order)
    need(bound.shape[0] >= last, "a bound for each stride")
    held = _reserve(&space, &s, words, longest, keep, dbi, symmetric)
    with nogil:
        for k in range(first, last):
            start = bounds[k]
            n = bounds[k + 1] - start
            bound[k] = 0
            if n == 0:
                continue
            _fill(&s, &space, out_words, in_words, slot_class, bounds, k, order, False)
            space.slot_class[n + 1] = CDR_OPEN
            if cdr_open(&s):
                failed = 1
                break
            space.tour[0] = n
            space.tour[n + 1] = n
            for i in range(n):
                space.tour[i + 1] = i
                space.scratch[i] = cdr_compute(&s, space.slot_class[1], n, i)
            found = cdr_total(&s, space.tour)
            before = k - 1  # any tuple of the stride before may come last there
            while before >= 0 and bounds[before + 1] == bounds[before]:
                before -= 1
            for j in range(bounds[before] if before >= 0 else start, start):
                for w in range(words):
                    space.out[n * words + w] = out_words[order[j], w]
                for i in range(n):
                    cost = cdr_compute(&s, space.slot_class[1], n, i)
                    if cost < space.scratch[i]:
                        space.scratch[i] = cost
            bound[k] = cdr_bound(&s, space.scratch, found, rounds)
            cdr_close(&s)
            if bound[k] < 0:
                failed = 1
                break
    if failed:
        raise MemoryError


cdef int64_t _longest(const int64_t[::1] bounds, int64_t first, int64_t last) except -1:
    cdef int64_t k, longest = 1
    need(0 <= first <= last < bounds.shape[0], "no such strides")
    for k in range(first, last):
        need(0 <= bounds[k + 1] - bounds[k] < 2**30, "a stride holds 0 to 2**30 - 1 tuples")
        longest = max(longest, bounds[k + 1] - bounds[k])
    return longest


cdef int _check(const uint64_t[:, ::1] out_words, const uint64_t[:, ::1] in_words, const uint64_t[:, ::1] keep,
                const uint8_t[::1] slot_class, const int64_t[::1] bounds, int64_t first,
                int64_t last, int64_t[::1] order) except -1:
    cdef int64_t total = order.shape[0], words = out_words.shape[1], i
    need(words in (1, 2) and in_words.shape[1] == words and keep.shape[1] == words and keep.shape[0] == CDR_CLASSES,
         "a tuple has one or two words, in all arrays alike")
    need(out_words.shape[0] == total and in_words.shape[0] == total and slot_class.shape[0] == total,
         "one row for each tuple")
    need(0 <= bounds[0] <= bounds[first] and bounds[last] <= total, "strides lie inside the order")
    for i in range(first, last):
        need(bounds[i] <= bounds[i + 1], "strides follow each other")
    for i in range(bounds[first], min(bounds[last] + 1, total)):
        need(slot_class[i] < CDR_CLASSES, "a class that is none")
    for i in range(max(bounds[first] - 1, 0), min(bounds[last] + 1, total)):  # what these strides and their ends read
        need(0 <= order[i] < total, "a tuple outside the matrix")
    return 0


cdef object _reserve(Workspace *space, cdr_stride *s, int64_t words, int64_t longest, const uint64_t[:, ::1] keep, bint dbi,
                     bint symmetric):
    """Set the workspace and the stride up; return what the workspace lies in."""
    cdef int64_t k, w
    cdef uint64_t[:, ::1] both = np.empty((2, words * (longest + 1)), np.uint64)
    cdef uint8_t[::1] classes = np.empty(longest + 2, np.uint8)
    cdef int[:, ::1] tours = np.empty((2, longest + 2), np.intc)
    cdef int64_t[::1] place = np.empty(longest + 1, np.int64)
    space.out, space.in_, space.slot_class = &both[0, 0], &both[1, 0], &classes[0]
    s.out, s.in_, s.slot_class = space.out, space.in_, space.slot_class
    space.tour, space.scratch, space.place = &tours[0, 0], &tours[1, 0], &place[0]
    s.words, s.dbi, s.symmetric = words, dbi, symmetric
    for k in range(CDR_CLASSES):
        for w in range(2):
            s.keep[k][w] = keep[k, w] if w < words else 0
    return both, classes, tours, place


cdef void _fill(cdr_stride *s, Workspace *space, const uint64_t[:, ::1] out_words, const uint64_t[:, ::1] in_words,
                const uint8_t[::1] slot_class, const int64_t[::1] bounds, int64_t k,
                int64_t[::1] order, bint look_ahead) noexcept nogil:
    """Copy stride k, the tuple before it and, with look_ahead, the tuple after it into the workspace."""
    cdef int64_t start = bounds[k], stop = bounds[k + 1], n = stop - start, words = out_words.shape[1], i, w
    cdef bint follows = look_ahead and stop < order.shape[0]
    s.n = n
    for i in range(n):
        space.place[i] = order[start + i]
        space.slot_class[i + 1] = slot_class[start + i]
        for w in range(words):
            space.out[i * words + w] = out_words[space.place[i], w]
            space.in_[i * words + w] = in_words[space.place[i], w]
    space.slot_class[0] = 0
    space.slot_class[n + 1] = slot_class[stop] if follows else CDR_OPEN
    for w in range(words):
        space.out[n * words + w] = out_words[order[start - 1], w] if start else 0
        space.in_[n * words + w] = in_words[order[stop], w] if follows else 0
