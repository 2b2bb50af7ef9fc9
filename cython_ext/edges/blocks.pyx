"""Blocks of targets improved by swap annealing. Index arrays as in reorder.edges.search.intervals."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport exp, pow as power
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport rises, within32

cdef int64_t SLICE = 1 << 14  # swaps between two looks at Ctrl-C


cdef extern from "common/random.h" nogil:
    uint64_t ew_splitmix64(uint64_t *)
    double ew_unit(uint64_t *)


cdef inline int64_t below(uint64_t random, int64_t n) noexcept nogil:
    return <int64_t> ((random >> 32) * <uint64_t> n >> 32)


def swap_blocks(const int32_t[::1] start, const int32_t[::1] source, int32_t[::1] order, int64_t size,
                int64_t n_sources, int64_t swaps, double hot, double cold, uint64_t seed):
    """Anneal the blocks order[0:size], order[size:2 size], ... of items by swaps; return the loads saved.

    The loads of a block are the different sources of its items. `source` ids are below n_sources, no item has one
    twice. Changes `order`. Memory: 2 bytes per block and source.
    """
    need(size > 0 and start.shape[0] > 0 and rises(start, source.shape[0]) and within32(source, 0, n_sources)
         and within32(order, 0, start.shape[0] - 1), "blocks of items that are there")
    cdef int64_t n = order.shape[0], blocks = (n + size - 1) // size, done = 0, k, i, j, a, b, v, w, e, s, both
    cdef uint16_t[:, ::1] count = np.zeros((max(1, blocks), n_sources), np.uint16)
    cdef int64_t[::1] shared = np.zeros(n_sources, np.int64)
    cdef uint64_t state = seed
    cdef int64_t delta, saved = 0, stop
    cdef double temperature
    if blocks < 2:
        return 0
    for i in range(n):
        for e in range(start[order[i]], start[order[i] + 1]):
            count[i // size, source[e]] += 1
    while done < swaps:
        stop = min(swaps, done + SLICE)
        temperature = hot * power(cold / hot, <double> done / swaps)
        with nogil:
            for k in range(done, stop):
                i, j = below(ew_splitmix64(&state), n), below(ew_splitmix64(&state), n)
                a, b = i // size, j // size
                if a == b:
                    continue
                v, w = order[i], order[j]
                delta = 0
                for e in range(start[w], start[w + 1]):
                    s = source[e]
                    shared[s] = k + 1
                    delta += (count[a, s] == 0) - (count[b, s] == 1)
                for e in range(start[v], start[v + 1]):
                    s = source[e]
                    both = shared[s] == k + 1  # nothing changes: what w said of s is taken back
                    delta += (count[b, s] == both) - ((count[a, s] == 1) & (not both))
                if delta > 0 and ew_unit(&state) >= exp(-<double> delta / temperature):
                    continue
                for e in range(start[v], start[v + 1]):
                    count[a, source[e]] -= 1
                    count[b, source[e]] += 1
                for e in range(start[w], start[w + 1]):
                    count[b, source[e]] -= 1
                    count[a, source[e]] += 1
                order[i], order[j] = <int32_t> w, <int32_t> v
                saved -= delta
        done = stop
        PyErr_CheckSignals()
    return saved
