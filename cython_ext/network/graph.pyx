"""What a network's construction checks of its connections: repeated ones, and the longest path to each neuron."""

from libc.stdint cimport int32_t, int64_t

import numpy as np


def depth_and_repeats(const int64_t[::1] source, const int64_t[::1] target, Py_ssize_t n):
    """Return (depth int64[n], whether a connection is there twice).

    source, target: int64[W], neurons in [0, n), n and W below 2^31. depth: connections on the longest path from a neuron
    without incoming ones, -1 on a cycle and behind one (Kahn's algorithm). O(W + n) time, 4 W + 20 n bytes.
    """
    cdef Py_ssize_t w = source.shape[0], k, first = 0, last = 0
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
