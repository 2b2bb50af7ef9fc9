/* Operator graphs as flat arrays, downsets (sets of executed operators) as bitsets of any width, and the footprint rule:
 * running v allocates every buffer that v is the first writer of, and afterwards frees every buffer, outputs excepted,
 * all of whose writers and readers have run. live(S) is a function of the downset S alone, and submodular:
 * the more has run, the less memory any operator still adds (see reorder/operators/schedule/state_search.py for what follows). */
#pragma once

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
    const uint8_t *retained;                    /* buffer -> 1 for outputs */
    int64_t live_at_start;                  /* 0; in a reversed graph the outputs */
} sg_graph;

/* Rows listed by what they hold: to[to_start[x]] ... are the rows that hold x, ascending. */
static inline void sg_transpose(int32_t rows, const int32_t *start, const int32_t *values, int32_t columns,
                                int32_t *to_start, int32_t *to) {
    memset(to_start, 0, ((size_t)columns + 1) * 4);
    for (int32_t i = 0; i < start[rows]; i++) to_start[values[i] + 1]++;
    for (int32_t x = 0; x < columns; x++) to_start[x + 1] += to_start[x];
    for (int32_t row = 0; row < rows; row++)
        for (int32_t i = start[row]; i < start[row + 1]; i++) to[to_start[values[i]]++] = row;
    for (int32_t x = columns; x > 0; x--) to_start[x] = to_start[x - 1];
    to_start[0] = 0;
}

/* Set what follows from before, writes and reads: after, touches, writers, users. Returns the block that holds them, NULL
 * where memory is short. */
static inline void *sg_complete(sg_graph *g) {
    size_t n = (size_t)g->n_nodes + 1, m = (size_t)g->n_buffers + 1, edges = (size_t)g->before_start[n - 1];
    size_t written = (size_t)g->writes_start[n - 1], touched = written + (size_t)g->reads_start[n - 1];
    int32_t *block = (int32_t *)malloc((2 * n + 2 * m + edges + written + 2 * touched) * 4), *touches = block + n;
    if (!block) return NULL;
    int32_t *after_start = touches + touched, *after = after_start + n, *writers_start = after + edges;
    int32_t *writers = writers_start + m, *users_start = writers + written, *users = users_start + m, count = 0;
    for (int32_t v = 0; v < g->n_nodes; v++) {
        block[v] = count;
        for (int32_t i = g->reads_start[v]; i < g->reads_start[v + 1]; i++) touches[count++] = g->reads[i];
        for (int32_t i = g->writes_start[v]; i < g->writes_start[v + 1]; i++) touches[count++] = g->writes[i];
    }
    block[n - 1] = count;
    sg_transpose(g->n_nodes, g->before_start, g->before, g->n_nodes, after_start, after);
    sg_transpose(g->n_nodes, g->writes_start, g->writes, g->n_buffers, writers_start, writers);
    sg_transpose(g->n_nodes, block, touches, g->n_buffers, users_start, users);
    g->touches_start = block, g->touches = touches;
    g->after_start = after_start, g->after = after;
    g->writers_start = writers_start, g->writers = writers;
    g->users_start = users_start, g->users = users;
    return block;
}

/* Make r the reversed graph of g (OperatorProblem.reversed). Returns the block that holds its rows, NULL where memory is
 * short. */
static inline void *sg_reverse(const sg_graph *g, sg_graph *r) {
    size_t n = (size_t)g->n_nodes + 1, m = (size_t)g->n_buffers + 1, edges = (size_t)g->before_start[n - 1];
    size_t written = (size_t)g->writes_start[n - 1], touched = (size_t)g->touches_start[n - 1];
    size_t words = 5 * n + 2 * m + 2 * edges + 2 * touched + 2 * written;
    int32_t *before_start = (int32_t *)malloc(words * 4 + m);
    if (!before_start) return NULL;
    int32_t *before = before_start + n, *after_start = before + edges;
    int32_t *after = after_start + n, *writes_start = after + edges, *writes = writes_start + n;
    int32_t *reads_start = writes + touched, *touches_start = reads_start + n, *touches = touches_start + n;
    int32_t *writers_start = touches + written, *writers = writers_start + m;
    int32_t *users_start = writers + touched, *users = users_start + m;
    uint8_t *retained = (uint8_t *)(users + written);
    int32_t n_before = 0, n_after = 0, n_writes = 0, n_touches = 0, last = g->n_nodes - 1;
    *r = *g;
    r->live_at_start = 0;
    for (int32_t at = 0; at <= g->n_nodes; at++) {
        before_start[at] = n_before;
        after_start[at] = n_after;
        writes_start[at] = n_writes;
        touches_start[at] = n_touches;
        reads_start[at] = 0;
        if (at > last) break;
        int32_t v = last - at;
        for (int32_t i = g->after_start[v]; i < g->after_start[v + 1]; i++) before[n_before++] = last - g->after[i];
        for (int32_t i = g->before_start[v]; i < g->before_start[v + 1]; i++) after[n_after++] = last - g->before[i];
        for (int32_t i = g->touches_start[v]; i < g->touches_start[v + 1]; i++)
            if (!g->retained[g->touches[i]]) writes[n_writes++] = g->touches[i];
        for (int32_t i = g->writes_start[v]; i < g->writes_start[v + 1]; i++) touches[n_touches++] = g->writes[i];
    }
    for (int32_t b = 0; b < g->n_buffers; b++)
        if (g->retained[b]) r->live_at_start += g->bytes[b];
    memset(retained, 0, m);
    sg_transpose(g->n_nodes, writes_start, writes, g->n_buffers, writers_start, writers);
    sg_transpose(g->n_nodes, touches_start, touches, g->n_buffers, users_start, users);
    r->before_start = before_start, r->before = before;
    r->after_start = after_start, r->after = after;
    r->writes_start = writes_start, r->writes = writes;
    r->reads_start = reads_start, r->reads = before;
    r->touches_start = touches_start, r->touches = touches;
    r->writers_start = writers_start, r->writers = writers;
    r->users_start = users_start, r->users = users;
    r->retained = retained;
    return before_start;
}

/* Double the room for `size` bytes each at `array`, from 1024 of them. Returns the array, NULL where memory is short. */
static inline void *sg_grow(void *array, int64_t *room, size_t size) {
    int64_t wanted = *room ? *room * 2 : 1024;
    void *grown = realloc(array, (size_t)wanted * size);
    if (grown) *room = wanted;
    return grown;
}

/* Define the heap NAME_put, NAME_pop of entries of which the one that is NAME_before all others comes first. */
#define SG_HEAP(name, entry_t) \
    static inline void name##_put(entry_t *heap, int64_t *count, entry_t entry) { \
        int64_t at = (*count)++; \
        for (; at && name##_before(&entry, &heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2]; \
        heap[at] = entry; \
    } \
    static inline entry_t name##_pop(entry_t *heap, int64_t *count) { \
        entry_t top = heap[0], last = heap[--*count]; \
        int64_t at = 0; \
        for (int64_t child = 1; child < *count; child = 2 * at + 1) { \
            if (child + 1 < *count && name##_before(&heap[child + 1], &heap[child])) child++; \
            if (!name##_before(&heap[child], &last)) break; \
            heap[at] = heap[child]; \
            at = child; \
        } \
        heap[at] = last; \
        return top; \
    }

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
        int32_t b = g->touches[i], over = !g->retained[b];
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
    int64_t held = p->live + sg_allocated(g, p->done, v);
    p->live = held - sg_freed(g, p->done, v);
    p->ready[at] = p->ready[--p->n_ready];
    sg_put(p->done, v);
    p->n_done++;
    for (int32_t i = g->after_start[v]; i < g->after_start[v + 1]; i++)
        if (sg_is_ready(g, p->done, g->after[i])) p->ready[p->n_ready++] = g->after[i];
    return held;
}
