"""Repeated connections, the longest path to each neuron, core numbers; orders of connections checked and laid out."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from cython_ext.common.checks cimport need
from cython_ext.common.processing cimport EW_BLOCK, ew_processing, ew_take_forwards
from cython_ext.common.ranges cimport ends_within, within64

cdef int64_t MOST = 2**31


def depth_and_repeats(const int64_t[::1] source, const int64_t[::1] target, Py_ssize_t n):
    """Return (depth int64[n], whether a connection is there twice).

    source, target: int64[W], neurons in [0, n), n and W below 2^31. depth: connections on the longest path from a
    neuron without incoming ones, -1 on a cycle and behind one (Kahn's algorithm). O(W + n) time, 4 W + 20 n bytes.
    """
    cdef Py_ssize_t w = source.shape[0], k, first = 0, last = 0
    need(target.shape[0] == w and 0 <= n < MOST and within64(source, 0, n) and within64(target, 0, n),
         "connections between neurons that are there")
    cdef int64_t[::1] start = np.zeros(n + 1, np.int64)
    cdef int32_t[::1] after = np.empty(w, np.int32)      # targets, grouped by source
    cdef int32_t[::1] waiting = np.zeros(n, np.int32)    # incoming connections not yet followed
    cdef int32_t[::1] queue = np.empty(n, np.int32)      # first: marks of the search for repeats
    cdef int64_t[::1] depth = np.full(n, -1, np.int64)
    cdef int64_t s, t, at, next_depth
    cdef bint repeated = False
    with nogil:
        for k in range(w):
            start[source[k] + 1] += 1
            waiting[target[k]] += 1
        for s in range(n):
            start[s + 1] += start[s]
            queue[s] = -1
        for k in range(w):  # start[s] runs to the start of s + 1
            s = source[k]
            after[start[s]] = <int32_t>target[k]
            start[s] += 1
        at = 0
        for s in range(n):
            while at < start[s]:
                t = after[at]
                if queue[t] == s:
                    repeated = True
                queue[t] = <int32_t>s
                at += 1
        for s in range(n):
            if waiting[s] == 0:
                depth[s] = 0
                queue[last] = <int32_t>s
                last += 1
        while first < last:
            s = queue[first]
            first += 1
            next_depth = depth[s] + 1
            for at in range(start[s - 1] if s else 0, start[s]):
                t = after[at]
                if depth[t] < next_depth:
                    depth[t] = next_depth
                waiting[t] -= 1
                if waiting[t] == 0:
                    queue[last] = <int32_t>t
                    last += 1
        for s in range(n):
            if waiting[s] > 0:
                depth[s] = -1
    return np.asarray(depth), repeated


def core_numbers(const int64_t[::1] source, const int64_t[::1] target, Py_ssize_t n):
    """Return int64[n]: the largest c such that a neuron lies in a subgraph of least degree c, directions ignored.

    source, target: int64[W], neurons in [0, n), n and W below 2^30. Neurons are peeled by least degree, which buckets
    keep (Batagelj and Zaversnik 2003). O(W + n) time, 8 W + 32 n bytes.
    """
    cdef Py_ssize_t w = source.shape[0], k
    need(target.shape[0] == w and 0 <= n < MOST and within64(source, 0, n) and within64(target, 0, n),
         "connections between neurons that are there")
    cdef int64_t[::1] start = np.zeros(n + 1, np.int64), degree = np.zeros(n, np.int64)
    cdef int32_t[::1] other = np.empty(2 * w, np.int32)
    cdef int32_t[::1] sorted_ = np.empty(n, np.int32), place = np.empty(n, np.int32)  # by degree, and the inverse
    cdef int64_t[::1] first                                                          # place of the first of a degree
    cdef int64_t u, v, x, at, most = 0, d
    with nogil:
        for k in range(w):
            degree[source[k]] += 1
            degree[target[k]] += 1
        for u in range(n):
            start[u + 1] = start[u] + degree[u]
            most = max(most, degree[u])
    first = np.zeros(most + 2, np.int64)
    with nogil:
        for k in range(w):
            other[start[source[k]]] = <int32_t>target[k]
            start[source[k]] += 1
            other[start[target[k]]] = <int32_t>source[k]
            start[target[k]] += 1
        for u in range(n):
            start[u] -= degree[u]
            first[degree[u] + 1] += 1
        for d in range(most + 1):
            first[d + 1] += first[d]
        for u in range(n):
            place[u] = <int32_t>first[degree[u]]
            sorted_[place[u]] = <int32_t>u
            first[degree[u]] += 1
        for d in range(most, 0, -1):
            first[d] = first[d - 1]
        first[0] = 0
        for k in range(n):
            u = sorted_[k]
            for at in range(start[u], start[u + 1]):
                v = other[at]
                if degree[v] > degree[u]:  # it changes places with the first of its degree, which is then one longer
                    x = sorted_[first[degree[v]]]
                    sorted_[place[v]] = <int32_t>x
                    place[x] = place[v]
                    place[v] = <int32_t>first[degree[v]]
                    sorted_[place[v]] = <int32_t>v
                    first[degree[v]] += 1
                    degree[v] -= 1
    return np.asarray(degree)


cdef object _open(ew_processing *given, const int32_t[:, ::1] ends, const int64_t[::1] order, Py_ssize_t n):
    """Prepare to take connections; return the marks that it needs, None where there is nothing to take."""
    cdef int64_t w = ends.shape[0]
    cdef uint8_t[::1] closed
    cdef uint64_t[::1] met
    need(0 <= n < MOST and ends_within(ends, n), "connections between neurons that are there")
    if w == 0 or (order is not None and order.shape[0] != w):
        return None
    closed, met = np.zeros(n, np.uint8), np.zeros(1 if order is None else (w + 63) // 64, np.uint64)
    given.ends, given.order, given.w = &ends[0, 0], NULL, w
    if order is not None:
        given.order = &order[0]
    given.met, given.closed, given.previous_target, given.runs = &met[0], &closed[0], -1, 0
    return closed, met


def lay_out(const int32_t[:, ::1] ends, const int64_t[::1] order or None, Py_ssize_t n):
    """Return (sources int32[W], targets int32[W], runs, whether the order is a valid one) in processing order.

    ends: int32[W, 2], source and target of each connection, neurons in [0, n). order: int64[W], any values; None: as
    the connections are stored. Valid: a permutation in which no connection out of a neuron stands before one into it.
    Arrays of an order that is not valid mean nothing. runs: stretches of consecutive connections with one target.
    O(W + n) time, 8 W + W / 8 + n bytes.
    """
    cdef int64_t w = ends.shape[0]
    cdef bint valid
    cdef ew_processing given
    marks = _open(&given, ends, order, n)
    sources, targets = np.empty(w, np.int32), np.empty(w, np.int32)
    cdef int32_t[::1] source = sources, target = targets
    if marks is None:
        return sources, targets, 0, order is None or order.shape[0] == w
    with nogil:
        valid = ew_take_forwards(&given, 0, w, &source[0], &target[0])
    return sources, targets, given.runs, valid


def is_valid(const int32_t[:, ::1] ends, const int64_t[::1] order or None, Py_ssize_t n):
    """Return whether an order is valid, as `lay_out` says. O(W + n) time, W / 8 + n bytes."""
    cdef int64_t w = ends.shape[0], begin = 0
    cdef int32_t source[EW_BLOCK]
    cdef int32_t target[EW_BLOCK]
    cdef bint valid = True
    cdef ew_processing given
    marks = _open(&given, ends, order, n)
    if marks is None:
        return order is None or order.shape[0] == w
    with nogil:
        while valid and begin < w:
            valid = ew_take_forwards(&given, begin, min(begin + EW_BLOCK, w), source, target)
            begin += EW_BLOCK
    return valid
