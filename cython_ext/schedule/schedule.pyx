"""Compiled operator scheduling: footprint, arena, off-chip traffic, state search (algorithms in the headers beside it).

The callers (reorder/operators/schedule) check every argument; arrays are int32/int64 as declared.
"""

import numpy as np

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport rises, within32, within64

cdef extern from "schedule/graph.h" nogil:
    ctypedef struct sg_graph:
        int32_t n_nodes, n_buffers, words
        const int32_t *before_start, *before, *writes_start, *writes, *reads_start, *reads
        const int64_t *bytes
        const uint8_t *retained
    void *sg_complete(sg_graph *)
    void *sg_reverse(const sg_graph *, sg_graph *)

cdef extern from "schedule/cost.h" nogil:
    ctypedef struct sc_scratch:
        int64_t read_bytes, written_bytes, n_log, most_log, stop_ns
        int64_t *log, *base
        int32_t *owner
        int keep_log
    int sc_create(sc_scratch *, const sg_graph *, int64_t, int64_t)
    void sc_destroy(sc_scratch *)
    int64_t sc_footprint(sc_scratch *, const int32_t *, int64_t *, int64_t *)
    int64_t sc_traffic(sc_scratch *, const int32_t *, int64_t)
    int64_t sc_now()
    int64_t SC_LATE
    int64_t sc_cost(sc_scratch *, const int32_t *, int, int64_t, int64_t *)
    int64_t sc_improve(sc_scratch *, int32_t *, int, int64_t, int64_t, int64_t, int64_t, int64_t, double, uint64_t *,
                       int32_t *, int32_t *, int32_t *, int64_t *, int64_t *, int64_t)

cdef extern from "schedule/constructive.h" nogil:
    int sk_kahn(const sg_graph *, int, int32_t *)
    int sk_greedy(const sg_graph *, int32_t *)

cdef extern from "schedule/search.h" nogil:
    ctypedef struct ss_state:
        int64_t peak
    ctypedef struct ss_entry:
        int64_t peak
    ctypedef struct ss_search:
        ss_state *states
        ss_entry *heap
        uint64_t n_states, n_expanded, n_generated
        int64_t n_heap, pruned_peak, key, upper
        uint32_t goal
        int32_t level
    int ss_create(ss_search *, const sg_graph *, int64_t, int64_t, uint64_t, int, int32_t)
    void ss_destroy(ss_search *)
    int ss_best_first(ss_search *, uint64_t)
    int ss_levels(ss_search *, uint64_t, uint64_t)
    int32_t ss_path(ss_search *, uint32_t, int32_t *, uint32_t *)

RUNNING, SOLVED, EXHAUSTED, FULL, NO_MEMORY = range(5)
NEVER = INT64_MAX
NO_STATE = 0xFFFFFFFF


cdef int _check_sizes(const int64_t[::1] sizes) except -1:
    return need(within64(sizes, 0, INT64_MAX // max(1, sizes.shape[0])), "sizes of buffers, whose sum is a number")


cdef class Graph:
    """The rows of reorder.operators.schedule.operator_problem.OperatorProblem for the kernels.

    before: node -> its predecessors, writes, reads: node -> buffers; each (start int32[n + 1], values int32[...]),
    where one value more than needed keeps empty ones addressable. sizes: int64[buffers], retained: uint8[buffers].
    """

    cdef sg_graph g
    cdef void *block
    cdef object alive  # what the pointers lead to, `block` apart

    def __dealloc__(self):
        free(self.block)

    def __init__(self, before, writes, reads, const int64_t[::1] sizes, const uint8_t[::1] retained):
        cdef const int32_t[::1] before_start = before[0], befores = before[1], writes_start = writes[0]
        cdef const int32_t[::1] written = writes[1], reads_start = reads[0], read = reads[1]
        cdef int32_t n = before_start.shape[0] - 1, v, i
        need(n > 0 and retained.shape[0] == sizes.shape[0] > 0, "a graph with operators and buffers")
        need(writes_start.shape[0] == reads_start.shape[0] == n + 1,
             "a beginning for each operator")
        need(rises(before_start, before_start[n]) and before_start[n] < befores.shape[0]
             and rises(writes_start, writes_start[n]) and writes_start[n] < written.shape[0]
             and rises(reads_start, reads_start[n]) and reads_start[n] < read.shape[0]
             and within32(written[:writes_start[n]], 0, sizes.shape[0])
             and within32(read[:reads_start[n]], 0, sizes.shape[0]), "rows of operators and buffers")
        for v in range(n):
            for i in range(before_start[v], before_start[v + 1]):
                need(0 <= befores[i] < v, "operators behind those that they wait for")
                need(i == before_start[v] or befores[i - 1] < befores[i], "each that it waits for once, ascending")
        _check_sizes(sizes)
        self.g.n_nodes = n
        self.g.n_buffers = sizes.shape[0]
        self.g.words = (n + 63) // 64
        self.g.bytes = &sizes[0]
        self.g.retained = &retained[0]
        self.g.before_start, self.g.before = &before_start[0], &befores[0]
        self.g.writes_start, self.g.writes = &writes_start[0], &written[0]
        self.g.reads_start, self.g.reads = &reads_start[0], &read[0]
        self.alive = before, writes, reads, sizes, retained
        self.block = sg_complete(&self.g)
        if self.block == NULL:
            raise MemoryError("operator scheduling: not enough memory")

    def reversed(self):
        """Return the graph run backwards: operator v is number n - 1 - v there."""
        cdef Graph made = Graph.__new__(Graph)
        made.alive = self
        made.block = sg_reverse(&self.g, &made.g)
        if made.block == NULL:
            raise MemoryError("operator scheduling: not enough memory")
        return made

    def with_sizes(self, const int64_t[::1] sizes):
        """Return the same graph with other sizes of its buffers."""
        need(sizes.shape[0] == self.g.n_buffers, "a size for each buffer")
        _check_sizes(sizes)
        cdef Graph made = Graph.__new__(Graph)
        made.g = self.g
        made.g.bytes = &sizes[0]
        made.alive = self, sizes
        return made

    def kahn(self, bint stack):
        """Return an order of Kahn's algorithm (int32[n])."""
        cdef int32_t[::1] order = np.empty(self.g.n_nodes, np.int32)
        if sk_kahn(&self.g, stack, &order[0]):
            raise MemoryError("operator scheduling: not enough memory")
        return np.asarray(order)

    def greedy(self):
        """Return the greedy order (int32[n])."""
        cdef int32_t[::1] order = np.empty(self.g.n_nodes, np.int32)
        if sk_greedy(&self.g, &order[0]):
            raise MemoryError("operator scheduling: not enough memory")
        return np.asarray(order)


cdef class _Costs:
    """Scratch memory for evaluating many orders of one graph. capacity in blocks; block_bytes 0: no traffic."""

    cdef sc_scratch s
    cdef Graph graph
    cdef int64_t[::1] offsets, met
    cdef int64_t orders
    cdef bint blocks

    def __init__(self, Graph graph, int64_t capacity=0, int64_t block_bytes=0):
        need(0 <= capacity < 2**31 and 0 <= block_bytes < 2**31 and (capacity or not block_bytes), "a capacity of blocks")
        self.graph, self.blocks = graph, block_bytes > 0
        self.met = np.zeros(graph.g.n_nodes, np.int64)
        if sc_create(&self.s, &graph.g, capacity, block_bytes):
            raise MemoryError("operator scheduling: not enough memory for the blocks of this graph")
        self.offsets = np.zeros(graph.g.n_buffers, np.int64)

    def __dealloc__(self):
        sc_destroy(&self.s)

    cdef int check_order(self, const int32_t[::1] order) except -1:
        cdef int64_t k, n = self.graph.g.n_nodes
        need(order.shape[0] == n and within32(order, 0, n), "an order of the operators")
        self.orders += 1
        for k in range(n):
            need(self.met[order[k]] != self.orders, "each operator once")
            self.met[order[k]] = self.orders
        return 0

    def footprint(self, const int32_t[::1] order):
        """Return (peak, bytes live during each step int64[n], bytes live after each step int64[n])."""
        self.check_order(order)
        cdef int64_t[::1] during = np.empty(self.graph.g.n_nodes, np.int64)
        cdef int64_t[::1] after = np.empty(self.graph.g.n_nodes, np.int64)
        cdef int64_t peak
        with nogil:
            peak = sc_footprint(&self.s, &order[0], &during[0], &after[0])
        return peak, np.asarray(during), np.asarray(after)

    def peak(self, const int32_t[::1] order):
        """Return the peak alone."""
        self.check_order(order)
        cdef int64_t peak
        with nogil:
            peak = sc_footprint(&self.s, &order[0], NULL, NULL)
        return peak

    cdef int stop(self, seconds) except -1:
        """Give up counting traffic after so many seconds from now. None: never."""
        self.s.stop_ns = 0 if seconds is None else sc_now() + <int64_t>(1e9 * min(max(seconds, 0.0), 1e9))
        return 0

    cdef int check(self, int64_t total) except -1:
        if total == SC_LATE:
            raise TimeoutError("operator scheduling: counting traffic takes longer")
        if total < 0:
            raise MemoryError("operator scheduling: not enough memory for the blocks of this graph")
        return 0

    def traffic(self, const int32_t[::1] order, seconds=None):
        """Return (bytes read, bytes written) of Belady replacement. TimeoutError where it takes more than `seconds`."""
        cdef int64_t total
        need(self.blocks, "blocks, which traffic is counted in")
        self.check_order(order)
        self.stop(seconds)
        with nogil:
            total = sc_traffic(&self.s, &order[0], INT64_MAX)
        self.check(total)
        return self.s.read_bytes, self.s.written_bytes

    def transfers(self, const int32_t[::1] order, seconds=None, int64_t most=INT64_MAX):
        """Return int64[n, 5] of the off-chip transfers in time order: access, buffer, block of it, 1 for a write, and
        the access that last changed what is transferred.

        An access is one operator reading or writing one buffer; they are numbered operator by operator, reads first.
        TimeoutError where it takes more than `seconds`, MemoryError where there are more than `most`.
        """
        need(self.blocks, "blocks, which traffic is counted in")
        self.check_order(order)
        self.stop(seconds)
        self.s.keep_log = 1
        self.s.most_log = most
        cdef int64_t total
        cdef int64_t i
        with nogil:
            total = sc_traffic(&self.s, &order[0], INT64_MAX)
        self.s.keep_log = 0
        self.check(total)
        cdef int64_t[:, ::1] rows = np.empty((self.s.n_log, 5), np.int64)
        for i in range(self.s.n_log):
            rows[i, 0] = self.s.log[4 * i]
            rows[i, 1] = self.s.owner[self.s.log[4 * i + 1]]
            rows[i, 2] = self.s.log[4 * i + 1] - self.s.base[rows[i, 1]]
            rows[i, 3] = self.s.log[4 * i + 2]
            rows[i, 4] = self.s.log[4 * i + 3]
        return np.asarray(rows)

    def improve(self, int32_t[::1] best, int32_t[::1] current, int kind, int64_t peak_cap, int64_t goal,
                int64_t evaluations, int64_t done_before, int64_t total, double heat, uint64_t[::1] random, seconds=None):
        """One slice of the local search; `best`, `current` and `random` are updated in place. Returns the best cost.

        kind: of the height of the arena by rule 0 linear best fit, 1 by size best fit, 2 by size first fit; 3 traffic.
        An order whose peak is above `peak_cap` is refused. TimeoutError where the traffic of `best` or `current` takes
        more than `seconds`; later the slice just ends there.
        """
        cdef int32_t[::1] scratch = np.empty(self.graph.g.n_nodes, np.int32)
        cdef int32_t[::1] place = np.empty(self.graph.g.n_nodes, np.int32)
        cdef int64_t cost, best_cost
        need(0 <= kind <= 2 + self.blocks and random.shape[0] > 0, "a cost that is there, and a state of the generator")
        self.check_order(best)
        self.check_order(current)
        self.stop(seconds)
        with nogil:
            best_cost = sc_cost(&self.s, &best[0], kind, INT64_MAX, &self.offsets[0])
            cost = sc_cost(&self.s, &current[0], kind, INT64_MAX, &self.offsets[0])
            if best_cost >= 0 and cost >= 0:
                best_cost = sc_improve(&self.s, &best[0], kind, peak_cap, goal, evaluations, done_before, total, heat,
                                       &random[0], &current[0], &scratch[0], &place[0], &self.offsets[0], &cost,
                                       best_cost)
        self.check(min(best_cost, cost))
        return best_cost


cdef class Search:
    """A state search that is run in slices; see search.h.

    floor: every peak counts as at least this. upper: states of this peak or more are cut off. max_children: follow only
    so many operators from each state (0: all), after which FULL stands for EXHAUSTED.
    """

    cdef ss_search s
    cdef Graph graph
    cdef bint settles, by_peak, by_level

    def __init__(self, Graph graph, int64_t floor, int64_t upper, uint64_t max_states, bint safe_moves=True,
                 int max_children=0):
        self.graph = graph
        if ss_create(&self.s, &graph.g, floor, upper, max_states, safe_moves, max_children):
            raise MemoryError("operator scheduling: not enough memory for the state search")
        self.settles = safe_moves

    def __dealloc__(self):
        ss_destroy(&self.s)

    def best_first(self, uint64_t max_expanded):
        """Expand up to `max_expanded` states; return RUNNING, SOLVED, EXHAUSTED, FULL or NO_MEMORY."""
        need(not self.by_level, "a search best first from its start")
        self.by_peak = True
        cdef int status
        with nogil:
            status = ss_best_first(&self.s, max_expanded)
        return status

    def levels(self, uint64_t max_expanded, uint64_t max_level_states):
        """The dynamic programme over zero-indegree sets; same return values (FULL: the limit per level was hit).

        Its levels count operators, so it makes no safe moves.
        """
        need(not self.by_peak and not self.settles, "a search by levels from its start, without safe moves")
        self.by_level = True
        cdef int status
        with nogil:
            status = ss_levels(&self.s, max_expanded, max_level_states)
        return status

    @property
    def n_states(self):
        """States held."""
        return self.s.n_states

    @property
    def n_expanded(self):
        """States whose successors have been generated."""
        return self.s.n_expanded

    @property
    def n_generated(self):
        """Successors generated, duplicates included."""
        return self.s.n_generated

    @property
    def level(self):
        """Operators run in the level that is being expanded."""
        return self.s.level

    @property
    def lower_bound(self):
        """Peak that no order can undercut, as far as a best-first run without `upper` has proved."""
        return self.s.heap[0].peak if self.s.n_heap and self.s.heap[0].peak > self.s.key else self.s.key

    @property
    def pruned_peak(self):
        """Smallest peak that `upper` cut off; NEVER if none."""
        return self.s.pruned_peak

    @property
    def goal_peak(self):
        """Peak of the best complete order found, or None."""
        return None if self.s.goal == NO_STATE else self.s.states[self.s.goal].peak

    def order(self):
        """Return the best complete order found (int32[n]), or None."""
        if self.s.goal == NO_STATE:
            return None
        cdef int32_t[::1] order = np.empty(self.graph.g.n_nodes, np.int32)
        cdef uint32_t *steps = <uint32_t *>malloc((<size_t>self.graph.g.n_nodes + 2) * sizeof(uint32_t))
        cdef int32_t count
        if steps == NULL:
            raise MemoryError("operator scheduling: not enough memory")
        count = ss_path(&self.s, self.s.goal, &order[0], steps)
        free(steps)
        if count != self.graph.g.n_nodes:
            raise AssertionError(f"the path has {count} of {self.graph.g.n_nodes} operators")
        return np.asarray(order)
