/* MIN: I/Os of a changed order from those of the order before it (the frame is that of recount.h).
 *
 * MIN's state is the set of resident values with a later use (dead ones count as free slots). The course of a changed
 * order can differ only at changed places and while a value is resident whose next use has changed, which can only be
 * between a moved access's predecessor (of the same neuron) and its old or new place. From where that begins, the new
 * course is played beside the old one, of which each access's victim is on record, until both hold the same set and no
 * such value is resident. The state to start with comes from a checkpoint before it. */
#ifndef EDGEWATT_CR_MIN_H
#define EDGEWATT_CR_MIN_H

#include "annealing/min_set.h"

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
        const int32_t e = s->unhooked[s->n_unhooked - 2], number = s->unhooked[s->n_unhooked - 1];
        s->checkpoint[e] = number;
        s->hook[number] = e;
    }
}

/* ---- places in the order --------------------------------------------------------------------------------------- */

/* First entry of edges[from, to) whose label is at least `label`; looked for around `near`, in [from, to]. */
static int64_t cr_lower_bound(const cr_order *o, const int32_t *edges, int64_t from, int64_t to, int64_t near,
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
static int64_t cr_key_from(const cr_order *o, int32_t x, int64_t label) {
    const int64_t in = o->in_start[x], in_end = o->in_start[x + 1], out = o->out_start[x], out_end = o->out_start[x + 1];
    const int64_t k = cr_lower_bound(o, o->in_edges, in, in_end, (in + in_end) / 2, label);
    if (k < in_end) return 2 * o->edges[o->in_edges[k]].label + 1;
    return 2 * o->edges[o->out_edges[cr_lower_bound(o, o->out_edges, out, out_end, (out + out_end) / 2, label)]].label;
}

/* Last connection of x before `label`, or the sentinel; looked for around the place `near` in the list of this side. */
static int32_t cr_before(const cr_order *o, int32_t x, int64_t label, int side, int64_t near) {
    const int64_t out = o->out_start[x], in = o->in_start[x], in_end = o->in_start[x + 1];
    int64_t k = cr_lower_bound(o, o->out_edges, out, o->out_start[x + 1], side ? out : near, label);
    if (k > out) return o->out_edges[k - 1];
    k = cr_lower_bound(o, o->in_edges, in, in_end, side ? near : in_end, label);
    return k > in ? o->in_edges[k - 1] : (int32_t)o->w;
}

/* ---- checkpoints ---------------------------------------------------------------------------------------------- */

static inline int32_t *cr_saved(const cr_counter *c, const cr_min *s, int32_t number, int version) {
    return s->saved + (version * s->n_checkpoints + number) * 2 * c->capacity;
}

static void cr_save(cr_counter *c, cr_min *s, int32_t number) {
    const int version = s->version[number] ^= 1;
    int32_t *saved = cr_saved(c, s, number, version), n = 0;
    for (int64_t slot = 0; slot < c->capacity; slot++) {
        saved[2 * n] = s->member[slot];
        saved[2 * n + 1] = s->last[slot];
        n += s->member[slot] >= 0;
    }
    s->saved_size[version * s->n_checkpoints + number] = n;
    s->rewritten[s->n_rewritten++] = number;
}

/* Play what is on record for connection e into the new set only. */
static inline void cr_min_follow(const cr_counter *c, cr_min *s, const cr_order *o, int32_t e) {
    const int64_t at = 2 * (int64_t)e;
    const int32_t x[2] = {o->edges[e].source, o->edges[e].target};
    for (int side = 0; side < 2; side++) {
        if (s->victim[at + side] >= 0) cr_take_out(s, s->victim[at + side]);
        if (c->flags[at + side] & CR_MISS) cr_put(s, x[side]);
    }
    for (int side = 0; side < 2; side++)
        if (c->flags[at + side] & CR_DEAD)
            cr_take_out(s, x[side]);
        else
            s->last[s->place[x[side]]] = (int32_t)(at + side);
}

/* Number of the last checkpoint before connection e, or -1. Connections are numbered almost along the order. */
static int64_t cr_checkpoint_before(const cr_min *s, const cr_order *o, int32_t e) {
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
static void cr_min_begin(cr_counter *c, cr_min *s, const cr_order *o, int32_t e) {
    const int64_t number = cr_checkpoint_before(s, o, e);
    int32_t p = cr_first(o);
    cr_new_clear(c, s);
    if (number >= 0) {
        const int version = s->version[number];
        const int32_t *saved = cr_saved(c, s, (int32_t)number, version);
        for (int32_t k = 0; k < s->saved_size[version * s->n_checkpoints + number]; k++) {
            cr_put(s, saved[2 * k]);
            s->last[s->place[saved[2 * k]]] = saved[2 * k + 1];
        }
        p = s->hook[number];
    }
    for (; p != e; p = o->edges[p].next) {
        cr_min_follow(c, s, o, p);
        c->played++; /* two light accesses count as one */
    }
    const int64_t label = o->edges[e].label;
    for (int64_t slot = 0; slot < c->capacity; slot++) {
        const int32_t x = s->member[slot];
        if (x < 0) continue;
        s->in[x] = CR_NEW | CR_OLD;
        /* Moves may have put another access between the noted last one and e. */
        const cr_edge *last = &o->edges[s->last[slot] >> 1];
        int64_t key = last->key[s->last[slot] & 1];
        if (last->label >= label || key < 2 * label) key = cr_key_from(o, x, label);
        cr_need_at(s, x, key, s->last[slot]);
    }
}

/* ---- playing a span ------------------------------------------------------------------------------------------- */

static inline void cr_min_old(cr_min *s, int32_t a, int32_t b, const uint8_t *flags, const int32_t *victim) {
    if (victim[0] >= 0) cr_old_drop(s, victim[0]);
    if (flags[0] & CR_MISS) cr_old_add(s, a);
    if (victim[1] >= 0) cr_old_drop(s, victim[1]);
    if (flags[1] & CR_MISS) cr_old_add(s, b);
    if (flags[0] & CR_DEAD) cr_old_drop(s, a);
    if (flags[1] & CR_DEAD) cr_old_drop(s, b);
}

/* Whether a value with a changed next use is resident at `label`. */
static inline int cr_any_hot(cr_min *s, int64_t label) {
    while (s->n_hot) {
        const cr_span *last = &s->hot[s->n_hot - 1];
        if (last->end >= label && s->in[last->neuron] & CR_NEW) return 1;
        s->n_hot--; /* over for good: its neuron is not accessed before the span's end, which is a place of its own */
    }
    return 0;
}

/* old_victim: [2] what the old course has evicted at this connection, or -1. */
static inline int32_t cr_min_load(const cr_counter *c, cr_min *s, int32_t x, uint8_t *flags, const int32_t *old_victim) {
    if (s->in[x] & CR_NEW) return -1;
    const int32_t victim = s->n_free ? -1 : cr_evict(c, s, old_victim);
    *flags |= CR_MISS;
    cr_new_add(s, x);
    return victim;
}

static inline void cr_min_keep(cr_min *s, int32_t x, int64_t key, int64_t access, uint8_t *flags) {
    if (key == INT64_MIN) {
        *flags |= CR_DEAD;
        cr_new_drop(s, x);
    } else
        cr_need_at(s, x, key, access);
}

/* Let the old course pass the old places before `label`. */
static void cr_min_pass_old(cr_counter *c, cr_min *s, const cr_order *o, int64_t label) {
    for (; c->n_old < o->n_moves; c->n_old++) {
        const cr_move *m = cr_by_old_place(o, c->n_old);
        if (m->label > label) return;
        cr_min_old(s, o->edges[m->edge].source, o->edges[m->edge].target, c->moved_flags + 2 * c->n_old,
                   s->moved_victim + 2 * c->n_old);
    }
}

/* Play from connection e, a point or the begin of the k-th span, on; k moves past all spans that begin before the end.
 * Return where the courses agree again. */
static int32_t cr_min_segment(cr_counter *c, cr_min *s, const cr_order *o, int32_t e, int64_t *k) {
    cr_min_begin(c, s, o, e);
    s->n_hot = 0;
    for (; e != o->w; e = o->edges[e].next) {
        const cr_edge *edge = &o->edges[e];
        const int64_t label = edge->label, at = 2 * (int64_t)e;
        const int hot = cr_any_hot(s, label);
        int wanted = edge->mark & CR_POINT;
        for (; *k < s->n_spans && s->spans[*k].start <= label; ++*k) {
            wanted = 1;
            s->hot[s->n_hot++] = s->spans[*k];
        }
        cr_min_pass_old(c, s, o, label);
        if (!wanted && !hot && s->differing == 0) break;
        if (s->checkpoint[e] >= 0) cr_save(c, s, s->checkpoint[e]);
        const int32_t a = edge->source, b = edge->target;
        c->played += 2;
        if (edge->key[0] != INT64_MIN && edge->key[1] != INT64_MIN && !(edge->mark & CR_MOVED) && !c->flags[at] &&
            !c->flags[at + 1] && s->in[a] == (CR_NEW | CR_OLD) && s->in[b] == (CR_NEW | CR_OLD)) {
            cr_need_at(s, a, edge->key[0], at); /* two hits in both courses */
            cr_need_at(s, b, edge->key[1], at + 1);
            continue;
        }
        int32_t victim[2], old_victim[2] = {-1, -1};
        uint8_t flags[2] = {0, 0};
        if (!(edge->mark & CR_MOVED)) {
            cr_min_old(s, a, b, c->flags + at, s->victim + at);
            memcpy(old_victim, s->victim + at, sizeof old_victim);
        }
        victim[0] = cr_min_load(c, s, a, flags, old_victim);
        victim[1] = cr_min_load(c, s, b, flags + 1, old_victim); /* a's key is not above the present yet: a is pinned */
        cr_min_keep(s, a, edge->key[0], at, flags);
        cr_min_keep(s, b, edge->key[1], at + 1, flags + 1);
        cr_min_record(c, s, o, at, flags[0], victim[0]);
        cr_min_record(c, s, o, at + 1, flags[1], victim[1]);
    }
    if (e == o->w) cr_min_pass_old(c, s, o, INT64_MAX); /* at the end every value is dead in both */
    for (int64_t slot = 0; slot < c->capacity; slot++)
        if (s->member[slot] >= 0) s->in[s->member[slot]] = 0;
    return e;
}

static void cr_add_span(cr_min *s, const cr_order *o, int32_t x, int32_t edge, int64_t end) {
    if (edge == o->w) return;
    cr_span *span = &s->spans[s->n_spans++];
    span->edge = edge;
    span->neuron = x;
    span->start = o->edges[edge].label;
    span->end = end;
}

/* Whether access (e, x) was inserted where x was resident anyway: its next access hit in the old course, which had no
 * moved access in between. A nearer next use changes nothing then. */
static int cr_min_harmless(const cr_counter *c, const cr_order *o, int32_t e, int side) {
    const int32_t x = side ? o->edges[e].target : o->edges[e].source;
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
    if (o->edges[follower].mark & CR_MOVED || c->flags[2 * (int64_t)follower + follower_side] & CR_MISS) return 0;
    return !o->left || o->edges[follower].label < cr_by_old_place(o, 0)->label;
}

static void cr_min_find_spans(const cr_counter *c, cr_min *s, const cr_order *o) {
    s->n_spans = 0;
    for (int64_t k = 0; k < o->n_moves; k++) {
        const cr_move *m = cr_by_old_place(o, k);
        const int32_t e = m->edge;
        const cr_edge *edge = &o->edges[e];
        memcpy(s->moved_victim + 2 * k, s->victim + 2 * (int64_t)e, 2 * sizeof *s->victim);
        for (int side = 0; side < 2; side++) {
            const int32_t x = side ? edge->target : edge->source;
            const int64_t place = side ? edge->in_index : edge->out_index;
            cr_add_span(s, o, x, cr_before(o, x, m->label, side, side == o->left ? m->index : place), m->label);
            if (cr_min_harmless(c, o, e, side)) continue;
            int before_side = side;
            cr_add_span(s, o, x, cr_access_before(o, x, place, &before_side), edge->label);
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
    memset(s->hook, -1, (size_t)s->n_checkpoints * sizeof *s->hook);
    for (int32_t e = cr_first(o); e != o->w; e = o->edges[e].next, k++) {
        s->checkpoint[e] = -1;
        if (k % s->every == 0 && number < s->n_checkpoints) {
            s->n_rewritten = 0;
            s->checkpoint[e] = (int32_t)number;
            s->hook[number] = e;
            cr_save(c, s, (int32_t)number++);
        }
        cr_min_follow(c, s, o, e);
    }
    s->n_rewritten = s->n_unhooked = 0;
}

static void cr_min_changes(cr_counter *c, cr_min *s, const cr_order *o) {
    cr_note_moved(c, o);
    s->n_rewritten = s->n_unhooked = 0;
    cr_min_find_spans(c, s, o);
    for (int64_t k = 0, point = 0; k < s->n_spans || point < o->n_points;) {
        int32_t e = point < o->n_points ? o->points[point] : s->spans[k].edge;
        if (k < s->n_spans && s->spans[k].start < o->edges[e].label) e = s->spans[k].edge;
        e = cr_min_segment(c, s, o, e, &k);
        while (point < o->n_points && (e == o->w || o->edges[o->points[point]].label < o->edges[e].label)) point++;
    }
}

#endif
