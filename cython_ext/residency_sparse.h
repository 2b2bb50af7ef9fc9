/* The annealing loop for networks with few connections per neuron; included by residency.h.
 *
 * A source with four targets fills an eighth of a vector, and keeping its lanes and points up to date costs more than
 * looking at the four targets again. So a move here writes the new stages, counts the loads of the sources it touches
 * from scratch, and takes the stages back if it is refused. That leaves time to keep every finish as late as drops and
 * targets allow: a neuron may finish earlier although its sources finish late so far, because they are pulled along. */
#ifndef EDGEWATT_RESIDENCY_SPARSE_H
#define EDGEWATT_RESIDENCY_SPARSE_H

#define EW_FEW 32 /* sources with at most this many targets are counted in local arrays */

/* The loads of source s: the fewest points that pierce the intervals of the targets it is not resident for. */
static inline int32_t ew_sparse_loads(const ew_residency *r, int64_t s) {
    const int32_t *const target = r->out_target + r->out_start[s];
    const int64_t n = r->out_start[s + 1] - r->out_start[s];
    int32_t point = r->item[s] < 0 ? 0 : r->drop_rank[r->item[s]], count = 0;
    if (n > EW_FEW)
        for (;; count++) {
            int32_t least = INT32_MAX;
            for (int64_t k = 0; k < n; k++) {
                const int32_t finish = r->opened[target[k]] > point ? r->finish[target[k]] : INT32_MAX;
                least = finish < least ? finish : least;
            }
            if (least == INT32_MAX) return count;
            point = least;
        }
    int32_t open[EW_FEW], finish[EW_FEW], least = INT32_MAX; /* of the targets left; compacted without branches */
    int64_t left = 0;
    for (int64_t k = 0; k < n; k++) {
        const int32_t a = r->opened[target[k]], f = r->finish[target[k]], later = a > point, end = later ? f : INT32_MAX;
        open[left] = a;
        finish[left] = f;
        left += later;
        least = end < least ? end : least;
    }
    for (; left; count++) {
        const int64_t before = left;
        point = least;
        least = INT32_MAX;
        left = 0;
        for (int64_t k = 0; k < before; k++) {
            const int32_t a = open[k], f = finish[k], later = a > point, end = later ? f : INT32_MAX;
            open[left] = a;
            finish[left] = f;
            left += later;
            least = end < least ? end : least;
        }
    }
    return count;
}

/* The latest stage at which item v may be finished: its drop, and no later than its targets finish. */
static inline int32_t ew_sparse_latest(const ew_residency *r, int64_t v) {
    int32_t latest = r->drop_rank[v];
    if (r->own[v] >= 0)
        for (int64_t k = r->out_start[r->own[v]]; k < r->out_start[r->own[v] + 1]; k++) {
            const int32_t finish = r->finish[r->out_target[k]];
            latest = finish < latest ? finish : latest;
        }
    return latest;
}

static inline int ew_sparse_note(ew_residency *r, int64_t v, int32_t finish) {
    if (r->n_moved == EW_SPREAD || finish < r->opened[v]) return 0;
    r->moved[r->n_moved] = (int32_t)v;
    r->old_finish[r->n_moved++] = r->finish[v];
    r->finish[v] = finish;
    return 1;
}

/* Give item v its latest finish and let the finishes of the sources before it follow. Returns 0 if one of them would
 * finish before it opens, or if too many follow. */
static int ew_sparse_finish(ew_residency *r, int64_t v) {
    const int32_t latest = ew_sparse_latest(r, v);
    if (latest == r->finish[v]) return latest >= r->opened[v];
    int64_t next = r->n_moved;
    if (!ew_sparse_note(r, v, latest)) return 0;
    for (; next < r->n_moved; next++) {
        const int64_t t = r->moved[next];
        const int32_t before = r->old_finish[next], now = r->finish[t];
        for (int32_t e = r->in_start[t]; e < r->in_start[t + 1]; e++) {
            const int64_t u = r->item[r->in_source[e]];
            if (u < 0) continue;
            if (r->finish[u] > now) {
                if (!ew_sparse_note(r, u, now)) return 0;
            } else if (r->finish[u] == before && before < now) { /* t may have been what held u back */
                const int32_t freed = ew_sparse_latest(r, u);
                if (freed != before && !ew_sparse_note(r, u, freed)) return 0;
            }
        }
    }
    return 1;
}

static inline int64_t ew_sparse_cost(const ew_residency *r, int64_t s, int64_t loads) {
    return loads + (loads > 0 && r->item[s] >= 0);
}

/* Put source s on the list of those to count again; return how much its cost can fall at most. */
static inline int64_t ew_sparse_list(ew_residency *r, int64_t s, int64_t *n_listed) {
    if (r->listed[s] == r->move) return 0;
    r->listed[s] = r->move;
    r->list[(*n_listed)++] = (int32_t)s;
    return ew_sparse_cost(r, s, r->n_points[s]) - (r->item[s] < 0); /* an input is loaded once whatever happens */
}

static inline int64_t ew_sparse_list_in(ew_residency *r, int64_t v, int64_t *n_listed) {
    int64_t hope = 0;
    for (int32_t e = r->in_start[v]; e < r->in_start[v + 1]; e++) hope += ew_sparse_list(r, r->in_source[e], n_listed);
    return hope;
}

/* Count the listed sources again, as long as `hope` leaves a chance, and say whether the move is accepted. */
static int ew_sparse_judge(ew_residency *r, int64_t n_listed, int64_t hope, uint32_t random32) {
    const double drawn = random32 * 0x1p-32;
    int64_t delta = 0, limit = 0;
    while (limit + 1 < EW_CHANCES && drawn < r->chance[limit + 1]) limit++;
    for (int64_t k = 0; k < n_listed; k++) {
        const int64_t s = r->list[k], before = ew_sparse_cost(r, s, r->n_points[s]);
        r->first[k] = ew_sparse_loads(r, s);
        delta += ew_sparse_cost(r, s, r->first[k]) - before;
        hope -= before - (r->item[s] < 0);
        r->searches++;
        if (delta - hope > limit) return 0;
    }
    for (int64_t k = 0; k < n_listed; k++) r->n_points[r->list[k]] = r->first[k];
    r->cost += delta;
    return 1;
}

/* Try to exchange opens and/or drops of items v and w. Returns 1 if the move was legal and accepted. */
static int ew_sparse_try(ew_residency *r, int64_t v, int64_t w, int opens, int drops, uint32_t random32) {
    const int32_t a_v = r->opened[v], a_w = r->opened[w], d_v = r->drop_rank[v], d_w = r->drop_rank[w];
    if ((opens ? a_w : a_v) > (drops ? d_w : d_v) || (opens ? a_v : a_w) > (drops ? d_v : d_w)) return 0;
    if (!drops && (a_w > r->finish[v] || a_v > r->finish[w])) return 0;
    if (opens) r->opened[v] = a_w, r->opened[w] = a_v;
    if (drops) r->drop_rank[v] = d_w, r->drop_rank[w] = d_v;
    r->move++;
    r->n_moved = 0;
    if (!drops || (ew_sparse_finish(r, w) && ew_sparse_finish(r, v))) { /* w goes earlier: first */
        int64_t n_listed = 0, hope = 0;
        if (drops) { /* as sources, both get another release */
            if (r->own[v] >= 0) hope += ew_sparse_list(r, r->own[v], &n_listed);
            if (r->own[w] >= 0) hope += ew_sparse_list(r, r->own[w], &n_listed);
        }
        if (opens) hope += ew_sparse_list_in(r, v, &n_listed) + ew_sparse_list_in(r, w, &n_listed);
        for (int64_t k = 0; k < r->n_moved; k++) hope += ew_sparse_list_in(r, r->moved[k], &n_listed);
        r->checks += n_listed;
        if (ew_sparse_judge(r, n_listed, hope, random32)) {
            if (opens) {
                const int32_t rank = r->open_rank[v];
                r->open_rank[v] = r->open_rank[w];
                r->open_rank[w] = rank;
                r->open_at[r->open_rank[v] - 1] = (int32_t)v;
                r->open_at[r->open_rank[w] - 1] = (int32_t)w;
            }
            if (drops) {
                r->drop_at[d_w - 1] = (int32_t)v;
                r->drop_at[d_v - 1] = (int32_t)w;
            }
            return 1;
        }
    }
    while (r->n_moved > 0) { /* latest first: an item may have been moved twice */
        r->n_moved--;
        r->finish[r->moved[r->n_moved]] = r->old_finish[r->n_moved];
    }
    r->opened[v] = a_v;
    r->opened[w] = a_w;
    r->drop_rank[v] = d_v;
    r->drop_rank[w] = d_w;
    return 0;
}

static void ew_sparse_anneal(ew_residency *r, int64_t moves) {
    ew_proposal p;
    for (int64_t k = 0; k < moves; k++)
        if (ew_propose(r, &p)) r->accepted += ew_sparse_try(r, p.v, p.w, p.opens, p.drops, p.random32);
}

/* Recompute everything from the two permutations. */
static void ew_sparse_refresh(ew_residency *r) {
    ew_refresh_32_baseline(r);
    for (int64_t v = 0; v < r->n; v++)
        r->opened[v] = (int32_t)(r->open_rank[v] <= r->slots ? 1 : r->open_rank[v] - r->slots + 1);
}

#endif
