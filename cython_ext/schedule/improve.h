/* Local search over topological orders for the costs of cost.h, and random topological orders. */
#ifndef EDGEWATT_SCHEDULE_IMPROVE_H
#define EDGEWATT_SCHEDULE_IMPROVE_H

#include "common/random.h"
#include "schedule/cost.h"

static inline int64_t sc_below(uint64_t *state, int64_t n) { return (int64_t)(ew_splitmix64(state) % (uint64_t)n); }

static inline int64_t sc_cost(sc_scratch *s, const int32_t *order, int kind, int64_t peak_cap, int64_t *offsets) {
    if (peak_cap < SC_NEVER && sc_footprint(s, order, NULL, NULL) > peak_cap) return SC_NEVER;
    switch (kind) {
    case SC_LINEAR: return sc_arena_linear(s, order, NULL);
    case SC_SIZE_BEST: return sc_arena_by_size(s, order, 1, offsets);
    case SC_SIZE_FIRST: return sc_arena_by_size(s, order, 0, offsets);
    default: return sc_traffic(s, order, SC_NEVER);
    }
}

/* Annealing over topological orders: move one operator (or a run of them) within the window its neighbours leave.
 * Work units are evaluations. `order` ends as the best order seen; its cost is returned (-1: out of memory).
 * Accepts a worse order when it costs at most `slack` more, slack shrinking linearly from `heat` x cost to 0. */
static inline int64_t sc_improve(sc_scratch *s, int32_t *order, int kind, int64_t peak_cap, int64_t goal,
                                 int64_t evaluations, int64_t done_before, int64_t total, double heat,
                                 uint64_t *random, int32_t *current, int32_t *scratch, int32_t *place,
                                 int64_t *offsets, int64_t *current_cost, int64_t best) {
    const sg_graph *g = s->g;
    int32_t n = g->n_nodes;
    for (int64_t it = 0; it < evaluations && best > goal; it++) {
        for (int32_t i = 0; i < n; i++) place[current[i]] = i;
        int32_t low = 0, high = 0, from = 0, length = 1, tries = 0;
        for (; tries < 64; tries++) {
            from = (int32_t)sc_below(random, n);
            length = 1 + (int32_t)sc_below(random, sc_below(random, 2) ? 1 : 4);
            if (from + length > n) continue;
            low = 0;
            high = n - length;
            for (int32_t k = from; k < from + length; k++) {
                int32_t v = current[k];
                for (int32_t i = g->before_start[v]; i < g->before_start[v + 1]; i++) {
                    int32_t p = place[g->before[i]];
                    if (p < from && p + 1 > low) low = p + 1;
                }
                for (int32_t i = g->after_start[v]; i < g->after_start[v + 1]; i++) {
                    int32_t p = place[g->after[i]];
                    if (p >= from + length && p - length < high) high = p - length;
                }
            }
            if (high > low) break;
        }
        if (high <= low) return best; /* a chain: there is one order only */
        int32_t to = low + (int32_t)sc_below(random, high - low);
        if (to >= from) to++;
        memcpy(scratch, current, (size_t)n * 4);
        if (to < from) {
            memmove(scratch + to + length, current + to, (size_t)(from - to) * 4);
        } else {
            memmove(scratch + from, current + from + length, (size_t)(to - from) * 4);
        }
        memcpy(scratch + to, current + from, (size_t)length * 4);
        int64_t cost = sc_cost(s, scratch, kind, peak_cap, offsets);
        if (cost == SC_LATE) return best;
        if (cost < 0) return -1;
        if (cost == SC_NEVER) continue;
        double left = 1.0 - (double)(done_before + it) / (double)total;
        int64_t slack = (int64_t)(heat * left * (double)*current_cost * (double)(ew_splitmix64(random) >> 11) * 0x1p-53);
        if (cost - *current_cost <= slack) {
            memcpy(current, scratch, (size_t)n * 4);
            *current_cost = cost;
        }
        if (cost < best) {
            best = cost;
            memcpy(order, scratch, (size_t)n * 4);
        }
    }
    return best;
}

/* One random topological order: uniform among the ready operators at every step. */
static inline void sc_random_order(const sg_graph *g, sg_point *p, uint64_t *random, int32_t *order) {
    sg_point_start(g, p);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        int32_t k = (int32_t)sc_below(random, p->n_ready);
        order[i] = p->ready[k];
        sg_run(g, p, k);
    }
}

#endif
