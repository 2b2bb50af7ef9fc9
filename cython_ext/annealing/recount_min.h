/* MIN: I/Os of a changed order from those of the order before it (the frame is that of cr_count.h).
 *
 * MIN's state is the set of resident values with a later use (dead ones count as free slots). The course of a changed
 * order can differ only at changed places and while a value is resident whose next use has changed, which can only be
 * between a moved access's predecessor (of the same neuron) and its old or new place. From where that begins, the new
 * course is played beside the old one, of which each access's victim is on record, until both hold the same set and no
 * such value is resident. The state to start with comes from a checkpoint before it. */
#ifndef EDGEWATT_CR_MIN_H
#define EDGEWATT_CR_MIN_H

#include "annealing/recount.h"

typedef struct {
    int64_t start, end; /* labels between which the next use of `neuron` has changed */
    int32_t edge;       /* the connection to start playing with */
    int32_t neuron;     /* or -1: only play this place */
} cr_span;

typedef struct {
    int32_t *victim;          /* [2W] value evicted at an access, or -1 */
    int32_t *moved_victim;    /* [2 * window] */
    uint8_t *new_in, *old_in; /* [N] */
    int64_t differing;        /* values in which the two sets differ */
    int32_t *member;          /* [C] the new set, by slot; -1: free */
    int64_t *key;             /* [C] 2 * label + side of the next use; not above the present: unknown as yet */
    int64_t *block_key;       /* highest key of each block of slots (or a lower bound of no live key, see cr_new_drop) */
    int64_t block, n_blocks;  /* slots per block */
    int32_t *place;           /* [N] slot of a member */
    int32_t *free_slots;      /* [C] */
    int64_t n_free;
    cr_span *spans, *hot;     /* [6 * window]; hot: those begun whose value may be resident */
    int64_t n_spans, n_hot;
    int64_t every;            /* connections between two checkpoints */
    int64_t n_checkpoints, lost;
    int32_t *checkpoint;      /* [W] number of the checkpoint before this connection, or -1 */
    int32_t *saved;           /* [2][n_checkpoints][C] members, in two versions */
    int32_t *saved_size;      /* [2][n_checkpoints] */
    uint8_t *version;         /* [n_checkpoints] the valid one */
    int32_t *rewritten;       /* checkpoints of which the current evaluation turned the version */
    int64_t n_rewritten;
    int32_t *unhooked;        /* (connection, checkpoint) pairs of moved connections */
    int64_t n_unhooked;
} cr_min;

static inline void cr_min_record(cr_counter *c, cr_min *s, const cr_order *o, int64_t access, uint8_t flags,
                                 int32_t victim) {
    if (c->flags[access] == flags && s->victim[access] == victim) return;
    cr_change *j = &c->journal[c->n_journal++];
    j->access = access;
    j->flags = c->flags[access];
    j->victim = s->victim[access];
    if ((j->flags ^ flags) & CR_MISS) cr_charge(c, o, access, flags & CR_MISS ? 1 : -1);
    c->flags[access] = flags;
    s->victim[access] = victim;
}

static void cr_min_restore(cr_counter *c, cr_min *s, const cr_order *o) {
    for (int64_t k = c->n_journal - 1; k >= 0; k--) s->victim[c->journal[k].access] = c->journal[k].victim;
    cr_restore(c, o);
    for (; s->n_rewritten; s->n_rewritten--) s->version[s->rewritten[s->n_rewritten - 1]] ^= 1;
    for (; s->n_unhooked; s->n_unhooked -= 2) {
        s->checkpoint[s->unhooked[s->n_unhooked - 2]] = s->unhooked[s->n_unhooked - 1];
        s->lost--;
    }
}

/* ---- the new set and its next uses: a key changes only upwards, so block maxima cost one comparison -------------- */

static inline void cr_new_add(cr_min *s, int32_t x) {
    const int32_t slot = s->free_slots[--s->n_free];
    s->new_in[x] = 1;
    s->differing += s->old_in[x] ? -1 : 1;
    s->place[x] = slot;
    s->member[slot] = x;
    s->key[slot] = INT64_MIN;
}

/* The block maximum may stay too high if x is dead, but then it is not above the present, and no live key is below. */
static inline void cr_new_drop(cr_min *s, int32_t x) {
    const int32_t slot = s->place[x];
    s->new_in[x] = 0;
    s->differing += s->old_in[x] ? 1 : -1;
    s->member[slot] = -1;
    s->key[slot] = INT64_MIN;
    s->free_slots[s->n_free++] = slot;
}

static inline void cr_need_at(cr_min *s, int32_t x, int64_t key) {
    const int32_t slot = s->place[x];
    int64_t *highest = &s->block_key[slot / s->block];
    s->key[slot] = key;
    if (key > *highest) *highest = key;
}

static inline int64_t cr_highest(const int64_t *key, int64_t n) {
    int64_t highest = INT64_MIN;
    for (int64_t k = 0; k < n; k++) highest = key[k] > highest ? key[k] : highest;
    return highest;
}

static int32_t cr_take_farthest(cr_counter *c, cr_min *s) {
    int64_t best = 0;
    for (int64_t k = 1; k < s->n_blocks; k++) best = s->block_key[k] > s->block_key[best] ? k : best;
    const int64_t from = best * s->block, size = from + s->block <= c->capacity ? s->block : c->capacity - from;
    int64_t slot = from;
    while (s->key[slot] != s->block_key[best]) slot++;
    const int32_t x = s->member[slot];
    cr_new_drop(s, x);
    s->block_key[best] = cr_highest(s->key + from, size);
    return x;
}

static void cr_new_clear(cr_counter *c, cr_min *s) {
    s->n_free = 0;
    for (int64_t slot = c->capacity - 1; slot >= 0; slot--) {
        s->member[slot] = -1;
        s->key[slot] = INT64_MIN;
        s->free_slots[s->n_free++] = (int32_t)slot;
    }
    for (int64_t k = 0; k < s->n_blocks; k++) s->block_key[k] = INT64_MIN;
    s->differing = 0;
}

static inline void cr_old_set(cr_min *s, int32_t x, uint8_t in) {
    if (s->old_in[x] == in) return;
    s->old_in[x] = in;
    s->differing += s->new_in[x] == in ? -1 : 1;
}

/* Key of the access of x after access (e, side), -1 if there is none. */
static inline int64_t cr_next_key(const cr_order *o, int32_t e, int side, int32_t x) {
    if (side) {
        const int32_t k = o->in_index[e] + 1;
        if (k < o->in_start[x + 1]) return 2 * o->label[o->in_edges[k]] + 1;
        return o->out_start[x + 1] > o->out_start[x] ? 2 * o->label[o->out_edges[o->out_start[x]]] : INT64_MIN;
    }
    const int32_t k = o->out_index[e] + 1;
    return k < o->out_start[x + 1] ? 2 * o->label[o->out_edges[k]] : INT64_MIN;
}

/* First entry of edges[from, to) whose label is at least `label`. */
static inline int64_t cr_lower_bound(const cr_order *o, const int32_t *edges, int64_t from, int64_t to, int64_t label) {
    while (from < to) {
        const int64_t middle = (from + to) / 2;
        if (o->label[edges[middle]] < label)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Key of the first access of x at or after `label`; there is one. */
static int64_t cr_key_from(const cr_order *o, int32_t x, int64_t label) {
    const int64_t in_end = o->in_start[x + 1];
    const int64_t k = cr_lower_bound(o, o->in_edges, o->in_start[x], in_end, label);
    if (k < in_end) return 2 * o->label[o->in_edges[k]] + 1;
    return 2 * o->label[o->out_edges[cr_lower_bound(o, o->out_edges, o->out_start[x], o->out_start[x + 1], label)]];
}

/* Last connection of x before `label`, or the sentinel. */
static int32_t cr_before(const cr_order *o, int32_t x, int64_t label) {
    int64_t k = cr_lower_bound(o, o->out_edges, o->out_start[x], o->out_start[x + 1], label);
    if (k > o->out_start[x]) return o->out_edges[k - 1];
    k = cr_lower_bound(o, o->in_edges, o->in_start[x], o->in_start[x + 1], label);
    return k > o->in_start[x] ? o->in_edges[k - 1] : (int32_t)o->w;
}

/* ---- checkpoints ---------------------------------------------------------------------------------------------- */

static inline int32_t *cr_saved(const cr_counter *c, const cr_min *s, int32_t number, int version) {
    return s->saved + (version * s->n_checkpoints + number) * c->capacity;
}

static void cr_save(cr_counter *c, cr_min *s, int32_t number) {
    const int version = s->version[number] ^= 1;
    int32_t *saved = cr_saved(c, s, number, version), n = 0;
    for (int64_t slot = 0; slot < c->capacity; slot++) {
        saved[n] = s->member[slot];
        n += s->member[slot] >= 0;
    }
    s->saved_size[version * s->n_checkpoints + number] = n;
    s->rewritten[s->n_rewritten++] = number;
}

/* Play what is on record for connection e into the new set only. */
static inline void cr_min_follow(const cr_counter *c, cr_min *s, const cr_order *o, int32_t e) {
    const int64_t at = 2 * (int64_t)e;
    const int32_t x[2] = {o->source[e], o->target[e]};
    for (int side = 0; side < 2; side++) {
        if (s->victim[at + side] >= 0) cr_new_drop(s, s->victim[at + side]);
        if (c->flags[at + side] & CR_MISS) cr_new_add(s, x[side]);
    }
    for (int side = 0; side < 2; side++)
        if (c->flags[at + side] & CR_DEAD) cr_new_drop(s, x[side]);
}

/* Fill both sets with the state before connection e and before what was moved away from before it: there the courses
 * agree. (So a checkpoint at e itself is of no use.) */
static void cr_min_begin(cr_counter *c, cr_min *s, const cr_order *o, int32_t e) {
    int32_t p = o->prev[e];
    cr_new_clear(c, s);
    while (p != o->w && s->checkpoint[p] < 0) p = o->prev[p];
    if (p == o->w)
        p = cr_first(o);
    else {
        const int32_t number = s->checkpoint[p];
        const int version = s->version[number];
        const int32_t *saved = cr_saved(c, s, number, version);
        for (int32_t k = 0; k < s->saved_size[version * s->n_checkpoints + number]; k++) cr_new_add(s, saved[k]);
    }
    for (; p != e; p = o->next[p]) {
        cr_min_follow(c, s, o, p);
        c->played++; /* two light accesses count as one */
    }
    for (int64_t slot = 0; slot < c->capacity; slot++) {
        const int32_t x = s->member[slot];
        if (x < 0) continue;
        s->old_in[x] = 1;
        cr_need_at(s, x, cr_key_from(o, x, o->label[e]));
    }
    s->differing = 0;
}

/* ---- playing a span ------------------------------------------------------------------------------------------- */

static inline void cr_min_old(cr_min *s, int32_t a, int32_t b, const uint8_t *flags, const int32_t *victim) {
    if (victim[0] >= 0) cr_old_set(s, victim[0], 0);
    if (flags[0] & CR_MISS) cr_old_set(s, a, 1);
    if (victim[1] >= 0) cr_old_set(s, victim[1], 0);
    if (flags[1] & CR_MISS) cr_old_set(s, b, 1);
    if (flags[0] & CR_DEAD) cr_old_set(s, a, 0);
    if (flags[1] & CR_DEAD) cr_old_set(s, b, 0);
}

static inline int32_t cr_min_load(cr_counter *c, cr_min *s, int32_t x, uint8_t *flags) {
    int32_t victim = -1;
    if (s->new_in[x]) return victim;
    *flags |= CR_MISS;
    if (!s->n_free) victim = cr_take_farthest(c, s);
    cr_new_add(s, x);
    return victim;
}

static inline void cr_min_keep(cr_min *s, int32_t x, int64_t key, uint8_t *flags) {
    if (key == INT64_MIN) {
        *flags |= CR_DEAD;
        cr_new_drop(s, x);
    } else
        cr_need_at(s, x, key);
}

/* Whether a value with a changed next use is resident at `label`. */
static inline int cr_any_hot(cr_min *s, int64_t label) {
    while (s->n_hot) {
        const cr_span *last = &s->hot[s->n_hot - 1];
        if (last->end >= label && s->new_in[last->neuron]) return 1;
        s->n_hot--; /* over for good: its neuron is not accessed before the span's end, which is a place of its own */
    }
    return 0;
}

/* Let the old course pass the old places before `label`. */
static void cr_min_pass_old(cr_counter *c, cr_min *s, const cr_order *o, int64_t label) {
    for (; c->n_old < o->n_moves; c->n_old++) {
        const cr_move *m = cr_by_old_place(o, c->n_old);
        if (m->label > label) return;
        cr_min_old(s, o->source[m->edge], o->target[m->edge], c->moved_flags + 2 * c->n_old,
                   s->moved_victim + 2 * c->n_old);
    }
}

/* Play from the k-th span's connection on; k moves past all spans that begin before the end. */
static void cr_min_segment(cr_counter *c, cr_min *s, const cr_order *o, int64_t *k) {
    int32_t e = s->spans[*k].edge;
    cr_min_begin(c, s, o, e);
    s->n_hot = 0;
    for (; e != o->w; e = o->next[e]) {
        const int64_t label = o->label[e], at = 2 * (int64_t)e;
        int wanted = c->point_stamp[e] == c->round;
        for (; *k < s->n_spans && s->spans[*k].start <= label; ++*k) {
            wanted = 1;
            if (s->spans[*k].neuron >= 0) s->hot[s->n_hot++] = s->spans[*k];
        }
        cr_min_pass_old(c, s, o, label);
        if (!wanted && s->differing == 0 && !cr_any_hot(s, label)) break;
        if (s->checkpoint[e] >= 0) cr_save(c, s, s->checkpoint[e]);
        const int32_t a = o->source[e], b = o->target[e];
        if (c->moved_stamp[e] != c->round) cr_min_old(s, a, b, c->flags + at, s->victim + at);
        uint8_t flags[2] = {0, 0};
        int32_t victim[2];
        victim[0] = cr_min_load(c, s, a, flags);
        victim[1] = cr_min_load(c, s, b, flags + 1); /* a's key is not above the present yet, so it is pinned */
        cr_min_keep(s, a, cr_next_key(o, e, 0, a), flags);
        cr_min_keep(s, b, cr_next_key(o, e, 1, b), flags + 1);
        cr_min_record(c, s, o, at, flags[0], victim[0]);
        cr_min_record(c, s, o, at + 1, flags[1], victim[1]);
        c->played += 2;
    }
    if (e == o->w) cr_min_pass_old(c, s, o, INT64_MAX); /* at the end every value is dead in both */
    for (int64_t slot = 0; slot < c->capacity; slot++)
        if (s->member[slot] >= 0) s->new_in[s->member[slot]] = s->old_in[s->member[slot]] = 0;
}

static void cr_add_span(cr_min *s, const cr_order *o, int32_t x, int32_t edge, int64_t end) {
    if (edge == o->w) return;
    cr_span *span = &s->spans[s->n_spans++];
    span->edge = edge;
    span->neuron = x;
    span->start = o->label[edge];
    span->end = end;
}

/* Whether access (e, x) was inserted where x was resident anyway: its next access hit in the old course, which had no
 * moved access in between. A nearer next use changes nothing then. */
static int cr_min_harmless(const cr_counter *c, const cr_order *o, int32_t e, int side) {
    const int32_t x = side ? o->target[e] : o->source[e];
    int32_t follower;
    int follower_side = side;
    if (side && o->in_index[e] + 1 == o->in_start[x + 1]) {
        if (o->out_start[x + 1] == o->out_start[x]) return 0;
        follower = o->out_edges[o->out_start[x]];
        follower_side = 0;
    } else if (side)
        follower = o->in_edges[o->in_index[e] + 1];
    else if (o->out_index[e] + 1 < o->out_start[x + 1])
        follower = o->out_edges[o->out_index[e] + 1];
    else
        return 0;
    if (c->moved_stamp[follower] == c->round || c->flags[2 * (int64_t)follower + follower_side] & CR_MISS) return 0;
    return !o->left || o->label[follower] < cr_by_old_place(o, 0)->label;
}

static void cr_min_find_spans(cr_counter *c, cr_min *s, const cr_order *o) {
    s->n_spans = 0;
    for (int64_t k = 0, w = 0; k < o->n_moves; k++) {
        const cr_move *m = cr_by_old_place(o, k);
        const int32_t e = m->edge;
        s->moved_victim[2 * k] = s->victim[2 * (int64_t)e];
        s->moved_victim[2 * k + 1] = s->victim[2 * (int64_t)e + 1];
        while (o->window[w] != e) w++;
        int64_t f = w; /* the first unmoved connection behind the old place */
        while (o->window[f] != o->w && c->moved_stamp[o->window[f]] == c->round) f++;
        cr_add_span(s, o, -1, e, 0);
        cr_add_span(s, o, -1, o->window[f], 0);
        for (int side = 0; side < 2; side++) {
            const int32_t x = side ? o->target[e] : o->source[e];
            cr_add_span(s, o, x, cr_before(o, x, m->label), m->label);
            if (!cr_min_harmless(c, o, e, side)) cr_add_span(s, o, x, cr_before(o, x, o->label[e]), o->label[e]);
        }
        if (s->checkpoint[e] >= 0) {
            s->unhooked[s->n_unhooked++] = e;
            s->unhooked[s->n_unhooked++] = s->checkpoint[e];
            s->checkpoint[e] = -1;
            s->lost++;
        }
    }
    for (int64_t step = s->n_spans / 2; step > 0; step /= 2) /* shell sort by start */
        for (int64_t k = step; k < s->n_spans; k++) {
            const cr_span span = s->spans[k];
            int64_t at = k;
            for (; at >= step && s->spans[at - step].start > span.start; at -= step) s->spans[at] = s->spans[at - step];
            s->spans[at] = span;
        }
}

/* Set checkpoints anew along the whole order, from the records. */
static void cr_min_checkpoints(cr_counter *c, cr_min *s, const cr_order *o) {
    int64_t k = 0, number = 0;
    cr_new_clear(c, s);
    for (int32_t e = cr_first(o); e != o->w; e = o->next[e], k++) {
        s->checkpoint[e] = -1;
        if (k % s->every == 0 && number < s->n_checkpoints) {
            s->n_rewritten = 0;
            cr_save(c, s, s->checkpoint[e] = (int32_t)number++);
        }
        cr_min_follow(c, s, o, e);
    }
    s->n_rewritten = s->n_unhooked = s->lost = 0;
}

static void cr_min_changes(cr_counter *c, cr_min *s, const cr_order *o) {
    c->n_journal = 0;
    c->old_total = c->total;
    s->n_rewritten = s->n_unhooked = 0;
    cr_find_points(c, o);
    cr_min_find_spans(c, s, o);
    for (int64_t k = 0; k < s->n_spans;) cr_min_segment(c, s, o, &k);
}

#endif
