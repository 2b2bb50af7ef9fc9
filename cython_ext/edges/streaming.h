/* A greedy over residency intervals that scores by weights: which source to stream past the open items, which item to
 * open in a free slot (docs/concepts/learned-orders.md).
 *
 * Items (neurons with connections into them) are numbered topologically. At most `slots` are open: resident, their
 * sums unfinished. Streaming a finished source s serves every open item that waits for it. The next one has the highest
 *
 *     score(s) = exp(mult . g(s)) * sum of exp(stream . f(t)) over the open items t that still wait for s,
 *
 * and a free slot goes to the item v with the highest open . h(v). An item may open before all of its sources are
 * finished; it is solid once they are finished or open and solid themselves. All but a few (`early`) of the open ones
 * have to be: so one of them can always go on. Sums are kept up to date as items are served: O(connections left) per
 * item each time these have fallen by a sixteenth. */
#pragma once

#include <math.h>
#include <stdint.h>

enum { EW_STREAM = 9, EW_MULT = 4, EW_OPEN = 12 };
enum { EW_WAITING, EW_OPENED, EW_FINISHED };
#define EW_STEEPEST 300.0 /* exponents of weights are kept below this, so that sums of them are finite */

typedef struct {
    float hot, resident, hot_share, cold_share; /* over the sources of an item; the shares count 1 / connections left */
} ew_heat;

typedef struct {
    int32_t *item;
    double *base, *since; /* the score but for the wait; the time since which it could have been opened */
    int64_t n;
} ew_waiting;

typedef struct {
    int64_t n, n_sources, slots, early, window, widest, credit, now;
    int64_t work; /* connections and list entries gone through, about */
    const int32_t *in_start, *in_source; /* connections by item */
    const int64_t *out_start;
    const int32_t *out_target, *own, *item, *depth;
    const double *log; /* of 0 (unused), 1, 2, ... up to the largest degree */
    double stream[EW_STREAM], mult[EW_MULT], open[EW_OPEN];
    double mean_in, mean_out, log_mean_in, log_mean_out, anchor;
    /* of items */
    int8_t *life, *solid;
    int32_t *remaining, *weighed, *unfinished, *missing, *opened, *place, *left_n;
    ew_heat *warmth;
    double *weight;
    int8_t *stale; /* 1: its score for a free slot is to be taken anew; 2: and it is in `stale_list` */
    /* of connections, by item */
    int8_t *done;
    int32_t *target, *left, *next;
    /* of sources */
    int8_t *available, *resident;
    int32_t *pending, *unserved, *head, *candidate_place, *waiting_n;
    int32_t *waiting; /* [connections], by source: the items that have not opened */
    ew_heat *heat;
    double *sum, *factor;
    /* lists */
    int32_t *open_list, *candidates, *complete, *stale_list;
    ew_waiting ready, early_list;
    double *scores; /* room for those of one list */
    double *value; /* of each candidate: factor times sum */
    int32_t *stack;
    int64_t n_open, n_early, n_candidates, n_complete, n_stale, turn;
    int32_t *opens, *drops;
    int64_t n_opens, n_drops, loads;
    int32_t *events; /* NULL, or every choice: an item that opens, or -1 - (a source that streams) */
    int64_t n_events;
} ew_streaming;

static inline int32_t ew_in_degree(const ew_streaming *r, int64_t v) { return r->in_start[v + 1] - r->in_start[v]; }

static inline double ew_out_degree(const ew_streaming *r, int64_t s) {
    return s >= 0 ? (double)(r->out_start[s + 1] - r->out_start[s]) : 0.0;
}

/* -- lists: an item is in `ready`, in `early_list` or in `open_list`, at `place` ------------------------------------ */

static inline void ew_put_in(int32_t *list, int64_t *n, int32_t *place, int64_t x) {
    place[x] = (int32_t)*n;
    list[(*n)++] = (int32_t)x;
}

static inline void ew_take_out(int32_t *list, int64_t *n, int32_t *place, int64_t x) {
    const int32_t last = list[--*n];
    list[place[x]] = last;
    place[last] = place[x];
    place[x] = -1;
}

static inline ew_waiting *ew_list_of(ew_streaming *r, int64_t v) { return r->missing[v] == 0 ? &r->ready : &r->early_list; }

static inline void ew_stale(ew_streaming *r, int64_t v) {
    if (r->stale[v] == 2) return;
    r->stale[v] = 1;
    if (r->place[v] < 0 || r->place[v] >= r->window) return; /* not looked at for now */
    r->stale[v] = 2;
    r->stale_list[r->n_stale++] = (int32_t)v;
}

static void ew_wait(ew_streaming *r, ew_waiting *list, int64_t v) {
    list->since[list->n] = (double)r->now;
    ew_put_in(list->item, &list->n, r->place, v);
    ew_stale(r, v);
}

static void ew_wait_no_more(ew_streaming *r, ew_waiting *list, int64_t v) {
    const int32_t at = r->place[v];
    list->base[at] = list->base[list->n - 1], list->since[at] = list->since[list->n - 1];
    const int64_t moved = list->item[list->n - 1];
    ew_take_out(list->item, &list->n, r->place, v);
    if (moved != v && r->stale[moved]) ew_stale(r, moved);
}

/* An item beyond the window that gets warmer takes the place of one inside it. */
static inline void ew_bring_in(ew_streaming *r, int64_t v) {
    ew_waiting *const list = ew_list_of(r, v);
    const int32_t at = r->place[v];
    if (at < r->window) return;
    const int64_t to = r->turn++ % r->window;
    const int32_t other = list->item[to];
    const double base = list->base[to], since = list->since[to];
    list->item[to] = (int32_t)v, list->base[to] = list->base[at], list->since[to] = list->since[at];
    list->item[at] = other, list->base[at] = base, list->since[at] = since;
    r->place[v] = (int32_t)to, r->place[other] = at;
    ew_stale(r, v);
}

/* -- warmth ------------------------------------------------------------------------------------------------------- */

static void ew_warm(ew_streaming *r, int64_t s) {
    const int resident = r->resident[s], hot = r->pending[s] > 0;
    const float share = r->unserved[s] > 0 ? 1.0f / (float)r->unserved[s] : 0.0f;
    const ew_heat is = {hot && !resident, resident, hot || resident ? share : 0.0f, hot || resident ? 0.0f : share};
    const ew_heat was = r->heat[s];
    const ew_heat add = {is.hot - was.hot, is.resident - was.resident, is.hot_share - was.hot_share,
                         is.cold_share - was.cold_share};
    if (r->unserved[s] - r->pending[s] > r->widest) return; /* so many targets wait that it tells none from another */
    if (add.hot == 0 && add.resident == 0 && add.hot_share == 0 && add.cold_share == 0) return;
    r->heat[s] = is;
    int32_t *const waiting = r->waiting + r->out_start[s];
    const int warmer = add.hot + add.resident > 0;
    int32_t n = 0;
    r->work += r->waiting_n[s];
    for (int32_t k = 0; k < r->waiting_n[s]; k++) {
        const int32_t t = waiting[k];
        if (r->life[t] != EW_WAITING) continue; /* opened since: it is not looked at again */
        waiting[n++] = t;
        ew_heat *const w = &r->warmth[t];
        w->hot += add.hot, w->resident += add.resident;
        w->hot_share += add.hot_share, w->cold_share += add.cold_share;
        ew_stale(r, t);
        if (warmer && r->place[t] >= r->window) ew_bring_in(r, t);
    }
    r->waiting_n[s] = n;
}

/* -- scores ------------------------------------------------------------------------------------------------------- */

static inline double ew_offset(const ew_streaming *r, int64_t v) {
    return -r->stream[7] * (double)r->opened[v] / (double)r->slots - r->stream[8] * (double)r->depth[v];
}

static inline double ew_weight_of(const ew_streaming *r, int64_t v) {
    const double degree = ew_in_degree(r, v), left = r->remaining[v], *const w = r->stream;
    double x = w[0] * (r->log[r->remaining[v]] - 1.0) + w[1] * left / degree + w[2] * (r->log[ew_in_degree(r, v)] - r->log_mean_in) + w[3] / left;
    if (r->own[v] >= 0) x += w[4] * ew_out_degree(r, r->own[v]) / r->mean_out + w[5];
    x += w[6] * (double)r->unfinished[v] / left;
    x = x > 30.0 ? 30.0 : x < -30.0 ? -30.0 : x;
    x += ew_offset(r, v) - r->anchor;
    return exp(x < -EW_STEEPEST ? -EW_STEEPEST : x > EW_STEEPEST ? EW_STEEPEST : x);
}

static inline void ew_value(ew_streaming *r, int64_t s) {
    if (r->candidate_place[s] >= 0) r->value[r->candidate_place[s]] = r->sum[s] * r->factor[s];
}

static inline void ew_refactor(ew_streaming *r, int64_t s) {
    const int32_t unserved = r->unserved[s], pending = r->pending[s];
    const double *const w = r->mult;
    double x = w[0] * (r->log[unserved] - r->log[pending]) + w[2] * (r->log[unserved] - r->log_mean_out);
    if (r->item[s] >= 0) x += w[1];
    if (unserved == pending) x += w[3];
    r->factor[s] = exp(x > 30.0 ? 30.0 : x < -30.0 ? -30.0 : x);
}

/* Let weights start from a later anchor; sums are taken anew. */
static void ew_anchor(ew_streaming *r, double anchor) {
    r->anchor = anchor;
    for (int64_t k = 0; k < r->n_open; k++) {
        const int64_t v = r->open_list[k];
        for (int32_t e = r->in_start[v]; e < r->in_start[v + 1]; e++)
            if (!r->done[e]) r->sum[r->in_source[e]] = 0.0;
    }
    for (int64_t k = 0; k < r->n_open; k++) {
        const int64_t v = r->open_list[k];
        if (r->remaining[v] > 0) r->weight[v] = ew_weight_of(r, v);
        for (int32_t e = r->in_start[v]; e < r->in_start[v + 1]; e++)
            if (!r->done[e]) r->sum[r->in_source[e]] += r->weight[v];
    }
    for (int64_t k = 0; k < r->n_candidates; k++) ew_value(r, r->candidates[k]);
}

static double ew_open_base(const ew_streaming *r, int64_t v) {
    const double degree = ew_in_degree(r, v), *const w = r->open;
    const ew_heat h = r->warmth[v];
    double x = w[0] * h.hot / degree + w[1] * h.resident / degree + w[2] * h.hot_share + w[3] * h.cold_share;
    x += w[4] * degree / r->mean_in + w[5] * ew_out_degree(r, r->own[v]) / r->mean_out;
    x += w[6] * h.hot / r->mean_in + w[7] * h.resident / r->mean_in;
    if (r->missing[v] > 0) x += w[9] + w[10] * r->missing[v] / degree + w[11] * r->missing[v] / r->mean_in;
    return x;
}

/* -- events ------------------------------------------------------------------------------------------------------- */

static inline void ew_make_candidate(ew_streaming *r, int64_t s) {
    if (r->candidate_place[s] >= 0 || !r->available[s] || r->pending[s] == 0) return;
    ew_put_in(r->candidates, &r->n_candidates, r->candidate_place, s);
    ew_value(r, s);
}

static inline void ew_drop_candidate(ew_streaming *r, int64_t s) {
    const int32_t at = r->candidate_place[s];
    if (at < 0) return;
    r->value[at] = r->value[r->n_candidates - 1];
    ew_take_out(r->candidates, &r->n_candidates, r->candidate_place, s);
}

static void ew_make_ready(ew_streaming *r, int64_t v) {
    if (r->place[v] >= 0) ew_wait_no_more(r, &r->early_list, v);
    ew_wait(r, &r->ready, v);
}

/* All sources of `first` are finished, or open and solid. */
static void ew_settle(ew_streaming *r, int64_t first) {
    int64_t n = 0;
    r->stack[n++] = (int32_t)first;
    r->solid[first] = 1;
    while (n > 0) {
        const int64_t s = r->own[r->stack[--n]];
        if (s < 0) continue;
        for (int64_t k = r->out_start[s]; k < r->out_start[s + 1]; k++) {
            const int32_t t = r->out_target[k];
            if (--r->missing[t] > 0) {
                ew_stale(r, t);
                continue;
            }
            if (r->life[t] == EW_WAITING) ew_make_ready(r, t);
            else if (r->life[t] == EW_OPENED && !r->solid[t]) {
                r->n_early--;
                r->solid[t] = 1;
                r->stack[n++] = t;
            }
        }
    }
}

static void ew_open_item(ew_streaming *r, int64_t v) {
    ew_wait_no_more(r, ew_list_of(r, v), v);
    r->n_early += r->missing[v] > 0;
    if (r->events) r->events[r->n_events++] = (int32_t)v;
    r->life[v] = EW_OPENED;
    r->opened[v] = (int32_t)r->now;
    r->opens[r->n_opens++] = (int32_t)v;
    if (ew_offset(r, v) - r->anchor > EW_STEEPEST / 2) ew_anchor(r, ew_offset(r, v));
    ew_put_in(r->open_list, &r->n_open, r->place, v);
    r->weight[v] = ew_weight_of(r, v);
    r->weighed[v] = r->remaining[v];
    r->work += ew_in_degree(r, v);
    for (int32_t e = r->in_start[v]; e < r->in_start[v + 1]; e++) {
        const int64_t s = r->in_source[e];
        r->next[e] = r->head[s], r->head[s] = e;
        r->pending[s]++;
        r->sum[s] += r->weight[v];
        ew_refactor(r, s);
        if (r->pending[s] == 1) ew_warm(r, s), ew_make_candidate(r, s);
        else ew_value(r, s);
    }
    const int64_t s = r->own[v];
    if (s >= 0) {
        r->resident[s] = 1;
        ew_warm(r, s);
        if (r->early > 0)
            for (int64_t k = r->out_start[s]; k < r->out_start[s + 1]; k++) {
                const int32_t t = r->out_target[k];
                if (r->life[t] != EW_WAITING || r->missing[t] == 0 || r->place[t] >= 0) continue;
                ew_wait(r, &r->early_list, t);
            }
    }
    if (r->missing[v] == 0) ew_settle(r, v);
}

/* Give an open item the weight of what it has left. */
static void ew_reweigh(ew_streaming *r, int64_t v) {
    const double weight = ew_weight_of(r, v), change = weight - r->weight[v];
    int32_t *const left = r->left + r->in_start[v];
    int32_t n = 0;
    r->weight[v] = weight;
    r->weighed[v] = r->remaining[v];
    r->work += r->left_n[v];
    for (int32_t k = 0; k < r->left_n[v]; k++) {
        const int32_t e = left[k];
        if (r->done[e]) continue;
        left[n++] = e;
        r->sum[r->in_source[e]] += change;
        ew_value(r, r->in_source[e]);
    }
    r->left_n[v] = n;
}

/* Process every connection of s into open items. */
static void ew_serve(ew_streaming *r, int64_t s) {
    if (r->pending[s] == 0) return;
    int64_t n_reweigh = 0;
    for (int32_t e = r->head[s]; e >= 0; e = r->next[e]) {
        const int32_t t = r->target[e];
        r->done[e] = 1;
        if (--r->remaining[t] == 0) r->complete[r->n_complete++] = t;
        else if (16 * (int64_t)r->remaining[t] <= 15 * (int64_t)r->weighed[t]) r->stack[n_reweigh++] = t;
    }
    r->credit += 1024 * (int64_t)r->pending[s];
    r->work += r->pending[s];
    r->unserved[s] -= r->pending[s];
    r->pending[s] = 0;
    r->head[s] = -1;
    r->sum[s] = 0.0;
    ew_drop_candidate(r, s);
    ew_warm(r, s);
    for (int64_t k = 0; k < n_reweigh; k++) ew_reweigh(r, r->stack[k]);
}

static void ew_finish_item(ew_streaming *r, int64_t v) {
    const int64_t s = r->own[v];
    ew_take_out(r->open_list, &r->n_open, r->place, v);
    r->life[v] = EW_FINISHED;
    r->drops[r->n_drops++] = (int32_t)v;
    r->now++;
    if (s < 0) return;
    for (int64_t k = r->out_start[s]; k < r->out_start[s + 1]; k++) r->unfinished[r->out_target[k]]--;
    r->available[s] = 1;
    ew_serve(r, s);
    r->resident[s] = 0;
    ew_warm(r, s);
}

/* -- choices ------------------------------------------------------------------------------------------------------ */

/* The item of the highest score in a list, the first of equals; `best` of score `highest` unless one is higher. */
static int64_t ew_best_of(ew_streaming *r, const ew_waiting *list, int64_t best, double *highest) {
    const int64_t n = list->n < r->window ? list->n : r->window;
    r->work += n;
    const double now = (double)r->now, per_slot = 1.0 / (double)r->slots, per_wait = r->open[8];
    double *const scores = r->scores, top[8];
    for (int j = 0; j < 8; j++) top[j] = -HUGE_VAL;
    int64_t k = 0;
    for (; k < n; k++) {
        double wait = (now - list->since[k]) * per_slot;
        wait = wait > 4.0 ? 4.0 : wait;
        scores[k] = list->base[k] + per_wait * wait;
    }
    for (k = 0; k + 8 <= n; k += 8)
        for (int j = 0; j < 8; j++) top[j] = scores[k + j] > top[j] ? scores[k + j] : top[j];
    for (; k < n; k++) top[0] = scores[k] > top[0] ? scores[k] : top[0];
    for (int j = 1; j < 8; j++) top[0] = top[j] > top[0] ? top[j] : top[0];
    if (n == 0 || (best >= 0 && top[0] < *highest)) return best;
    if (best < 0 || top[0] > *highest) best = -1;
    for (k = 0; k < n; k++)
        if (scores[k] == top[0] && (best < 0 || list->item[k] < best)) best = list->item[k];
    *highest = top[0];
    return best;
}

static int64_t ew_choose_open(ew_streaming *r) {
    while (r->n_stale > 0) {
        const int64_t v = r->stale_list[--r->n_stale];
        r->stale[v] = 1;
        if (r->place[v] < 0 || r->life[v] != EW_WAITING) continue;
        ew_list_of(r, v)->base[r->place[v]] = ew_open_base(r, v);
        r->stale[v] = 0;
    }
    double highest = 0.0;
    const int64_t best = ew_best_of(r, &r->ready, -1, &highest);
    return r->n_early < r->early ? ew_best_of(r, &r->early_list, best, &highest) : best;
}

/* The candidate of the highest value; among very many, of as many as the connections served so far pay for. */
static int64_t ew_choose_source(ew_streaming *r) {
    int64_t n = r->n_candidates, from = 0;
    if (n > r->credit && n > 256) {
        n = r->credit > 256 ? r->credit : 256;
        from = r->turn % (r->n_candidates - n + 1);
        r->turn += n;
    }
    r->credit -= n < r->credit ? n : r->credit;
    r->work += n;
    const double *const value = r->value + from;
    double top[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (int j = 0; j < 8; j++) top[j] = value[k + j] > top[j] ? value[k + j] : top[j];
    for (; k < n; k++) top[0] = value[k] > top[0] ? value[k] : top[0];
    for (int j = 1; j < 8; j++) top[0] = top[j] > top[0] ? top[j] : top[0];
    for (k = 0; k + 1 < n && value[k] != top[0]; k++) {}
    return r->candidates[from + k];
}

/* Stream until `loads` sources have been, or `work` more is done. Returns 1 once every item is done with. */
static int ew_streaming_run(ew_streaming *r, int64_t loads, int64_t work) {
    const int64_t until = r->work + work;
    while (r->n_drops < r->n) {
        while (r->ready.n > 0 && r->n_open < r->slots) {
            if (r->work >= until) return 0;
            ew_open_item(r, ew_choose_open(r));
        }
        if (r->loads >= loads || r->work >= until) return 0;
        const int64_t s = ew_choose_source(r);
        if (r->events) r->events[r->n_events++] = (int32_t)(-1 - s);
        ew_serve(r, s);
        r->loads++;
        while (r->n_complete > 0) ew_finish_item(r, r->complete[--r->n_complete]);
    }
    return 1;
}

/* Arrays are zeroed but for heads and places, which are -1. */
static void ew_streaming_begin(ew_streaming *r) {
    r->now = 1;
    for (int64_t v = 0; v < r->n; v++) {
        r->remaining[v] = r->left_n[v] = ew_in_degree(r, v);
        for (int32_t e = r->in_start[v]; e < r->in_start[v + 1]; e++) {
            r->target[e] = (int32_t)v;
            r->left[e] = e;
            r->unfinished[v] += r->item[r->in_source[e]] >= 0;
        }
        r->missing[v] = r->unfinished[v];
    }
    for (int64_t s = 0; s < r->n_sources; s++) {
        r->unserved[s] = r->waiting_n[s] = (int32_t)(r->out_start[s + 1] - r->out_start[s]);
        r->available[s] = r->item[s] < 0;
        for (int64_t k = r->out_start[s]; k < r->out_start[s + 1]; k++) r->waiting[k] = r->out_target[k];
    }
    for (int64_t s = 0; s < r->n_sources; s++) ew_warm(r, s);
    for (int64_t v = 0; v < r->n; v++)
        if (r->missing[v] == 0) ew_make_ready(r, v);
}
