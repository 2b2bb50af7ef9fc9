/* Operator graphs as flat arrays, downsets (sets of executed operators) as bitsets of any width, and the footprint rule:
 * running v allocates every buffer that v is the first writer of, and afterwards frees every buffer, outputs excepted,
 * all of whose writers and readers have run. live(S) is a function of the downset S alone, and submodular:
 * the more has run, the less memory any operator still adds (see reorder/schedule/search.py for what follows). */
#ifndef EDGEWATT_SCHEDULE_GRAPH_H
#define EDGEWATT_SCHEDULE_GRAPH_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int32_t n_nodes, n_buffers, words;
    const int32_t *before_start, *before;   /* node -> predecessors, distinct */
    const int32_t *after_start, *after;     /* node -> successors, distinct */
    const int32_t *writes_start, *writes;   /* node -> buffers written */
    const int32_t *reads_start, *reads;     /* node -> buffers read, in listed order, own buffers left out */
    const int32_t *touches_start, *touches; /* node -> buffers read or written, distinct */
    const int32_t *writers_start, *writers; /* buffer -> nodes */
    const int32_t *users_start, *users;     /* buffer -> nodes that read or write it, distinct */
    const int64_t *bytes;                   /* buffer -> size */
    const int64_t *work;                    /* node -> further bytes needed while it runs */
    const uint8_t *kept;                    /* buffer -> 1 for outputs */
    int64_t live_at_start;                  /* 0; in a reversed graph the outputs */
} sg_graph;

static inline int sg_has(const uint64_t *set, int32_t v) { return (int)((set[v >> 6] >> (v & 63)) & 1); }
static inline void sg_put(uint64_t *set, int32_t v) { set[v >> 6] |= (uint64_t)1 << (v & 63); }
static inline void sg_drop(uint64_t *set, int32_t v) { set[v >> 6] &= ~((uint64_t)1 << (v & 63)); }

/* Bytes that running v allocates, given the executed set `done` without v. */
static inline int64_t sg_allocated(const sg_graph *g, const uint64_t *done, int32_t v) {
    int64_t total = 0;
    for (int32_t i = g->writes_start[v]; i < g->writes_start[v + 1]; i++) {
        int32_t b = g->writes[i], begun = 0;
        for (int32_t k = g->writers_start[b]; k < g->writers_start[b + 1] && !begun; k++)
            begun = sg_has(done, g->writers[k]);
        if (!begun) total += g->bytes[b];
    }
    return total;
}

/* Bytes that are freed after v, given the executed set `done` without v. */
static inline int64_t sg_freed(const sg_graph *g, const uint64_t *done, int32_t v) {
    int64_t total = 0;
    for (int32_t i = g->touches_start[v]; i < g->touches_start[v + 1]; i++) {
        int32_t b = g->touches[i], over = !g->kept[b];
        for (int32_t k = g->users_start[b]; k < g->users_start[b + 1] && over; k++)
            over = g->users[k] == v || sg_has(done, g->users[k]);
        if (over) total += g->bytes[b];
    }
    return total;
}

static inline int sg_is_ready(const sg_graph *g, const uint64_t *done, int32_t v) {
    for (int32_t i = g->before_start[v]; i < g->before_start[v + 1]; i++)
        if (!sg_has(done, g->before[i])) return 0;
    return 1;
}

/* A point on a path: executed set, operators that may run next, live bytes. */
typedef struct {
    uint64_t *done;
    int32_t *ready;
    int32_t n_ready, n_done;
    int64_t live;
} sg_point;

static inline int sg_point_new(const sg_graph *g, sg_point *p) {
    memset(p, 0, sizeof *p);
    p->done = (uint64_t *)calloc((size_t)g->words, 8);
    p->ready = (int32_t *)malloc(((size_t)g->n_nodes + 1) * 4);
    return p->done && p->ready ? 0 : -1;
}

static inline void sg_point_free(sg_point *p) {
    free(p->done);
    free(p->ready);
    memset(p, 0, sizeof *p);
}

static inline void sg_point_start(const sg_graph *g, sg_point *p) {
    memset(p->done, 0, (size_t)g->words * 8);
    p->n_ready = p->n_done = 0;
    p->live = g->live_at_start;
    for (int32_t v = 0; v < g->n_nodes; v++)
        if (g->before_start[v] == g->before_start[v + 1]) p->ready[p->n_ready++] = v;
}

static inline void sg_point_copy(const sg_graph *g, sg_point *to, const sg_point *from) {
    memcpy(to->done, from->done, (size_t)g->words * 8);
    memcpy(to->ready, from->ready, (size_t)from->n_ready * 4);
    to->n_ready = from->n_ready;
    to->n_done = from->n_done;
    to->live = from->live;
}

/* Run the operator at position `at` of the ready list; return the bytes live while it runs. */
static inline int64_t sg_run(const sg_graph *g, sg_point *p, int32_t at) {
    int32_t v = p->ready[at];
    int64_t held = p->live + sg_allocated(g, p->done, v), transient = held + g->work[v];
    p->live = held - sg_freed(g, p->done, v);
    p->ready[at] = p->ready[--p->n_ready];
    sg_put(p->done, v);
    p->n_done++;
    for (int32_t i = g->after_start[v]; i < g->after_start[v + 1]; i++)
        if (sg_is_ready(g, p->done, g->after[i])) p->ready[p->n_ready++] = g->after[i];
    return transient;
}

#endif
