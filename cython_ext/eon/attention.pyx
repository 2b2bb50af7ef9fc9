"""EON's attention over many frontiers and caches, and its gradient.

One world at a time and none wider than its frontier, so nothing is padded and what one needs stays in the cache.
`reorder/eon/policy.py` says what is computed; attention.h how.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from cython_ext.common.checks cimport need

cdef extern from "eon/attention.h" nogil:
    ctypedef struct ew_attention:
        int64_t d, lanes, capacity, seen, empty
        const float *edge, *query, *key, *value, *node, *offer, *offer_bias, *sentinel, *weight, *bias
        float *d_edge, *d_query, *d_key, *d_value, *d_node, *d_offer, *d_offer_bias, *d_sentinel, *d_weight
        float *d_bias, *q, *k, *v, *x, *h, *dx, *dh, *kt, *vt, *a, *da, *ot, *l, *scale, *looks, *wide
        int32_t *best
    void forward "EDGEWATT_FOR_LEVEL(ew_forward, ew_simd_level())"(
        ew_attention *, const int32_t *, int64_t, const int32_t *, int64_t, float *, float *)
    void learn "EDGEWATT_FOR_LEVEL(ew_learn, ew_simd_level())"(
        ew_attention *, const int32_t *, int64_t, const int32_t *, int64_t, const float *, const float *, const float *)


cdef class Attention:
    """The tables of one set of parameters.

    edge, query, key, value: float32[W, d] of connections; node: float32[N, d] of neurons; offer, offer_bias: float32[N
    + 1, d] and [N + 1], the last of an empty cache; sentinel, weight, bias (of the normalisation): float32[d]. Worlds
    are frontier: int32[B, F] connections, of which the first size: int64[B] >= 1 count, and cache: int32[B, C] neurons,
    -1 from where it is empty on.
    """

    cdef ew_attention w
    cdef list held, scratch
    cdef int64_t n_edges, n_nodes

    def __init__(self, const float[:, ::1] edge, const float[:, ::1] query, const float[:, ::1] key,
                 const float[:, ::1] value, const float[:, ::1] node, const float[:, ::1] offer,
                 const float[::1] offer_bias, const float[::1] sentinel, const float[::1] weight,
                 const float[::1] bias):
        cdef int64_t d = edge.shape[1]
        self.n_edges, self.n_nodes = edge.shape[0], node.shape[0]
        need(d >= 1 and self.n_edges >= 1 and self.n_nodes >= 1, "a network and a width of at least 1")
        need(query.shape[0] == self.n_edges and key.shape[0] == self.n_edges and value.shape[0] == self.n_edges,
             "query, key and value have a row a connection")
        need(query.shape[1] == d and key.shape[1] == d and value.shape[1] == d and node.shape[1] == d
             and offer.shape[1] == d, "all tables are as wide as edge")
        need(offer.shape[0] == self.n_nodes + 1 and offer_bias.shape[0] == self.n_nodes + 1,
             "offer and offer_bias have a row a neuron and one more")
        need(sentinel.shape[0] == d and weight.shape[0] == d and bias.shape[0] == d,
             "sentinel, weight and bias are as wide as edge")
        self.held = [edge, query, key, value, node, offer, offer_bias, sentinel, weight, bias]
        self.w.d, self.w.lanes, self.w.empty = d, (d + 15) // 16 * 16, self.n_nodes
        self.w.edge, self.w.query, self.w.key, self.w.value = &edge[0, 0], &query[0, 0], &key[0, 0], &value[0, 0]
        self.w.node, self.w.offer, self.w.offer_bias = &node[0, 0], &offer[0, 0], &offer_bias[0]
        self.w.sentinel, self.w.weight, self.w.bias = &sentinel[0], &weight[0], &bias[0]

    cdef object _check(self, const int32_t[:, ::1] frontier, const int64_t[::1] size, const int32_t[:, ::1] cache):
        """Check the worlds, make scratch for the widest and return how many neurons each cache holds."""
        cdef int64_t b, j, widest = 1, rows, n = self.w.lanes
        cached = np.zeros(size.shape[0], np.int64)
        cdef int64_t[::1] of = cached
        need(frontier.shape[0] == size.shape[0] and cache.shape[0] == size.shape[0], "a frontier, size and cache a world")
        for b in range(size.shape[0]):
            need(1 <= size[b] <= frontier.shape[1], "sizes are from 1 to the width of the frontiers")
            widest = max(widest, size[b])
            for j in range(size[b]):
                need(0 <= frontier[b, j] < self.n_edges, "frontiers hold connections")
            while of[b] < cache.shape[1] and cache[b, of[b]] >= 0:
                need(cache[b, of[b]] < self.n_nodes, "caches hold neurons")
                of[b] += 1
        self.w.capacity, self.w.seen = cache.shape[1], (cache.shape[1] + 2 + 15) // 16 * 16
        rows = (widest + 15) // 16 * 16
        sizes = [rows * n] * 9 + [rows * rows] * 2
        sizes += [n * self.w.seen, rows * self.w.seen, rows, rows + self.w.capacity, 4 * n]
        self.scratch = [np.zeros(each, np.float32) for each in sizes] + [np.zeros(rows, np.int32)]
        self.w.q, self.w.k, self.w.v = self._at(0), self._at(1), self._at(2)
        self.w.x, self.w.h, self.w.dx, self.w.dh = self._at(3), self._at(4), self._at(5), self._at(6)
        self.w.kt, self.w.vt, self.w.a, self.w.da = self._at(7), self._at(8), self._at(9), self._at(10)
        self.w.ot, self.w.l, self.w.scale, self.w.looks = self._at(11), self._at(12), self._at(13), self._at(14)
        self.w.wide = self._at(15)
        cdef int32_t[::1] best = self.scratch[16]
        self.w.best = &best[0]
        return cached

    cdef float *_at(self, int number):
        cdef float[::1] array = self.scratch[number]
        return &array[0]

    def forward(self, const int32_t[:, ::1] frontier, const int64_t[::1] size, const int32_t[:, ::1] cache, float nothing):
        """Return float32[B, F] logits, `nothing` beyond each size, and float32[B, d] summaries."""
        cdef int64_t b
        cdef const int64_t[::1] cached = self._check(frontier, size, cache)
        logits = np.full((frontier.shape[0], frontier.shape[1]), nothing, np.float32)
        summary = np.empty((frontier.shape[0], self.w.d), np.float32)
        cdef float[:, ::1] logits_view = logits, summary_view = summary
        with nogil:
            for b in range(size.shape[0]):
                forward(&self.w, &frontier[b, 0], size[b], &cache[b, 0], cached[b], &logits_view[b, 0],
                        &summary_view[b, 0])
        return logits, summary

    def learn(self, const int32_t[:, ::1] frontier, const int64_t[::1] size, const int32_t[:, ::1] cache,
              const float[:, ::1] d_logits, const float[:, ::1] d_summary):
        """Return the gradients of the ten tables, in the order of `__init__`, from those of what `forward` returns."""
        cdef int64_t b
        cdef const int64_t[::1] cached = self._check(frontier, size, cache)
        need(d_logits.shape[0] == size.shape[0] and d_summary.shape[0] == size.shape[0], "a row of gradients a world")
        need(d_logits.shape[1] >= frontier.shape[1] and d_summary.shape[1] == self.w.d,
             "gradients are as wide as what forward returns")
        made = [np.zeros(np.shape(table), np.float32) for table in self.held]
        cdef float[:, ::1] edge = made[0], query = made[1], key = made[2], value = made[3], node = made[4]
        cdef float[:, ::1] offer = made[5]
        cdef float[::1] offer_bias = made[6], sentinel = made[7], weight = made[8], bias = made[9]
        cdef float[::1] logit = np.empty(frontier.shape[1], np.float32), summary = np.empty(self.w.d, np.float32)
        self.w.d_edge, self.w.d_query, self.w.d_key = &edge[0, 0], &query[0, 0], &key[0, 0]
        self.w.d_value, self.w.d_node, self.w.d_offer = &value[0, 0], &node[0, 0], &offer[0, 0]
        self.w.d_offer_bias, self.w.d_sentinel = &offer_bias[0], &sentinel[0]
        self.w.d_weight, self.w.d_bias = &weight[0], &bias[0]
        with nogil:
            for b in range(size.shape[0]):
                forward(&self.w, &frontier[b, 0], size[b], &cache[b, 0], cached[b], &logit[0], &summary[0])
                learn(&self.w, &frontier[b, 0], size[b], &cache[b, 0], cached[b], &d_logits[b, 0], &summary[0],
                      &d_summary[b, 0])
        return made
