"""What a spectral sweep over a network needs: distances, sums over neighbours, and orders that follow a rank.

Connections are grouped by item (in_start int32[n + 1], in_source int32[W]) and by source (out_start int64[m + 1],
out_target int32[W]); `of_item` and `of_source` name the neurons (int32), as reorder.edges.search.intervals.Items has
them.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport copysign, fabs, hypot
from libc.stdint cimport int32_t, int64_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport rises, within32, within64


cdef int _check(const int32_t[::1] in_start, const int32_t[::1] in_source, const int32_t[::1] of_item,
                const int32_t[::1] of_source, int64_t n) except -1:
    return need(in_start.shape[0] == of_item.shape[0] + 1 and rises(in_start, in_source.shape[0])
                and within32(in_source, 0, of_source.shape[0]) and within32(of_item, 0, n)
                and within32(of_source, 0, n), "connections by item, of known neurons")


def distances(const int32_t[::1] in_start, const int32_t[::1] in_source, const int64_t[::1] out_start,
              const int32_t[::1] out_target, const int32_t[::1] of_item, const int32_t[::1] of_source,
              int64_t n_neurons, const int64_t[::1] firsts):
    """Return (int32[N], int32[N], last): connections between each neuron and the nearest of `firsts`, which of these
    that is, -1 for both if there is no way, and one of the farthest. Directions are ignored. O(W + N)."""
    _check(in_start, in_source, of_item, of_source, n_neurons)
    need(out_start.shape[0] == of_source.shape[0] + 1 and rises(out_start, out_target.shape[0])
         and within32(out_target, 0, of_item.shape[0]), "connections by source")
    distance, nearest = np.full(n_neurons, -1, np.int32), np.full(n_neurons, -1, np.int32)
    cdef int32_t[::1] far = distance, owner = nearest, queue = np.empty(n_neurons, np.int32)
    cdef int32_t[::1] item_of = np.full(n_neurons, -1, np.int32), source_of = np.full(n_neurons, -1, np.int32)
    cdef int64_t head = 0, tail = 0, k, u, v
    for k in range(firsts.shape[0]):
        need(0 <= firsts[k] < n_neurons and far[firsts[k]] < 0, "neurons to begin with, each once")
        queue[tail] = <int32_t> firsts[k]
        far[firsts[k]] = 0
        owner[firsts[k]] = <int32_t> k
        tail += 1
    need(tail > 0, "a neuron to begin with")
    with nogil:
        for k in range(of_item.shape[0]):
            item_of[of_item[k]] = <int32_t> k
        for k in range(of_source.shape[0]):
            source_of[of_source[k]] = <int32_t> k
        while head < tail:
            u = queue[head]
            head += 1
            if item_of[u] >= 0:
                for k in range(in_start[item_of[u]], in_start[item_of[u] + 1]):
                    v = of_source[in_source[k]]
                    if far[v] < 0:
                        far[v] = far[u] + 1
                        owner[v] = owner[u]
                        queue[tail] = <int32_t> v
                        tail += 1
            if source_of[u] >= 0:
                for k in range(out_start[source_of[u]], out_start[source_of[u] + 1]):
                    v = of_item[out_target[k]]
                    if far[v] < 0:
                        far[v] = far[u] + 1
                        owner[v] = owner[u]
                        queue[tail] = <int32_t> v
                        tail += 1
    return distance, nearest, int(queue[tail - 1])


def neighbour_sums(const int32_t[::1] in_start, const int32_t[::1] in_source, const int32_t[::1] of_item,
                   const int32_t[::1] of_source, const double[::1] x):
    """Return float64[N]: for each neuron, the sum of x over its sources and targets. O(W + N)."""
    _check(in_start, in_source, of_item, of_source, x.shape[0])
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
    need(out_start.shape[0] == n + 1 and rises(out_start, w) and out_edges.shape[0] == w and within64(out_edges, 0, w)
         and within64(targets, 0, n) and within64(roots, 0, n), "connections by source, between known neurons")
    order = np.empty(w, np.int64)
    cdef int64_t[::1] order_view = order, waiting = np.array(in_degree, np.int64), stack = np.empty(n + 1, np.int64)
    for k in range(roots.shape[0]):
        with nogil:
            stack[0] = roots[k]
            top = 0
            while top >= 0:
                u = stack[top]
                top -= 1
                if done + out_start[u + 1] - out_start[u] > w:
                    done = w + 1
                    break
                for j in range(out_start[u], out_start[u + 1]):
                    edge = out_edges[j]
                    order_view[done] = edge
                    done += 1
                    waiting[targets[edge]] -= 1
                    if waiting[targets[edge]] == 0:
                        top += 1
                        stack[top] = targets[edge]
        need(done <= w, "each root once")
        if k % 256 == 0:
            PyErr_CheckSignals()
    return order[:done]


def latest_of_sources(const int32_t[::1] in_start, const int32_t[::1] in_source, const int32_t[::1] item,
                      const int64_t[::1] rank, int64_t low=0, int64_t high=-1):
    """Return int64[high - low]: for each item from low on, the highest rank (int64[m], of sources) of what it depends
    on.

    item: int32[m], the item of each source, -1 for an input. Items below `low` count as inputs. Items are numbered
    topologically; high: one past the last, -1: of all. O(W).
    """
    cdef int64_t n = in_start.shape[0] - 1
    high = n if high < 0 else high
    need(0 <= low <= high <= n and item.shape[0] == rank.shape[0], "a range of items, a rank for each source")
    latest = np.zeros(high - low, np.int64)
    cdef int64_t[::1] key = latest
    cdef int64_t v, e, s, found, highest
    cdef bint there = True
    with nogil:
        for v in range(low, high):
            highest = 0
            if not 0 <= in_start[v] <= in_start[v + 1] <= in_source.shape[0]:
                there = False
                break
            for e in range(in_start[v], in_start[v + 1]):
                s = in_source[e]
                if not (0 <= s < item.shape[0] and item[s] < high):
                    there = False
                    break
                found = rank[s] if item[s] < low else key[item[s] - low]
                highest = max(highest, found)
            key[v - low] = highest
    need(there, "sources that are there")
    return latest


def streamed(const int32_t[::1] order, const int64_t[::1] out_start, const int32_t[::1] out_target,
             const int32_t[::1] out_place, int64_t low, int64_t high, const int64_t[::1] first=None):
    """Return int32: the places of the connections into the items low to high - 1, as their sources come by. O(W).

    order: int32, sources in the order in which they come by. out_target, out_place: int32[W], item and place of each
    connection, grouped by source. first: int64[high - low], where each item's connections begin in the result (target
    by target, within a target by source); None: source by source, within a source as grouped.
    """
    cdef int64_t k, j, s, v, total = 0
    need(rises(out_start, out_target.shape[0]) and within32(order, 0, out_start.shape[0] - 1), "sources that are there")
    need(out_place.shape[0] == out_target.shape[0], "a place for each connection")
    with nogil:
        for k in range(order.shape[0]):
            s = order[k]
            for j in range(out_start[s], out_start[s + 1]):
                total += low <= out_target[j] < high
    places = np.empty(total, np.int32)
    cdef int32_t[::1] out = places
    cdef int64_t[::1] at = np.zeros(1, np.int64)
    cdef bint by_target = first is not None
    if by_target:
        need(first.shape[0] == high - low, "one beginning for each item")
        at = np.array(first, np.int64)
    for k in range(at.shape[0]):
        need(0 <= at[k] <= total, "beginnings within the result")
    with nogil:
        for k in range(order.shape[0]):
            s = order[k]
            for j in range(out_start[s], out_start[s + 1]):
                if low <= out_target[j] < high:
                    v = out_target[j] - low if by_target else 0
                    if at[v] < total:
                        out[at[v]] = out_place[j]
                    at[v] += 1
    return places


def tridiagonal(const double[::1] diagonal, const double[::1] off_diagonal):
    """Return (float64[n], float64[n, n]): eigenvalues, highest first, and in each row the eigenvector of one.

    off_diagonal: float64[n - 1]. Implicit QL (Bowdler, Martin, Reinsch and Wilkinson 1968), in one thread and the same
    on every machine. O(n^3). Raises ValueError if it does not converge.
    """
    cdef int64_t n = diagonal.shape[0], low, high, i, k, turns
    cdef double f, b, g, r, s, c, p, x
    values, vectors = np.array(diagonal, np.float64), np.eye(n)
    cdef double[::1] d = values, e = np.zeros(n)
    cdef double[:, ::1] z = vectors
    need(off_diagonal.shape[0] == n - 1 and n > 0, "one number between each two of the diagonal")
    for i in range(n - 1):
        e[i] = off_diagonal[i]
    for low in range(n):
        for turns in range(60):
            high = low
            while high < n - 1 and fabs(e[high]) > 2.2e-16 * (fabs(d[high]) + fabs(d[high + 1])):
                high += 1
            if high == low:
                break
            with nogil:
                g = (d[low + 1] - d[low]) / (2 * e[low])
                g = d[high] - d[low] + e[low] / (g + copysign(hypot(g, 1), g))
                s, c, p, r = 1, 1, 0, 1
                for i in range(high - 1, low - 1, -1):
                    f, b = s * e[i], c * e[i]
                    r = hypot(f, g)
                    e[i + 1] = r
                    if r == 0:
                        d[i + 1] -= p
                        e[high] = 0
                        break
                    s, c = f / r, g / r
                    g = d[i + 1] - p
                    r = (d[i] - g) * s + 2 * c * b
                    p = s * r
                    d[i + 1] = g + p
                    g = c * r - b
                    for k in range(n):
                        x = z[i + 1, k]
                        z[i + 1, k] = s * z[i, k] + c * x
                        z[i, k] = c * z[i, k] - s * x
                if r != 0:
                    d[low] -= p
                    e[low] = g
                    e[high] = 0
        else:
            raise ValueError("eigenvalues do not converge")
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[order]
