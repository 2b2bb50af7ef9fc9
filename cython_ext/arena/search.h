/* Is there a placement of buffers with fixed lifetimes in `capacity` units? A depth-first search over canonical
   placements, in the spirit of Moffitt, "MiniMalloc" (ASPLOS 2023); data structures and the bound are our own.

   Time falls into sections: the maximal sets of buffers live together, in order. A placement is canonical if every
   buffer rests on the ground or on one that it overlaps. Buffers are placed by ascending offset, each at `least`, the
   highest end of the placed buffers it overlaps. At each node:
   - offsets do not fall, and of equal offsets the ranks do not fall (one sequence per placement);
   - a buffer whose offset is not below the end that another could have at once is not placed yet: the other one would
     fit underneath (of the placements with the least sum of offsets, one is never cut off by this);
   - in every section the buffers that are left need at least the makespan of jobs released at `least`, one after another;
   - where no buffer that is left spans a section border, both sides are searched on their own. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { AR_FOUND = 0, AR_EXHAUSTED = 1, AR_LIMIT = 2, AR_STOPPED = 3, AR_NO_MEMORY = 4 };

#define AR_NEVER INT64_MAX
#define AR_TICK 8192 /* nodes between two looks at the clock */

typedef struct { int64_t old; int32_t what; } ar_change;

typedef struct {
    int32_t n, m;               /* buffers, sections */
    const int64_t *size;        /* buffer -> units */
    const int64_t *top;         /* buffer -> highest offset that its unrounded size allows at this capacity */
    const int32_t *from, *to;   /* buffer -> its sections, half-open */
    const int32_t *near_start, *near;       /* buffer -> buffers it overlaps */
    const int32_t *live_start;
    int32_t *live;              /* section -> its buffers, those of the least offset first when last looked at */
    int64_t capacity;
    /* state */
    int64_t *least, *offset;    /* buffer -> least offset while it is not placed; offset once it is */
    int64_t *floor, *total;     /* section -> no buffer left begins lower; units left */
    int32_t *rank;              /* buffer -> place in the preference */
    const int32_t *fixed_rank;  /* the same, as given */
    int by_load;                /* rank by the fullest section first, again for each part */
    int64_t *load;              /* scratch */
    int32_t *items;             /* buffers; a part under search is a segment */
    int32_t *crossing;          /* border after section s -> buffers left that span it */
    int32_t *stamp, stamp_now;  /* section -> last look */
    int32_t *touched;           /* scratch: sections */
    uint8_t *placed;
    int64_t *best_offset;       /* of parts that are solved */
    ar_change *trail;           /* `least` and `floor` before changes */
    int64_t n_trail, trail_room;
    int64_t nodes, limit;
    int64_t next_capacity;      /* the least capacity at which a pruned node would not have been, AR_NEVER if none */
    int (*tick)(void *);
    void *caller;
    int status;
} ar_search;

/* Note what is about to change; -1 and the status where memory is short. */
static inline int ar_remember(ar_search *q, int32_t what, int64_t old) {
    if (q->n_trail == q->trail_room) {
        ar_change *grown = (ar_change *)realloc(q->trail, (size_t)q->trail_room * 2 * sizeof *grown);
        if (!grown) {
            q->status = AR_NO_MEMORY;
            return -1;
        }
        q->trail = grown;
        q->trail_room *= 2;
    }
    q->trail[q->n_trail].old = old;
    q->trail[q->n_trail++].what = what;
    return 0;
}

static inline void ar_undo(ar_search *q, int64_t mark) {
    while (q->n_trail > mark) {
        ar_change *c = &q->trail[--q->n_trail];
        if (c->what >= 0) q->least[c->what] = c->old;
        else if (c->what < -(1 << 30)) q->rank[c->what - INT32_MIN] = (int32_t)c->old;
        else q->floor[~c->what] = c->old;
    }
}

static inline int ar_too_high(ar_search *q, int64_t needs) {
    if (needs <= q->capacity) return 0;
    if (needs < q->next_capacity) q->next_capacity = needs;
    return 1;
}

/* End of the last job of section s if the buffers left run one after another, each from `least` on (and from `from`).
   The section's buffers are kept in the order of the last call, so that sorting them again takes little. */
static inline int64_t ar_makespan(ar_search *q, int32_t s, int64_t from, int64_t *first) {
    int32_t *a = q->live + q->live_start[s], n = q->live_start[s + 1] - q->live_start[s];
    for (int32_t k = 1; k < n; k++) {
        int32_t j = a[k], i = k;
        int64_t r = q->least[j];
        for (; i > 0 && q->least[a[i - 1]] > r; i--) a[i] = a[i - 1];
        a[i] = j;
    }
    int64_t end = from;
    int none = 1;
    *first = 0;
    for (int32_t k = 0; k < n; k++) {
        int32_t j = a[k];
        if (q->placed[j]) continue;
        int64_t r = q->least[j];
        if (none) *first = r;
        none = 0;
        end = (r > end ? r : end) + q->size[j];
    }
    return none ? 0 : end;
}

/* Place buffer j at its least offset; 0 if what is left may still fit. Undone by ar_undo and ar_unplace. */
static inline int ar_place(ar_search *q, int32_t j) {
    int64_t at = q->least[j], end = at + q->size[j];
    int32_t n_touched = 0, fails = 0;
    q->placed[j] = 1;
    q->offset[j] = at;
    int32_t now = ++q->stamp_now;
    for (int32_t s = q->from[j]; s < q->to[j]; s++) {
        q->total[s] -= q->size[j];
        q->stamp[s] = now;
        q->touched[n_touched++] = s;
    }
    for (int32_t s = q->from[j]; s + 1 < q->to[j]; s++) q->crossing[s]--;
    for (int32_t k = q->near_start[j]; k < q->near_start[j + 1]; k++) {
        int32_t i = q->near[k];
        if (q->placed[i] || q->least[i] >= end) continue;
        if (ar_remember(q, i, q->least[i])) return 1;
        q->least[i] = end;
        if (end > q->top[i]) { /* too high by itself; by less than a unit perhaps */
            int64_t needs = end + q->size[i] > q->capacity ? end + q->size[i] : q->capacity;
            if (needs < q->next_capacity) q->next_capacity = needs;
            fails = 1;
        }
        for (int32_t s = q->from[i]; s < q->to[i]; s++)
            if (q->stamp[s] != now) {
                q->stamp[s] = now;
                q->touched[n_touched++] = s;
            }
    }
    if (fails) return 1;
    for (int32_t k = 0; k < n_touched; k++) {
        int32_t s = q->touched[k];
        if (!q->total[s]) continue;
        int64_t first, needs = ar_makespan(q, s, at, &first);
        if (ar_too_high(q, needs)) return 1;
        if (first > q->floor[s]) {
            if (ar_remember(q, ~s, q->floor[s])) return 1;
            q->floor[s] = first;
        }
    }
    return 0;
}

static inline void ar_unplace(ar_search *q, int32_t j) {
    q->placed[j] = 0;
    for (int32_t s = q->from[j]; s < q->to[j]; s++) q->total[s] += q->size[j];
    for (int32_t s = q->from[j]; s + 1 < q->to[j]; s++) q->crossing[s]++;
}

static int ar_part(ar_search *q, int32_t start, int32_t stop, int32_t first, int32_t last, int64_t at, int32_t rank);

/* Rank the buffers of a part anew: those of the fullest section first, of equals as they are. */
static int ar_rank(ar_search *q, int32_t start, int32_t stop) {
    for (int32_t k = start; k < stop; k++) {
        int32_t i = q->items[k];
        int64_t most = 0;
        for (int32_t s = q->from[i]; s < q->to[i]; s++) most = q->total[s] > most ? q->total[s] : most;
        q->load[i] = most;
        if (ar_remember(q, INT32_MIN + i, q->rank[i])) return -1;
    }
    /* Shell sort: parts are short and the kernel allocates nothing here */
    for (int32_t gap = (stop - start) / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (int32_t k = start + gap; k < stop; k++) {
            int32_t i = q->items[k], h = k;
            for (; h >= start + gap; h -= gap) {
                int32_t o = q->items[h - gap];
                if (q->load[o] > q->load[i] || (q->load[o] == q->load[i] && q->fixed_rank[o] < q->fixed_rank[i])) break;
                q->items[h] = o;
            }
            q->items[h] = i;
        }
    for (int32_t k = start; k < stop; k++) q->rank[q->items[k]] = k - start;
    return 0;
}

/* Search items[start:stop], all within sections [first, last), part by part. */
static int ar_parts(ar_search *q, int32_t start, int32_t stop, int32_t first, int32_t last, int64_t at, int32_t rank) {
    int32_t from = first;
    while (from < last && start < stop) {
        int32_t to = from + 1;
        while (to < last && q->crossing[to - 1] != 0) to++;
        int32_t end = start; /* gather the buffers of [from, to) at the front */
        for (int32_t k = start; k < stop; k++) {
            int32_t i = q->items[k];
            if (q->from[i] >= from && q->from[i] < to) {
                q->items[k] = q->items[end];
                q->items[end++] = i;
            }
        }
        if (end > start) {
            int64_t mark = q->n_trail;
            int status = AR_NO_MEMORY, again = q->by_load && (rank < 0 || from > first || to < last);
            if (!again) status = ar_part(q, start, end, from, to, at, rank);
            else if (!ar_rank(q, start, end)) status = ar_part(q, start, end, from, to, at, -1);
            ar_undo(q, mark);
            if (status != AR_FOUND) return status;
        }
        start = end;
        from = to;
    }
    return AR_FOUND;
}

/* Search what is left when j has been placed: as one part, or as several if borders have become free. */
static int ar_split(ar_search *q, int32_t start, int32_t stop, int32_t first, int32_t last, int32_t j, int64_t at) {
    int cuts = 0;
    for (int32_t s = q->from[j]; s + 1 < q->to[j]; s++) cuts |= q->crossing[s] == 0;
    return (cuts ? ar_parts : ar_part)(q, start, stop, first, last, at, q->rank[j]);
}

static int ar_part(ar_search *q, int32_t start, int32_t stop, int32_t first, int32_t last, int64_t at, int32_t rank) {
    if (start == stop) return AR_FOUND;
    int64_t lowest_end = AR_NEVER;
    for (int32_t k = start; k < stop; k++) {
        int64_t end = q->least[q->items[k]] + q->size[q->items[k]];
        if (end < lowest_end) lowest_end = end;
    }
    int64_t worst = 0;
    for (int32_t s = first; s < last; s++) {
        int64_t needs = (q->floor[s] > at ? q->floor[s] : at) + q->total[s];
        needs = q->total[s] ? needs : 0;
        worst = needs > worst ? needs : worst;
    }
    if (ar_too_high(q, worst)) return AR_EXHAUSTED;
    int64_t least = at;
    for (;;) {
        int32_t where = -1, best_rank = INT32_MAX;
        int64_t best = AR_NEVER;
        for (int32_t k = start; k < stop; k++) {
            int32_t i = q->items[k];
            int64_t o = q->least[i];
            if (o > best || o < least || o >= lowest_end) continue;
            int32_t r = q->rank[i];
            if (o == least && r <= rank) continue;
            if (o < best || r < best_rank) {
                best = o;
                best_rank = r;
                where = k;
            }
        }
        if (where < 0) return AR_EXHAUSTED;
        if (q->nodes >= q->limit) return AR_LIMIT;
        if (++q->nodes % AR_TICK == 0 && q->tick && q->tick(q->caller)) return AR_STOPPED;
        int32_t j = q->items[where];
        q->items[where] = q->items[stop - 1];
        q->items[stop - 1] = j;
        int64_t mark = q->n_trail;
        int status = AR_EXHAUSTED;
        if (!ar_place(q, j)) status = ar_split(q, start, stop - 1, first, last, j, best);
        if (q->status) status = q->status;
        if (status == AR_FOUND) q->best_offset[j] = best;
        ar_undo(q, mark);
        ar_unplace(q, j);
        if (status != AR_EXHAUSTED) return status;
        least = best;
        rank = best_rank;
    }
}

/* Search at q->capacity from the start; the answer is in best_offset. */
static inline int ar_run(ar_search *q) {
    q->nodes = q->n_trail = q->status = q->stamp_now = 0;
    q->next_capacity = AR_NEVER;
    memset(q->floor, 0, (size_t)q->m * sizeof *q->floor);
    memset(q->total, 0, (size_t)q->m * sizeof *q->total);
    memset(q->crossing, 0, (size_t)q->m * sizeof *q->crossing);
    memset(q->stamp, 0, (size_t)q->m * sizeof *q->stamp);
    for (int32_t i = 0; i < q->n; i++) {
        q->least[i] = 0;
        q->placed[i] = 0;
        q->items[i] = i;
        if (q->top[i] < 0) {
            q->next_capacity = q->capacity;
            return AR_EXHAUSTED;
        }
        for (int32_t s = q->from[i]; s < q->to[i]; s++) q->total[s] += q->size[i];
        for (int32_t s = q->from[i]; s + 1 < q->to[i]; s++) q->crossing[s]++;
    }
    return ar_parts(q, 0, q->n, 0, q->m, 0, -1);
}
