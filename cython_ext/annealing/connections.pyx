"""Connection Reordering (Gleinig et al. 2023, section IV): the annealing loop over connection_moves.h, recount.h
and recount_min.h.

The objective is linear: a * runs + the sum of w_k * io_k, each io_k the I/Os under one policy, pinning and memory size.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, exp2, floor, pow as real_power
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint16_t, uint64_t

from cython_ext.iomodel.counts import count as count_from_scratch

cdef extern from "annealing/recount_min.h" nogil:
    ctypedef struct ew_move:
        int32_t edge
    ctypedef struct ew_link:
        int32_t next, prev, source, target
    ctypedef struct ew_edge:
        int64_t label
        int32_t out_index, in_index, name
    ctypedef struct ew_order:
        int64_t w, n
        ew_link *links, *spare_links
        ew_edge *edges, *spare
        uint8_t *mark
        int32_t *number, *renamed
        const int64_t *out_start, *in_start
        int32_t *out_edges, *in_edges
        int64_t *first_key
        int64_t runs
        int32_t *window
        int64_t n_window
        ew_move *moves
        int64_t n_moves
        int32_t *points
        int64_t n_points
        int left, keyed
    ctypedef struct ew_change:
        int64_t access
    ctypedef struct ew_counter:
        int64_t total, most, capacity
        int given_up, pin_both
        uint8_t *flags
        int32_t *use_misses
        const uint8_t *free_write
        ew_change *journal
        int64_t n_journal
        uint8_t *moved_flags
        int64_t n_old
        int64_t *stamp
        int64_t now, mark
        int64_t *last
        int32_t *log, *old_log
        int64_t played
    ctypedef struct ew_span:
        int64_t start, end
        int32_t neuron
    ctypedef struct ew_min_set:
        int32_t *victim, *moved_victim
        uint16_t *in_ "in"
        int32_t *only_new, *only_new_at, *member, *last
        int64_t *key, *block_key
        int64_t block_shift, n_blocks
        int32_t *place, *free_slots
        ew_span *spans, *hot
        int64_t n_spans, every, n_checkpoints
        int32_t *checkpoint, *hook, *saved, *saved_size
        uint8_t *version
        int32_t *rewritten, *unhooked
    int EW_POINT, EW_SPARE
    int32_t ew_first(const ew_order *)
    void ew_write_ends(const ew_order *, int32_t *, int32_t *)
    void ew_relabel(ew_order *)
    void ew_renumber(ew_order *)
    void ew_propose(ew_order *, int32_t, int64_t, int)
    void ew_choose_window(ew_order *, int32_t, int64_t, int)
    void ew_move_window(ew_order *, int64_t, int64_t)
    void ew_undo(ew_order *)
    void ew_undo_down_to(ew_order *, int64_t)
    void ew_find_points(ew_order *)
    void ew_clear_points(ew_order *)
    void ew_renumber_records(const ew_order *, void *, void *, int64_t)
    void ew_restore(ew_counter *, const ew_order *)
    void ew_count_changes(ew_counter *, const ew_order *, int)
    void ew_lru_segment(ew_counter *, const ew_order *, int32_t, int64_t *)
    void ew_rr_segment(ew_counter *, const ew_order *, int32_t, int64_t *)
    void ew_min_changes(ew_counter *, ew_min_set *, const ew_order *)
    void ew_min_restore(ew_counter *, ew_min_set *, const ew_order *)
    int32_t ew_min_segment(ew_counter *, ew_min_set *, const ew_order *, int32_t, int64_t *)
    void ew_min_checkpoints(ew_counter *, ew_min_set *, const ew_order *)

cdef enum:
    LRU = 0
    RR = 1
    MIN = 2
    LONG = 16  # a window of at least this share of the order, and so many connections, may take long to move
    LONG_LEAST = 1024
    AT_ONCE = 16  # connections of it between two looks at the clock
    RENUMBER = 8  # connections are numbered along the order again when this share of them has moved


cdef class _Room:
    """Arrays handed to C, kept alive here."""

    cdef list arrays

    def __cinit__(self):
        self.arrays = []

    cdef void *zeros(self, int64_t n, dtype, fill=0) except NULL:
        array = np.full(max(n, 1), fill, dtype) if fill else np.zeros(max(n, 1), dtype)
        self.arrays.append(array)
        cdef uint8_t[::1] view = array.view(np.uint8)
        return &view[0]

    cdef void *copy(self, values, dtype) except NULL:
        array = np.array(values, dtype)
        self.arrays.append(array)
        cdef uint8_t[::1] view = array.view(np.uint8)
        return &view[0]


cdef class _Counter:
    """The I/Os of one term of the objective, kept up to date as the order changes, or counted from scratch."""

    cdef _Room room
    cdef ew_counter c
    cdef ew_min_set s
    cdef readonly int policy
    cdef readonly double weight
    cdef object scratch, is_output, n_neurons, memory, pinning

    def __init__(self, n_neurons, in_degree, is_output, weight, policy, pinning, memory, bint incremental, window):
        self.policy, self.weight = policy, weight
        self.is_output, self.n_neurons, self.memory, self.pinning = is_output, n_neurons, memory, pinning
        self.room = _Room()
        if not incremental:
            return
        cdef int64_t n = n_neurons, w = in_degree.sum()
        computed = in_degree > 0
        outputs = is_output != 0
        self.c.capacity = min(memory - 1, n)
        self.c.pin_both = pinning
        self.c.total = w - computed.sum() + (computed & outputs).sum()
        self.c.flags = <uint8_t *> self.room.zeros(2 * w, np.uint8)
        self.c.use_misses = <int32_t *> self.room.zeros(n, np.int32)
        self.c.free_write = <const uint8_t *> self.room.copy(~computed | outputs, np.uint8)
        self.c.journal = <ew_change *> self.room.zeros(2 * w * sizeof(ew_change), np.uint8)
        self.c.moved_flags = <uint8_t *> self.room.zeros(2 * window, np.uint8)
        self.c.stamp = <int64_t *> self.room.zeros(n, np.int64)
        self.c.now = 1
        self.c.most = INT64_MAX
        if policy == MIN:
            self._make_min(n, w, window)
            return
        self.c.last = <int64_t *> self.room.zeros(n + 1, np.int64)
        self.c.log = EW_SPARE + <int32_t *> self.room.zeros(
            EW_SPARE + (2 if policy == LRU else 4) * w + self.c.capacity, np.int32)
        if policy == RR:
            self.c.old_log = <int32_t *> self.room.zeros(4 * w + self.c.capacity, np.int32)

    cdef _make_min(self, int64_t n, int64_t w, int64_t window):
        capacity = self.c.capacity
        self.s.victim = <int32_t *> self.room.zeros(2 * w, np.int32, -1)
        self.s.moved_victim = <int32_t *> self.room.zeros(2 * window, np.int32)
        self.s.in_ = <uint16_t *> self.room.zeros(n, np.uint16)
        self.s.block_shift = 2  # about the root of C: finding the farthest looks at all blocks, then at one's slots
        while 1 << 2 * self.s.block_shift < capacity:
            self.s.block_shift += 1
        self.s.n_blocks = (capacity - 1 >> self.s.block_shift) + 1
        self.s.only_new = <int32_t *> self.room.zeros(capacity + 1, np.int32)
        self.s.only_new_at = <int32_t *> self.room.zeros(n, np.int32)
        self.s.last = <int32_t *> self.room.zeros(capacity, np.int32)
        self.s.member = <int32_t *> self.room.zeros(capacity + 1, np.int32)
        self.s.key = <int64_t *> self.room.zeros(capacity, np.int64)
        self.s.block_key = <int64_t *> self.room.zeros(self.s.n_blocks, np.int64)
        self.s.place = <int32_t *> self.room.zeros(n, np.int32)
        self.s.free_slots = <int32_t *> self.room.zeros(capacity, np.int32)
        self.s.spans = <ew_span *> self.room.zeros(4 * window * sizeof(ew_span), np.uint8)
        self.s.hot = <ew_span *> self.room.zeros(4 * window * sizeof(ew_span), np.uint8)
        self.s.every = max(128, 2 * capacity)  # the saved sets then take no more room than the connections
        self.s.n_checkpoints = w // self.s.every + 1
        self.s.checkpoint = <int32_t *> self.room.zeros(w, np.int32, -1)
        self.s.hook = <int32_t *> self.room.zeros(self.s.n_checkpoints, np.int32, -1)
        self.s.saved = <int32_t *> self.room.zeros(4 * self.s.n_checkpoints * capacity + 2, np.int32)
        self.s.saved_size = <int32_t *> self.room.zeros(2 * self.s.n_checkpoints, np.int32)
        self.s.version = <uint8_t *> self.room.zeros(self.s.n_checkpoints, np.uint8)
        self.s.rewritten = <int32_t *> self.room.zeros(self.s.n_checkpoints, np.int32)
        self.s.unhooked = <int32_t *> self.room.zeros(2 * window, np.int32)

    cdef void start(self, const ew_order *o):
        """Play the whole order once: every connection is a point, so nothing ends before the end."""
        cdef int64_t k, ignored = 0
        for k in range(o.w):
            o.mark[k] = EW_POINT
        if self.policy == LRU:
            ew_lru_segment(&self.c, o, ew_first(o), &ignored)
        elif self.policy == RR:
            ew_rr_segment(&self.c, o, ew_first(o), &ignored)
        else:
            ew_min_segment(&self.c, &self.s, o, ew_first(o), &ignored)
            ew_min_checkpoints(&self.c, &self.s, o)
        for k in range(o.w):
            o.mark[k] = 0
        self.c.n_journal = 0
        self.c.played = 0

    cdef void change(self, const ew_order *o, double excess) noexcept nogil:
        """Count anew after moves; give up where this term, weighted, comes to cost more than `excess` above before."""
        self.c.most = INT64_MAX
        if self.weight > 0 and excess / self.weight < 2.0 ** 60:  # no order has so many I/Os
            self.c.most = self.c.total + <int64_t> floor(excess / self.weight)
        if self.policy == MIN:
            ew_min_changes(&self.c, &self.s, o)
        else:
            ew_count_changes(&self.c, o, self.policy == LRU)

    cdef void undo(self, const ew_order *o) noexcept nogil:
        if self.policy == MIN:
            ew_min_restore(&self.c, &self.s, o)
        else:
            ew_restore(&self.c, o)

    cdef void renumber(self, const ew_order *o) noexcept nogil:
        ew_renumber_records(o, self.c.flags, self.c.journal, 2)
        if self.policy == MIN:
            ew_renumber_records(o, self.s.victim, self.c.journal, 8)
            ew_min_checkpoints(&self.c, &self.s, o)

    cdef int64_t recount(self, sources, targets):
        counts = count_from_scratch(sources, targets, self.n_neurons, self.is_output, self.memory, self.policy,
                                    self.pinning)
        return sources.shape[0] + counts[0] + counts[1] + counts[2]


cdef extern from "common/random.h" nogil:
    double ew_unit(uint64_t *)


cdef class _Annealer:
    """One run of Connection Reordering over one network. Connections are numbered in their initial order."""

    cdef _Room room
    cdef ew_order o
    cdef list counters
    cdef double runs_weight, sigma, patience
    cdef int64_t window, moved, counted
    cdef bint incremental
    cdef uint64_t random
    cdef int32_t[::1] flat_sources, flat_targets, best_order
    cdef const int32_t[::1] sources, targets
    cdef readonly double cost, best
    cdef readonly int64_t iteration, accepted
    cdef bint best_is_stored

    def __init__(self, const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, is_output, *,
                 double runs_weight, io_terms, int64_t window, double sigma, uint64_t seed, bint incremental,
                 double patience=INFINITY):
        """sources, targets: int32[W] in the initial order. io_terms: (weight, policy code, pinning code, memory).

        patience: what moves may cost above the present order, counted up to where their I/Os are known (incremental),
        before they are given up. What is kept depends on it: moves that cost more at first may cost less in the end.
        """
        cdef int64_t w = sources.shape[0]
        self.sources, self.targets = sources, targets
        self.runs_weight, self.sigma, self.window, self.incremental = runs_weight, sigma, window, incremental
        self.patience = patience
        self.random = seed
        self.room = room = _Room()
        in_degree = np.bincount(targets, minlength=n_neurons)
        out_degree = np.bincount(sources, minlength=n_neurons)
        reach = min(window, w) + 1
        self.o.w, self.o.n = w, n_neurons
        in_start = np.concatenate(([0], np.cumsum(in_degree)))
        out_start = np.concatenate(([0], np.cumsum(out_degree)))
        self.o.in_start = <const int64_t *> room.copy(in_start, np.int64)
        self.o.out_start = <const int64_t *> room.copy(out_start, np.int64)
        self.o.links = <ew_link *> room.zeros((w + 1) * sizeof(ew_link), np.uint8)
        self.o.spare_links = <ew_link *> room.zeros((w + 1) * sizeof(ew_link), np.uint8)
        self.o.edges = <ew_edge *> room.zeros(w * sizeof(ew_edge), np.uint8)
        self.o.spare = <ew_edge *> room.zeros(w * sizeof(ew_edge), np.uint8)
        self.o.mark = <uint8_t *> room.zeros(w, np.uint8)
        self.o.number = <int32_t *> room.zeros(w, np.int32)
        self.o.renamed = <int32_t *> room.zeros(w, np.int32)
        self.o.in_edges = <int32_t *> room.zeros(w, np.int32)
        self.o.out_edges = <int32_t *> room.zeros(w, np.int32)
        self._lay_out(in_start, out_start)
        self.o.first_key = <int64_t *> room.zeros(n_neurons, np.int64)
        self.o.runs = 1 + np.count_nonzero(np.diff(targets))
        self.o.window = <int32_t *> room.zeros(reach + 1, np.int32)
        self.o.points = <int32_t *> room.zeros(2 * reach, np.int32)
        self.o.moves = <ew_move *> room.zeros(reach * sizeof(ew_move), np.uint8)
        self.o.keyed = incremental and any(policy == MIN for _, policy, _, _ in io_terms)
        ew_relabel(&self.o)
        self.best_order = np.arange(w, dtype=np.int32)
        self.flat_sources, self.flat_targets = np.array(sources), np.array(targets)
        self.counters = []
        cdef _Counter counter
        for weight, policy, pinning, memory in io_terms:
            counter = _Counter(n_neurons, in_degree, is_output, weight, policy, pinning, memory, incremental, reach)
            if incremental:
                counter.start(&self.o)
            self.counters.append(counter)
        self.iteration = self.accepted = self.moved = 0
        self.cost = self.best = self._cost()
        self.best_is_stored = True

    cdef void _lay_out(self, int64_t[::1] next_in, int64_t[::1] next_out):
        """Link the connections in their order and list those of each neuron. next_*: where each neuron's begin."""
        cdef int64_t k, w = self.o.w
        cdef ew_edge *edge
        cdef ew_link *link
        for k in range(w):
            edge, link = &self.o.edges[k], &self.o.links[k]
            link.next, link.prev, edge.name = k + 1, k - 1 if k else w, k
            link.source, link.target = self.sources[k], self.targets[k]
            edge.in_index, edge.out_index = next_in[link.target], next_out[link.source]
            next_in[link.target] += 1
            next_out[link.source] += 1
            self.o.in_edges[edge.in_index] = self.o.out_edges[edge.out_index] = self.o.number[k] = k
        self.o.links[w].prev = w - 1 if w else 0

    cdef double _cost(self):
        cdef double cost = self.runs_weight * self.o.runs
        cdef _Counter counter
        if not self.incremental and self.counters and self.o.w:
            ew_write_ends(&self.o, &self.flat_sources[0], &self.flat_targets[0])
        for counter in self.counters:
            if self.incremental:
                cost += counter.weight * counter.c.total
            else:
                cost += counter.weight * counter.recount(self.flat_sources, self.flat_targets)
        return cost

    cdef bint _propose(self, int32_t e, int64_t extra, bint left, over) except -1:
        """Move a window; return whether `over()` ended that."""
        cdef int64_t k = 0
        if not self._is_long(extra, over):
            ew_propose(&self.o, e, extra, left)
            return False
        if self.cost == self.best and not self.best_is_stored:
            self._store()
        ew_choose_window(&self.o, e, extra, left)
        while k < self.o.n_window:
            ew_move_window(&self.o, k, min(k + AT_ONCE, self.o.n_window))
            k += AT_ONCE
            PyErr_CheckSignals()
            if over():
                return True
        return False

    cdef bint _undo(self, int64_t extra, over) except -1:
        """Undo the moves; return whether `over()` ended that."""
        if not self._is_long(extra, over):
            ew_undo(&self.o)
            return False
        while self.o.n_moves > 0:
            ew_undo_down_to(&self.o, max(0, self.o.n_moves - AT_ONCE))
            PyErr_CheckSignals()
            if over():
                return True
        return False

    cdef inline bint _is_long(self, int64_t extra, over):
        """Whether a window is so much of the order that moving it may take long: in a list of many, each shifts
        others."""
        return over is not None and extra >= LONG_LEAST and LONG * extra >= self.o.w

    def run(self, int64_t iterations, over=None):
        """Do `iterations` more: draw connection, window, direction and a number in [0, 1); move; keep or undo.

        over: asked inside an iteration that may take long; where it says so, that one is given up and the search ends:
        what it has found is there, but it cannot go on.
        """
        cdef int64_t k, extra
        cdef int32_t e
        cdef bint left
        cdef double chance, new_cost
        cdef _Counter counter
        for k in range(iterations):
            self.iteration += 1
            e = self.o.number[<int64_t> (ew_unit(&self.random) * self.o.w)]
            extra = <int64_t> (ew_unit(&self.random) * self.window)
            left = ew_unit(&self.random) < 0.5
            chance = ew_unit(&self.random)
            if self._propose(e, extra, left, over):
                self.iteration -= 1
                return
            if self.o.n_moves == 0:
                continue
            new_cost = INFINITY if self.incremental and not self._count_changes() else self._cost()
            if new_cost < self.cost or chance < exp2(-(new_cost - self.cost) * real_power(self.iteration, self.sigma)):
                self._accept(e, extra, left, new_cost)
            else:
                if self._undo(extra, over):
                    return
                if self.incremental:
                    for counter in self.counters[:self.counted]:
                        counter.undo(&self.o)
            if k % 256 == 0:
                PyErr_CheckSignals()

    cdef bint _count_changes(self):
        """Count the I/Os after moves; return whether that went to the end."""
        cdef double excess = self.patience + self.cost - self.runs_weight * self.o.runs
        cdef _Counter counter
        cdef int64_t before
        cdef bint given_up = False
        for counter in self.counters:
            excess -= counter.weight * counter.c.total
        ew_find_points(&self.o)
        self.counted = 0
        for counter in self.counters:
            before = counter.c.total
            counter.change(&self.o, excess)
            self.counted += 1
            given_up = counter.c.given_up
            if given_up:
                break
            excess -= counter.weight * (counter.c.total - before)
        ew_clear_points(&self.o)
        return not given_up

    cdef _accept(self, int32_t e, int64_t extra, bint left, double new_cost):
        cdef _Counter counter
        if new_cost > self.cost == self.best and not self.best_is_stored:
            ew_undo(&self.o)  # the best order is stored only now that it is left for a worse one
            self._store()
            ew_propose(&self.o, e, extra, left)
        self.cost = new_cost
        self.accepted += 1
        if new_cost < self.best:
            self.best = new_cost
            self.best_is_stored = False
        self.moved += self.o.n_moves
        if RENUMBER * self.moved > self.o.w:
            self.moved = 0
            ew_renumber(&self.o)
            if self.incremental:
                for counter in self.counters:
                    counter.renumber(&self.o)

    cdef void _write(self, int32_t[::1] names) noexcept:
        """Write the present order, as numbers in the initial one."""
        cdef int64_t k
        cdef int32_t e = ew_first(&self.o)
        for k in range(self.o.w):
            names[k] = self.o.edges[e].name
            e = self.o.links[e].next

    cdef _store(self):
        self._write(self.best_order)
        self.best_is_stored = True

    def best_found(self):
        """Return int32[W]: the best order so far, as numbers in the initial one."""
        if self.cost == self.best and not self.best_is_stored:
            self._store()
        return np.asarray(self.best_order).copy()

    def accesses_played(self):
        """Return how many accesses the incremental counters have played since the start."""
        return sum([(<_Counter> counter).c.played for counter in self.counters])
