/* Iterated local search for the order of one stride: Or-opt, 2-opt and segment exchange over neighbour lists, with kicks.
 * Pairs inside a piece laid out anew keep their cost except at bases, so a move is priced by its joints and the bases it
 * covers. Where there are vectors, cdr/lanes.h rules out only moves that would not be taken. */
#pragma once

#include "cdr/lanes.h"
#include "cdr/stride.h"
#include "common/random.h"

enum { CDR_LIGHT = 8 };

typedef struct {
    int from, to, reversed; /* old slots, from <= to */
} cdr_piece;

typedef struct {
    const cdr_stride *s;
    int *tour, *slot; /* tour[0..n+1]; slot[tuple] */
    int *near_in;     /* [n][CDR_NEAR]: cheapest predecessors */
    int *near_out;    /* [n][CDR_NEAR]: cheapest successors */
    uint8_t *price_in, *price_out; /* of each of them, inside a block */
    int *light;       /* cheapest bases */
    int *stack, *scratch, *best;
    int *dirty; /* slots touched since the last accepted tour */
    uint8_t *waiting, *touched;
    int depth, n_near, n_light, n_dirty;
    const cdr_level *level; /* NULL: no vectors here */
    cdr_slots slots;
    int64_t cost;
    uint64_t random;
} cdr_search;

static inline int cdr_below(uint64_t *state, int limit) {
    return (int)(((ew_splitmix64(state) >> 32) * (uint64_t)limit) >> 32);
}
static inline int cdr_at(const cdr_search *q, int slot, int a, int b) {
    return cdr_cost(q->s, q->s->slot_class[slot], a, b);
}
/* What slot k costs more than it would inside a block, for the pair (a, b). */
static inline int cdr_extra(const cdr_search *q, int k, int a, int b) {
    return cdr_at(q, k, a, b) - cdr_cost(q->s, 0, a, b);
}

static int cdr_delta(const cdr_search *q, int lo, const cdr_piece *pieces, int count) {
    const int *t = q->tour, *special = q->s->next_special;
    int delta = 0, at = lo, before = t[lo - 1];
    for (int p = 0; p < count; p++) {
        const int from = pieces[p].from, to = pieces[p].to, length = to - from;
        const int first = pieces[p].reversed ? t[to] : t[from];
        delta += cdr_at(q, at, before, first) - cdr_at(q, from, t[from - 1], t[from]);
        before = pieces[p].reversed ? t[from] : t[to];
        if (at != from || pieces[p].reversed) {
            for (int k = special[at + 1]; k <= at + length; k = special[k + 1]) {
                int o = pieces[p].reversed ? to - (k - at) : from + (k - at);
                delta += pieces[p].reversed ? cdr_extra(q, k, t[o + 1], t[o]) : cdr_extra(q, k, t[o - 1], t[o]);
            }
            for (int k = special[from + 1]; k <= to; k = special[k + 1]) delta -= cdr_extra(q, k, t[k - 1], t[k]);
        }
        at += length + 1;
    }
    return delta + cdr_at(q, at, before, t[at]) - cdr_at(q, at, t[at - 1], t[at]);
}

static inline void cdr_wake(cdr_search *q, int tuple) {
    if (tuple < q->s->n && !q->waiting[tuple]) {
        q->waiting[tuple] = 1;
        q->stack[q->depth++] = tuple;
    }
}

/* Slots from..to hold other tuples than before. */
static void cdr_changed(cdr_search *q, int from, int to) {
    if (!q->level) return;
    for (int k = from; k <= to; k++) cdr_put(&q->slots, q->s, k, q->tour[k]);
    q->level->refresh(&q->slots, from, to + 1);
}

static void cdr_apply(cdr_search *q, int lo, const cdr_piece *pieces, int count, int delta) {
    int at = lo;
    for (int p = 0; p < count; p++) {
        const int from = pieces[p].from, to = pieces[p].to;
        if (at != from || pieces[p].reversed)
            for (int k = 0; k <= to - from; k++) q->scratch[at + k] = q->tour[pieces[p].reversed ? to - k : from + k];
        at += to - from + 1;
        cdr_wake(q, q->tour[from - 1]);
        cdr_wake(q, q->tour[from]);
        cdr_wake(q, q->tour[to]);
        cdr_wake(q, q->tour[to + 1]);
    }
    at = lo;
    int changed = lo; /* slots from here to `at` are not refreshed yet: one run of vectors for pieces side by side */
    for (int p = 0; p < count; p++) {
        const int end = at + pieces[p].to - pieces[p].from;
        if (at != pieces[p].from || pieces[p].reversed) {
            for (int k = at; k <= end; k++) {
                q->tour[k] = q->scratch[k];
                q->slot[q->tour[k]] = k;
                if (!q->touched[k]) q->touched[k] = 1, q->dirty[q->n_dirty++] = k;
            }
        } else {
            if (changed < at) cdr_changed(q, changed, at - 1);
            changed = end + 1;
        }
        at = end + 1;
    }
    if (changed < at) cdr_changed(q, changed, at - 1);
    q->cost += delta;
}

static inline int cdr_try(cdr_search *q, int lo, const cdr_piece *pieces, int count) {
    int delta = cdr_delta(q, lo, pieces, count);
    if (delta >= 0) return 0;
    cdr_apply(q, lo, pieces, count, delta);
    return 1;
}

/* Exchange the segments [i, i + a) and [j, j + b), i + a <= j, each reversed or not; what lies between shifts. */
static int cdr_exchange(cdr_search *q, int i, int a, int reverse_a, int j, int b, int reverse_b) {
    if (i < 1 || i + a > j || j + b - 1 > q->s->n || (a != b && j - i > CDR_REACH)) return 0;
    cdr_piece pieces[3];
    int count = 0;
    if (b) pieces[count++] = (cdr_piece){j, j + b - 1, reverse_b};
    if (i + a < j) pieces[count++] = (cdr_piece){i + a, j - 1, 0};
    if (a) pieces[count++] = (cdr_piece){i, i + a - 1, reverse_a};
    return count && cdr_try(q, i, pieces, count);
}

/* Put tuple a, in slot j, right before tuple b, in slot i, with l - 1 more tuples, and give up the pair now ending in b:
 * 0, 1: the segment that ends with a goes into the gap before b, or changes places with the l tuples there;
 * 2, 3: the segment that starts with b goes behind a, or changes places with the l tuples there;
 * 4, 5: as 0 and 1, the segment that starts with a, reversed. Returns 1 after an improvement. */
static int cdr_move_before(cdr_search *q, int i, int j, int l, int move) {
    const int n = q->s->n, reversed = move > 3;
    if (move == 2 || move == 3) {
        const int k = move == 3 ? l : 0;
        if (i + l - 1 > n || (j >= i && j <= i + l - 1)) return 0;
        return j > i ? cdr_exchange(q, i, l, 0, j + 1, k, 0) : cdr_exchange(q, j + 1, k, 0, i, l, 0);
    }
    const int from = reversed ? j : j - l + 1, k = move % 4 == 1 ? l : 0;
    if (from < 1 || from + l - 1 > n || (from <= i && from + l - 1 >= i)) return 0;
    return from > i ? cdr_exchange(q, i - k, k, 0, from, l, reversed) : cdr_exchange(q, from, l, reversed, i - k, k, 0);
}

/* The mirror image: put tuple a right behind tuple b and give up the pair that starts with b. */
static int cdr_move_behind(cdr_search *q, int i, int j, int l, int move) {
    const int n = q->s->n, reversed = move > 3;
    if (move == 2 || move == 3) {
        const int from = i - l + 1, k = move == 3 ? l : 0;
        if (from < 1 || (j >= from && j <= i)) return 0;
        return j > i ? cdr_exchange(q, from, l, 0, j - k, k, 0) : cdr_exchange(q, j - k, k, 0, from, l, 0);
    }
    const int from = reversed ? j - l + 1 : j, k = move % 4 == 1 ? l : 0;
    if (from < 1 || from + l - 1 > n || (from <= i && from + l - 1 >= i)) return 0;
    return from > i ? cdr_exchange(q, i + 1, k, 0, from, l, reversed) : cdr_exchange(q, from, l, reversed, i + 1, k, 0);
}

static int cdr_join(cdr_search *q, int a, int b, int before) {
    const int symmetric = q->s->symmetric, i = q->slot[b], j = q->slot[a];
    if (symmetric) {
        const int low = (j < i ? j : i) + !before, high = (j < i ? i : j) - before;
        cdr_piece turn = {low, high, 1};
        if (low < high && high - low < CDR_REACH && cdr_try(q, low, &turn, 1)) return 1;
    }
    const uint64_t worth = q->level ? q->level->moves(&q->slots, i, j, before, symmetric) : ~(uint64_t)0;
    uint64_t lengths = worth | worth >> 32;
    lengths |= lengths >> 16;
    lengths = (lengths | lengths >> 8) & 255;
    for (; lengths; lengths &= lengths - 1) {
        const int l = __builtin_ctzll(lengths) + 1;
        uint64_t moves = worth >> (l - 1) & (l > 1 && symmetric ? 0x010101010101 : 0x01010101);
        for (; moves; moves &= moves - 1)
            if ((before ? cdr_move_before : cdr_move_behind)(q, i, j, l, __builtin_ctzll(moves) >> 3)) return 1;
    }
    return 0;
}

static int cdr_improve(cdr_search *q, int b) {
    const cdr_stride *s = q->s;
    int i = q->slot[b], now = cdr_at(q, i, q->tour[i - 1], b);
    for (int k = 0; k < q->n_near; k++) {
        const int a = q->near_in[(int64_t)b * CDR_NEAR + k];
        if (q->price_in[(int64_t)b * CDR_NEAR + k] >= now) break;
        if (q->tour[i - 1] != a && cdr_join(q, a, b, 1)) return 1;
    }
    if (i < s->n || s->slot_class[i + 1] != CDR_OPEN) now = cdr_at(q, i + 1, b, q->tour[i + 1]);
    for (int k = 0; k < q->n_near && i < s->n; k++) {
        const int a = q->near_out[(int64_t)b * CDR_NEAR + k];
        if (q->price_out[(int64_t)b * CDR_NEAR + k] >= now) break;
        if (q->tour[i + 1] != a && cdr_join(q, a, b, 0)) return 1;
    }
    if (s->slot_class[i]) /* b is a base: a lighter tuple may do better */
        for (int k = 0; k < q->n_light; k++) {
            int a = q->light[k], j = q->slot[a];
            if (a == b) continue;
            if (i < j ? cdr_exchange(q, i, 1, 0, j, 1, 0) : cdr_exchange(q, j, 1, 0, i, 1, 0)) return 1;
            if (i < j ? cdr_exchange(q, i, 0, 0, j, 1, 0) : cdr_exchange(q, j, 1, 0, i, 0, 0)) return 1;
        }
    return 0;
}

static void cdr_descend(cdr_search *q) {
    while (q->depth) {
        int b = q->stack[--q->depth];
        q->waiting[b] = 0;
        while (cdr_improve(q, b)) {
        }
    }
}

/* Swap two neighbouring segments of random length (a local double bridge). */
static void cdr_kick(cdr_search *q) {
    const int n = q->s->n;
    int span = n - 1 < 12 ? n - 1 : 12;
    int length = 2 + cdr_below(&q->random, span); /* 2 .. span + 1 <= n */
    int first = 1 + cdr_below(&q->random, n - length + 1);
    int middle = first + cdr_below(&q->random, length - 1);
    cdr_piece pieces[2] = {{middle + 1, first + length - 1, 0}, {first, middle, 0}};
    int delta = cdr_delta(q, first, pieces, 2);
    cdr_apply(q, first, pieces, 2, delta);
}

/* The `keep` cheapest candidates of each tuple, ties to the lower number: insertion into a short sorted list. */
static void cdr_neighbours(const cdr_search *q, int *near, uint8_t *price, int keep, int as_successors) {
    enum { AT_ONCE = 64 };
    const cdr_stride *s = q->s;
    uint8_t costs[AT_ONCE];
    for (int b = 0; b < s->n; b++) {
        int cost[CDR_NEAR], held = 0, *list = near + (int64_t)b * CDR_NEAR;
        for (int start = 0; start < s->n; start += AT_ONCE) {
            const int count = s->n - start < AT_ONCE ? s->n - start : AT_ONCE;
            uint8_t least = 255;
            cdr_row(q->level, s, 0, b, !as_successors, start, count, costs);
            for (int a = 0; a < count; a++) least = costs[a] < least ? costs[a] : least;
            if (held == keep && least >= cost[held - 1]) continue;
            for (int a = 0; a < count; a++) {
                const int c = costs[a];
                if ((held == keep && c >= cost[held - 1]) || start + a == b) continue;
                int k = held < keep ? held++ : held - 1;
                for (; k > 0 && cost[k - 1] > c; k--) cost[k] = cost[k - 1], list[k] = list[k - 1];
                cost[k] = c;
                list[k] = start + a;
            }
        }
        for (int k = 0; k < held; k++) price[(int64_t)b * CDR_NEAR + k] = (uint8_t)cost[k];
    }
}

static void cdr_lightest(const cdr_stride *s, int *light, int keep) {
    int cost[CDR_LIGHT], held = 0, base = 0;
    for (int i = 1; i <= s->n; i++)
        if (s->slot_class[i]) base = s->slot_class[i];
    for (int a = 0; a < s->n && keep; a++) {
        int c = cdr_cost(s, base, a, a);
        if (held == keep && c >= cost[held - 1]) continue;
        int k = held < keep ? held++ : held - 1;
        for (; k > 0 && cost[k - 1] > c; k--) cost[k] = cost[k - 1], light[k] = light[k - 1];
        cost[k] = c;
        light[k] = a;
    }
}

static void cdr_search_close(cdr_search *q) {
    free(q->tour);
    if (q->level) free(q->slots.memory);
}

/* Starts from `tour` (slots 1..n, tuples), or, NULL, from a greedy order that takes lonely tuples early. One allocation holds
 * everything but the slots of the vectors. */
static int cdr_search_open(cdr_search *q, const cdr_stride *s, const int *tour, uint64_t seed) {
    const int64_t n = s->n, ints = 4 * (n + 2) + 2 * n + CDR_LIGHT + n * CDR_NEAR * (s->symmetric ? 1 : 2),
                  bytes = 2 * n + 2 + n * CDR_NEAR * (s->symmetric ? 1 : 2);
    memset(q, 0, sizeof *q);
    q->s = s;
    q->level = cdr_choose();
    q->tour = malloc(sizeof(int) * (size_t)ints + (size_t)bytes);
    if (!q->tour) return -1;
    if (q->level && cdr_slots_open(&q->slots, s)) return free(q->tour), -1;
    q->scratch = q->tour + n + 2;
    q->best = q->scratch + n + 2;
    q->dirty = q->best + n + 2;
    q->slot = q->dirty + n + 2;
    q->stack = q->slot + n;
    q->light = q->stack + n;
    q->near_in = q->light + CDR_LIGHT;
    q->near_out = s->symmetric ? q->near_in : q->near_in + n * CDR_NEAR;
    q->waiting = (uint8_t *)(q->tour + ints);
    q->touched = q->waiting + n;
    q->price_in = q->touched + n + 2;
    q->price_out = s->symmetric ? q->price_in : q->price_in + n * CDR_NEAR;
    memset(q->waiting, 0, (size_t)(2 * n + 2));
    q->random = seed;
    q->n_near = n - 1 < CDR_NEAR ? (int)n - 1 : CDR_NEAR;
    q->n_light = n < CDR_LIGHT ? (int)n : CDR_LIGHT;
    cdr_neighbours(q, q->near_in, q->price_in, q->n_near, 0);
    if (!s->symmetric) cdr_neighbours(q, q->near_out, q->price_out, q->n_near, 1);
    cdr_lightest(s, q->light, q->n_light);
    if (tour) {
        q->tour[0] = q->tour[n + 1] = (int)n;
        memcpy(q->tour + 1, tour + 1, sizeof(int) * (size_t)n);
    } else {
        int *const lonely = q->best;
        for (int b = 0; b < n; b++) {
            lonely[b] = 0;
            for (int k = 0; k < q->n_near; k++) lonely[b] += cdr_compute(s, 0, q->near_in[(int64_t)b * CDR_NEAR + k], b);
        }
        if (cdr_greedy(s, q->tour, q->scratch, lonely)) return cdr_search_close(q), -1;
    }
    for (int i = 1; i <= n; i++) q->slot[q->tour[i]] = i;
    if (q->level) {
        cdr_put(&q->slots, s, 0, n);
        cdr_put(&q->slots, s, (int)n + 1, n);
        cdr_changed(q, 1, (int)n);
    }
    q->cost = cdr_total(s, q->tour);
    for (int i = (int)n; i >= 1; i--) cdr_wake(q, q->tour[i]);
    cdr_descend(q);
    memcpy(q->best, q->tour, sizeof(int) * (size_t)(n + 2));
    while (q->n_dirty) q->touched[q->dirty[--q->n_dirty]] = 0;
    return 0;
}

/* Take back what was done since the last accepted tour. */
static void cdr_undo(cdr_search *q) {
    int low = q->s->n + 1, high = 0;
    for (int d = 0; d < q->n_dirty; d++) {
        const int k = q->dirty[d];
        q->tour[k] = q->best[k];
        q->slot[q->tour[k]] = k;
        if (q->level) cdr_put(&q->slots, q->s, k, q->tour[k]);
        if (k < low) low = k;
        if (k > high) high = k;
    }
    if (!q->level) return;
    if (high - low < CDR_LANES * q->n_dirty)
        q->level->refresh(&q->slots, low, high + 1);
    else
        for (int d = 0; d < q->n_dirty; d++) q->level->refresh(&q->slots, q->dirty[d], q->dirty[d] + 1);
}

/* `kicks` rounds of kick, descend, keep if no worse. Afterwards q->tour is the best order and q->cost its cost. */
static void cdr_search_run(cdr_search *q, int64_t kicks) {
    if (q->s->n < 3) return;
    for (int64_t k = 0; k < kicks; k++) {
        const int64_t before = q->cost;
        cdr_kick(q);
        cdr_descend(q);
        if (q->cost <= before)
            for (int d = 0; d < q->n_dirty; d++) q->best[q->dirty[d]] = q->tour[q->dirty[d]];
        else
            cdr_undo(q), q->cost = before;
        while (q->n_dirty) q->touched[q->dirty[--q->n_dirty]] = 0;
    }
}
