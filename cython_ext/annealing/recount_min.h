/* MIN: I/Os of a changed order from those of the order before it (the frame is that of recount.h).
 *
 * MIN's state is the set of resident values with a later use (dead ones count as free slots). The course of a changed
 * order can differ only at changed places and while a value is resident whose next use has changed, which can only be
 * between a moved access's predecessor (of the same neuron) and its old or new place. From where that begins, the new
 * course is played beside the old one, of which each access's victim is on record, until both hold the same set and no
 * such value is resident. The state to start with comes from a checkpoint before it. */
#pragma once

#include "annealing/recount.h"

/* ---- the resident set in two courses: of the changed order, by slot with its next uses, and of the order before, as
 * marks; and where the two differ -------------------------------------------------------------------------------- */

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

/* ---- the record ------------------------------------------------------------------------------------------------ */

static inline void ew_min_record(ew_counter *c, ew_min_set *s, const ew_order *o, int64_t access, uint8_t flags,
                                 int32_t victim) {
    if (c->flags[access] == flags && s->victim[access] == victim) return;
    ew_change *j = &c->journal[c->n_journal++];
    j->access = access;
    j->flags = c->flags[access];
    j->victim = s->victim[access];
    if ((j->flags ^ flags) & EW_MISS) ew_charge(c, o, access, flags & EW_MISS ? 1 : -1);
    c->flags[access] = flags;
    s->victim[access] = victim;
}

static void ew_min_restore(ew_counter *c, ew_min_set *s, const ew_order *o) {
    for (int64_t k = c->n_journal - 1; k >= 0; k--) s->victim[c->journal[k].access] = c->journal[k].victim;
    ew_restore(c, o);
    for (; s->n_rewritten; s->n_rewritten--) s->version[s->rewritten[s->n_rewritten - 1]] ^= 1;
    for (; s->n_unhooked; s->n_unhooked -= 2) {
        const int32_t e = s->unhooked[s->n_unhooked - 2], number = s->unhooked[s->n_unhooked - 1];
        s->checkpoint[e] = number;
        s->hook[number] = e;
    }
}

/* ---- places in the order --------------------------------------------------------------------------------------- */

/* First entry of edges[from, to) whose label is at least `label`; looked for around `near`, in [from, to]. */
static int64_t ew_lower_bound(const ew_order *o, const int32_t *edges, int64_t from, int64_t to, int64_t near,
                              int64_t label) {
    int64_t step = 1;
    if (near < to && o->edges[edges[near]].label < label) {
        for (from = near + 1; from + step <= to && o->edges[edges[from + step - 1]].label < label; step *= 2)
            from += step;
        if (from + step <= to) to = from + step - 1;
    } else {
        for (to = near; to - step >= from && o->edges[edges[to - step]].label >= label; step *= 2) to -= step;
        if (to - step >= from) from = to - step + 1;
    }
    while (from < to) {
        const int64_t middle = (from + to) / 2;
        if (o->edges[edges[middle]].label < label)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Key of the first access of x at or after `label`; there is one. */
static int64_t ew_key_from(const ew_order *o, int32_t x, int64_t label) {
    const int64_t in = o->in_start[x], in_end = o->in_start[x + 1], out = o->out_start[x], out_end = o->out_start[x + 1];
    const int64_t k = ew_lower_bound(o, o->in_edges, in, in_end, (in + in_end) / 2, label);
    if (k < in_end) return 2 * o->edges[o->in_edges[k]].label + 1;
    return 2 * o->edges[o->out_edges[ew_lower_bound(o, o->out_edges, out, out_end, (out + out_end) / 2, label)]].label;
}

/* Last connection of x before `label`, or the sentinel; looked for around the place `near` in the list of this side. */
static int32_t ew_before(const ew_order *o, int32_t x, int64_t label, int side, int64_t near) {
    const int64_t out = o->out_start[x], in = o->in_start[x], in_end = o->in_start[x + 1];
    int64_t k = ew_lower_bound(o, o->out_edges, out, o->out_start[x + 1], side ? out : near, label);
    if (k > out) return o->out_edges[k - 1];
    k = ew_lower_bound(o, o->in_edges, in, in_end, side ? near : in_end, label);
    return k > in ? o->in_edges[k - 1] : (int32_t)o->w;
}

/* ---- checkpoints ---------------------------------------------------------------------------------------------- */

static inline int32_t *ew_saved(const ew_counter *c, const ew_min_set *s, int32_t number, int version) {
    return s->saved + (version * s->n_checkpoints + number) * 2 * c->capacity;
}

static void ew_save(ew_counter *c, ew_min_set *s, int32_t number) {
    const int version = s->version[number] ^= 1;
    int32_t *saved = ew_saved(c, s, number, version), n = 0;
    for (int64_t slot = 0; slot < c->capacity; slot++) {
        saved[2 * n] = s->member[slot];
        saved[2 * n + 1] = s->last[slot];
        n += s->member[slot] >= 0;
    }
    s->saved_size[version * s->n_checkpoints + number] = n;
    s->rewritten[s->n_rewritten++] = number;
}

/* Play what is on record for connection e into the new set only. */
static inline void ew_min_follow(const ew_counter *c, ew_min_set *s, const ew_order *o, int32_t e) {
    const int64_t at = 2 * (int64_t)e;
    const int32_t x[2] = {o->links[e].source, o->links[e].target};
    for (int side = 0; side < 2; side++) {
        if (s->victim[at + side] >= 0) ew_take_out(s, s->victim[at + side]);
        if (c->flags[at + side] & EW_MISS) ew_put(s, x[side]);
    }
    for (int side = 0; side < 2; side++)
        if (c->flags[at + side] & EW_DEAD)
            ew_take_out(s, x[side]);
        else
            s->last[s->place[x[side]]] = (int32_t)(at + side);
}

/* Number of the last checkpoint before connection e, or -1. Connections are numbered almost along the order. */
static int64_t ew_checkpoint_before(const ew_min_set *s, const ew_order *o, int32_t e) {
    const int64_t label = o->edges[e].label, near = e / s->every;
    int64_t found = -1;
    for (int64_t k = near; k < s->n_checkpoints; k++) {
        if (s->hook[k] < 0) continue;
        if (o->edges[s->hook[k]].label >= label) break;
        found = k;
    }
    for (int64_t k = near - 1; found < 0 && k >= 0; k--)
        if (s->hook[k] >= 0 && o->edges[s->hook[k]].label < label) found = k;
    return found;
}

/* Fill both sets with the state before connection e and before what was moved away from before it: there the courses
 * agree. (So a checkpoint at e itself is of no use.) */
static void ew_min_begin(ew_counter *c, ew_min_set *s, const ew_order *o, int32_t e) {
    const int64_t number = ew_checkpoint_before(s, o, e);
    int32_t p = ew_first(o);
    ew_new_clear(c, s);
    if (number >= 0) {
        const int version = s->version[number];
        const int32_t *saved = ew_saved(c, s, (int32_t)number, version);
        for (int32_t k = 0; k < s->saved_size[version * s->n_checkpoints + number]; k++) {
            ew_put(s, saved[2 * k]);
            s->last[s->place[saved[2 * k]]] = saved[2 * k + 1];
        }
        p = s->hook[number];
    }
    for (; p != e; p = o->links[p].next) {
        ew_min_follow(c, s, o, p);
        c->played++; /* two light accesses count as one */
    }
    const int64_t label = o->edges[e].label;
    for (int64_t slot = 0; slot < c->capacity; slot++) {
        const int32_t x = s->member[slot];
        if (x < 0) continue;
        s->in[x] = EW_NEW | EW_OLD;
        /* Moves may have put another access between the noted last one and e. */
        const ew_edge *last = &o->edges[s->last[slot] >> 1];
        int64_t key = last->key[s->last[slot] & 1];
        if (last->label >= label || key < 2 * label) key = ew_key_from(o, x, label);
        ew_need_at(s, x, key, s->last[slot]);
    }
}

/* ---- playing a span ------------------------------------------------------------------------------------------- */

static inline void ew_min_old(ew_min_set *s, int32_t a, int32_t b, const uint8_t *flags, const int32_t *victim) {
    if (victim[0] >= 0) ew_old_drop(s, victim[0]);
    if (flags[0] & EW_MISS) ew_old_add(s, a);
    if (victim[1] >= 0) ew_old_drop(s, victim[1]);
    if (flags[1] & EW_MISS) ew_old_add(s, b);
    if (flags[0] & EW_DEAD) ew_old_drop(s, a);
    if (flags[1] & EW_DEAD) ew_old_drop(s, b);
}

/* Whether a value with a changed next use is resident at `label`. */
static inline int ew_any_hot(ew_min_set *s, int64_t label) {
    while (s->n_hot) {
        const ew_span *last = &s->hot[s->n_hot - 1];
        if (last->end >= label && s->in[last->neuron] & EW_NEW) return 1;
        s->n_hot--; /* over for good: its neuron is not accessed before the span's end, which is a place of its own */
    }
    return 0;
}

/* old_victim: [2] what the old course has evicted at this connection, or -1. */
static inline int32_t ew_min_load(const ew_counter *c, ew_min_set *s, int32_t x, uint8_t *flags,
                                  const int32_t *old_victim) {
    if (s->in[x] & EW_NEW) return -1;
    const int32_t victim = s->n_free ? -1 : ew_evict(c, s, old_victim);
    *flags |= EW_MISS;
    ew_new_add(s, x);
    return victim;
}

static inline void ew_min_keep(ew_min_set *s, int32_t x, int64_t key, int64_t access, uint8_t *flags) {
    if (key == INT64_MIN) {
        *flags |= EW_DEAD;
        ew_new_drop(s, x);
    } else
        ew_need_at(s, x, key, access);
}

/* Let the old course pass the old places before `label`. */
static void ew_min_pass_old(ew_counter *c, ew_min_set *s, const ew_order *o, int64_t label) {
    for (; c->n_old < o->n_moves; c->n_old++) {
        const ew_move *m = ew_by_old_place(o, c->n_old);
        if (m->label > label) return;
        ew_min_old(s, o->links[m->edge].source, o->links[m->edge].target, c->moved_flags + 2 * c->n_old,
                   s->moved_victim + 2 * c->n_old);
    }
}

/* Let neither set hold anything after a change was given up at connection e of a segment that began at `begin`: what the
 * old one holds alone was accessed in between, or evicted from the new one there. */
static void ew_min_forget(const ew_counter *c, ew_min_set *s, const ew_order *o, int32_t begin, int32_t e) {
    for (int32_t p = begin;; p = o->links[p].next) {
        const int32_t *victim = s->victim + 2 * (int64_t)p;
        s->in[o->links[p].source] = s->in[o->links[p].target] = 0;
        for (int side = 0; side < 2; side++)
            if (victim[side] >= 0) s->in[victim[side]] = 0;
        if (p == e) break;
    }
    for (int64_t k = 0; k < c->n_old; k++) {
        const ew_link *link = &o->links[ew_by_old_place(o, k)->edge];
        s->in[link->source] = s->in[link->target] = 0;
    }
}

/* Play from connection e, a point or the begin of the k-th span, on; k moves past all spans that begin before the end.
 * Return where the courses agree again, or where the change was given up. */
static int32_t ew_min_segment(ew_counter *c, ew_min_set *s, const ew_order *o, int32_t e, int64_t *k) {
    const int32_t begin = e;
    ew_min_begin(c, s, o, e);
    s->n_hot = 0;
    for (; e != o->w; e = o->links[e].next) {
        const ew_edge *edge = &o->edges[e];
        const int64_t label = edge->label, at = 2 * (int64_t)e;
        const int hot = ew_any_hot(s, label);
        int wanted = o->mark[e] & EW_POINT;
        for (; *k < s->n_spans && s->spans[*k].start <= label; ++*k) {
            wanted = 1;
            s->hot[s->n_hot++] = s->spans[*k];
        }
        ew_min_pass_old(c, s, o, label);
        if (!wanted && !hot && s->differing == 0) break;
        if (s->checkpoint[e] >= 0) ew_save(c, s, s->checkpoint[e]);
        const int32_t a = o->links[e].source, b = o->links[e].target;
        c->played += 2;
        if (edge->key[0] != INT64_MIN && edge->key[1] != INT64_MIN && !(o->mark[e] & EW_MOVED) && !c->flags[at] &&
            !c->flags[at + 1] && s->in[a] == (EW_NEW | EW_OLD) && s->in[b] == (EW_NEW | EW_OLD)) {
            ew_need_at(s, a, edge->key[0], at); /* two hits in both courses */
            ew_need_at(s, b, edge->key[1], at + 1);
            continue;
        }
        int32_t victim[2], old_victim[2] = {-1, -1};
        uint8_t flags[2] = {0, 0};
        if (!(o->mark[e] & EW_MOVED)) {
            ew_min_old(s, a, b, c->flags + at, s->victim + at);
            memcpy(old_victim, s->victim + at, sizeof old_victim);
        }
        victim[0] = ew_min_load(c, s, a, flags, old_victim);
        victim[1] = ew_min_load(c, s, b, flags + 1, old_victim); /* a's key is not above the present yet: a is pinned */
        ew_min_keep(s, a, edge->key[0], at, flags);
        ew_min_keep(s, b, edge->key[1], at + 1, flags + 1);
        ew_min_record(c, s, o, at, flags[0], victim[0]);
        ew_min_record(c, s, o, at + 1, flags[1], victim[1]);
        if (c->total > c->most) {
            c->given_up = 1;
            ew_min_forget(c, s, o, begin, e);
            break;
        }
    }
    if (e == o->w) ew_min_pass_old(c, s, o, INT64_MAX); /* at the end every value is dead in both */
    for (int64_t slot = 0; slot < c->capacity; slot++)
        if (s->member[slot] >= 0) s->in[s->member[slot]] = 0;
    return e;
}

static void ew_add_span(ew_min_set *s, const ew_order *o, int32_t x, int32_t edge, int64_t end) {
    if (edge == o->w) return;
    ew_span *span = &s->spans[s->n_spans++];
    span->edge = edge;
    span->neuron = x;
    span->start = o->edges[edge].label;
    span->end = end;
}

/* Whether access (e, x) was inserted where x was resident anyway: its next access hit in the old course, which had no
 * moved access in between. A nearer next use changes nothing then. */
static int ew_min_harmless(const ew_counter *c, const ew_order *o, int32_t e, int side) {
    const int32_t x = side ? o->links[e].target : o->links[e].source;
    const int64_t k = (side ? o->edges[e].in_index : o->edges[e].out_index) + 1;
    int32_t follower;
    int follower_side = side;
    if (side && k == o->in_start[x + 1]) {
        if (o->out_start[x + 1] == o->out_start[x]) return 0;
        follower = o->out_edges[o->out_start[x]];
        follower_side = 0;
    } else if (side)
        follower = o->in_edges[k];
    else if (k < o->out_start[x + 1])
        follower = o->out_edges[k];
    else
        return 0;
    if (o->mark[follower] & EW_MOVED || c->flags[2 * (int64_t)follower + follower_side] & EW_MISS) return 0;
    return !o->left || o->edges[follower].label < ew_by_old_place(o, 0)->label;
}

static void ew_min_find_spans(const ew_counter *c, ew_min_set *s, const ew_order *o) {
    s->n_spans = 0;
    for (int64_t k = 0; k < o->n_moves; k++) {
        const ew_move *m = ew_by_old_place(o, k);
        const int32_t e = m->edge;
        const ew_edge *edge = &o->edges[e];
        memcpy(s->moved_victim + 2 * k, s->victim + 2 * (int64_t)e, 2 * sizeof *s->victim);
        for (int side = 0; side < 2; side++) {
            const int32_t x = side ? o->links[e].target : o->links[e].source;
            const int64_t place = side ? edge->in_index : edge->out_index;
            ew_add_span(s, o, x, ew_before(o, x, m->label, side, side == o->left ? m->index : place), m->label);
            if (ew_min_harmless(c, o, e, side)) continue;
            int before_side = side;
            ew_add_span(s, o, x, ew_access_before(o, x, place, &before_side), edge->label);
        }
        if (s->checkpoint[e] >= 0) {
            s->unhooked[s->n_unhooked++] = e;
            s->unhooked[s->n_unhooked++] = s->checkpoint[e];
            s->hook[s->checkpoint[e]] = -1;
            s->checkpoint[e] = -1;
        }
    }
    for (int64_t step = s->n_spans / 2; step > 0; step /= 2) /* shell sort by start */
        for (int64_t k = step; k < s->n_spans; k++) {
            const ew_span span = s->spans[k];
            int64_t at = k;
            for (; at >= step && s->spans[at - step].start > span.start; at -= step) s->spans[at] = s->spans[at - step];
            s->spans[at] = span;
        }
}

/* Set checkpoints anew along the whole order, from the records. */
static void ew_min_checkpoints(ew_counter *c, ew_min_set *s, const ew_order *o) {
    int64_t k = 0, number = 0;
    ew_new_clear(c, s);
    memset(s->hook, -1, (size_t)s->n_checkpoints * sizeof *s->hook);
    for (int32_t e = ew_first(o); e != o->w; e = o->links[e].next, k++) {
        s->checkpoint[e] = -1;
        if (k % s->every == 0 && number < s->n_checkpoints) {
            s->n_rewritten = 0;
            s->checkpoint[e] = (int32_t)number;
            s->hook[number] = e;
            ew_save(c, s, (int32_t)number++);
        }
        ew_min_follow(c, s, o, e);
    }
    s->n_rewritten = s->n_unhooked = 0;
}

static void ew_min_changes(ew_counter *c, ew_min_set *s, const ew_order *o) {
    ew_note_moved(c, o);
    s->n_rewritten = s->n_unhooked = 0;
    ew_min_find_spans(c, s, o);
    for (int64_t k = 0, point = 0; !c->given_up && (k < s->n_spans || point < o->n_points);) {
        int32_t e = point < o->n_points ? o->points[point] : s->spans[k].edge;
        if (k < s->n_spans && s->spans[k].start < o->edges[e].label) e = s->spans[k].edge;
        e = ew_min_segment(c, s, o, e, &k);
        while (point < o->n_points && (e == o->w || o->edges[o->points[point]].label < o->edges[e].label)) point++;
    }
}
