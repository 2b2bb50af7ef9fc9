"""Runs ordered so that each finds most of its sources among the neurons used last, by a greedy walk with an LRU
window."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MIN, int64_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport rises, within64
from cython_ext.edges.max_tree cimport (
    INDEX_BITS, ew_max_tree, ew_tree_key, ew_tree_leaves, ew_tree_set, ew_tree_top, key_of)

cdef int64_t SLICE = 1 << 10  # runs between two looks at Ctrl-C


cdef class _Walk:
    """Runs of one group at a time. The window goes on from group to group.

    A run is connections [starts[r], starts[r + 1]) of one target. Per neuron, `head` and `after` chain the connections
    of the group that have it as source; `older` and `newer` chain the window, neuron N being both of its ends.
    """

    cdef const int64_t[::1] sources, targets
    cdef const int64_t[::1] starts
    cdef int64_t[::1] head, after, run_of, older, newer, keys, order
    cdef ew_max_tree tree
    cdef int64_t n, capacity, held, first, done

    def __init__(self, sources, targets, const int64_t[::1] starts, int64_t n_neurons, int64_t capacity,
                 int64_t most_runs):
        need(n_neurons >= 0 and within64(sources, 0, n_neurons) and within64(targets, 0, n_neurons), "known neurons")
        need(len(targets) == len(sources) and rises(starts, len(sources)) and most_runs <= len(starts),
             "runs of connections, one behind the other")
        self.sources, self.targets, self.starts = sources, targets, starts
        self.n, self.capacity = n_neurons, capacity
        self.head = np.full(n_neurons, -1, np.int64)
        self.after = np.empty(len(sources), np.int64)
        self.run_of = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        self.older, self.newer = np.full(n_neurons + 1, -1, np.int64), np.full(n_neurons + 1, -1, np.int64)
        self.older[n_neurons] = self.newer[n_neurons] = n_neurons
        self.order = np.empty(len(starts) - 1, np.int64)
        self.tree.leaves = ew_tree_leaves(max(1, most_runs))
        self.keys = np.empty(2 * self.tree.leaves, np.int64)
        self.tree.key = &self.keys[0]

    cdef void begin(self, int64_t first, int64_t last) noexcept nogil:
        """Chain the connections of runs [first, last) and give every run its key."""
        cdef int64_t r, p, hits
        self.first = first
        self.tree.leaves = ew_tree_leaves(last - first)
        for r in range(2 * self.tree.leaves):
            self.keys[r] = INT64_MIN
        for r in range(first, last):
            hits = 0
            for p in range(self.starts[r], self.starts[r + 1]):
                self.after[p] = self.head[self.sources[p]]
                self.head[self.sources[p]] = p
                hits += self.newer[self.sources[p]] >= 0
            ew_tree_set(&self.tree, r - first, key_of(hits, r - first))

    cdef void end(self, int64_t first, int64_t last) noexcept nogil:
        cdef int64_t p
        for p in range(self.starts[first], self.starts[last]):
            self.head[self.sources[p]] = -1

    cdef void step(self) noexcept nogil:
        """Take the run with the most hits, and use its sources, then its target."""
        cdef int64_t leaf = ew_tree_top(&self.tree), r = self.first + leaf, p
        ew_tree_set(&self.tree, leaf, INT64_MIN)
        self.order[self.done] = r
        self.done += 1
        for p in range(self.starts[r], self.starts[r + 1]):
            self.use(self.sources[p])
        self.use(self.targets[self.starts[r]])

    cdef void use(self, int64_t neuron) noexcept nogil:
        cdef int64_t oldest
        if self.newer[neuron] >= 0:
            self.unlink(neuron)
        else:
            self.held += 1
            self.change(neuron, 1)
        self.older[neuron], self.newer[neuron] = self.older[self.n], self.n
        self.newer[self.older[self.n]] = neuron
        self.older[self.n] = neuron
        if self.held > self.capacity:
            oldest = self.newer[self.n]
            self.unlink(oldest)
            self.newer[oldest] = -1
            self.held -= 1
            self.change(oldest, -1)

    cdef void unlink(self, int64_t neuron) noexcept nogil:
        self.newer[self.older[neuron]] = self.newer[neuron]
        self.older[self.newer[neuron]] = self.older[neuron]

    cdef void change(self, int64_t neuron, int64_t by) noexcept nogil:
        """Runs that wait for it have one hit more, or less."""
        cdef int64_t p = self.head[neuron], leaf, key
        while p >= 0:
            leaf = self.run_of[p] - self.first
            key = ew_tree_key(&self.tree, leaf)
            if key != INT64_MIN:
                ew_tree_set(&self.tree, leaf, key + by * (<int64_t>1 << INDEX_BITS))
            p = self.after[p]


def near_runs(const int64_t[::1] sources, const int64_t[::1] targets, const int64_t[::1] starts,
              const int64_t[::1] groups, int64_t n_neurons, int64_t capacity):
    """Return int64[R], the order of runs: inside each group, next comes the run with most sources in the window.

    sources, targets: int64[W], by runs. starts: int64[R + 1], each run's first connection, and W. groups: int64[G + 1],
    each group's first run, and R; a run stays in its group. The window holds the `capacity` (at least 1) neurons used
    last, sources and targets, and goes on from one group to the next. Ties go to the run that comes first. O(log R) for
    every change of a run's hits; each time a source comes into the window or leaves it, that is one per run that waits
    for it.
    """
    cdef int64_t g, first, last, stop
    need(rises(groups, starts.shape[0] - 1) and capacity > 0, "groups of runs, one behind the other, and a window")
    need(sources.shape[0] == 0 or np.diff(starts).min() > 0, "runs of a connection or more")
    cdef _Walk walk = _Walk(sources, targets, starts, n_neurons, capacity, int(np.diff(groups).max(initial=1)))
    for g in range(groups.shape[0] - 1):
        first, last = groups[g], groups[g + 1]
        with nogil:
            walk.begin(first, last)
        while walk.done < last:
            stop = min(last, walk.done + SLICE)
            with nogil:
                while walk.done < stop:
                    walk.step()
            PyErr_CheckSignals()
        with nogil:
            walk.end(first, last)
    return np.asarray(walk.order)
