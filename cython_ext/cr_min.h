/* MIN: I/Os of a changed order from those of the order before it (the frame is that of cr_count.h).
 *
 * MIN's state is the set of resident values with a later use (dead ones count as free slots). The course of a changed
 * order can differ only where some value's next use differs, that is between a moved access's predecessor (of the same
 * neuron) and its old or its new place. Those spans of labels are played beside the old course, of which each access's
 * victim is on record, until both hold the same set. The state at a span's start comes from a checkpoint before it. */
#ifndef EDGEWATT_CR_MIN_H
#define EDGEWATT_CR_MIN_H

#include "cr_count.h"

typedef struct {
    int64_t start, end; /* labels */
    int32_t edge;       /* the connection to start with */
} cr_span;

typedef struct {
    int64_t key; /* 2 * label + side of the next use */
    int32_t neuron;
} cr_need;

typedef struct {
    int32_t *victim;     /* [2W] value evicted at an access, or -1 */
    int32_t *moved_victim; /* [2 * window] */
    uint8_t *new_in, *old_in; /* [N] */
    int64_t differing;   /* values in which the two sets differ */
    int32_t *member;     /* [C] the new set ... */
    int32_t *place;      /* [N] ... and where in it a value stands */
    int64_t n_members;
    cr_need *heap;       /* highest key first; entries not above the present are stale, and never on top */
    int64_t n_heap, heap_room;
    cr_span *spans;      /* [4 * window] */
    int64_t n_spans;
    int64_t every;       /* connections between two checkpoints */
    int64_t n_checkpoints, lost;
    int32_t *checkpoint; /* [W] number of the checkpoint before this connection, or -1 */
    int32_t *saved;      /* [2][n_checkpoints][C] members, in two versions */
    int32_t *saved_size; /* [2][n_checkpoints] */
    uint8_t *version;    /* [n_checkpoints] the valid one */
    int32_t *rewritten;  /* checkpoints of which the current evaluation turned the version */
    int64_t n_rewritten;
    int32_t *unhooked;   /* (connection, checkpoint) pairs of moved connections */
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

/* ---- the new set and its heap of next uses ---------------------------------------------------------------------- */

static void cr_sift_down(cr_need *heap, int64_t n, int64_t at) {
    const cr_need item = heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1].key > heap[child].key) child++;
        if (heap[child].key <= item.key) break;
        heap[at] = heap[child];
    }
    heap[at] = item;
}

static void cr_need_at(cr_min *s, int64_t key, int32_t neuron, int64_t present) {
    if (s->n_heap == s->heap_room) { /* drop the stale ones; at most C are not */
        int64_t kept = 0;
        for (int64_t k = 0; k < s->n_heap; k++)
            if (s->heap[k].key > present) s->heap[kept++] = s->heap[k];
        s->n_heap = kept;
        for (int64_t k = kept / 2 - 1; k >= 0; k--) cr_sift_down(s->heap, kept, k);
    }
    int64_t at = s->n_heap++;
    for (int64_t parent; at > 0 && s->heap[parent = (at - 1) / 2].key < key; at = parent) s->heap[at] = s->heap[parent];
    s->heap[at].key = key;
    s->heap[at].neuron = neuron;
}

static int32_t cr_take_farthest(cr_min *s) {
    const int32_t neuron = s->heap[0].neuron;
    s->heap[0] = s->heap[--s->n_heap];
    if (s->n_heap) cr_sift_down(s->heap, s->n_heap, 0);
    return neuron;
}

static inline void cr_new_add(cr_min *s, int32_t x) {
    s->new_in[x] = 1;
    s->differing += s->old_in[x] ? -1 : 1;
    s->place[x] = (int32_t)s->n_members;
    s->member[s->n_members++] = x;
}

static inline void cr_new_drop(cr_min *s, int32_t x) {
    s->new_in[x] = 0;
    s->differing += s->old_in[x] ? 1 : -1;
    const int32_t last = s->member[--s->n_members];
    s->member[s->place[x]] = last;
    s->place[last] = s->place[x];
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
    memcpy(cr_saved(c, s, number, version), s->member, (size_t)s->n_members * sizeof *s->member);
    s->saved_size[version * s->n_checkpoints + number] = (int32_t)s->n_members;
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
    s->n_members = 0;
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
    s->n_heap = 0;
    for (int64_t k = 0; k < s->n_members; k++) {
        s->old_in[s->member[k]] = 1;
        cr_need_at(s, cr_key_from(o, s->member[k], o->label[e]), s->member[k], INT64_MIN);
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

static inline int32_t cr_min_load(const cr_counter *c, cr_min *s, int32_t x, uint8_t *flags) {
    int32_t victim = -1;
    if (s->new_in[x]) return victim;
    *flags |= CR_MISS;
    if (s->n_members == c->capacity) cr_new_drop(s, victim = cr_take_farthest(s));
    cr_new_add(s, x);
    return victim;
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

static void cr_min_span(cr_counter *c, cr_min *s, const cr_order *o, int64_t *k) {
    int64_t end = s->spans[*k].end;
    int32_t e = s->spans[*k].edge;
    cr_min_begin(c, s, o, e);
    for (; e != o->w; e = o->next[e]) {
        for (; *k < s->n_spans && s->spans[*k].start <= o->label[e]; ++*k)
            if (s->spans[*k].end > end) end = s->spans[*k].end;
        cr_min_pass_old(c, s, o, o->label[e]);
        if (o->label[e] > end && s->differing == 0) break;
        if (s->checkpoint[e] >= 0) cr_save(c, s, s->checkpoint[e]);
        const int64_t at = 2 * (int64_t)e;
        const int32_t a = o->source[e], b = o->target[e];
        if (c->moved_stamp[e] != c->round) cr_min_old(s, a, b, c->flags + at, s->victim + at);
        uint8_t flags[2] = {0, 0};
        int32_t victim[2];
        const int64_t key_a = cr_next_key(o, e, 0, a), key_b = cr_next_key(o, e, 1, b);
        const int64_t present = 2 * o->label[e] + 1;
        victim[0] = cr_min_load(c, s, a, flags);
        victim[1] = cr_min_load(c, s, b, flags + 1); /* a has no key above the present yet: it is pinned */
        if (key_a == INT64_MIN) {
            flags[0] |= CR_DEAD;
            cr_new_drop(s, a);
        } else
            cr_need_at(s, key_a, a, present);
        if (key_b == INT64_MIN) {
            flags[1] |= CR_DEAD;
            cr_new_drop(s, b);
        } else
            cr_need_at(s, key_b, b, present);
        cr_min_record(c, s, o, at, flags[0], victim[0]);
        cr_min_record(c, s, o, at + 1, flags[1], victim[1]);
        c->played += 2;
    }
    if (e == o->w) cr_min_pass_old(c, s, o, INT64_MAX); /* at the end every value is dead in both */
    for (int64_t i = 0; i < s->n_members; i++) s->new_in[s->member[i]] = s->old_in[s->member[i]] = 0;
}

/* The span in which moving an access of x to or from `label` can change the course. */
static void cr_add_span(cr_min *s, const cr_order *o, int32_t x, int64_t label, int32_t otherwise) {
    const int32_t before = cr_before(o, x, label);
    cr_span *span = &s->spans[s->n_spans];
    span->edge = before == o->w ? otherwise : before;
    if (span->edge == o->w) return;
    span->start = o->label[span->edge];
    span->end = label;
    s->n_spans++;
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
        for (int side = 0; side < 2; side++) {
            const int32_t x = side ? o->target[e] : o->source[e];
            cr_add_span(s, o, x, m->label, o->window[f]);
            cr_add_span(s, o, x, o->label[e], e);
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
    s->n_members = 0;
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
    for (int64_t k = 0; k < s->n_spans;) cr_min_span(c, s, o, &k);
}

#endif
