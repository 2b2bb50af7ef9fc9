/* What an order of connections costs on a line cache, and what it costs after a piece of it has moved.
 *
 * A step reads its connection (each of the element arrays in turn), its source's row unless the step before used it,
 * and its target's row at the start of a run; it writes that row at the end of the run: the accesses of
 * cython_ext/trace/walk.pyx without their bytes. The cache is set-associative, write-back and write-allocate, with a
 * policy of cache/policy.h that needs no future. Behind it, `open` keeps the row open in each bank of the memory.
 *
 * The state is saved every `every` steps. A change is played from the last state before it until the cache is in a saved
 * state again: what comes after that costs what it did. The open rows are left out of that comparison. Policies other
 * than LRU leave a line in whatever way it came into, so their states seldom meet again: there the same lines, clean and
 * dirty, are enough, and the counts drift from the true ones until the next `oc_start`. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "cache/policy.h"

enum { OC_FILLS, OC_WRITEBACKS, OC_LOADS, OC_STORES, OC_ROWS, OC_COUNTS };
enum { OC_BANKS = 64, OC_ELEMENTS = 4 };

typedef struct {
    int64_t neurons, pitch, row_bytes; /* address of neuron 0's row, from one row to the next, bytes of a row */
    int64_t access_bytes;              /* the widest access */
    int64_t element[OC_ELEMENTS], bits[OC_ELEMENTS]; /* address and bits per connection of each array */
    int n_elements, line_shift, row_shift;
    int64_t sets, ways, banks;
    const int32_t *source, *target; /* [W], by connection */
    int64_t w;
    const edgewatt_policy *policy;
    edgewatt_sets policy_sets; /* what the policy sees; policy_sets.state lies in `state` */
    /* state[0] to state[compared - 1]: held neurons, the line looked up last, a sum over all words, words (2 * line +
     * dirty), ways filled per set, the policy's state of the sets; then rows open in memory, the policy's shared state and generator, which are not compared */
    int64_t *state, *line, *filled, *open;
    int64_t compared, size, shared; /* places; shared: where the policy's shared state begins */
    int32_t held_source, held_target;
    int64_t previous;
    int64_t count[OC_COUNTS];
} oc_cache;

/* Say how many places the state takes, and where what lies (state may still be null). */
static void oc_lay_out(oc_cache *c, int64_t *state) {
    const int64_t lines = c->sets * c->ways, set_places = (c->policy_sets.set_bytes * c->sets + 7) / 8;
    c->compared = 3 + lines + c->sets + set_places;
    c->shared = c->compared + c->banks;
    c->size = c->shared + 1 + (c->policy->shared_bytes + 7) / 8;
    c->state = state;
    if (!state) return;
    c->line = state + 3;
    c->filled = c->line + lines;
    c->policy_sets.state = (uint8_t *)(c->filled + c->sets);
    c->open = state + c->compared;
    c->policy_sets.shared = (uint8_t *)(state + c->shared + 1);
}

static void oc_clear(oc_cache *c) {
    memset(c->state, 0, (size_t)c->size * sizeof *c->state);
    for (int64_t k = 0; k < c->sets * c->ways; k++) c->line[k] = -1;
    for (int64_t k = 0; k < c->banks; k++) c->open[k] = -1;
    c->held_source = c->held_target = -1;
    c->previous = -1;
    memset(c->count, 0, sizeof c->count);
}

static inline void oc_memory(oc_cache *c, int64_t line) {
    const int64_t row = (line << c->line_shift) >> c->row_shift, bank = row % c->banks;
    if (c->open[bank] != row) {
        c->open[bank] = row;
        c->count[OC_ROWS]++;
    }
}

/* `old` leaves (2 * line + dirty, or -1) and `line` comes in. */
static inline void oc_miss(oc_cache *c, int64_t old, int64_t line) {
    c->count[OC_FILLS]++;
    if (old >= 0 && (old & 1)) {
        c->count[OC_WRITEBACKS]++;
        oc_memory(c, old >> 1);
    }
    oc_memory(c, line);
}

static inline void oc_touch(oc_cache *c, int64_t line, int store) {
    const uint64_t set = (uint64_t)line & (uint64_t)(c->sets - 1);
    int64_t *const words = c->line + (int64_t)set * c->ways, ways = c->ways;
    const int repeated = line == c->previous;
    int64_t k = 0;
    c->count[store ? OC_STORES : OC_LOADS]++;
    c->previous = line;
    while (k < ways && words[k] >> 1 != line) k++;
    if (c->policy->flags & EDGEWATT_IN_ORDER) {
        int64_t word = 2 * line;
        if (k < ways)
            word = words[k];
        else
            oc_miss(c, words[--k], line);
        for (; k > 0; k--) words[k] = words[k - 1];
        words[0] = word | store;
        return;
    }
    if (k < ways) {
        words[k] |= store;
        if (c->policy->hit && (!repeated || (c->policy->flags & EDGEWATT_EVERY_LOOKUP)))
            c->policy->hit(&c->policy_sets, set, k, 0);
        return;
    }
    if (c->policy->flags & EDGEWATT_IN_TURN) {
        k = c->filled[set];
        c->filled[set] = k + 1 == ways ? 0 : k + 1;
    } else
        k = c->filled[set] < ways ? c->filled[set]++ : c->policy->victim(&c->policy_sets, set);
    oc_miss(c, words[k], line);
    words[k] = 2 * line + store;
    if (c->policy->fill) c->policy->fill(&c->policy_sets, set, k, 0);
}

static inline void oc_access(oc_cache *c, int64_t address, int64_t bytes, int store) {
    while (bytes > 0) {
        const int64_t now = bytes < c->access_bytes ? bytes : c->access_bytes;
        for (int64_t line = address >> c->line_shift; line <= (address + now - 1) >> c->line_shift; line++)
            oc_touch(c, line, store);
        address += now;
        bytes -= now;
    }
}

/* Step k, connection e; next: the target of the step after it, -1 at the end. */
static inline void oc_step(oc_cache *c, int64_t k, int32_t e, int32_t next) {
    const int32_t s = c->source[e], t = c->target[e];
    for (int i = 0; i < c->n_elements; i++)
        oc_access(c, c->element[i] + ((k * c->bits[i]) >> 3), (c->bits[i] + 7) >> 3, 0);
    if (s != c->held_source) oc_access(c, c->neurons + s * c->pitch, c->row_bytes, 0);
    if (t != c->held_target) oc_access(c, c->neurons + t * c->pitch, c->row_bytes, 0);
    if (next != t) oc_access(c, c->neurons + t * c->pitch, c->row_bytes, 1);
    c->held_source = s;
    c->held_target = next == t ? t : -1;
}

/* The lines still dirty leave. */
static void oc_flush(oc_cache *c) {
    for (int64_t k = 0; k < c->sets * c->ways; k++)
        if (c->line[k] >= 0 && (c->line[k] & 1)) {
            c->count[OC_WRITEBACKS]++;
            oc_memory(c, c->line[k] >> 1);
        }
}

typedef struct {
    oc_cache now;
    int32_t *order, *place; /* [W] connections in order of work, and the inverse */
    int32_t *piece;         /* [W] the changed part of the order */
    int64_t from, to;       /* places it fills */
    int64_t every, n_segments; /* steps per segment */
    int64_t *saved;    /* [n_segments, size] state before each segment */
    int64_t *fresh;    /* [n_segments, size] of the change looked at: from segment `first` + 1 */
    int64_t *counts;   /* [n_segments, OC_COUNTS] of each segment */
    int64_t *changed;  /* [n_segments, OC_COUNTS] of the change looked at: segments first to last */
    int64_t first, last;
    double weight[OC_COUNTS];
    int64_t *stamp, now_stamp; /* [N] */
} oc_search;

static inline int64_t oc_mixed(int64_t word) {
    const uint64_t z = ((uint64_t)word + 1) * 0x9e3779b97f4a7c15u;
    return (int64_t)((z ^ (z >> 29)) * 0xbf58476d1ce4e5b9u >> 1);
}

static void oc_save(oc_cache *c, int64_t *state) {
    uint64_t sum = 0;
    for (int64_t k = 0; k < c->sets * c->ways; k++) sum += (uint64_t)oc_mixed(c->line[k]);
    c->state[2] = (int64_t)sum;
    c->state[0] = ((int64_t)c->held_source << 32) | (uint32_t)c->held_target;
    c->state[1] = c->previous;
    c->state[c->shared] = (int64_t)c->policy_sets.random;
    memcpy(state, c->state, (size_t)c->size * sizeof *state);
}

static void oc_load(oc_cache *c, const int64_t *state) {
    memcpy(c->state, state, (size_t)c->size * sizeof *state);
    c->held_source = (int32_t)(state[0] >> 32);
    c->held_target = (int32_t)(uint32_t)(state[0] & 0xffffffff);
    c->previous = state[1];
    c->policy_sets.random = (uint64_t)state[c->shared];
}

static inline int32_t oc_at(const oc_search *q, int64_t k) {
    return k >= q->from && k < q->to ? q->piece[k - q->from] : q->order[k];
}

static void oc_play_segment(oc_search *q, int64_t segment) {
    oc_cache *const c = &q->now;
    const int64_t start = segment * q->every, end = start + q->every < c->w ? start + q->every : c->w;
    memset(c->count, 0, sizeof c->count);
    int32_t e = oc_at(q, start);
    for (int64_t k = start; k < end; k++) {
        const int32_t following = k + 1 < c->w ? oc_at(q, k + 1) : -1;
        oc_step(c, k, e, following < 0 ? -1 : c->target[following]);
        e = following;
    }
    if (end == c->w) oc_flush(c);
}

/* Play everything and save it. */
static void oc_start(oc_search *q) {
    q->from = q->to = 0;
    oc_clear(&q->now);
    for (int64_t s = 0; s < q->n_segments; s++) {
        oc_save(&q->now, q->saved + s * q->now.size);
        oc_play_segment(q, s);
        memcpy(q->counts + s * OC_COUNTS, q->now.count, sizeof q->now.count);
    }
}

/* Return what the change in place would add to the weighted counts. */
static double oc_evaluate(oc_search *q) {
    const int64_t compared = q->now.policy->flags & EDGEWATT_IN_ORDER ? q->now.compared : 3;
    int64_t s = (q->from ? q->from - 1 : 0) / q->every; /* the step before the change ends a run or does not */
    double difference = 0;
    q->first = s;
    oc_load(&q->now, q->saved + s * q->now.size);
    for (;; s++) {
        oc_play_segment(q, s);
        int64_t *const changed = q->changed + s * OC_COUNTS;
        memcpy(changed, q->now.count, sizeof q->now.count);
        for (int k = 0; k < OC_COUNTS; k++)
            difference += q->weight[k] * (double)(changed[k] - q->counts[s * OC_COUNTS + k]);
        if (s + 1 == q->n_segments) break;
        int64_t *const state = q->fresh + (s + 1) * q->now.size;
        oc_save(&q->now, state);
        if ((s + 1) * q->every >= q->to &&
            !memcmp(state, q->saved + (s + 1) * q->now.size, (size_t)compared * sizeof *state))
            break;
    }
    q->last = s;
    return difference;
}

static void oc_accept(oc_search *q) {
    for (int64_t k = q->from; k < q->to; k++) {
        q->order[k] = q->piece[k - q->from];
        q->place[q->order[k]] = (int32_t)k;
    }
    memcpy(q->counts + q->first * OC_COUNTS, q->changed + q->first * OC_COUNTS,
           (size_t)(q->last + 1 - q->first) * OC_COUNTS * sizeof *q->counts);
    if (q->last > q->first)
        memcpy(q->saved + (q->first + 1) * q->now.size, q->fresh + (q->first + 1) * q->now.size,
               (size_t)((q->last - q->first) * q->now.size) * sizeof *q->saved);
    q->from = q->to = 0;
}

/* Swap positions [i, j) and [j, k); 0 where a neuron finished in the first is used in the second. */
static int oc_swap(oc_search *q, int64_t i, int64_t j, int64_t k) {
    const int64_t mark = ++q->now_stamp;
    const oc_cache *const c = &q->now;
    for (int64_t p = i; p < j; p++) q->stamp[c->target[q->order[p]]] = mark;
    for (int64_t p = j; p < k; p++)
        if (q->stamp[c->source[q->order[p]]] == mark) return 0;
    memcpy(q->piece, q->order + j, (size_t)(k - j) * sizeof *q->piece);
    memcpy(q->piece + (k - j), q->order + i, (size_t)(j - i) * sizeof *q->piece);
    q->from = i;
    q->to = k;
    return 1;
}
