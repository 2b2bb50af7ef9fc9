"""Residency-interval annealing: a state of two permutations, searched by the compiled loop of residency.h.

The caller numbers the items (neurons with connections into them) topologically and passes consistent arrays.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from cython_ext.common.checks cimport need

cdef extern from "residency/residency.h" nogil:
    enum: EW_SLACK
    ctypedef struct ew_source:
        pass
    ctypedef struct ew_residency:
        int64_t n, n_sources, slots
        const int32_t *in_start, *in_source, *in_lane, *own, *item
        const int64_t *out_start
        const int32_t *out_target
        int32_t *open_at, *drop_at, *open_rank, *drop_rank, *finish
        void *lane_open, *lane_finish, *points, *lines, *early
        const int32_t *depth
        void *rank_drop, *rank_depth
        double scans
        ew_source *source
        int64_t cost, move
        int32_t *list, *first, *last, *gain
        const void *lane_item
        int64_t *seen
        int32_t *old_end, *new_end
        void *fresh, *by_stage
        int32_t *opened
        uint64_t random[2]
        double share[3]
        double guided
    void ew_residency_tune(ew_residency *, double, int64_t)
    void ew_residency_run(ew_residency *, int, int64_t)
    void ew_residency_refresh(ew_residency *, int)
    void ew_residency_stages(const ew_residency *, int, int32_t *)

cdef int64_t SLICE = 1 << 14  # moves between two looks at Ctrl-C


cdef class _Residency:
    """One state and everything a search over it needs. Memory: 22 bytes per connection, 32 with 32-bit lanes.

    in_lane: None where states are only looked at, for their costs and stages, and not changed.
    """

    cdef ew_residency r
    cdef int bits
    cdef dict arrays

    def __init__(self, const int32_t[::1] in_start, const int32_t[::1] in_source, const int32_t[::1] in_lane or None,
                 const int32_t[::1] own, const int32_t[::1] item, const int32_t[::1] depth,
                 const int64_t[::1] out_start, const int32_t[::1] out_target, int64_t slots, uint64_t seed,
                 bint wide=False):
        cdef uint8_t[::1] view
        cdef int64_t n = own.shape[0], n_sources = item.shape[0], lanes = out_start[n_sources]
        self.bits = 32 if wide or n >= 0xffff else 16
        self.arrays = {"in_start": in_start, "in_source": in_source, "in_lane": in_lane, "own": own,
                       "item": item, "depth": depth, "out_start": out_start, "out_target": out_target}
        self.r.n, self.r.n_sources, self.r.slots = n, n_sources, slots
        self.r.in_start, self.r.in_source = &in_start[0], &in_source[0]
        if in_lane is not None:
            self.r.in_lane = &in_lane[0]
        self.r.own, self.r.item, self.r.depth = &own[0], &item[0], &depth[0]
        self.r.out_start, self.r.out_target = &out_start[0], &out_target[0]
        self.r.open_at, self.r.drop_at = self._int32("open_at", n), self._int32("drop_at", n)
        self.r.open_rank, self.r.drop_rank = self._int32("open_rank", n), self._int32("drop_rank", n)
        self.r.finish, self.r.opened = self._int32("finish", n), self._int32("opened", n)
        self.r.lane_item = self._lanes("lane_item", lanes)
        self.arrays["lane_item"][:lanes] = out_target
        self.r.lane_open, self.r.lane_finish = self._lanes("lane_open", lanes), self._lanes("lane_finish", lanes)
        self.r.rank_drop, self.r.rank_depth = self._lanes("rank_drop", n + 128), self._lanes("rank_depth", n + 128)
        self.r.points, self.r.fresh = self._lanes("points", lanes + n_sources), self._lanes("fresh", lanes)
        self.r.early = self._lanes("early", lanes + n_sources)
        self.r.by_stage = self._lanes("by_stage", n + 2)
        view = self.arrays["lines"] = np.zeros(128 * (n_sources + 1), np.uint8)
        self.r.lines = &view[-<size_t> &view[0] % 64]
        self.r.source = <ew_source *> self._zeros("of_source", (n_sources + 1) * sizeof(ew_source), np.uint8)
        self.r.list, self.r.first = self._int32("list", n_sources), self._int32("first", n_sources)
        self.r.last, self.r.gain = self._int32("last", n_sources), self._int32("gain", n_sources)
        self.r.seen = <int64_t *> self._zeros("seen", n, np.int64)
        self.r.old_end, self.r.new_end = self._int32("old_end", n_sources), self._int32("new_end", n_sources)
        state = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self.r.random[0], self.r.random[1] = int(state[0]) | 1, int(state[1])

    cdef void *_zeros(self, str name, int64_t size, dtype) except NULL:
        array = self.arrays[name] = np.zeros(size, dtype)
        cdef uint8_t[::1] view = array.view(np.uint8)
        return &view[0]

    cdef int32_t *_int32(self, str name, int64_t size) except NULL:
        return <int32_t *> self._zeros(name, size, np.int32)

    cdef void *_lanes(self, str name, int64_t size) except NULL:
        return self._zeros(name, size + EW_SLACK, np.uint32 if self.bits == 32 else np.uint16)

    def set_state(self, const int32_t[::1] opens, const int32_t[::1] drops):
        """Take two permutations of the items, in order of opening and of dropping, and compute everything anew."""
        self.arrays["open_at"][:] = opens
        self.arrays["drop_at"][:] = drops
        ranks = np.arange(1, self.r.n + 1, dtype=np.int32)
        self.arrays["open_rank"][np.asarray(opens)] = ranks
        self.arrays["drop_rank"][np.asarray(drops)] = ranks
        self.refresh()

    def refresh(self):
        """Recompute finishes, points and cost from the permutations; return the cost."""
        with nogil:
            ew_residency_refresh(&self.r, self.bits)
        return self.r.cost

    def state(self):
        """Return (opens, drops), copies of the two permutations."""
        return self.arrays["open_at"].copy(), self.arrays["drop_at"].copy()

    def tune(self, double temperature, int64_t longest, double open_share, double drop_share, double guided=0,
             double scans=0):
        """Set the temperature, the longest distance of a swap and the shares of open and drop swaps (rest: both).

        guided: share of the swaps that bring an item near one it shares a source with. scans: share of the moves
        that compare an item with 128 others at once and swap whole intervals with one of them (body.h); the shares
        before are of the rest.
        """
        self.r.guided, self.r.scans = guided, scans
        self.r.share[0], self.r.share[1], self.r.share[2] = open_share, open_share + drop_share, 1.0
        ew_residency_tune(&self.r, temperature, max(1, min(longest, self.r.n)))

    def run(self, int64_t moves):
        """Propose `moves` moves; return the cost."""
        cdef int64_t done = 0, now
        need(self.r.in_lane != NULL, "annealing needs lanes")
        while done < moves:
            now = min(SLICE, moves - done)
            with nogil:
                ew_residency_run(&self.r, self.bits, now)
            done += now
            PyErr_CheckSignals()
        return self.r.cost

    def cost_of(self, state):
        """Take a state (an object with `opens` and `drops`) and return its cost."""
        self.set_state(state.opens, state.drops)
        return self.r.cost

    @property
    def cost(self):
        """Loads of sources plus writes of spilled hidden values."""
        return self.r.cost

    @property
    def slots(self):
        """P, items resident at once."""
        return self.r.slots

    @property
    def intervals(self):
        """(A, F, D) of every item: int64 stages from 1."""
        rank = self.arrays["open_rank"].astype(np.int64)
        return (np.maximum(1, rank - self.r.slots + 1), self.arrays["finish"].astype(np.int64),
                self.arrays["drop_rank"].astype(np.int64))

    def stages(self):
        """Return int32[edges], the stage of every connection, by source, within it by item: as late as its points
        allow.

        As of the last refresh.
        """
        result = np.empty(self.arrays["in_source"].shape[0], np.int32)
        cdef int32_t[::1] stage = result
        if stage.shape[0]:
            with nogil:
                ew_residency_stages(&self.r, self.bits, &stage[0])
        return result
