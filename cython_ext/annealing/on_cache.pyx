"""Counts of an order on a line cache, and annealing by moving pieces of it: over on_cache.h.

The counts (fills, write-backs, line loads, line stores, rows opened in memory) are those of a trace of the same
accesses; an objective weights them. tests/oracles/on_cache_oracle.py counts the same in plain Python.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport exp
from libc.math cimport pow as real_power
from libc.stdint cimport int32_t, int64_t, uint64_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport within32

cdef extern from "cache/policy.h" nogil:
    enum:
        EDGEWATT_POLICY_VERSION
        EDGEWATT_IN_ORDER
    ctypedef struct edgewatt_sets:
        int64_t sets, ways, set_bytes
        uint64_t random
    ctypedef struct edgewatt_policy:
        int32_t version, flags
        int64_t bytes_per_way, bytes_per_set, shared_bytes

cdef extern from "annealing/on_cache.h" nogil:
    enum:
        OC_COUNTS
        OC_BANKS
        OC_ELEMENTS
    ctypedef struct oc_cache:
        int64_t neurons, pitch, row_bytes, access_bytes
        int64_t element[4]
        int64_t bits[4]
        int n_elements, line_shift, row_shift
        int64_t sets, ways, banks
        const int32_t *source, *target
        int64_t w
        const edgewatt_policy *policy
        edgewatt_sets policy_sets
        int64_t size
    ctypedef struct oc_search:
        oc_cache now
        int32_t *order, *place, *piece
        # `from` is a word of Python
        int64_t every, n_segments
        int64_t *saved, *fresh, *counts, *changed
        double weight[5]
        int64_t *stamp
        int64_t now_stamp
    void oc_lay_out(oc_cache *, int64_t *)
    void oc_start(oc_search *)
    double oc_evaluate(oc_search *)
    void oc_accept(oc_search *)
    int oc_swap(oc_search *, int64_t, int64_t, int64_t)

COUNTS = ("fills", "writebacks", "loads", "stores", "rows")
MOST_ELEMENTS = OC_ELEMENTS
MOST_BANKS = OC_BANKS
cdef enum:
    STATE_BYTES = 1 << 26  # of saved states, twice that in all
    MOST_LINES = 1 << 24  # half the saved states: a start and an end of an order

cdef int64_t MOST_BYTES = <int64_t> 1 << 48  # addresses of processors of today have no more bits, and sums fit
_ADDRESSES = "addresses and sizes from 0 to 2^48"


cdef extern from "common/random.h" nogil:
    double ew_unit(uint64_t *)


cdef class OnCache:
    """An order of connections on one cache.

    sources, targets: int32[W] by connection. order: int64[W]. elements: int64[E, 2] address and bits per connection of
    each array read at a step. rows: (address of neuron 0's row, bytes from one row to the next, bytes of a row).
    cache: (line_bytes, sets, ways). policy: what `compiled_policy` made of one that needs no future, None for LRU.
    memory: (bytes of a row, banks). access_bytes: the widest access. Sizes of lines, sets and rows of memory are powers
    of two. Raises ValueError for what is none of these.
    """

    cdef oc_search q
    cdef const int32_t[::1] sources, targets
    cdef int32_t[::1] order_, place, piece
    cdef int64_t[::1] state, stamp, counts_, changed
    cdef edgewatt_policy lru
    cdef object policy_owner
    cdef int64_t[:, ::1] saved, fresh
    cdef const int32_t[::1] by_source, by_target
    cdef const int64_t[::1] out_start, in_start
    cdef uint64_t random
    cdef readonly double value

    def __init__(self, const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, order, *,
                 elements, rows, cache, memory, int64_t access_bytes, policy=None, int64_t seed=0):
        cdef oc_cache *c = &self.q.now
        cdef int64_t w = sources.shape[0], k
        need(1 <= w < 2**31 and targets.shape[0] == w, "a source and a target for each connection")
        need(within32(sources, 0, n_neurons) and within32(targets, 0, n_neurons), "neurons that are there")
        self.sources, self.targets = sources, targets
        c.source, c.target, c.w = &sources[0], &targets[0], w
        c.neurons, c.pitch, c.row_bytes = rows
        line_bytes, c.sets, c.ways = cache
        row_bytes, c.banks = memory
        c.line_shift, c.row_shift = int(line_bytes).bit_length() - 1, int(row_bytes).bit_length() - 1
        need(0 < line_bytes < 1 << 31 and line_bytes & (line_bytes - 1) == 0 and 0 < row_bytes < 1 << 31
             and row_bytes & (row_bytes - 1) == 0 and c.sets > 0
             and c.sets & (c.sets - 1) == 0, "lines, sets and rows of memory of a power of two")
        need(c.ways > 0 and c.sets * int(c.ways) <= MOST_LINES and 0 < c.banks <= OC_BANKS,
             f"from 1 to {MOST_LINES} lines and to {OC_BANKS} banks")
        c.access_bytes = access_bytes
        need(len(elements) <= OC_ELEMENTS, f"at most {OC_ELEMENTS} arrays of elements")
        c.n_elements = len(elements)
        for k in range(c.n_elements):
            c.element[k], c.bits[k] = elements[k]
            need(c.element[k] >= 0 and 0 <= c.bits[k] < MOST_BYTES // w and c.element[k] < MOST_BYTES, _ADDRESSES)
        need(access_bytes > 0 and 0 <= c.neurons < MOST_BYTES and 0 <= c.pitch < MOST_BYTES // n_neurons
             and 0 <= c.row_bytes < MOST_BYTES, _ADDRESSES)
        self._choose(policy)
        self.order_, self.place = np.empty(w, np.int32), np.empty(w, np.int32)
        self._take(order)
        self.piece = np.zeros(w, np.int32)
        self.stamp = np.zeros(n_neurons, np.int64)
        self.q.order, self.q.place, self.q.piece = &self.order_[0], &self.place[0], &self.piece[0]
        self.q.stamp = &self.stamp[0]
        self.q.every = max(64, c.sets * c.ways // 4, w * c.size * 8 // STATE_BYTES + 1)
        self.q.n_segments = (w + self.q.every - 1) // self.q.every
        self.saved = np.zeros((self.q.n_segments, c.size), np.int64)
        self.fresh = np.zeros((self.q.n_segments, c.size), np.int64)
        self.counts_ = np.zeros(self.q.n_segments * OC_COUNTS, np.int64)
        self.changed = np.zeros(self.q.n_segments * OC_COUNTS, np.int64)
        self.q.saved, self.q.fresh = &self.saved[0, 0], &self.fresh[0, 0]
        self.q.counts, self.q.changed = &self.counts_[0], &self.changed[0]
        self.by_source = np.argsort(sources, kind="stable").astype(np.int32)
        self.by_target = np.argsort(targets, kind="stable").astype(np.int32)
        self.out_start = np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=n_neurons)))).astype(np.int64)
        self.in_start = np.concatenate(([0], np.cumsum(np.bincount(targets, minlength=n_neurons)))).astype(np.int64)
        self.random = <uint64_t> seed
        oc_start(&self.q)

    cdef _take(self, order):
        """Put an order and its places into the arrays."""
        cdef const int64_t[::1] edges = np.ascontiguousarray(order, np.int64)
        cdef int32_t[::1] place = np.full(self.q.now.w, -1, np.int32)
        cdef int64_t k
        need(edges.shape[0] == self.q.now.w, "a place for each connection")
        for k in range(edges.shape[0]):
            need(0 <= edges[k] < self.q.now.w and place[edges[k]] < 0, "an order of all connections")
            place[edges[k]] = <int32_t> k
        np.asarray(self.order_)[:] = edges
        self.place[:] = place

    cdef _choose(self, policy):
        cdef oc_cache *c = &self.q.now
        self.lru.version, self.lru.flags = EDGEWATT_POLICY_VERSION, EDGEWATT_IN_ORDER
        c.policy = &self.lru
        if policy is not None:
            c.policy = <const edgewatt_policy *> PyCapsule_GetPointer(policy, "edgewatt.cache_policy")
            self.policy_owner = policy
        c.policy_sets.sets, c.policy_sets.ways, c.policy_sets.random = c.sets, c.ways, 0
        c.policy_sets.set_bytes = c.policy.bytes_per_set + c.ways * c.policy.bytes_per_way
        oc_lay_out(c, NULL)
        self.state = np.zeros(c.size, np.int64)
        oc_lay_out(c, &self.state[0])

    @property
    def counts(self):
        """int64[5]: fills, write-backs (dirty lines at the end included), line loads and stores, rows opened."""
        return np.asarray(self.counts_).reshape(-1, OC_COUNTS).sum(0)

    @property
    def order(self):
        """int64[W]: the order as it is now."""
        return np.asarray(self.order_).astype(np.int64)

    def weigh(self, const double[::1] weights):
        """Set what one of each count costs, float64[5]; the value follows."""
        cdef int k
        need(weights.shape[0] == OC_COUNTS, f"{OC_COUNTS} weights")
        for k in range(OC_COUNTS):
            self.q.weight[k] = weights[k]
        self.value = float(np.asarray(weights) @ self.counts)

    def replace(self, order):
        """Take another order, int64[W]."""
        self._take(order)
        self.recount()

    def recount(self):
        """Play the whole order once more, so that counts and value are exact."""
        oc_start(&self.q)
        self.weigh(np.array([self.q.weight[k] for k in range(OC_COUNTS)]))

    def swap(self, int64_t i, int64_t j, int64_t k):
        """Swap positions [i, j) and [j, k) and return the value's change; None where the order forbids it."""
        if not 0 <= i < j < k <= self.q.now.w or not oc_swap(&self.q, i, j, k):
            return None
        cdef double difference = oc_evaluate(&self.q)
        oc_accept(&self.q)
        self.value += difference
        return difference

    def run(self, int64_t moves, double hot, double cold, int64_t reach):
        """Anneal for `moves` moves from temperature `hot` to `cold`, both in the value's unit; return how many were
        accepted.

        A move takes a connection with those beside it that share its target (or it alone) to another connection of its
        source or target, or up to `reach` places away, past what lies between.
        """
        cdef int64_t n, accepted = 0, w = self.q.now.w, p, a, b, other, length
        cdef int32_t e, neuron
        cdef double temperature = hot, difference, ratio = cold / hot if hot > 0 else 1.0
        cdef double chance
        need(0 < reach < 2**31 and hot == hot and cold == cold, "a reach and temperatures")
        for n in range(moves):
            if n % 256 == 0:
                PyErr_CheckSignals()
                temperature = hot * real_power(ratio, <double> n / moves)
            with nogil:
                p = <int64_t> (ew_unit(&self.random) * w)
                e = self.order_[p]
                a, b = p, p + 1
                if ew_unit(&self.random) < 0.5:  # its run, or what is left of it
                    while b < w and b - a < 256 and self.targets[self.order_[b]] == self.targets[e]:
                        b += 1
                    while a > 0 and b - a < 256 and self.targets[self.order_[a - 1]] == self.targets[e]:
                        a -= 1
                chance = ew_unit(&self.random)
                if chance < 0.4:
                    neuron = self.sources[e]
                    other = self.place[self.by_source[self.out_start[neuron] + <int64_t> (
                        ew_unit(&self.random) * (self.out_start[neuron + 1] - self.out_start[neuron]))]]
                elif chance < 0.7:
                    neuron = self.targets[e]
                    other = self.place[self.by_target[self.in_start[neuron] + <int64_t> (
                        ew_unit(&self.random) * (self.in_start[neuron + 1] - self.in_start[neuron]))]]
                else:
                    length = <int64_t> real_power(<double> reach, ew_unit(&self.random))
                    other = p + length if ew_unit(&self.random) < 0.5 else p - length
                if other > p + 4 * reach or other < p - 4 * reach:
                    continue
                if other >= b:  # forward, to stand behind it
                    if other >= w or not oc_swap(&self.q, a, b, other + 1):
                        continue
                elif other < a:
                    if other < 0 or not oc_swap(&self.q, other, a, b):
                        continue
                else:
                    continue
                difference = oc_evaluate(&self.q)
                if difference <= 0 or ew_unit(&self.random) < exp(-difference / temperature):
                    oc_accept(&self.q)
                    self.value += difference
                    accepted += 1
        return accepted
