"""EGO, a greedy order of connections (Kamatar 2023, Algorithm 3), and GO, of neurons (Wei et al. 2016).

Connections are grouped by source (`out_start`, `out_edges`) and by target (`in_start`, `in_edges`), CSR-style.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MIN, int64_t, uint8_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport rises, within64
from cython_ext.edges.max_tree cimport (
    INDEX_BITS, ew_max_tree, ew_tree_key, ew_tree_leaves, ew_tree_set, ew_tree_top, key_of)

cdef int64_t SLICE = 1 << 12
cdef int64_t LOOK = 1 << 20  # connections that GO looks at between two looks at the clock: some milliseconds
HUBS, LEAST_HUB = 4, 64


cdef int _check(const int64_t[::1] sources, const int64_t[::1] targets, const int64_t[::1] out_start,
                const int64_t[::1] out_edges, const int64_t[::1] in_start, const int64_t[::1] in_edges,
                int64_t window) except -1:
    cdef int64_t w = sources.shape[0], n = out_start.shape[0] - 1
    return need(window >= 0 and in_start.shape[0] == n + 1 and out_edges.shape[0] == in_edges.shape[0] == w
                and targets.shape[0] == w and rises(out_start, w) and rises(in_start, w) and within64(sources, 0, n)
                and within64(targets, 0, n) and within64(out_edges, 0, w) and within64(in_edges, 0, w),
                "connections by source and by target, between known neurons")


cdef bint lists(const int64_t[::1] ends, const int64_t[::1] start, const int64_t[::1] edges) noexcept:
    """Whether each neuron's list has its connections, in their order."""
    cdef int64_t v, k
    for v in range(start.shape[0] - 1):
        for k in range(start[v], start[v + 1]):
            if ends[edges[k]] != v or (k > start[v] and edges[k] <= edges[k - 1]):
                return False
    return True


cdef class Ego:
    """The state of EGO. A connection's k2 is what its window holds: with S[x] and T[x] the numbers of connections in
    the window that have x as source and as target, k2(u, v) = S[u] + T[u] + T[v]; k1 only says that u must be done.

    Per source that is done, `best` is its connection with the highest T[v] (ties: smallest index) among those left, or
    one that had it (-1: it is processed): the key in the tree is then too high, and is set right when it comes to the
    top.

    Hubs, of more connections one way than HUBS * sqrt(W), are not looked through. A hub as a target has a tree of its
    own over its connections from sources that are done, by S[u] + T[u], and a leaf in the main tree, which is then the
    highest of those plus T[v]; its connections are in no source's `best`. A hub as a source has a tree over its other
    connections by T[v]. Each change then costs a logarithm, and there are at most sqrt(W) / HUBS hubs.
    """

    cdef const int64_t[::1] sources, targets, out_start, in_start
    cdef int64_t[::1] out_edges, in_edges, out_left, in_left, waiting, near_source, near_target, best
    cdef uint8_t[::1] done
    cdef int64_t[::1] tree_keys, order
    cdef ew_max_tree tree
    cdef int64_t window, n
    cdef readonly int64_t processed
    cdef uint8_t[::1] source_hub, target_hub
    cdef int64_t[::1] hub_keys, source_tree, target_tree, out_place, in_place, hub_start, hub_edges
    cdef bint hubs

    def __init__(self, sources, targets, out_start, out_edges, in_start, in_edges, int64_t window):
        """Arrays are int64; `out_edges` and `in_edges` are worked on in place. W < 2^32."""
        _check(sources, targets, out_start, out_edges, in_start, in_edges, window)
        need(lists(sources, out_start, out_edges) and lists(targets, in_start, in_edges), "each neuron's own connections")
        w, n = len(sources), len(out_start) - 1
        self.sources, self.targets, self.out_start, self.in_start = sources, targets, out_start, in_start
        self.out_edges, self.in_edges = out_edges, in_edges
        self.out_left, self.in_left = np.diff(out_start), np.diff(in_start)
        self.waiting = np.diff(in_start)
        self.near_source, self.near_target = np.zeros(n, np.int64), np.zeros(n, np.int64)  # S + T, T
        self.best = np.full(n, -1, np.int64)
        self.done = np.zeros(w, np.uint8)
        self._find_hubs(n, w)
        self.tree.leaves = ew_tree_leaves(2 * n if self.hubs else n)
        self.tree_keys = np.full(2 * self.tree.leaves, INT64_MIN, np.int64)
        self.tree.key = &self.tree_keys[0]
        self.order = np.empty(w, np.int64)
        self.window, self.processed = window, 0
        cdef int64_t u
        for u in range(n):
            if self.waiting[u] == 0:
                self.refresh(u)
                self._into_hubs(u)

    cdef _find_hubs(self, int64_t n, int64_t w):
        """Say which neurons are hubs, and make their trees."""
        cdef int64_t v, k, room = 0
        cdef ew_max_tree tree
        most = max(LEAST_HUB, HUBS * int(np.sqrt(w)))
        source, target = np.asarray(self.out_left) > most, np.asarray(self.in_left) > most
        self.n, self.hubs = n, bool(source.any() or target.any())
        self.source_hub, self.target_hub = source.astype(np.uint8), target.astype(np.uint8)
        self.hub_start = np.zeros(n + 1, np.int64)
        if not self.hubs:
            return
        self.source_tree, self.target_tree = np.zeros(n, np.int64), np.zeros(n, np.int64)
        for v in range(n):
            if self.source_hub[v]:
                self.source_tree[v] = room
                room += 2 * ew_tree_leaves(self.out_left[v])
            if self.target_hub[v]:
                self.target_tree[v] = room
                room += 2 * ew_tree_leaves(self.in_left[v])
        self.hub_keys = np.full(room, INT64_MIN, np.int64)
        self.out_place, self.in_place = np.empty(w, np.int64), np.empty(w, np.int64)
        np.asarray(self.out_place)[np.asarray(self.out_edges)] = np.arange(w) - np.repeat(
            np.asarray(self.out_start)[:n], np.asarray(self.out_left))
        np.asarray(self.in_place)[np.asarray(self.in_edges)] = np.arange(w) - np.repeat(
            np.asarray(self.in_start)[:n], np.asarray(self.in_left))
        into = np.flatnonzero(target[np.asarray(self.targets)])
        self.hub_edges = into[np.argsort(np.asarray(self.sources)[into], kind="stable")]
        self.hub_start = np.concatenate(
            ([0], np.cumsum(np.bincount(np.asarray(self.sources)[into], minlength=n)))).astype(np.int64)
        for v in range(n):  # connections of source hubs into other targets wait in their trees with T = 0
            if self.source_hub[v]:
                tree = self.tree_of(v, 0)
                for k in range(self.out_start[v], self.out_start[v + 1]):
                    if not self.target_hub[self.targets[self.out_edges[k]]]:
                        ew_tree_set(&tree, k - self.out_start[v], -self.out_edges[k])

    cdef inline ew_max_tree tree_of(self, int64_t v, bint as_target) noexcept nogil:
        cdef ew_max_tree tree
        tree.leaves = ew_tree_leaves(self.in_start[v + 1] - self.in_start[v] if as_target
                                     else self.out_start[v + 1] - self.out_start[v])
        tree.key = &self.hub_keys[self.target_tree[v] if as_target else self.source_tree[v]]
        return tree

    cdef inline void _lift_hub(self, int64_t v, ew_max_tree *tree) noexcept nogil:
        """Bring a target hub's leaf of the main tree in line with its own tree."""
        cdef int64_t top = tree.key[1]
        ew_tree_set(&self.tree, self.n + v,
                    INT64_MIN if top == INT64_MIN else top + (self.near_target[v] << INDEX_BITS))

    cdef void _into_hubs(self, int64_t u) noexcept nogil:
        """Put u's connections into hubs where S[u] + T[u] wants them."""
        cdef int64_t k, edge, v
        cdef ew_max_tree tree
        if not self.hubs or self.waiting[u]:
            return
        for k in range(self.hub_start[u], self.hub_start[u + 1]):
            edge = self.hub_edges[k]
            if not self.done[edge]:
                v = self.targets[edge]
                tree = self.tree_of(v, 1)
                ew_tree_set(&tree, self.in_place[edge], key_of(self.near_source[u], edge))
                self._lift_hub(v, &tree)

    cdef void _wants(self, int64_t u, int64_t edge, int64_t key) noexcept nogil:
        """u's best connection is `edge`, with a key but for S[u] + T[u] (INT64_MIN: none is left)."""
        self.best[u] = edge
        ew_tree_set(&self.tree, u, key + (self.near_source[u] << INDEX_BITS) if key > INT64_MIN else INT64_MIN)

    cdef void _refresh_hub(self, int64_t u) noexcept nogil:
        cdef ew_max_tree tree = self.tree_of(u, 0)
        self._wants(u, self.out_edges[self.out_start[u] + ew_tree_top(&tree)], tree.key[1])

    cdef void refresh(self, int64_t u) noexcept nogil:
        """Find u's best connection anew."""
        cdef int64_t k, edge, key, best = -1, highest = INT64_MIN
        cdef bint hubs = self.hubs
        if hubs and self.source_hub[u]:
            self._refresh_hub(u)
            return
        for k in range(self.out_start[u], self.out_start[u] + self.out_left[u]):
            edge = self.out_edges[k]
            if hubs and self.target_hub[self.targets[edge]]:
                continue
            key = key_of(self.near_target[self.targets[edge]], edge)
            if key > highest:
                highest = key
                best = edge
        self._wants(u, best, highest)

    cdef inline void shift(self, int64_t u, int64_t change) noexcept nogil:
        """S[u] + T[u] changes."""
        self.near_source[u] += change
        cdef int64_t key = ew_tree_key(&self.tree, u)
        if key > INT64_MIN:
            ew_tree_set(&self.tree, u, key + (change << INDEX_BITS))
        if self.hubs:
            self._into_hubs(u)

    cdef void _move_in_hub(self, int64_t u, int64_t edge) noexcept nogil:
        """Bring a source hub's connection in line with T of its target."""
        cdef ew_max_tree tree = self.tree_of(u, 0)
        ew_tree_set(&tree, self.out_place[edge], key_of(self.near_target[self.targets[edge]], edge))
        if not self.waiting[u]:
            self.refresh(u)

    cdef void shift_target(self, int64_t v, int64_t change) noexcept nogil:
        """T[v] changes: look at the sources of v's connections that are left. What falls is seen when it comes to the
        top."""
        cdef int64_t k = self.in_start[v], last = k + self.in_left[v], u, edge, key, near = self.near_target[v] + change
        cdef bint hubs = self.hubs
        cdef ew_max_tree tree
        self.near_target[v] = near
        if hubs and self.target_hub[v]:
            tree = self.tree_of(v, 1)
            self._lift_hub(v, &tree)
            return
        if change < 0 and not hubs:
            return
        while k < last:
            edge = self.in_edges[k]
            if self.done[edge]:
                last -= 1
                self.in_edges[k] = self.in_edges[last]
                continue
            k += 1
            u = self.sources[edge]
            if hubs and self.source_hub[u]:
                self._move_in_hub(u, edge)
            elif change > 0 and not self.waiting[u]:
                key = key_of(self.near_source[u] + near, edge)
                if key > ew_tree_key(&self.tree, u):
                    self.best[u] = edge
                    ew_tree_set(&self.tree, u, key)
        self.in_left[v] = last - self.in_start[v]

    cdef int64_t _best_into(self, int64_t v) noexcept nogil:
        """Return the connection into a target hub with the highest priority."""
        cdef ew_max_tree tree = self.tree_of(v, 1)
        return self.in_edges[self.in_start[v] + ew_tree_top(&tree)]

    cdef inline int64_t highest(self) noexcept nogil:
        """Return the connection with the highest priority."""
        cdef int64_t u, edge
        while True:
            u = ew_tree_top(&self.tree)
            if u >= self.n:
                return self._best_into(u - self.n)
            edge = self.best[u]
            if edge >= 0 and self.tree.key[1] == key_of(self.near_source[u] + self.near_target[self.targets[edge]], edge):
                return edge
            self.refresh(u)

    cdef void _leave_hubs(self, int64_t edge) noexcept nogil:
        """Take a connection out of the trees of hubs."""
        cdef int64_t u = self.sources[edge], v = self.targets[edge]
        cdef ew_max_tree tree
        if self.target_hub[v]:
            tree = self.tree_of(v, 1)
            ew_tree_set(&tree, self.in_place[edge], INT64_MIN)
            self._lift_hub(v, &tree)
        elif self.source_hub[u]:
            tree = self.tree_of(u, 0)
            ew_tree_set(&tree, self.out_place[edge], INT64_MIN)

    cdef inline void leave(self, int64_t edge) noexcept nogil:
        """Take a connection out of what is left of its source, and out of the trees of hubs."""
        cdef int64_t u = self.sources[edge], k = self.out_start[u]
        if self.hubs:
            self._leave_hubs(edge)
            if self.source_hub[u]:
                return
        while self.out_edges[k] != edge:
            k += 1
        self.out_left[u] -= 1
        self.out_edges[k] = self.out_edges[self.out_start[u] + self.out_left[u]]

    cdef void step(self) noexcept nogil:
        cdef int64_t edge = self.highest(), u = self.sources[edge], v = self.targets[edge], left
        self.order[self.processed] = edge
        self.processed += 1
        self.done[edge] = 1
        self.leave(edge)
        self.best[u] = -1
        self.shift(u, 1)
        self.shift(v, 1)
        self.shift_target(v, 1)
        self.waiting[v] -= 1
        if self.waiting[v] == 0:
            self.refresh(v)
            self._into_hubs(v)
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
             go_on=None):
    """Return int64[N]: neurons in GO's order. Always the neuron with the most connections to, and common sources with,
    the last `window` ones is next; ties go to the smallest id. O(sum over connections (u, v) of u's out-degree).

    go_on: asked now and then with the number of neurons placed; where it says no, those are returned alone."""
    cdef int64_t n = out_start.shape[0] - 1, k, x, gone, visits = LOOK
    _check(sources, targets, out_start, out_edges, in_start, in_edges, window)
    order = np.empty(n, np.int64)
    cdef int64_t[::1] order_view = order
    cdef ew_max_tree tree
    tree.leaves = ew_tree_leaves(n)
    cdef int64_t[::1] keys = np.full(2 * tree.leaves, INT64_MIN, np.int64)
    tree.key = &keys[0]
    for k in range(n):
        ew_tree_set(&tree, k, -k)
    cdef int64_t[::1] change = np.zeros(n, np.int64), touched = np.empty(n, np.int64)
    for k in range(n):
        with nogil:
            x = ew_tree_top(&tree)
            order_view[k] = x
            ew_tree_set(&tree, x, INT64_MIN)
            visits += _go_relate(
                &tree, sources, targets, out_start, out_edges, in_start, in_edges, x, 1, change, touched)
            if k >= window:
                gone = order_view[k - window]
                visits += _go_relate(
                    &tree, sources, targets, out_start, out_edges, in_start, in_edges, gone, -1, change, touched)
        if visits >= LOOK:
            visits = 0
            PyErr_CheckSignals()
            if go_on is not None and not go_on(k + 1):
                return order[:k + 1]
    return order


cdef inline void _touch(int64_t v, int64_t[::1] change, int64_t[::1] touched, int64_t *n_touched) noexcept nogil:
    """Count one change of v's priority more."""
    if change[v] == 0:
        touched[n_touched[0]] = v
        n_touched[0] += 1
    change[v] += 1


cdef int64_t _go_relate(ew_max_tree *tree, const int64_t[::1] sources, const int64_t[::1] targets,
                        const int64_t[::1] out_start, const int64_t[::1] out_edges, const int64_t[::1] in_start,
                        const int64_t[::1] in_edges, int64_t x, int64_t sign, int64_t[::1] change,
                        int64_t[::1] touched) noexcept nogil:
    """Add `sign` to the priority of x's neighbours and, once per common source, of its siblings. Returns how many
    connections were looked at, and one."""
    cdef int64_t n_touched = 0, visits = 1 + out_start[x + 1] - out_start[x], j, k, u, v
    for j in range(out_start[x], out_start[x + 1]):
        _touch(targets[out_edges[j]], change, touched, &n_touched)
    for j in range(in_start[x], in_start[x + 1]):
        u = sources[in_edges[j]]
        _touch(u, change, touched, &n_touched)
        visits += out_start[u + 1] - out_start[u]
        for k in range(out_start[u], out_start[u + 1]):
            _touch(targets[out_edges[k]], change, touched, &n_touched)
    for j in range(n_touched):
        v = touched[j]
        if ew_tree_key(tree, v) > INT64_MIN:
            ew_tree_set(tree, v, ew_tree_key(tree, v) + ((sign * change[v]) << INDEX_BITS))
        change[v] = 0
    return visits
