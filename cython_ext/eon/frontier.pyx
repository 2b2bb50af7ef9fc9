"""The world that EON learns in: many orders of one network side by side, each with its frontier and its LRU cache.

Connections are grouped by source (`out_start`, `out_edges`), CSR-style. The frontier holds the connections whose source
is done; a step takes one of them, looks its source and then its target up in the cache, and frees what its target
completes.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport rises, within64


cdef class Frontiers:
    """`count` orders begun at once. capacity: neurons that a cache holds, 2 or more.

    sources, targets: int64[W]. in_degree: int64[N]. frontier: int32[count, W] and size: int64[count] of each; cache:
    int32[count, capacity], the neuron used last first, -1 where there is none.
    """

    cdef readonly object frontier, size, cache
    cdef int32_t[:, ::1] _frontier, _cache
    cdef int64_t[::1] _size
    cdef int64_t[:, ::1] _left
    cdef const int64_t[::1] _sources, _targets, _in_degree, _start, _edges
    cdef int64_t _count, _capacity

    def __init__(self, const int64_t[::1] sources, const int64_t[::1] targets, const int64_t[::1] in_degree,
                 const int64_t[::1] out_start, const int64_t[::1] out_edges, int64_t count, int64_t capacity):
        need(count >= 1 and capacity >= 2, "at least one order, a capacity of at least 2")
        need(targets.shape[0] == sources.shape[0] < 2**31 and out_edges.shape[0] == sources.shape[0]
             and out_start.shape[0] == in_degree.shape[0] + 1 and rises(out_start, out_edges.shape[0]),
             "arrays of another network")
        need(within64(sources, 0, in_degree.shape[0]) and within64(targets, 0, in_degree.shape[0])
             and within64(out_edges, 0, sources.shape[0]), "neurons and connections that are there")
        self._sources, self._targets, self._in_degree = sources, targets, in_degree
        self._start, self._edges = out_start, out_edges
        self._count, self._capacity = count, capacity
        self.frontier = np.empty((count, sources.shape[0]), np.int32)
        self.cache = np.empty((count, capacity), np.int32)
        self.size = np.empty(count, np.int64)
        self._frontier, self._cache, self._size = self.frontier, self.cache, self.size
        self._left = np.empty((count, in_degree.shape[0]), np.int64)
        self.reset()

    def reset(self):
        """Begin all orders anew."""
        cdef int64_t b, x, j, n
        self._cache[:, :] = -1
        for b in range(self._count):
            n = 0
            for x in range(self._in_degree.shape[0]):
                self._left[b, x] = self._in_degree[x]
                if self._in_degree[x] == 0:
                    for j in range(self._start[x], self._start[x + 1]):
                        self._frontier[b, n] = <int32_t> self._edges[j]
                        n += 1
            self._size[b] = n

    def step(self, const int64_t[::1] place):
        """Take the connection at a place of each frontier; return int64[count] connections and int64[count] misses."""
        cdef int64_t b, k, last, j, x
        cdef int32_t edge
        edges, misses = np.empty(self._count, np.int64), np.empty(self._count, np.int64)
        cdef int64_t[::1] edges_view = edges, misses_view = misses
        need(place.shape[0] == self._count, "one place for each order")
        for b in range(self._count):
            need(0 <= place[b] < self._size[b], "a place outside the frontier")
        with nogil:
            for b in range(self._count):
                k, last = place[b], self._size[b] - 1
                edge = self._frontier[b, k]
                self._frontier[b, k] = self._frontier[b, last]
                self._size[b] = last
                edges_view[b] = edge
                x = self._targets[edge]
                misses_view[b] = self._use(b, <int32_t> self._sources[edge]) + self._use(b, <int32_t> x)
                self._left[b, x] -= 1
                if self._left[b, x] == 0:
                    for j in range(self._start[x], self._start[x + 1]):
                        self._frontier[b, self._size[b]] = <int32_t> self._edges[j]
                        self._size[b] += 1
        return edges, misses

    cdef int64_t _use(self, int64_t b, int32_t neuron) noexcept nogil:
        """Move a neuron to the front of a cache; return 1 where it was not in it."""
        cdef int64_t k = 0, missed = 0
        while k < self._capacity and self._cache[b, k] != neuron:
            k += 1
        if k == self._capacity:
            k, missed = self._capacity - 1, 1
        while k > 0:
            self._cache[b, k] = self._cache[b, k - 1]
            k -= 1
        self._cache[b, 0] = neuron
        return missed
