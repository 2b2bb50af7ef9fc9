/* An order of connections that can be changed and changed back: the moves of Connection Reordering.
 *
 * The order is a linked list; `label` grows along it, so two connections compare without positions. Each neuron keeps
 * its incoming and its outgoing connections in processing order; all incoming ones come first (topological). Hence the
 * connection a move stops at (Gleinig et al. 2023, section IV-A) is known at once:
 *   left:  the predecessor in the source's outgoing list, else the source's last incoming connection, else the front;
 *   right: the successor in the target's incoming list, else the target's first outgoing connection, else the end.
 * A move left leaves the source's outgoing list as it is and changes only the target's incoming list; right conversely. */
#ifndef EDGEWATT_CR_ORDER_H
#define EDGEWATT_CR_ORDER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CR_SPAN ((int64_t)1 << 60) /* labels lie in +-CR_SPAN, so that 2 * label + side fits 63 bits */

typedef struct {
    int32_t edge, before; /* the connection moved, and what stood before it when it was */
    int32_t index;        /* its place in the changed list of its target (left) or source (right) */
    int64_t label;        /* its old label */
} cr_move;

typedef struct {
    int64_t w, n;
    const int32_t *source, *target;         /* [W], by connection */
    const int64_t *out_start, *in_start;    /* [N + 1] */
    int32_t *out_edges, *in_edges;          /* [W], by neuron, in processing order */
    int32_t *out_index, *in_index;          /* [W] place of a connection in those two */
    int32_t *next, *prev;                   /* [W + 1]; entry W stands before the first and after the last */
    int64_t *label;                         /* [W] */
    int64_t runs;
    int32_t *window;  /* connections of the current window in their old order, then the one after it */
    int64_t n_window;
    cr_move *moves;   /* those that changed place, in the order of moving */
    int64_t n_moves;
    int left;         /* direction of the current moves */
    int relabelled;   /* labels were renewed between the current moves */
} cr_order;

static inline int32_t cr_first(const cr_order *o) { return o->next[o->w]; }

static void cr_relabel(cr_order *o) {
    const int64_t step = 2 * (CR_SPAN / 2) / o->w; /* a quarter of the range stays free at both ends */
    int64_t label = -(CR_SPAN / 2);
    for (int32_t e = cr_first(o); e != o->w; e = o->next[e]) o->label[e] = label += step;
}

/* Borders between runs around the place between p and q (either may be the sentinel). */
static inline int cr_border(const cr_order *o, int32_t p, int32_t q) {
    return p != o->w && q != o->w && o->target[p] != o->target[q];
}

static inline void cr_unlink(cr_order *o, int32_t e) {
    const int32_t p = o->prev[e], q = o->next[e];
    o->runs += cr_border(o, p, q) - cr_border(o, p, e) - cr_border(o, e, q);
    o->next[p] = q;
    o->prev[q] = p;
}

static inline void cr_link_after(cr_order *o, int32_t e, int32_t p) {
    const int32_t q = o->next[p];
    o->runs += cr_border(o, p, e) + cr_border(o, e, q) - cr_border(o, p, q);
    o->next[p] = e;
    o->prev[e] = p;
    o->next[e] = q;
    o->prev[q] = e;
}

/* A label between p and its successor, close to the end at which further connections are not expected; 0 on failure. */
static int cr_label_after(const cr_order *o, int32_t p, int64_t *label) {
    const int32_t q = o->next[p];
    const int64_t step = CR_SPAN / o->w / 4 + 1;
    if (p == o->w && q == o->w) return *label = 0, 1;
    if (p == o->w) return *label = o->label[q] - step, *label > -CR_SPAN;
    if (q == o->w) return *label = o->label[p] + step, *label < CR_SPAN;
    const int64_t gap = o->label[q] - o->label[p];
    if (gap < 2) return 0;
    const int64_t part = gap / 16 ? gap / 16 : 1;
    *label = o->left ? o->label[p] + part : o->label[q] - part;
    return 1;
}

/* Let e stand at `place` in the list it lies in, shifting those in between by one. */
static void cr_reindex(int32_t *edges, int32_t *index, int32_t e, int32_t place) {
    int32_t at = index[e];
    for (; at > place; at--) index[edges[at] = edges[at - 1]] = at;
    for (; at < place; at++) index[edges[at] = edges[at + 1]] = at;
    edges[place] = e;
    index[e] = place;
}

/* Renew all labels between two moves of one window. The window was contiguous, so an old place is well described by the
 * unmoved connection that follows it. */
static void cr_relabel_between_moves(cr_order *o) {
    cr_relabel(o);
    o->relabelled = 1;
    int64_t w = o->n_window, k = o->n_moves - 1, label = CR_SPAN;
    for (; w >= 0 && k >= 0; w--) { /* backwards through window and moves, both in old order */
        cr_move *m = &o->moves[o->left ? k : o->n_moves - 1 - k];
        if (o->window[w] == m->edge) {
            m->label = label;
            k--;
        } else if (o->window[w] != o->w)
            label = o->label[o->window[w]] - 1;
    }
}

/* Move e in direction o->left as published; 0 when the labels are used up. */
static int cr_move_one(cr_order *o, int32_t e) {
    const int32_t a = o->source[e], b = o->target[e];
    int32_t after; /* e comes to stand right after this one */
    if (o->left) {
        if (o->out_index[e] > o->out_start[a])
            after = o->out_edges[o->out_index[e] - 1];
        else
            after = o->in_start[a + 1] > o->in_start[a] ? o->in_edges[o->in_start[a + 1] - 1] : (int32_t)o->w;
        if (after == o->prev[e]) return 1;
    } else {
        int32_t stop;
        if (o->in_index[e] + 1 < o->in_start[b + 1])
            stop = o->in_edges[o->in_index[e] + 1];
        else
            stop = o->out_start[b + 1] > o->out_start[b] ? o->out_edges[o->out_start[b]] : (int32_t)o->w;
        if (stop == o->next[e]) return 1;
        after = o->prev[stop];
    }
    cr_move *m = &o->moves[o->n_moves];
    m->edge = e;
    m->before = o->prev[e];
    m->label = o->label[e];
    int64_t label;
    cr_unlink(o, e);
    if (!cr_label_after(o, after, &label)) {
        cr_link_after(o, e, m->before);
        return 0;
    }
    cr_link_after(o, e, after);
    o->label[e] = label;
    o->n_moves++;
    if (o->left) {
        int32_t place = m->index = o->in_index[e];
        while (place > o->in_start[b] && o->label[o->in_edges[place - 1]] > label) place--;
        cr_reindex(o->in_edges, o->in_index, e, place);
    } else {
        int32_t place = m->index = o->out_index[e];
        while (place + 1 < o->out_start[a + 1] && o->label[o->out_edges[place + 1]] < label) place++;
        cr_reindex(o->out_edges, o->out_index, e, place);
    }
    return 1;
}

/* Undo all moves of the current window, last first. */
static void cr_undo(cr_order *o) {
    while (o->n_moves) {
        const cr_move *m = &o->moves[--o->n_moves];
        cr_unlink(o, m->edge);
        cr_link_after(o, m->edge, m->before);
        o->label[m->edge] = m->label;
        if (o->left)
            cr_reindex(o->in_edges, o->in_index, m->edge, m->index);
        else
            cr_reindex(o->out_edges, o->out_index, m->edge, m->index);
    }
    if (o->relabelled) cr_relabel(o);
    o->relabelled = 0;
}

/* Move the connections of the window that starts at e and has up to `extra` more. */
static void cr_propose(cr_order *o, int32_t e, int64_t extra, int left) {
    o->left = left;
    o->n_window = 0;
    o->n_moves = 0;
    o->relabelled = 0;
    for (int64_t k = 0; k <= extra && e != o->w; k++, e = o->next[e]) o->window[o->n_window++] = e;
    o->window[o->n_window] = e;
    for (int64_t k = 0; k < o->n_window; k++) {
        const int32_t moving = o->window[left ? k : o->n_window - 1 - k];
        if (cr_move_one(o, moving)) continue;
        cr_relabel_between_moves(o);
        cr_move_one(o, moving); /* now there is room */
    }
}

/* The k-th moved connection in ascending order of its old place. */
static inline const cr_move *cr_by_old_place(const cr_order *o, int64_t k) {
    return &o->moves[o->left ? k : o->n_moves - 1 - k];
}

#endif
