"""Topological orders of connections: target by target, and those that no sort key gives, random and depth-first.

Connections are grouped by source (`out_start`, `out_edges`) and by target (`in_start`, `in_edges`), CSR-style.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t

from cython_ext.common.checks cimport need

cdef int64_t SLICE = 1 << 18

ctypedef struct pair:  # a connection that was sorted by source
    int32_t edge
    int32_t place  # of its target


def goes_down(const int32_t[:, ::1] ends, const int64_t[::1] depth):
    """Return (whether every connection ends one deeper than it starts, whether every one ends at a higher id). O(W).

    ends: int32[W, 2], source and target of each connection. depth: int64[N].
    """
    cdef int64_t w = ends.shape[0], k, begin
    cdef int64_t level = 0
    cdef int32_t lower = 0
    for begin in range(0, w, SLICE):
        with nogil:
            for k in range(begin, min(begin + SLICE, w)):  # without a branch
                level |= (depth[ends[k, 1]] - depth[ends[k, 0]]) ^ 1
                lower |= ends[k, 0] >= ends[k, 1]
        if level and lower:
            break
    return level == 0, lower == 0


def by_target(const int32_t[:, ::1] ends, const int32_t[::1] place):
    """Return int64[W]: the connections by the place of their targets, those into one target by source. O(W + N).

    ends: int32[W, 2], source and target of each connection. place: int32[N], a permutation. Sorts by counting, first by
    source, then by place; what is in this order already is seen in one pass. 8 W bytes besides the result.
    """
    cdef int64_t w = ends.shape[0], n = place.shape[0], k, at
    cdef int32_t last_place = -1, last_source = -1, here
    cdef bint sorted = True
    with nogil:
        for k in range(w):
            here = place[ends[k, 1]]
            if here < last_place or (here == last_place and ends[k, 0] < last_source):
                sorted = False
                break
            last_place, last_source = here, ends[k, 0]
    if sorted:
        return np.arange(w)
    order = np.empty(w, np.int64)
    cdef int64_t[::1] order_view = order
    cdef int64_t[::1] of_source = np.zeros(n + 1, np.int64), of_place = np.zeros(n + 1, np.int64)
    cdef pair[::1] pairs = np.empty(w, [("edge", np.int32), ("place", np.int32)])
    with nogil:
        for k in range(w):
            of_source[ends[k, 0] + 1] += 1
            of_place[place[ends[k, 1]] + 1] += 1
        for k in range(n):
            of_source[k + 1] += of_source[k]
            of_place[k + 1] += of_place[k]
        for k in range(w):
            at = of_source[ends[k, 0]]
            of_source[ends[k, 0]] = at + 1
            pairs[at].edge, pairs[at].place = <int32_t> k, place[ends[k, 1]]
        for k in range(w):
            here = pairs[k].place
            order_view[of_place[here]] = pairs[k].edge
            of_place[here] += 1
    return order


def early_outputs(const int32_t[:, ::1] ends, const int64_t[::1] base, const uint8_t[::1] moved):
    """Return int64[W]: the connections in the order of `base`, those into moved neurons as soon as their source is free.

    ends: int32[W, 2]. base: int64[W], a topological order. moved: uint8[N], 0 or 1; what feeds nothing. Free: after the
    last connection into the source, and the last one out of it that is not moved. O(W + N), 8 W bytes besides.
    """
    cdef int64_t w = base.shape[0], k, edge, place, total
    order = np.empty(w, np.int64)
    cdef int64_t[::1] order_view = order
    cdef int64_t[::1] free = np.zeros(moved.shape[0], np.int64)  # k + 1: after place k
    cdef int64_t[::1] at = np.zeros(w + 1, np.int64)  # what becomes free there; then where the next one of these goes
    cdef int32_t s, t
    need(ends.shape[0] == w, "a place for each connection")
    for k in range(w):
        need(0 <= base[k] < w, "connections that are there")
    with nogil:
        for k in range(w):
            s, t = ends[base[k], 0], ends[base[k], 1]
            free[t] = k + 1
            if not moved[t]:
                free[s] = k + 1
        for k in range(w):
            if moved[ends[base[k], 1]]:
                at[free[ends[base[k], 0]]] += 1
        total = 0
        for k in range(w + 1):
            if k > 0 and not moved[ends[base[k - 1], 1]]:
                order_view[total] = base[k - 1]
                total += 1
            place = total
            total += at[k]
            at[k] = place
        for k in range(w):
            edge = base[k]
            if moved[ends[edge, 1]]:
                place = free[ends[edge, 0]]
                order_view[at[place]] = edge
                at[place] += 1
    return order


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
