/* Orders made without search: Kahn's algorithm with a queue or a stack, and greedily by the bytes that stay live. */
#pragma once

#include "schedule/graph.h"

/* Operators without predecessors enter in file order; the successors of each follow, in file order, as their last
 * predecessor goes. Returns -1 where memory is short. */
static inline int sk_kahn(const sg_graph *g, int stack, int32_t *order) {
    int32_t n = g->n_nodes, count = 0, waiting = 0;
    int32_t *pending = (int32_t *)malloc((size_t)n * 8), *ready = pending + n;
    if (!pending) return -1;
    for (int32_t v = 0; v < n; v++)
        if (!(pending[v] = g->before_start[v + 1] - g->before_start[v])) ready[waiting++] = v;
    for (int32_t head = 0; stack ? waiting > 0 : head < waiting; head++) {
        int32_t v = stack ? ready[--waiting] : ready[head];
        order[count++] = v;
        for (int32_t i = g->after_start[v]; i < g->after_start[v + 1]; i++)
            if (!--pending[g->after[i]]) ready[waiting++] = g->after[i];
    }
    free(pending);
    return 0;
}

typedef struct { int64_t change, allocated; int32_t v; } sk_entry; /* bytes that v leaves more, and allocates */

static inline int sk_before(const sk_entry *a, const sk_entry *b) {
    if (a->change != b->change) return a->change < b->change;
    return a->allocated != b->allocated ? a->allocated < b->allocated : a->v < b->v;
}

EW_HEAP(sk, sk_entry)

typedef struct {
    int32_t *pending;  /* node -> predecessors that have not run */
    int32_t *left;     /* buffer -> users that have not run */
    uint8_t *begun;    /* buffer -> a writer has run */
    uint8_t *state;    /* node -> 0 waits, 1 ready, 2 has run */
    sk_entry *weight;  /* node -> its present entry */
    sk_entry *heap;
    int64_t n_heap;
} sk_greedy_state;

static inline void sk_weigh(const sg_graph *g, sk_greedy_state *s, int32_t v) {
    sk_entry entry = {0, 0, v};
    for (int32_t i = g->writes_start[v]; i < g->writes_start[v + 1]; i++)
        if (!s->begun[g->writes[i]]) entry.allocated += g->bytes[g->writes[i]];
    entry.change = entry.allocated;
    for (int32_t i = g->touches_start[v]; i < g->touches_start[v + 1]; i++)
        if (s->left[g->touches[i]] == 1 && !g->retained[g->touches[i]]) entry.change -= g->bytes[g->touches[i]];
    s->weight[v] = entry;
    sk_put(s->heap, &s->n_heap, entry);
}

/* Always run the ready operator that leaves the fewest live bytes (ties: smaller transient, then file order). What an
 * operator adds only changes when a buffer that it shares is first written or has one user left, so it is weighed again
 * then: O(edges x log). Returns -1 where memory is short. */
static inline int sk_greedy(const sg_graph *g, int32_t *order) {
    size_t n = (size_t)g->n_nodes, nb = (size_t)g->n_buffers, users = (size_t)g->users_start[nb];
    int32_t count = 0;
    sk_greedy_state s;
    s.weight = (sk_entry *)malloc((2 * n + 2 * users) * sizeof *s.weight + 5 * (n + nb));
    if (!s.weight) return -1;
    s.heap = s.weight + n;
    s.pending = (int32_t *)(s.heap + n + 2 * users);
    s.left = s.pending + n;
    s.begun = (uint8_t *)(s.left + nb);
    s.state = s.begun + nb;
    memset(s.begun, 0, nb + n);
    s.n_heap = 0;
    for (size_t b = 0; b < nb; b++) s.left[b] = g->users_start[b + 1] - g->users_start[b];
    for (int32_t v = 0; v < g->n_nodes; v++)
        if (!(s.pending[v] = g->before_start[v + 1] - g->before_start[v])) {
            s.state[v] = 1;
            sk_weigh(g, &s, v);
        }
    while (s.n_heap) {
        sk_entry top = sk_pop(s.heap, &s.n_heap);
        int32_t v = top.v;
        if (s.state[v] == 2 || top.change != s.weight[v].change || top.allocated != s.weight[v].allocated) continue;
        s.state[v] = 2;
        order[count++] = v;
        for (int32_t i = g->touches_start[v]; i < g->touches_start[v + 1]; i++) s.left[g->touches[i]]--;
        for (int32_t i = g->writes_start[v]; i < g->writes_start[v + 1]; i++)
            if (!s.begun[g->writes[i]]) s.begun[g->writes[i]] = 2; /* by this operator */
        for (int32_t i = g->touches_start[v]; i < g->touches_start[v + 1]; i++) {
            int32_t b = g->touches[i];
            if (s.begun[b] != 2 && s.left[b] != 1) continue;
            s.begun[b] = s.begun[b] != 0;
            for (int32_t k = g->users_start[b]; k < g->users_start[b + 1]; k++)
                if (s.state[g->users[k]] == 1) sk_weigh(g, &s, g->users[k]);
        }
        for (int32_t i = g->after_start[v]; i < g->after_start[v + 1]; i++)
            if (!--s.pending[g->after[i]]) {
                s.state[g->after[i]] = 1;
                sk_weigh(g, &s, g->after[i]);
            }
    }
    free(s.weight);
    return 0;
}
