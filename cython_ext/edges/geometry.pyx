"""What a spectral sweep over a network needs: distances, sums over neighbours, and orders that follow a rank.

Connections are grouped by item (in_start int32[n + 1], in_source int32[W]) and by source (out_start int64[m + 1],
out_target int32[W]); `of_item` and `of_source` name the neurons (int32), as reorder.search.intervals.Items has them.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t


def distances(const int32_t[::1] in_start, const int32_t[::1] in_source, const int64_t[::1] out_start,
              const int32_t[::1] out_target, const int32_t[::1] of_item, const int32_t[::1] of_source,
              int64_t n_neurons, int64_t first):
    """Return (int32[N], last): connections between each neuron and `first`, -1 if there is no way, and one of the
    farthest. Directions are ignored. O(W + N)."""
    distance = np.full(n_neurons, -1, np.int32)
    cdef int32_t[::1] far = distance, queue = np.empty(n_neurons, np.int32)
    cdef int32_t[::1] item_of = np.full(n_neurons, -1, np.int32), source_of = np.full(n_neurons, -1, np.int32)
    cdef int64_t head = 0, tail = 1, k, u, v
    with nogil:
        for k in range(of_item.shape[0]):
            item_of[of_item[k]] = <int32_t> k
        for k in range(of_source.shape[0]):
            source_of[of_source[k]] = <int32_t> k
        queue[0] = <int32_t> first
        far[first] = 0
        while head < tail:
            u = queue[head]
            head += 1
            if item_of[u] >= 0:
                for k in range(in_start[item_of[u]], in_start[item_of[u] + 1]):
                    v = of_source[in_source[k]]
                    if far[v] < 0:
                        far[v] = far[u] + 1
                        queue[tail] = <int32_t> v
                        tail += 1
            if source_of[u] >= 0:
                for k in range(out_start[source_of[u]], out_start[source_of[u] + 1]):
                    v = of_item[out_target[k]]
                    if far[v] < 0:
                        far[v] = far[u] + 1
                        queue[tail] = <int32_t> v
                        tail += 1
    return distance, int(queue[tail - 1])


def neighbour_sums(const int32_t[::1] in_start, const int32_t[::1] in_source, const int32_t[::1] of_item,
                   const int32_t[::1] of_source, const double[::1] x):
    """Return float64[N]: for each neuron, the sum of x over its sources and targets. O(W + N)."""
    result = np.zeros(x.shape[0], np.float64)
    cdef double[::1] y = result
    cdef double total, own
    cdef int64_t v, e, s
    with nogil:
        for v in range(of_item.shape[0]):
            total = 0.0
            own = x[of_item[v]]
            for e in range(in_start[v], in_start[v + 1]):
                s = of_source[in_source[e]]
                total += x[s]
                y[s] += own
            y[of_item[v]] += total
    PyErr_CheckSignals()
    return result


def used_up(const int64_t[::1] targets, const int64_t[::1] in_degree, const int64_t[::1] roots,
            const int64_t[::1] out_start, const int64_t[::1] out_edges):
    """Return int64[W]: source after source, all its connections at once; a neuron that finishes comes next. O(W + N).

    roots: the neurons without incoming connections, in the order in which they are used up.
    """
    cdef int64_t w = targets.shape[0], n = in_degree.shape[0], k, j, u, edge, top, done = 0
    order = np.empty(w, np.int64)
    cdef int64_t[::1] order_view = order, waiting = np.array(in_degree, np.int64), stack = np.empty(n + 1, np.int64)
    for k in range(roots.shape[0]):
        with nogil:
            stack[0] = roots[k]
            top = 0
            while top >= 0:
                u = stack[top]
                top -= 1
                for j in range(out_start[u], out_start[u + 1]):
                    edge = out_edges[j]
                    order_view[done] = edge
                    done += 1
                    waiting[targets[edge]] -= 1
                    if waiting[targets[edge]] == 0:
                        top += 1
                        stack[top] = targets[edge]
        if k % 256 == 0:
            PyErr_CheckSignals()
    return order[:done]


def latest_of_sources(const int32_t[::1] in_start, const int32_t[::1] in_source, const int32_t[::1] item,
                      const int64_t[::1] rank):
    """Return int64[n]: for each item, the highest rank (int64[m], of sources) among the inputs that it depends on.

    item: int32[m], the item of each source, -1 for an input. Items are numbered topologically. O(W).
    """
    latest = np.zeros(in_start.shape[0] - 1, np.int64)
    cdef int64_t[::1] key = latest
    cdef int64_t v, e, s, found, highest
    with nogil:
        for v in range(key.shape[0]):
            highest = 0
            for e in range(in_start[v], in_start[v + 1]):
                s = in_source[e]
                found = rank[s] if item[s] < 0 else key[item[s]]
                highest = max(highest, found)
            key[v] = highest
    return latest
