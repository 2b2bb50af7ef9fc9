/* The exchange of two items' opens and/or drops, in place, and the way back; included by residency.h.
 *
 * Finishes follow. F[v] is the latest stage at which the sum of v may be finished: its drop, and no later than any of
 * its targets finishes (a later finish never costs more). An item that finishes earlier pulls its sources along, one
 * that finishes later may let them go. */
#ifndef EDGEWATT_EXCHANGE_H
#define EDGEWATT_EXCHANGE_H

static inline int32_t ew_latest(const ew_residency *r, int64_t v) {
    int32_t latest = r->drop_rank[v];
    if (r->own[v] >= 0)
        for (int64_t k = r->out_start[r->own[v]]; k < r->out_start[r->own[v] + 1]; k++) {
            const int32_t finish = r->finish[r->out_target[k]];
            latest = finish < latest ? finish : latest;
        }
    return latest;
}

static inline int ew_note(ew_residency *r, int64_t v, int32_t finish) {
    if (r->n_moved == EW_SPREAD || finish < r->opened[v]) return 0;
    r->moved[r->n_moved] = (int32_t)v;
    r->old_finish[r->n_moved++] = r->finish[v];
    r->finish[v] = finish;
    return 1;
}

/* Give item v its latest finish and let the finishes of the sources before it follow. Returns 0 if one of them would
 * finish before it opens, or if too many follow. */
static int ew_finish(ew_residency *r, int64_t v) {
    const int32_t latest = ew_latest(r, v);
    if (latest == r->finish[v]) return latest >= r->opened[v];
    int64_t next = r->n_moved;
    if (!ew_note(r, v, latest)) return 0;
    for (; next < r->n_moved; next++) {
        const int64_t t = r->moved[next];
        const int32_t before = r->old_finish[next], now = r->finish[t];
        for (int32_t e = r->in_start[t]; e < r->in_start[t + 1]; e++) {
            const int64_t u = r->item[r->in_source[e]];
            if (u < 0) continue;
            if (r->finish[u] > now) {
                if (!ew_note(r, u, now)) return 0;
            } else if (r->finish[u] == before && before < now) { /* t may have been what held u back */
                const int32_t freed = ew_latest(r, u);
                if (freed != before && !ew_note(r, u, freed)) return 0;
            }
        }
    }
    return 1;
}

static inline void ew_swap(int32_t *a, int32_t *b) {
    const int32_t c = *a;
    *a = *b;
    *b = c;
}

static inline void ew_swap_drops(ew_residency *r, int64_t v, int64_t w) {
    ew_swap(&r->drop_rank[v], &r->drop_rank[w]);
    if (r->own[v] >= 0) r->source[r->own[v]].release = r->drop_rank[v];
    if (r->own[w] >= 0) r->source[r->own[w]].release = r->drop_rank[w];
}

static inline void ew_put_back(ew_residency *r, const ew_proposal *p) {
    while (r->n_moved > 0) { /* latest first: an item may have been moved twice */
        r->n_moved--;
        r->finish[r->moved[r->n_moved]] = r->old_finish[r->n_moved];
    }
    if (p->opens) ew_swap(&r->opened[p->v], &r->opened[p->w]);
    if (p->drops) ew_swap_drops(r, p->v, p->w);
}

/* Whether no item of a proposal would end before it opens, but for finishes that follow. */
static inline int ew_may_put(const ew_residency *r, const ew_proposal *p) {
    const int64_t v = p->v, w = p->w;
    const int32_t a_v = r->opened[p->opens ? w : v], a_w = r->opened[p->opens ? v : w];
    return p->drops ? a_v <= r->drop_rank[w] && a_w <= r->drop_rank[v] : a_v <= r->finish[v] && a_w <= r->finish[w];
}

/* Put the stages of a proposal in place: `opened`, `drop_rank`, `finish`, with the finishes before in `old_finish`.
 * Returns 0, with nothing changed, if it is not legal. */
static int ew_put(ew_residency *r, const ew_proposal *p) {
    const int64_t v = p->v, w = p->w;
    if (!ew_may_put(r, p)) return 0;
    r->move++;
    r->n_moved = 0;
    if (p->opens) ew_swap(&r->opened[v], &r->opened[w]);
    if (!p->drops) return 1;
    ew_swap_drops(r, v, w);
    if (ew_finish(r, w) && ew_finish(r, v)) return 1; /* w goes earlier: first */
    ew_put_back(r, p);
    return 0;
}

/* Let the ranks follow the stages of an accepted proposal. */
static inline void ew_keep_ranks(ew_residency *r, const ew_proposal *p) {
    if (p->opens) {
        ew_swap(&r->open_rank[p->v], &r->open_rank[p->w]);
        r->open_at[r->open_rank[p->v] - 1] = (int32_t)p->v;
        r->open_at[r->open_rank[p->w] - 1] = (int32_t)p->w;
    }
    if (p->drops) {
        r->drop_at[r->drop_rank[p->v] - 1] = (int32_t)p->v;
        r->drop_at[r->drop_rank[p->w] - 1] = (int32_t)p->w;
    }
    r->accepted++;
}

#endif
