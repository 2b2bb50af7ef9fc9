/* The states of a search over downsets: pool, hash table, priority queue.
 *
 * A state is named by its zero-indegree set (the operators that may run next), which determines the downset: everything
 * that neither is nor follows a member has run. Ahn et al. 2020, section 3.1, use the same signature. */
#ifndef EDGEWATT_SCHEDULE_STATES_H
#define EDGEWATT_SCHEDULE_STATES_H

#include "schedule/graph.h"

#define SS_NONE UINT32_MAX
#define SS_INFINITE INT64_MAX
#define SS_MANY 64 /* ready operators beyond which only neighbours are tried as safe moves */

typedef struct {
    int64_t peak;    /* smallest peak of a path to this state found so far (at least the floor) */
    int64_t live;
    uint32_t parent;
    int32_t via;     /* operator that led here, -1 for the start */
    int32_t n_done;
    int32_t expanded;
} ss_state;

typedef struct {
    int64_t peak, tie;
    uint32_t state;
} ss_entry;

typedef struct {
    sg_graph g;
    uint64_t *closure;      /* n_nodes x words: v and everything that follows it */
    /* pool of states */
    ss_state *states;
    uint64_t *keys;         /* n_states x words: zero-indegree sets */
    uint64_t n_states, capacity, max_states;
    /* hash table of indices into the pool */
    uint32_t *table;
    uint64_t table_mask;
    /* priority queue */
    ss_entry *heap;
    uint64_t n_heap, heap_capacity;
    /* parameters and results */
    int64_t floor;          /* every peak counts as at least this: a proved lower bound, or the budget of a decision run */
    int64_t upper;          /* states of this peak or more are of no interest */
    int64_t pruned_peak;    /* smallest peak that `upper` cut off */
    int64_t key;            /* peak of the last state taken: a proved lower bound of a best-first run */
    uint64_t n_expanded, n_generated;
    uint32_t goal;
    int safe_moves, chain_length, tie_rule;
    int32_t max_children;   /* > 0: only so many per state, the best by live bytes; then nothing is proved */
    int incomplete;
    /* level-by-level programme */
    uint64_t level_begin, level_end, level_next;
    int32_t level;
    /* scratch */
    sg_point here, child;
    int32_t *stack;
    uint64_t *key_scratch, *near;
    int64_t *deltas;
    int32_t *chosen;
    int failed;             /* out of memory */
} ss_search;

static inline uint64_t ss_hash(const uint64_t *key, int32_t words) {
    uint64_t h = 0x9E3779B97F4A7C15u;
    for (int32_t i = 0; i < words; i++) {
        h ^= key[i] + 0x9E3779B97F4A7C15u + (h << 6) + (h >> 2);
        h *= 0xBF58476D1CE4E5B9u;
        h ^= h >> 29;
    }
    return h ^ (h >> 32);
}

static inline int ss_less(const ss_entry *a, const ss_entry *b) {
    if (a->peak != b->peak) return a->peak < b->peak;
    if (a->tie != b->tie) return a->tie < b->tie;
    return a->state > b->state; /* the younger first */
}

static inline int ss_push(ss_search *s, int64_t peak, int64_t tie, uint32_t state) {
    if (s->n_heap == s->heap_capacity) {
        uint64_t wanted = s->heap_capacity ? s->heap_capacity * 2 : 1024;
        ss_entry *grown = (ss_entry *)realloc(s->heap, wanted * sizeof *grown);
        if (!grown) return s->failed = -1;
        s->heap = grown;
        s->heap_capacity = wanted;
    }
    ss_entry entry = {peak, tie, state};
    uint64_t i = s->n_heap++;
    while (i > 0 && ss_less(&entry, &s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = entry;
    return 0;
}

static inline ss_entry ss_pop(ss_search *s) {
    ss_entry top = s->heap[0], last = s->heap[--s->n_heap];
    uint64_t i = 0;
    for (;;) {
        uint64_t c = 2 * i + 1;
        if (c >= s->n_heap) break;
        if (c + 1 < s->n_heap && ss_less(&s->heap[c + 1], &s->heap[c])) c++;
        if (!ss_less(&s->heap[c], &last)) break;
        s->heap[i] = s->heap[c];
        i = c;
    }
    if (s->n_heap) s->heap[i] = last;
    return top;
}

static inline int ss_rehash(ss_search *s, uint64_t size) {
    uint32_t *table = (uint32_t *)malloc(size * sizeof *table);
    if (!table) return s->failed = -1;
    memset(table, 0xFF, size * sizeof *table);
    free(s->table);
    s->table = table;
    s->table_mask = size - 1;
    int32_t w = s->g.words;
    for (uint64_t i = s->level_next; i < s->n_states; i++) {
        uint64_t at = ss_hash(s->keys + i * (uint64_t)w, w) & s->table_mask;
        while (table[at] != SS_NONE) at = (at + 1) & s->table_mask;
        table[at] = (uint32_t)i;
    }
    return 0;
}

/* Find the state whose zero-indegree set is that of `p`, or add it. Returns SS_NONE when the pool is full. */
static inline uint32_t ss_intern(ss_search *s, const sg_point *p, int *is_new) {
    int32_t w = s->g.words;
    uint64_t *key = s->key_scratch;
    memset(key, 0, (size_t)w * 8);
    for (int32_t i = 0; i < p->n_ready; i++) sg_put(key, p->ready[i]);
    uint64_t at = ss_hash(key, w) & s->table_mask;
    while (s->table[at] != SS_NONE) {
        if (!memcmp(s->keys + (uint64_t)s->table[at] * w, key, (size_t)w * 8)) {
            *is_new = 0;
            return s->table[at];
        }
        at = (at + 1) & s->table_mask;
    }
    if (s->n_states == s->capacity) {
        uint64_t wanted = s->capacity ? s->capacity * 2 : 1024;
        if (wanted > s->max_states) wanted = s->max_states;
        if (wanted <= s->capacity) return SS_NONE;
        ss_state *states = (ss_state *)realloc(s->states, wanted * sizeof *states);
        if (states) s->states = states;
        uint64_t *keys = (uint64_t *)realloc(s->keys, wanted * (uint64_t)w * 8);
        if (keys) s->keys = keys;
        if (!states || !keys) {
            s->failed = -1;
            return SS_NONE;
        }
        s->capacity = wanted;
    }
    uint32_t index = (uint32_t)s->n_states++;
    memcpy(s->keys + (uint64_t)index * w, key, (size_t)w * 8);
    s->table[at] = index;
    s->states[index].live = p->live;
    s->states[index].n_done = p->n_done;
    s->states[index].expanded = 0;
    *is_new = 1;
    if ((s->n_states - s->level_next) * 2 > s->table_mask && ss_rehash(s, (s->table_mask + 1) * 2)) return SS_NONE;
    return index;
}

/* Rebuild the point of a state from its zero-indegree set. */
static inline void ss_point_of(const ss_search *s, uint32_t state, sg_point *p) {
    int32_t w = s->g.words, n = s->g.n_nodes;
    const uint64_t *key = s->keys + (uint64_t)state * w;
    memset(p->done, 0xFF, (size_t)w * 8);
    if (n & 63) p->done[w - 1] = ((uint64_t)1 << (n & 63)) - 1;
    p->n_ready = 0;
    for (int32_t i = 0; i < w; i++)
        for (uint64_t bits = key[i]; bits; bits &= bits - 1) {
            int32_t v = i * 64 + __builtin_ctzll(bits);
            p->ready[p->n_ready++] = v;
            for (int32_t k = v >> 6; k < w; k++) p->done[k] &= ~s->closure[(uint64_t)v * w + k];
        }
    p->live = s->states[state].live;
    p->n_done = s->states[state].n_done;
}

#endif
