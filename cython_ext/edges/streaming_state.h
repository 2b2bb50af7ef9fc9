/* The state of the weighted greedy over residency intervals (streaming.h), and its lists of items. */
#ifndef EDGEWATT_STREAMING_STATE_H
#define EDGEWATT_STREAMING_STATE_H

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

#endif
