"""The least I/Os of all orders of a tiny network, by A* (exact.h says over what)."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport within32

cdef extern from "edges/exact.h" nogil:
    enum:
        EW_MOST_EDGES, EW_MOST_VALUES, EW_PLACES, EW_EXACT_MIN
    ctypedef struct ew_node:
        int32_t parent
        short edge
    ctypedef struct ew_contents:
        pass
    ctypedef struct ew_exact:
        int n, w, room, policy, bound, complete, floor, least
        int a[64]
        int b[64]
        uint64_t uses[64]
        uint64_t feeds[64]
        uint64_t outputs
        ew_node *node
        int32_t found, *table, *bucket
    int ew_exact_run(ew_exact *, int64_t)
    void ew_exact_push(ew_exact *, ew_contents, int, uint64_t, int32_t, int)

MOST_EDGES, MOST_VALUES, MOST_PLACES = EW_MOST_EDGES, EW_MOST_VALUES, EW_PLACES
cdef int64_t SLICE = 1 << 11  # states between two looks at what ends the search


def least_order(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons,
                const uint8_t[::1] outputs, int64_t memory, int64_t policy, int64_t bound, int64_t states, over=None):
    """Return (int64[W] or None, proved, floor): the order of the least I/Os if it has fewer than `bound`, whether the
    search came to an end, so that this is the optimum (or, with None, that no order has fewer than `bound`), and a
    number of I/Os, `bound` at most, that no order is below, however early the search ended.

    sources, targets: int32[W], at most MOST_EDGES. outputs: uint8[N], N at most MOST_VALUES. memory: M; at most
    MOST_PLACES + 1 under LRU and RR. policy: a code of cython_ext.iomodel.counts (literal). bound,
    floor: reads and writes besides the W reads of connections. states: expanded at most, 120 bytes or so for each that
    they lead to. over: ends the search, too.
    """
    cdef int64_t w = sources.shape[0], k
    cdef ew_exact x
    cdef ew_contents start
    cdef int status = 0
    need(0 < w <= EW_MOST_EDGES and targets.shape[0] == w, "connections for one word")
    need(0 < n_neurons <= EW_MOST_VALUES and outputs.shape[0] == n_neurons, "values for one word")
    need(3 <= memory and 0 <= policy <= 2 and (policy == EW_EXACT_MIN or memory - 1 <= EW_PLACES), "a memory that fits")
    need(0 <= bound <= 1 << 14, "a bound")
    need(within32(sources, 0, n_neurons) and within32(targets, 0, n_neurons), "neurons that are there")
    memset(&x, 0, sizeof(x))
    memset(&start, 0, sizeof(start))
    x.n, x.w, x.room, x.policy, x.bound = n_neurons, w, memory - 1, policy, bound
    x.complete, x.found = 1, -1
    x.bucket = <int32_t *> malloc((bound + 1) * sizeof(int32_t))
    if x.bucket == NULL:
        raise MemoryError
    memset(x.bucket, -1, (bound + 1) * sizeof(int32_t))
    for k in range(n_neurons):
        x.outputs |= <uint64_t> (outputs[k] != 0) << k
    for k in range(w):
        x.a[k], x.b[k] = sources[k], targets[k]
        x.uses[sources[k]] |= <uint64_t> 1 << k
        x.uses[targets[k]] |= <uint64_t> 1 << k
        x.feeds[targets[k]] |= <uint64_t> 1 << k
    try:
        ew_exact_push(&x, start, 0, 0, -1, -1)
        while x.bound and status == 0 and states > 0 and not (over is not None and over()):
            with nogil:
                status = ew_exact_run(&x, min(SLICE, states))
            states -= SLICE
        floor = x.least if x.complete else x.floor
        if status != 1:
            return None, bool((status == 2 or not x.bound) and x.complete), floor
        order, k = [], x.found
        while x.node[k].edge >= 0:
            order.append(x.node[k].edge)
            k = x.node[k].parent
        return np.array(order[::-1], np.int64), bool(x.complete), floor
    finally:
        free(x.node)
        free(x.table)
        free(x.bucket)
