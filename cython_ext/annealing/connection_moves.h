/* An order of connections that can be changed and changed back: the moves of Connection Reordering.
 *
 * The order is a linked list; `label` grows along it, so two connections compare without positions. What a walk asks of
 * a connection lies side by side in 16 bytes, and from time to time the connections are numbered along the order again,
 * so that walking it reads memory in sequence. Each neuron keeps its incoming and its outgoing connections in processing
 * order; all incoming ones come first (topological). Hence the connection a move stops at (Gleinig et al. 2023, section
 * IV-A) is known at once:
 *   left:  the predecessor in the source's outgoing list, else the source's last incoming connection, else the front;
 *   right: the successor in the target's incoming list, else the target's first outgoing connection, else the end.
 * A move left leaves the source's outgoing list as it is and changes only the target's incoming list; right conversely. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EW_SPAN ((int64_t)1 << 60) /* labels lie in +-EW_SPAN, so that 2 * label + side fits 63 bits */

typedef struct {
    int32_t edge, before; /* the connection moved, and what stood before it when it was */
    int32_t index;        /* its place in the changed list of its target (left) or source (right) */
    int64_t label;        /* its old label */
} ew_move;

enum { EW_POINT = 1, EW_MOVED = 2 };

typedef struct {
    int32_t next, prev; /* W stands before the first and after the last */
    int32_t source, target;
} ew_link;

typedef struct {
    int64_t label;
    int64_t key[2];               /* keys of the accesses that follow those of source and target, see ew_next_key */
    int32_t out_index, in_index;  /* places in the lists of source and target */
    int32_t name;                 /* number in the initial order */
} ew_edge;

typedef struct {
    int64_t w, n;
    ew_link *links, *spare_links;        /* [W + 1]; entry W is the sentinel */
    ew_edge *edges, *spare;              /* [W] */
    uint8_t *mark;                       /* [W] EW_POINT, EW_MOVED while the current moves are evaluated */
    int32_t *number;                     /* [W] by name */
    int32_t *renamed;                    /* [W] new numbers by old ones, of the last renumbering */
    const int64_t *out_start, *in_start; /* [N + 1] */
    int32_t *out_edges, *in_edges;       /* [W], by neuron, in processing order */
    int64_t *first_key;                  /* [N] */
    int64_t runs;
    int32_t *window;  /* connections of the current window in their old order, then the one after it */
    int64_t n_window;
    ew_move *moves;   /* those that changed place, in the order of moving */
    int64_t n_moves;
    int32_t *points;  /* connections at which the course of accesses may begin to differ, in the new order */
    int64_t n_points;
    int left;         /* direction of the current moves */
    int keyed;        /* keys are kept (MIN asks for them) */
} ew_order;

static inline int32_t ew_first(const ew_order *o) { return o->links[o->w].next; }

/* Write the ends of all connections in their order, in runs of those whose numbers follow one another: within a run the
 * next one need not wait for the link. */
static inline void ew_write_ends(const ew_order *o, int32_t *sources, int32_t *targets) {
    const ew_link *link;
    for (int64_t k = 0, e = ew_first(o); k < o->w; e = link->next) {
        do {
            link = &o->links[e++];
            sources[k] = link->source;
            targets[k++] = link->target;
        } while (link->next == e && k < o->w);
    }
}

/* Key of the access of x = target (side 1) or source (side 0) of e that follows this one: 2 * label + side, INT64_MIN if
 * it is the last. */
static inline int64_t ew_next_key(const ew_order *o, int32_t e, int side) {
    const ew_edge *edge = &o->edges[e];
    if (side) {
        const int32_t x = o->links[e].target;
        const int64_t k = edge->in_index + 1;
        if (k < o->in_start[x + 1]) return 2 * o->edges[o->in_edges[k]].label + 1;
        return o->out_start[x + 1] > o->out_start[x] ? 2 * o->edges[o->out_edges[o->out_start[x]]].label : INT64_MIN;
    }
    const int64_t k = edge->out_index + 1;
    return k < o->out_start[o->links[e].source + 1] ? 2 * o->edges[o->out_edges[k]].label : INT64_MIN;
}

/* The access of x before its k-th incoming (side 1) or outgoing one: the connection, or W; *side becomes its side. */
static inline int32_t ew_access_before(const ew_order *o, int32_t x, int64_t k, int *side) {
    if (!*side) {
        if (k > o->out_start[x]) return o->out_edges[k - 1];
        *side = 1;
        k = o->in_start[x + 1];
    }
    return k > o->in_start[x] ? o->in_edges[k - 1] : (int32_t)o->w;
}

static inline void ew_rekey(ew_order *o, int32_t e, int side) { o->edges[e].key[side] = ew_next_key(o, e, side); }

/* Let the access of x before its k-th incoming (side 1) or outgoing one know where that is. */
static inline void ew_rekey_before(ew_order *o, int32_t x, int64_t k, int side) {
    const int64_t key = 2 * o->edges[(side ? o->in_edges : o->out_edges)[k]].label + side;
    const int32_t e = ew_access_before(o, x, k, &side);
    if (e != o->w) o->edges[e].key[side] = key;
}

/* The k-th moved connection in ascending order of its old place. */
static inline ew_move *ew_by_old_place(const ew_order *o, int64_t k) {
    return &o->moves[o->left ? k : o->n_moves - 1 - k];
}

/* Renew all labels. The current moves keep labels for their old places, each before the unmoved connection of the
 * window that follows it. */
static void ew_relabel(ew_order *o) {
    const int64_t step = EW_SPAN / (o->w + o->n_moves); /* a quarter of the range stays free at both ends */
    int64_t label = -(EW_SPAN / 2), w = 0, passed = 0, until = 0;
    int32_t e = o->w;
    do {
        e = o->links[e].next;
        while (passed < o->n_moves) { /* look for the next of the window that stays, and pass the old places before it */
            while (until < o->n_moves && o->window[w] == ew_by_old_place(o, until)->edge) w++, until++;
            if (o->window[w] != e) break;
            for (; passed < until; passed++) ew_by_old_place(o, passed)->label = label += step;
            w++;
        }
        if (e != o->w) o->edges[e].label = label += step;
    } while (e != o->w);
    if (!o->keyed) return;
    for (int64_t x = 0; x < o->n; x++) o->first_key[x] = INT64_MIN;
    for (int32_t e = o->links[o->w].prev; e != o->w; e = o->links[e].prev) {
        const ew_link *link = &o->links[e];
        ew_edge *edge = &o->edges[e];
        edge->key[0] = o->first_key[link->source];
        edge->key[1] = o->first_key[link->target];
        o->first_key[link->source] = 2 * edge->label;
        o->first_key[link->target] = 2 * edge->label + 1;
    }
}

/* Number the connections along the order. */
static void ew_renumber(ew_order *o) {
    int32_t k = 0;
    o->n_moves = 0;
    for (int32_t e = ew_first(o); e != o->w; e = o->links[e].next, k++) {
        const ew_edge *edge = &o->edges[e];
        o->spare[k] = *edge;
        o->spare_links[k] = (ew_link){k + 1, k ? k - 1 : (int32_t)o->w, o->links[e].source, o->links[e].target};
        o->in_edges[edge->in_index] = o->out_edges[edge->out_index] = k;
        o->number[edge->name] = k;
        o->renamed[e] = k;
    }
    o->spare_links[k] = (ew_link){0, k - 1, 0, 0};
    ew_edge *const edges = o->spare;
    o->spare = o->edges;
    o->edges = edges;
    ew_link *const links = o->spare_links;
    o->spare_links = o->links;
    o->links = links;
    ew_relabel(o);
}

/* Borders between runs around the place between p and q (either may be the sentinel). */
static inline int ew_border(const ew_order *o, int32_t p, int32_t q) {
    return p != o->w && q != o->w && o->links[p].target != o->links[q].target;
}

static inline void ew_unlink(ew_order *o, int32_t e) {
    const int32_t p = o->links[e].prev, q = o->links[e].next;
    o->runs += ew_border(o, p, q) - ew_border(o, p, e) - ew_border(o, e, q);
    o->links[p].next = q;
    o->links[q].prev = p;
}

static inline void ew_link_after(ew_order *o, int32_t e, int32_t p) {
    const int32_t q = o->links[p].next;
    o->runs += ew_border(o, p, e) + ew_border(o, e, q) - ew_border(o, p, q);
    o->links[p].next = e;
    o->links[e].prev = p;
    o->links[e].next = q;
    o->links[q].prev = e;
}

/* A label between p and its successor, close to the end at which further connections are not expected; 0 on failure. */
static int ew_label_after(const ew_order *o, int32_t p, int64_t *label) {
    const int32_t q = o->links[p].next;
    const int64_t step = EW_SPAN / o->w / 4 + 1;
    if (p == o->w && q == o->w) return *label = 0, 1;
    if (p == o->w) return *label = o->edges[q].label - step, *label > -EW_SPAN;
    if (q == o->w) return *label = o->edges[p].label + step, *label < EW_SPAN;
    const int64_t gap = o->edges[q].label - o->edges[p].label;
    if (gap < 2) return 0;
    const int64_t part = gap / 64 ? gap / 64 : 1;
    *label = o->left ? o->edges[p].label + part : o->edges[q].label - part;
    return 1;
}

/* Let e, moved along the order, stand at `place` in the list of its target (left) or source, shifting those in between
 * by one. */
static void ew_reindex(ew_order *o, int32_t e, int32_t place) {
    const int side = o->left, other = !side;
    int32_t *const list = side ? o->in_edges : o->out_edges;
    ew_edge *const edges = o->edges, *const edge = &edges[e];
    const int32_t from = side ? edge->in_index : edge->out_index, x = side ? o->links[e].target : o->links[e].source;
    const int32_t step = place < from ? -1 : 1;
    if (side)
        for (int32_t at = from; at != place; at += step) edges[list[at] = list[at + step]].in_index = at;
    else
        for (int32_t at = from; at != place; at += step) edges[list[at] = list[at + step]].out_index = at;
    list[place] = e;
    *(side ? &edge->in_index : &edge->out_index) = place;
    if (!o->keyed) return;
    ew_rekey_before(o, side ? o->links[e].source : o->links[e].target, side ? edge->out_index : edge->in_index, other);
    ew_rekey_before(o, x, place, side);
    if (place == from) return;
    ew_rekey(o, e, side);
    if (place < from)
        ew_rekey(o, list[from], side);
    else
        ew_rekey_before(o, x, from, side);
}

/* Move e in direction o->left as published; 0 when the labels are used up. */
static int ew_move_one(ew_order *o, int32_t e) {
    ew_edge *const edge = &o->edges[e];
    const ew_link *const link = &o->links[e];
    const int32_t a = link->source, b = link->target;
    int32_t after; /* e comes to stand right after this one */
    if (o->left) {
        if (edge->out_index > o->out_start[a])
            after = o->out_edges[edge->out_index - 1];
        else
            after = o->in_start[a + 1] > o->in_start[a] ? o->in_edges[o->in_start[a + 1] - 1] : (int32_t)o->w;
        if (after == link->prev) return 1;
    } else {
        int32_t stop;
        if (edge->in_index + 1 < o->in_start[b + 1])
            stop = o->in_edges[edge->in_index + 1];
        else
            stop = o->out_start[b + 1] > o->out_start[b] ? o->out_edges[o->out_start[b]] : (int32_t)o->w;
        if (stop == link->next) return 1;
        after = o->links[stop].prev;
    }
    ew_move *m = &o->moves[o->n_moves];
    m->edge = e;
    m->before = link->prev;
    m->label = edge->label;
    int64_t label;
    ew_unlink(o, e);
    if (!ew_label_after(o, after, &label)) {
        ew_link_after(o, e, m->before);
        return 0;
    }
    ew_link_after(o, e, after);
    edge->label = label;
    o->n_moves++;
    if (o->left) {
        int32_t place = m->index = edge->in_index;
        while (place > o->in_start[b] && o->edges[o->in_edges[place - 1]].label > label) place--;
        ew_reindex(o, e, place);
    } else {
        int32_t place = m->index = edge->out_index;
        while (place + 1 < o->out_start[a + 1] && o->edges[o->out_edges[place + 1]].label < label) place++;
        ew_reindex(o, e, place);
    }
    return 1;
}

/* Undo moves of the current window, last first, until `left` are there. */
static void ew_undo_down_to(ew_order *o, int64_t left) {
    while (o->n_moves > left) {
        const ew_move *m = &o->moves[--o->n_moves];
        ew_unlink(o, m->edge);
        ew_link_after(o, m->edge, m->before);
        o->edges[m->edge].label = m->label;
        ew_reindex(o, m->edge, m->index);
    }
}

static void ew_undo(ew_order *o) { ew_undo_down_to(o, 0); }

/* Begin to move the window that starts at e and has up to `extra` more. */
static void ew_choose_window(ew_order *o, int32_t e, int64_t extra, int left) {
    o->left = left;
    o->n_window = 0;
    o->n_moves = 0;
    for (int64_t k = 0; k <= extra && e != o->w; k++, e = o->links[e].next) o->window[o->n_window++] = e;
    o->window[o->n_window] = e;
}

/* Move the connections `first` to `last` of the window, in the order of moving. */
static void ew_move_window(ew_order *o, int64_t first, int64_t last) {
    for (int64_t k = first; k < last; k++) {
        const int32_t moving = o->window[o->left ? k : o->n_window - 1 - k];
        if (ew_move_one(o, moving)) continue;
        ew_relabel(o);
        ew_move_one(o, moving); /* now there is room */
    }
}

static void ew_propose(ew_order *o, int32_t e, int64_t extra, int left) {
    ew_choose_window(o, e, extra, left);
    ew_move_window(o, 0, o->n_window);
}

static void ew_sort_by_label(const ew_order *o, int32_t *edges, int64_t n) { /* shell sort: n is a few hundred */
    int64_t step = 1;
    while (step < n / 3) step = 3 * step + 1;
    for (; step > 0; step /= 3)
        for (int64_t k = step; k < n; k++) {
            const int32_t e = edges[k];
            const int64_t label = o->edges[e].label;
            int64_t at = k;
            for (; at >= step && o->edges[edges[at - step]].label > label; at -= step) edges[at] = edges[at - step];
            edges[at] = e;
        }
}

/* Collect and mark the places where the course may begin to differ: moved connections, and what follows a gap they
 * left. */
static void ew_find_points(ew_order *o) {
    o->n_points = 0;
    for (int64_t k = 0; k < o->n_moves; k++) {
        const int32_t e = ew_by_old_place(o, k)->edge;
        o->mark[e] = EW_POINT | EW_MOVED;
        o->points[o->n_points++] = e;
    }
    for (int64_t k = 0; k < o->n_window; k++) {
        const int32_t follower = o->window[k + 1];
        if (!(o->mark[o->window[k]] & EW_MOVED) || follower == o->w || o->mark[follower]) continue;
        o->mark[follower] = EW_POINT;
        o->points[o->n_points++] = follower;
    }
    ew_sort_by_label(o, o->points, o->n_points);
}

static void ew_clear_points(ew_order *o) {
    for (int64_t k = 0; k < o->n_points; k++) o->mark[o->points[k]] = 0;
}
