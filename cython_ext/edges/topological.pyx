"""Topological orders of connections that no sort key gives: random and depth-first.

Connections are grouped by source (`out_start`, `out_edges`) and by target (`in_start`, `in_edges`), CSR-style.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

cdef int64_t SLICE = 1 << 18


def random_topological(const int64_t[::1] targets, const int64_t[::1] in_degree, const int64_t[::1] out_start,
                       const int64_t[::1] out_edges, rng):
    """Return int64[W]: again and again one connection, uniform among those whose source is done. O(W + N).

    rng: numpy Generator; one double per connection is drawn.
    """
    cdef int64_t w = targets.shape[0], n = in_degree.shape[0], n_ready = 0, k, j, x, edge, first, last, start
    order, ready = np.empty(w, np.int64), np.empty(w, np.int64)
    cdef int64_t[::1] order_view = order, ready_view = ready
    cdef int64_t[::1] waiting = np.array(in_degree, np.int64)
    cdef const double[::1] draw
    for x in range(n):
        if waiting[x] == 0:
            for j in range(out_start[x], out_start[x + 1]):
                ready_view[n_ready] = out_edges[j]
                n_ready += 1
    for start in range(0, w, SLICE):
        draw = rng.random(min(SLICE, w - start))
        with nogil:
            for k in range(draw.shape[0]):
                j = <int64_t> (draw[k] * n_ready)
                edge = ready_view[j]
                n_ready -= 1
                ready_view[j] = ready_view[n_ready]
                order_view[start + k] = edge
                x = targets[edge]
                waiting[x] -= 1
                if waiting[x] == 0:
                    first, last = out_start[x], out_start[x + 1]
                    for j in range(first, last):
                        ready_view[n_ready] = out_edges[j]
                        n_ready += 1
        PyErr_CheckSignals()
    return order


def depth_first(const int64_t[::1] sources, const int64_t[::1] roots, const int64_t[::1] in_start,
                const int64_t[::1] in_edges):
    """Return int64[W]: for each root, each of its incoming connections in turn, its source computed first. O(W + N).

    A connection is processed as soon as its source is done, so the partial sums on the path to the root stay open.
    roots: neurons from which every connection is reached backwards.
    """
    cdef int64_t n = in_start.shape[0] - 1, w = sources.shape[0], k, top, x, edge, done = 0
    order = np.empty(w, np.int64)
    cdef int64_t[::1] order_view = order
    cdef int64_t[::1] at = np.array(in_start[:n], np.int64)  # next incoming connection of each neuron
    cdef int64_t[::1] stack = np.empty(n + 1, np.int64)
    for k in range(roots.shape[0]):
        with nogil:
            stack[0] = roots[k]
            top = 0
            while top >= 0:
                x = stack[top]
                if at[x] == in_start[x + 1]:
                    top -= 1
                    continue
                edge = in_edges[at[x]]
                if at[sources[edge]] < in_start[sources[edge] + 1]:
                    top += 1
                    stack[top] = sources[edge]
                    continue
                order_view[done] = edge
                done += 1
                at[x] += 1
        if k % 256 == 0:
            PyErr_CheckSignals()
    return order[:done]
