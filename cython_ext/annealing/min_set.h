/* The resident set under MIN in two courses: of the changed order, by slot with its next uses, and of the order before,
 * as marks; and where the two differ. */
#ifndef EDGEWATT_MIN_SET_H
#define EDGEWATT_MIN_SET_H

#include "annealing/recount.h"

typedef struct {
    int64_t start, end; /* labels between which the next use of `neuron` has changed */
    int32_t edge;       /* the connection at `start` */
    int32_t neuron;
} ew_span;

enum { EW_NEW = 1, EW_OLD = 2 };

typedef struct {
    int32_t *victim;          /* [2W] value evicted at an access, or -1 */
    int32_t *moved_victim;    /* [2 * window] */
    uint16_t *in;             /* [N] the sets that hold a value, EW_NEW and EW_OLD */
    int64_t differing;        /* values in which the two sets differ */
    int32_t *only_new;        /* [C + 1] those in the new set alone */
    int32_t *only_new_at;     /* [N] their places there */
    int64_t n_only_new;
    int32_t *member;          /* [C] the new set, by slot; -1: free */
    int32_t *last;            /* [C] the last access, 2 * connection + side */
    int64_t *key;             /* [C] 2 * label + side of the next use; not above the present: unknown as yet */
    int64_t *block_key;       /* at least the highest key of each block of slots */
    int64_t block_shift, n_blocks; /* 2^block_shift slots are a block */
    int32_t *place;           /* [N] slot of a member */
    int32_t *free_slots;      /* [C] */
    int64_t n_free;
    ew_span *spans, *hot;     /* [4 * window]; hot: those begun whose value may be resident */
    int64_t n_spans, n_hot;
    int64_t every;            /* connections between two checkpoints */
    int64_t n_checkpoints;
    int32_t *checkpoint;      /* [W] number of the checkpoint before this connection, or -1 */
    int32_t *hook;            /* [n_checkpoints] the connection it is before, or -1 since that has moved */
    int32_t *saved;           /* [2][n_checkpoints][C][2] members and their last accesses, in two versions */
    int32_t *saved_size;      /* [2][n_checkpoints] */
    uint8_t *version;         /* [n_checkpoints] the valid one */
    int32_t *rewritten;       /* checkpoints of which the current evaluation turned the version */
    int64_t n_rewritten;
    int32_t *unhooked;        /* (connection, checkpoint) pairs of moved connections */
    int64_t n_unhooked;
} ew_min_set;

static inline void ew_put(ew_min_set *s, int32_t x) {
    const int32_t slot = s->free_slots[--s->n_free];
    s->in[x] |= EW_NEW;
    s->place[x] = slot;
    s->member[slot] = x;
    s->key[slot] = INT64_MIN;
}

static inline void ew_take_out(ew_min_set *s, int32_t x) {
    const int32_t slot = s->place[x];
    s->in[x] &= ~EW_NEW;
    s->member[slot] = -1;
    s->key[slot] = INT64_MIN;
    s->free_slots[s->n_free++] = slot;
}

static inline void ew_join_only_new(ew_min_set *s, int32_t x) {
    s->differing++;
    s->only_new[s->only_new_at[x] = (int32_t)s->n_only_new++] = x;
}

static inline void ew_leave_only_new(ew_min_set *s, int32_t x) {
    const int32_t other = s->only_new[--s->n_only_new];
    s->differing--;
    s->only_new[s->only_new_at[other] = s->only_new_at[x]] = other;
}

static inline void ew_new_add(ew_min_set *s, int32_t x) {
    ew_put(s, x);
    if (s->in[x] & EW_OLD)
        s->differing--;
    else
        ew_join_only_new(s, x);
}

static inline void ew_new_drop(ew_min_set *s, int32_t x) {
    ew_take_out(s, x);
    if (s->in[x] & EW_OLD)
        s->differing++;
    else
        ew_leave_only_new(s, x);
}

static inline void ew_old_add(ew_min_set *s, int32_t x) {
    if (s->in[x] & EW_OLD) return;
    s->in[x] |= EW_OLD;
    if (s->in[x] & EW_NEW)
        ew_leave_only_new(s, x);
    else
        s->differing++;
}

static inline void ew_old_drop(ew_min_set *s, int32_t x) {
    if (!(s->in[x] & EW_OLD)) return;
    s->in[x] &= ~EW_OLD;
    if (s->in[x] & EW_NEW)
        ew_join_only_new(s, x);
    else
        s->differing--;
}

/* Note the last access of x and the key of the next one. */
static inline void ew_need_at(ew_min_set *s, int32_t x, int64_t key, int64_t access) {
    const int32_t slot = s->place[x];
    int64_t *highest = &s->block_key[slot >> s->block_shift];
    s->last[slot] = (int32_t)access;
    s->key[slot] = key;
    if (key > *highest) *highest = key;
}

/* Slot of the value whose next use is farthest. */
static int64_t ew_farthest(const ew_counter *c, ew_min_set *s) {
    for (;;) { /* until a block's bound is a key of it */
        int64_t best = 0;
        for (int64_t k = 1; k < s->n_blocks; k++) best = s->block_key[k] > s->block_key[best] ? k : best;
        const int64_t from = best << s->block_shift, end = (best + 1) << s->block_shift;
        const int64_t to = end < c->capacity ? end : c->capacity;
        const int64_t bound = s->block_key[best];
        int64_t slot = from;
        for (int64_t k = from + 1; k < to; k++) slot = s->key[k] > s->key[slot] ? k : slot;
        if (s->key[slot] == bound) return slot;
        s->block_key[best] = s->key[slot];
    }
}

enum { EW_FEW = 24 }; /* as many keys as finding the farthest of a hundred values by blocks looks at */

/* Slot of the value whose next use is farthest, looked for where the sets or next uses differ: that is enough if the new
 * set has a value which the old course has evicted at this connection, since that was the farthest of the old set.
 * -1: not known that way. */
static int64_t ew_farthest_of_few(const ew_min_set *s, const int32_t *old_victim) {
    int known = 0;
    if (s->n_only_new + s->n_hot > EW_FEW) return -1;
    for (int side = 0; side < 2; side++) {
        const int32_t x = old_victim[side];
        int here = x >= 0 && s->in[x] == EW_NEW;
        for (int64_t k = 0; here && k < s->n_hot; k++) here = s->hot[k].neuron != x;
        known |= here;
    }
    if (!known) return -1;
    int64_t slot = s->place[s->only_new[0]];
    for (int64_t k = 1; k < s->n_only_new; k++) {
        const int64_t other = s->place[s->only_new[k]];
        slot = s->key[other] > s->key[slot] ? other : slot;
    }
    for (int64_t k = 0; k < s->n_hot; k++) {
        const int64_t other = s->place[s->hot[k].neuron];
        if (s->in[s->hot[k].neuron] & EW_NEW) slot = s->key[other] > s->key[slot] ? other : slot;
    }
    return slot;
}

static int32_t ew_evict(const ew_counter *c, ew_min_set *s, const int32_t *old_victim) {
    int64_t slot = ew_farthest_of_few(s, old_victim);
    if (slot < 0) slot = ew_farthest(c, s);
    const int32_t x = s->member[slot];
    ew_new_drop(s, x);
    return x;
}

static void ew_new_clear(ew_counter *c, ew_min_set *s) {
    s->n_free = 0;
    for (int64_t slot = c->capacity - 1; slot >= 0; slot--) {
        s->member[slot] = -1;
        s->key[slot] = INT64_MIN;
        s->free_slots[s->n_free++] = (int32_t)slot;
    }
    for (int64_t k = 0; k < s->n_blocks; k++) s->block_key[k] = INT64_MIN;
    s->differing = s->n_only_new = 0;
}

#endif
