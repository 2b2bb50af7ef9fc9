/* State search over downsets: best-first by peak (exact) and the level-by-level dynamic programme of Ahn et al. 2020.
 *
 * A state is named by its zero-indegree set (the operators that may run next), which determines the downset: everything
 * that neither is nor follows a member has run. Ahn et al. 2020, section 3.1, use the same signature. */
#pragma once

#include "schedule/graph.h"

#define SS_NONE UINT32_MAX
#define SS_INFINITE INT64_MAX
#define SS_CHAIN 16 /* operators of a safe chain at most */
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
    uint64_t *closure;      /* n_nodes x words: v and everything that follows it; the scratch lies behind it */
    /* pool of states */
    ss_state *states;
    uint64_t *keys;         /* n_states x words: zero-indegree sets */
    uint64_t n_states, capacity, max_states;
    /* hash table of indices into the pool */
    uint32_t *table;
    uint64_t table_mask;
    /* priority queue */
    ss_entry *heap;
    int64_t n_heap, heap_capacity;
    /* parameters and results */
    int64_t floor;          /* every peak counts as at least this: a proved lower bound, or the budget of a decision run */
    int64_t upper;          /* states of this peak or more are of no interest */
    int64_t pruned_peak;    /* smallest peak that `upper` cut off */
    int64_t key;            /* peak of the last state taken: a proved lower bound of a best-first run */
    uint64_t n_expanded, n_generated;
    uint32_t goal;
    int safe_moves;
    int32_t max_children;   /* > 0: only so many per state, the best by live bytes; then nothing is proved */
    int incomplete;
    /* level-by-level programme */
    uint64_t level_begin, level_end, level_next;
    int32_t level;
    /* scratch */
    sg_point here, child;
    uint64_t *key_scratch, *near;
    int64_t *deltas;
    int32_t *chosen, *stack;
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

static inline int ss_before(const ss_entry *a, const ss_entry *b) {
    if (a->peak != b->peak) return a->peak < b->peak;
    if (a->tie != b->tie) return a->tie < b->tie;
    return a->state > b->state; /* the younger first */
}

EW_HEAP(ss, ss_entry)

static inline int ss_push(ss_search *s, int64_t peak, int64_t tie, uint32_t state) {
    if (s->n_heap == s->heap_capacity) {
        ss_entry *grown = (ss_entry *)sg_grow(s->heap, &s->heap_capacity, sizeof *grown);
        if (!grown) return s->failed = -1;
        s->heap = grown;
    }
    ss_put(s->heap, &s->n_heap, (ss_entry){peak, tie, state});
    return 0;
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

/* A safe chain: operators v1, v2, ... each made ready by the one before, never above `limit`, whose live bytes at the end
 * are at most those at the start. Its downsets are its prefixes, so by submodularity running it at once costs nothing.
 * On success `p` is moved to the end of the chain and `trail` (if any) takes the operators run. Depth-first over the
 * branches, at most SS_CHAIN deep and 16 x SS_CHAIN operators looked at. */
static inline int ss_chain(ss_search *s, sg_point *p, int32_t at, int64_t limit, int32_t *trail, int32_t *n_trail) {
    const sg_graph *g = &s->g;
    int32_t *path = s->stack, *branch = s->stack + SS_CHAIN + 1, depth = 0, examined = 0;
    int64_t start = p->live, live = start;
    int64_t *gain = (int64_t *)(s->stack + 2 * ((SS_CHAIN + 2) & ~1) + 4);
    int32_t v = p->ready[at], found = 0;
    for (;;) {
        int32_t went = 0;
        if (v >= 0) {
            int64_t held = live + sg_allocated(g, p->done, v);
            examined++;
            if (held <= limit && depth < SS_CHAIN) {
                gain[depth] = live;
                live = held - sg_freed(g, p->done, v);
                sg_put(p->done, v);
                path[depth] = v;
                branch[depth++] = g->after_start[v];
                went = 1;
                if (live <= start) {
                    found = 1;
                    break;
                }
            }
        }
        if (!went && !depth) break;
        if (examined > 16 * SS_CHAIN) break;
        /* next branch of the deepest operator, or one step back */
        v = -1;
        while (depth) {
            int32_t last = path[depth - 1];
            while (branch[depth - 1] < g->after_start[last + 1]) {
                int32_t u = g->after[branch[depth - 1]++];
                if (sg_is_ready(g, p->done, u)) {
                    v = u;
                    break;
                }
            }
            if (v >= 0) break;
            sg_drop(p->done, last);
            live = gain[--depth];
        }
        if (v < 0) break;
    }
    for (int32_t i = depth; i-- > 0;) sg_drop(p->done, path[i]);
    if (!found) return 0;
    for (int32_t i = 0; i < depth; i++) {
        int32_t k = at;
        if (i)
            for (k = 0; p->ready[k] != path[i];) k++;
        if (trail) trail[(*n_trail)++] = path[i];
        sg_run(g, p, k);
    }
    return 1;
}

static inline int ss_is_safe(const sg_graph *g, const sg_point *p, int32_t v, int64_t limit) {
    int64_t allocated = sg_allocated(g, p->done, v);
    return p->live + allocated <= limit && allocated <= sg_freed(g, p->done, v);
}

/* Run what is safe under `limit` (a peak that cannot be avoided): operators, then chains, that do not raise live bytes.
 * `after` is the operator just run from a settled point, or -1. Where many operators are ready only those are tried that
 * share a buffer with one just run, or that it made ready: leaving a safe move out costs states, never correctness. */
static inline void ss_settle(ss_search *s, sg_point *p, int64_t limit, int32_t after, int32_t *trail, int32_t *n_trail) {
    const sg_graph *g = &s->g;
    if (!s->safe_moves) return;
    for (;;) {
        int32_t moved = 0, first = 0;
        if (after >= 0 && p->n_ready > SS_MANY) { /* bring the neighbours to the front */
            for (int32_t i = g->touches_start[after]; i < g->touches_start[after + 1]; i++)
                for (int32_t k = g->users_start[g->touches[i]]; k < g->users_start[g->touches[i] + 1]; k++)
                    sg_put(s->near, g->users[k]);
            for (int32_t i = 0; i < p->n_ready; i++)
                if (sg_has(s->near, p->ready[i])) {
                    int32_t v = p->ready[i];
                    p->ready[i] = p->ready[first];
                    p->ready[first++] = v;
                }
            memset(s->near, 0, (size_t)g->words * 8);
        } else
            first = p->n_ready;
        for (int32_t i = 0; i < first && i < p->n_ready; i++) {
            int32_t v = p->ready[i];
            if (!ss_is_safe(g, p, v, limit)) continue;
            if (trail) trail[(*n_trail)++] = v;
            sg_run(g, p, i--);
            after = v;
            moved = 1;
            if (p->n_ready > SS_MANY) break;
        }
        if (moved) continue;
        for (int32_t i = 0; i < first && !moved; i++) {
            int32_t v = p->ready[i];
            moved = ss_chain(s, p, i, limit, trail, n_trail);
            if (moved) after = v;
        }
        if (!moved) return;
    }
}

/* Settle `p`, whose path has the peak `peak`, and look one operator ahead: if every next operator needs more, that peak
 * cannot be avoided either, so it becomes the limit, and more may be safe under it. Returns the peak of any completion,
 * as far as this shows. */
static inline int64_t ss_close(ss_search *s, sg_point *p, int64_t peak, int32_t after, int32_t *trail,
                               int32_t *n_trail) {
    for (;;) {
        ss_settle(s, p, peak, after, trail, n_trail);
        after = -1;
        if (!s->safe_moves || !p->n_ready) return peak;
        int64_t least = SS_INFINITE;
        for (int32_t i = 0; i < p->n_ready && least > peak; i++) {
            int64_t transient = p->live + sg_allocated(&s->g, p->done, p->ready[i]);
            if (transient < least) least = transient;
        }
        if (least <= peak) return peak;
        peak = least;
    }
}

static inline void ss_destroy(ss_search *s) {
    free(s->closure);
    free(s->states);
    free(s->keys);
    free(s->table);
    free(s->heap);
    free(s->here.done);
    free(s->child.done);
    memset(s, 0, sizeof *s);
}

static inline int ss_create(ss_search *s, const sg_graph *g, int64_t floor, int64_t upper, uint64_t max_states,
                            int safe_moves, int32_t max_children) {
    memset(s, 0, sizeof *s);
    s->g = *g;
    s->floor = floor;
    s->key = floor;
    s->upper = upper;
    s->pruned_peak = SS_INFINITE;
    s->max_states = max_states < SS_NONE - 1 ? max_states : SS_NONE - 1;
    s->safe_moves = safe_moves;
    s->max_children = max_children;
    s->goal = SS_NONE;
    size_t n = (size_t)g->n_nodes, w = (size_t)g->words;
    s->closure = (uint64_t *)calloc((n + 2) * w + 3 * (SS_CHAIN + 4) + n + 1 + n / 2 + 1, 8);
    if (!s->closure || sg_point_new(g, &s->here) || sg_point_new(g, &s->child) || ss_rehash(s, 2048)) {
        ss_destroy(s);
        return -1;
    }
    s->key_scratch = s->closure + n * w;
    s->near = s->key_scratch + w;
    s->deltas = (int64_t *)(s->near + w);
    s->stack = (int32_t *)(s->deltas + n + 1);
    s->chosen = s->stack + 6 * (SS_CHAIN + 4);
    for (int32_t v = g->n_nodes; v-- > 0;) { /* file order is topological */
        uint64_t *row = s->closure + (uint64_t)v * w;
        sg_put(row, v);
        for (int32_t i = g->after_start[v]; i < g->after_start[v + 1]; i++)
            for (size_t k = (size_t)v >> 6; k < w; k++) row[k] |= s->closure[(uint64_t)g->after[i] * w + k];
    }
    sg_point_start(g, &s->here);
    floor = ss_close(s, &s->here, floor, -1, NULL, NULL);
    int is_new;
    uint32_t first = ss_intern(s, &s->here, &is_new);
    if (first == SS_NONE) {
        ss_destroy(s);
        return -1;
    }
    s->states[first].peak = floor;
    s->states[first].parent = SS_NONE;
    s->states[first].via = -1;
    s->level_end = 1;
    s->n_generated = 1;
    if (floor >= upper) s->pruned_peak = floor;
    if (s->here.n_done == g->n_nodes && floor < upper) s->goal = first;
    return ss_push(s, floor, -(int64_t)s->here.n_done, first);
}

enum { SS_RUNNING = 0, SS_SOLVED = 1, SS_EXHAUSTED = 2, SS_FULL = 3, SS_NO_MEMORY = 4 };

/* Choose what to run next from `here`: positions in its ready list whose peak stays below `upper`, those that leave the
 * fewest live bytes last, because among equals the youngest state is taken first. */
static inline int32_t ss_children(ss_search *s) {
    const sg_graph *g = &s->g;
    int32_t n = 0, most = s->max_children > 0 ? s->max_children : g->n_nodes;
    for (int32_t i = 0; i < s->here.n_ready; i++) {
        int32_t v = s->here.ready[i];
        int64_t allocated = sg_allocated(g, s->here.done, v), peak = s->here.live + allocated;
        if (peak >= s->upper) {
            if (peak < s->pruned_peak) s->pruned_peak = peak;
            continue;
        }
        int64_t delta = allocated - sg_freed(g, s->here.done, v);
        int32_t at = n;
        if (most < g->n_nodes || s->here.n_ready <= SS_MANY) { /* sorted by decreasing delta */
            if (n == most) {
                s->incomplete = 1;
                if (delta >= s->deltas[0]) continue;
                for (at = 0; at + 1 < n && s->deltas[at + 1] > delta; at++) {
                    s->deltas[at] = s->deltas[at + 1];
                    s->chosen[at] = s->chosen[at + 1];
                }
                n--;
            } else
                for (; at > 0 && s->deltas[at - 1] < delta; at--) {
                    s->deltas[at] = s->deltas[at - 1];
                    s->chosen[at] = s->chosen[at - 1];
                }
        }
        s->deltas[at] = delta;
        s->chosen[at] = i;
        n++;
    }
    return n;
}

/* Best-first: take the state of smallest peak, generate its children, settle them. Stops when the goal is reached with a
 * peak that no other path can undercut (SOLVED), or when nothing below `upper` is left (EXHAUSTED). */
static inline int ss_best_first(ss_search *s, uint64_t max_expanded) {
    const sg_graph *g = &s->g;
    uint64_t until = s->n_expanded + max_expanded;
    while (s->n_heap) {
        if (s->goal != SS_NONE && s->states[s->goal].peak <= s->heap[0].peak) {
            s->key = s->states[s->goal].peak;
            return SS_SOLVED;
        }
        if (s->n_expanded >= until) return SS_RUNNING;
        ss_entry entry = ss_pop(s->heap, &s->n_heap);
        uint32_t from = entry.state;
        if (s->states[from].expanded || entry.peak > s->states[from].peak || entry.peak >= s->upper) continue;
        s->key = entry.peak;
        s->states[from].expanded = 1;
        s->n_expanded++;
        ss_point_of(s, from, &s->here);
        int32_t n_children = ss_children(s);
        for (int32_t c = 0; c < n_children; c++) {
            int32_t i = s->chosen[c], v = s->here.ready[i];
            int64_t peak = s->here.live + sg_allocated(g, s->here.done, v);
            int raised = peak > entry.peak;
            if (!raised) peak = entry.peak;
            sg_point_copy(g, &s->child, &s->here);
            sg_run(g, &s->child, i);
            peak = ss_close(s, &s->child, peak, raised ? -1 : v, NULL, NULL);
            s->n_generated++;
            if (peak >= s->upper) {
                if (peak < s->pruned_peak) s->pruned_peak = peak;
                continue;
            }
            int is_new = 0;
            uint32_t to = ss_intern(s, &s->child, &is_new);
            if (to == SS_NONE) {
                /* keep the state open, so that the bound it stands for is not lost */
                s->states[from].expanded = 0;
                ss_push(s, entry.peak, entry.tie, from);
                return s->failed ? SS_NO_MEMORY : SS_FULL;
            }
            if (!is_new && s->states[to].peak <= peak) continue;
            s->states[to].peak = peak;
            s->states[to].parent = from;
            s->states[to].via = v;
            if (s->child.n_done == g->n_nodes) {
                s->goal = to;
                s->upper = peak;
            } else if (ss_push(s, peak, -(int64_t)s->child.n_done, to))
                return SS_NO_MEMORY;
        }
    }
    if (s->goal != SS_NONE) {
        s->key = s->states[s->goal].peak;
        return SS_SOLVED;
    }
    return s->incomplete ? SS_FULL : SS_EXHAUSTED;
}

/* Algorithm 1 of Ahn et al. 2020: all states with i operators run, then all with i + 1; per state the path of smallest
 * peak. `upper` is the soft budget plus one. max_level_states ends a run as the paper's time limit per step does. */
static inline int ss_levels(ss_search *s, uint64_t max_expanded, uint64_t max_level_states) {
    const sg_graph *g = &s->g;
    uint64_t until = s->n_expanded + max_expanded;
    while (s->level < g->n_nodes) {
        if (!s->level_next && s->level_begin < s->level_end) { /* a level begins: forget the table of the last one */
            s->level_next = s->level_end;
            memset(s->table, 0xFF, (s->table_mask + 1) * sizeof *s->table);
        }
        for (; s->level_begin < s->level_end; s->level_begin++) {
            if (s->n_expanded >= until) return SS_RUNNING;
            uint32_t from = (uint32_t)s->level_begin;
            s->n_expanded++;
            ss_point_of(s, from, &s->here);
            for (int32_t i = 0; i < s->here.n_ready; i++) {
                int32_t v = s->here.ready[i];
                int64_t peak = s->here.live + sg_allocated(g, s->here.done, v);
                if (peak < s->states[from].peak) peak = s->states[from].peak;
                if (peak >= s->upper) {
                    if (peak < s->pruned_peak) s->pruned_peak = peak;
                    continue;
                }
                sg_point_copy(g, &s->child, &s->here);
                sg_run(g, &s->child, i);
                s->n_generated++;
                int is_new = 0;
                uint32_t to = ss_intern(s, &s->child, &is_new);
                if (to == SS_NONE) return s->failed ? SS_NO_MEMORY : SS_FULL;
                if (is_new || peak < s->states[to].peak) {
                    s->states[to].peak = peak;
                    s->states[to].parent = from;
                    s->states[to].via = v;
                }
            }
            if (s->n_states - s->level_next > max_level_states) return SS_FULL;
        }
        if (s->n_states == s->level_next) return SS_EXHAUSTED;
        s->level_begin = s->level_next;
        s->level_end = s->n_states;
        s->level_next = 0;
        s->level++;
    }
    s->goal = (uint32_t)(s->n_states - 1);
    s->key = s->states[s->goal].peak;
    return SS_SOLVED;
}

/* Write the operators of the path to `state` to `order`; return how many. `limit_of_start` is the floor. */
static inline int32_t ss_path(ss_search *s, uint32_t state, int32_t *order, uint32_t *steps) {
    const sg_graph *g = &s->g;
    uint64_t n = 0;
    for (uint32_t at = state; at != SS_NONE; at = s->states[at].parent) steps[n++] = at;
    sg_point *p = &s->child;
    int32_t count = 0;
    sg_point_start(g, p);
    ss_close(s, p, s->floor, -1, order, &count);
    for (uint64_t i = n - 1; i-- > 0;) { /* from the stored parent, so that every step repeats what the search did */
        const ss_state *step = &s->states[steps[i]];
        ss_point_of(s, step->parent, p);
        int32_t k = 0;
        while (k < p->n_ready && p->ready[k] != step->via) k++;
        if (k == p->n_ready) return -1;
        order[count++] = step->via;
        int64_t peak = sg_run(g, p, k), before = s->states[step->parent].peak;
        ss_close(s, p, peak > before ? peak : before, peak > before ? -1 : step->via, order, &count);
    }
    return count;
}
