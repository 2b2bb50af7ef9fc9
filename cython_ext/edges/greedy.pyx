"""EGO, a greedy order of connections (Kamatar 2023, Algorithm 3), and GO, of neurons (Wei et al. 2016).

Connections are grouped by source (`out_start`, `out_edges`) and by target (`in_start`, `in_edges`), CSR-style.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MIN, int64_t, uint8_t

cdef extern from "edges/max_tree.h" nogil:
    ctypedef struct ew_max_tree:
        int64_t leaves
        int64_t *key
    int64_t ew_tree_leaves(int64_t)
    void ew_tree_set(ew_max_tree *, int64_t, int64_t)
    int64_t ew_tree_key(const ew_max_tree *, int64_t)
    int64_t ew_tree_top(const ew_max_tree *)

cdef enum:
    INDEX_BITS = 32  # a key is priority << 32 less an index, so that ties go to the smallest index

cdef int64_t SLICE = 1 << 12


cdef inline int64_t _key(int64_t priority, int64_t index) noexcept nogil:
    return (priority << INDEX_BITS) - index


cdef class Ego:
    """The state of EGO. A connection's k2 is what its window holds: with S[x] and T[x] the numbers of connections in the
    window that have x as source and as target, k2(u, v) = S[u] + T[u] + T[v]; k1 only says that u must be done.

    Per source that is done, `best` is its connection with the highest T[v] (ties: smallest index) among those left,
    or, while `stale`, one that had it: the key in the tree is then too high, and is set right when it comes to the top.
    """

    cdef const int64_t[::1] sources, targets, out_start, in_start
    cdef int64_t[::1] out_edges, in_edges, out_left, in_left, waiting, near_source, near_target, best
    cdef uint8_t[::1] stale, done
    cdef int64_t[::1] tree_keys, order
    cdef ew_max_tree tree
    cdef int64_t window
    cdef readonly int64_t processed

    def __init__(self, sources, targets, out_start, out_edges, in_start, in_edges, int64_t window):
        """Arrays are int64; `out_edges` and `in_edges` are worked on in place. W < 2^32."""
        w, n = len(sources), len(out_start) - 1
        self.sources, self.targets, self.out_start, self.in_start = sources, targets, out_start, in_start
        self.out_edges, self.in_edges = out_edges, in_edges
        self.out_left, self.in_left = np.diff(out_start), np.diff(in_start)
        self.waiting = np.diff(in_start)
        self.near_source, self.near_target = np.zeros(n, np.int64), np.zeros(n, np.int64)  # S + T, T
        self.best = np.full(n, -1, np.int64)
        self.stale, self.done = np.zeros(n, np.uint8), np.zeros(w, np.uint8)
        self.tree.leaves = ew_tree_leaves(n)
        self.tree_keys = np.full(2 * self.tree.leaves, INT64_MIN, np.int64)
        self.tree.key = &self.tree_keys[0]
        self.order = np.empty(w, np.int64)
        self.window, self.processed = window, 0
        cdef int64_t u
        for u in range(n):
            if self.waiting[u] == 0:
                self.refresh(u)

    cdef void refresh(self, int64_t u) noexcept nogil:
        """Find u's best connection anew."""
        cdef int64_t k, edge, key, highest = INT64_MIN
        self.stale[u] = 0
        for k in range(self.out_start[u], self.out_start[u] + self.out_left[u]):
            edge = self.out_edges[k]
            key = _key(self.near_target[self.targets[edge]], edge)
            if key > highest:
                highest = key
                self.best[u] = edge
        ew_tree_set(&self.tree, u, highest + (self.near_source[u] << INDEX_BITS) if highest > INT64_MIN else INT64_MIN)

    cdef inline void shift(self, int64_t u, int64_t change) noexcept nogil:
        """S[u] + T[u] changes."""
        self.near_source[u] += change
        cdef int64_t key = ew_tree_key(&self.tree, u)
        if key > INT64_MIN:
            ew_tree_set(&self.tree, u, key + (change << INDEX_BITS))

    cdef void shift_target(self, int64_t v, int64_t change) noexcept nogil:
        """T[v] changes: look at the sources of v's connections that are left."""
        cdef int64_t k = self.in_start[v], last = k + self.in_left[v], u, edge, key
        self.near_target[v] += change
        while k < last:
            edge = self.in_edges[k]
            if self.done[edge]:
                last -= 1
                self.in_edges[k] = self.in_edges[last]
                continue
            k += 1
            u = self.sources[edge]
            if self.waiting[u]:
                continue
            if change < 0:
                self.stale[u] |= self.best[u] == edge
            else:  # a key that is stale may only be raised
                key = _key(self.near_source[u] + self.near_target[v], edge)
                if key > ew_tree_key(&self.tree, u):
                    self.best[u] = edge
                    self.stale[u] = 0
                    ew_tree_set(&self.tree, u, key)
        self.in_left[v] = last - self.in_start[v]

    cdef void step(self) noexcept nogil:
        cdef int64_t u = ew_tree_top(&self.tree), v, k, edge, left
        while self.stale[u]:
            self.refresh(u)
            u = ew_tree_top(&self.tree)
        edge = self.best[u]
        v = self.targets[edge]
        self.order[self.processed] = edge
        self.processed += 1
        self.done[edge] = 1
        k = self.out_start[u]
        while self.out_edges[k] != edge:
            k += 1
        self.out_left[u] -= 1
        self.out_edges[k] = self.out_edges[self.out_start[u] + self.out_left[u]]
        self.stale[u] = 1
        self.shift(u, 1)
        self.shift(v, 1)
        self.shift_target(v, 1)
        self.waiting[v] -= 1
        if self.waiting[v] == 0:
            self.refresh(v)
        if self.processed > self.window:
            left = self.order[self.processed - 1 - self.window]
            self.shift(self.sources[left], -1)
            self.shift(self.targets[left], -1)
            self.shift_target(self.targets[left], -1)

    def run(self, int64_t connections):
        """Process up to so many more; return the number processed in all."""
        cdef int64_t k, start, end = min(self.processed + connections, self.order.shape[0])
        while self.processed < end:
            with nogil:
                for k in range(min(SLICE, end - self.processed)):
                    self.step()
            PyErr_CheckSignals()
        return self.processed

    def result(self):
        """Return int64[W]."""
        return np.asarray(self.order)


def go_ranks(const int64_t[::1] sources, const int64_t[::1] targets, const int64_t[::1] out_start,
             const int64_t[::1] out_edges, const int64_t[::1] in_start, const int64_t[::1] in_edges, int64_t window,
             progress=None):
    """Return int64[N]: neurons in GO's order. Always the neuron with the most connections to, and common sources with,
    the last `window` ones is next; ties go to the smallest id. O(sum over connections (u, v) of u's out-degree)."""
    cdef int64_t n = out_start.shape[0] - 1, k, x, gone
    order = np.empty(n, np.int64)
    cdef int64_t[::1] order_view = order
    cdef ew_max_tree tree
    tree.leaves = ew_tree_leaves(n)
    keys = np.full(2 * tree.leaves, INT64_MIN, np.int64)
    keys[tree.leaves:tree.leaves + n] = -np.arange(n)
    half = tree.leaves
    while half > 1:
        keys[half // 2:half] = keys[half:2 * half].reshape(-1, 2).max(axis=1)
        half //= 2
    cdef int64_t[::1] tree_keys = keys
    tree.key = &tree_keys[0]
    cdef int64_t[::1] change = np.zeros(n, np.int64), touched = np.empty(n, np.int64)
    for k in range(n):
        with nogil:
            x = ew_tree_top(&tree)
            order_view[k] = x
            ew_tree_set(&tree, x, INT64_MIN)
            _go_relate(&tree, sources, targets, out_start, out_edges, in_start, in_edges, x, 1, change, touched)
            if k >= window:
                gone = order_view[k - window]
                _go_relate(&tree, sources, targets, out_start, out_edges, in_start, in_edges, gone, -1, change, touched)
        if k % 64 == 0:
            PyErr_CheckSignals()
            if progress is not None:
                progress(k, n, "")
    return order


cdef void _go_relate(ew_max_tree *tree, const int64_t[::1] sources, const int64_t[::1] targets,
                     const int64_t[::1] out_start, const int64_t[::1] out_edges, const int64_t[::1] in_start,
                     const int64_t[::1] in_edges, int64_t x, int64_t sign, int64_t[::1] change,
                     int64_t[::1] touched) noexcept nogil:
    """Add `sign` to the priority of x's neighbours and, once per common source, of its siblings."""
    cdef int64_t n_touched = 0, j, k, u, v
    for j in range(out_start[x], out_start[x + 1]):
        v = targets[out_edges[j]]
        if change[v] == 0:
            touched[n_touched] = v
            n_touched += 1
        change[v] += 1
    for j in range(in_start[x], in_start[x + 1]):
        u = sources[in_edges[j]]
        if change[u] == 0:
            touched[n_touched] = u
            n_touched += 1
        change[u] += 1
        for k in range(out_start[u], out_start[u + 1]):
            v = targets[out_edges[k]]
            if change[v] == 0:
                touched[n_touched] = v
                n_touched += 1
            change[v] += 1
    for j in range(n_touched):
        v = touched[j]
        if ew_tree_key(tree, v) > INT64_MIN:
            ew_tree_set(tree, v, ew_tree_key(tree, v) + ((sign * change[v]) << INDEX_BITS))
        change[v] = 0
