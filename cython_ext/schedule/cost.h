/* What an operator order costs: footprint, arena, off-chip traffic; and local search over orders. */
#pragma once

#include "arena/fit.h"
#include "common/random.h"
#include "schedule/graph.h"

#include <time.h>

#define SC_ALIGNMENT 64
#define SC_NEVER INT64_MAX
#define SC_LATE (-2)

enum { SC_LINEAR = 0, SC_SIZE_BEST = 1, SC_SIZE_FIRST = 2, SC_TRAFFIC = 3 };

typedef struct { int64_t next; int64_t block; } sc_entry;

typedef struct {
    const sg_graph *g;
    void *memory;               /* of all arrays but `heap` and `log` */
    uint64_t *done;
    int64_t *by_offset;         /* buffers in the arena */
    int64_t *first, *end;       /* buffer -> its first step, and the one behind its last */
    int64_t *sequence;          /* in which buffers are placed */
    /* traffic */
    int64_t capacity, block;    /* on-chip blocks, bytes per block */
    int64_t *base;              /* buffer -> number of its first block, in order of first writers */
    int64_t n_blocks, n_events;
    int64_t *event_at;          /* buffer access -> index of its first block access */
    int64_t *event_next;        /* buffer access -> the next access to the same buffer, or -1 */
    int32_t *event_buffer;
    uint8_t *event_kind;        /* 0 read, 1 plain write, 2 read-modify-write */
    int64_t *next_use;          /* block -> index of its next access, -1 when not resident */
    uint8_t *dirty;
    int32_t *owner;             /* block -> buffer */
    sc_entry *heap;
    int64_t n_heap, heap_capacity;
    int64_t read_bytes, written_bytes;
    int64_t *changed;           /* block -> access that last wrote it */
    int64_t *log;               /* if retained: (access, block, is_write, changed) of every off-chip transfer */
    int64_t n_log, log_capacity, most_log;
    int keep_log;
    int64_t stop_ns;            /* of sc_now, when counting traffic is given up; 0: never */
} sc_scratch;

static inline int64_t sc_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline void sc_destroy(sc_scratch *s) {
    free(s->memory);
    free(s->heap);
    free(s->log);
    memset(s, 0, sizeof *s);
}

static inline int sc_note(sc_scratch *s, int64_t event, int64_t block, int64_t is_write) {
    if (!s->keep_log) return 0;
    if (s->n_log == s->most_log) return -1;
    if (s->n_log == s->log_capacity) {
        int64_t *grown = (int64_t *)sg_grow(s->log, &s->log_capacity, 4 * sizeof *grown);
        if (!grown) return -1;
        s->log = grown;
    }
    int64_t *entry = s->log + 4 * s->n_log++;
    entry[0] = event;
    entry[1] = block;
    entry[2] = is_write;
    entry[3] = s->changed[block];
    return 0;
}

static inline int64_t sc_blocks_of(const sc_scratch *s, int32_t b) {
    return (s->g->bytes[b] - 1) / s->block + 1;
}

/* Give every array its place in `memory` (NULL: only count) and return the bytes of all. */
static inline size_t sc_lay_out(sc_scratch *s, void *memory) {
    size_t at = 0, nb = (size_t)s->g->n_buffers + 1, ne = (size_t)s->n_events + 1, nk = (size_t)s->n_blocks;
#define SC_PLACE(array, n) \
    (s->array = (void *)((uintptr_t)memory + at), at += ((n) * sizeof *s->array + 7) & ~(size_t)7)
    SC_PLACE(done, (size_t)s->g->words);
    SC_PLACE(by_offset, nb);
    SC_PLACE(first, nb);
    SC_PLACE(end, nb);
    SC_PLACE(sequence, nb);
    if (!s->block) return at;
    SC_PLACE(base, nb);
    SC_PLACE(event_at, ne);
    SC_PLACE(event_next, ne);
    SC_PLACE(event_buffer, ne);
    SC_PLACE(event_kind, ne);
    SC_PLACE(next_use, nk);
    SC_PLACE(changed, nk);
    SC_PLACE(owner, nk);
    SC_PLACE(dirty, nk);
#undef SC_PLACE
    return at;
}

/* block = 0: no traffic will be asked for. The caller has checked that the numbers of blocks fit. */
static inline int sc_create(sc_scratch *s, const sg_graph *g, int64_t capacity, int64_t block) {
    memset(s, 0, sizeof *s);
    s->g = g;
    s->capacity = capacity;
    s->block = block;
    for (int32_t b = 0; block && b < g->n_buffers; b++) s->n_blocks += sc_blocks_of(s, b);
    s->n_events = (int64_t)g->reads_start[g->n_nodes] + g->writes_start[g->n_nodes];
    s->memory = malloc(sc_lay_out(s, NULL));
    if (!s->memory) return -1;
    sc_lay_out(s, s->memory);
    return 0;
}

/* Peak of an order; `during` and `after` (or NULL) take the bytes live while and after each step. */
static inline int64_t sc_footprint(sc_scratch *s, const int32_t *order, int64_t *during, int64_t *after) {
    const sg_graph *g = s->g;
    int64_t live = g->live_at_start, peak = 0;
    memset(s->done, 0, (size_t)g->words * 8);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        int32_t v = order[i];
        int64_t held = live + sg_allocated(g, s->done, v);
        live = held - sg_freed(g, s->done, v);
        sg_put(s->done, v);
        if (held > peak) peak = held;
        if (during) during[i] = held;
        if (after) after[i] = live;
    }
    return peak;
}

/* Steps in which every buffer is live; outputs stay until the end. */
static inline void sc_lifetimes(sc_scratch *s, const int32_t *order) {
    const sg_graph *g = s->g;
    for (int32_t b = 0; b < g->n_buffers; b++) s->first[b] = -1;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t k = g->touches_start[order[i]]; k < g->touches_start[order[i] + 1]; k++) {
            int32_t b = g->touches[k];
            if (s->first[b] < 0) s->first[b] = i;
            s->end[b] = g->retained[b] ? g->n_nodes : i + 1;
        }
}

/* Height of the arena of an order. SC_LINEAR: the 2017-2019 TensorFlow Lite simple memory arena, place when written, release
 * after the last use, best fit. Else all lifetimes are known in advance: by decreasing size (ties: first step, then order of
 * first writer). */
static inline int64_t sc_arena(sc_scratch *s, const int32_t *order, int rule, int64_t *offsets) {
    const sg_graph *g = s->g;
    int64_t n = 0, placed = 0, top = 0, *const sequence = s->sequence;
    sc_lifetimes(s, order);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const int64_t before = n;
        for (int32_t k = g->writes_start[order[i]]; k < g->writes_start[order[i] + 1]; k++)
            if (s->first[g->writes[k]] == i) sequence[n++] = g->writes[k];
        if (rule != SC_LINEAR) continue;
        top = af_fit(sequence + before, n - before, placed, top, s->first, s->end, g->bytes, SC_ALIGNMENT, 1, s->by_offset,
                     offsets);
        int64_t left = 0;
        for (int64_t k = 0; k < placed + n - before; k++)
            if (s->end[s->by_offset[k]] > i + 1) s->by_offset[left++] = s->by_offset[k];
        placed = left;
    }
    if (rule == SC_LINEAR) return top;
    for (int64_t i = 1; i < n; i++) { /* a stable insertion: n is hundreds, the order is nearly random */
        int64_t b = sequence[i], j = i;
        for (; j > 0 && g->bytes[sequence[j - 1]] < g->bytes[b]; j--) sequence[j] = sequence[j - 1];
        sequence[j] = b;
    }
    return af_fit(sequence, n, 0, 0, s->first, s->end, g->bytes, SC_ALIGNMENT, rule == SC_SIZE_BEST, s->by_offset, offsets);
}

/* -- Belady traffic */

/* Whether a is evicted before b. */
static inline int sc_before(const sc_entry *a, const sc_entry *b) {
    return a->next != b->next ? a->next > b->next : a->block < b->block;
}

EW_HEAP(sc, sc_entry)

static inline int sc_push(sc_scratch *s, int64_t next, int64_t block) {
    if (s->n_heap == s->heap_capacity) {
        sc_entry *grown = (sc_entry *)sg_grow(s->heap, &s->heap_capacity, sizeof *grown);
        if (!grown) return -1;
        s->heap = grown;
    }
    sc_put(s->heap, &s->n_heap, (sc_entry){next, block});
    return 0;
}

static inline int64_t sc_block_bytes(const sc_scratch *s, int32_t b, int64_t k) {
    int64_t left = s->g->bytes[b] - k * s->block;
    return left < s->block ? left : s->block;
}

/* Every buffer access of the order as one event; consecutive blocks of a buffer are always accessed together. */
static inline int64_t sc_events(sc_scratch *s, const int32_t *order) {
    const sg_graph *g = s->g;
    int64_t at = 0, blocks = 0, e = 0;
    for (int32_t b = 0; b < g->n_buffers; b++) s->base[b] = -1;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        int32_t v = order[i];
        for (int32_t k = g->reads_start[v]; k < g->reads_start[v + 1]; k++, e++) {
            s->event_buffer[e] = g->reads[k];
            s->event_kind[e] = 0;
            s->event_at[e] = at;
            at += sc_blocks_of(s, g->reads[k]);
        }
        for (int32_t k = g->writes_start[v]; k < g->writes_start[v + 1]; k++, e++) {
            int32_t b = g->writes[k];
            s->event_kind[e] = s->base[b] < 0 ? 1 : 2;
            if (s->base[b] < 0) {
                s->base[b] = blocks;
                for (int64_t j = 0; j < sc_blocks_of(s, b); j++) s->owner[blocks++] = b;
            }
            s->event_buffer[e] = b;
            s->event_at[e] = at;
            at += sc_blocks_of(s, b);
        }
    }
    for (int32_t b = 0; b < g->n_buffers; b++) s->first[b] = -1; /* here: the next event of a buffer */
    for (int64_t i = e; i-- > 0;) {
        s->event_next[i] = s->first[s->event_buffer[i]];
        s->first[s->event_buffer[i]] = i;
    }
    return e;
}

/* Off-chip bytes of an order: Belady replacement on blocks; -1 when out of memory, SC_LATE when out of time. Stops
 * early above `enough`. */
static inline int64_t sc_traffic(sc_scratch *s, const int32_t *order, int64_t enough) {
    const sg_graph *g = s->g;
    int64_t n_events = sc_events(s, order), resident = 0, looks = 0;
    s->n_heap = 0;
    s->read_bytes = s->written_bytes = s->n_log = 0;
    memset(s->next_use, 0xFF, (size_t)s->n_blocks * 8);
    memset(s->dirty, 0, (size_t)s->n_blocks);
    for (int64_t e = 0; e < n_events; e++) {
        int32_t b = s->event_buffer[e];
        int64_t n = sc_blocks_of(s, b), first = s->base[b], next = s->event_next[e];
        for (int64_t k = 0; k < n; k++) {
            int64_t block = first + k;
            if (s->stop_ns && !(++looks & 0xFFFF) && sc_now() > s->stop_ns) return SC_LATE;
            if (s->next_use[block] < 0) {
                if (resident == s->capacity) {
                    sc_entry out;
                    do out = sc_pop(s->heap, &s->n_heap);
                    while (s->next_use[out.block] != out.next);
                    int32_t o = s->owner[out.block];
                    if (s->dirty[out.block]) {
                        s->written_bytes += sc_block_bytes(s, o, out.block - s->base[o]);
                        if (sc_note(s, e, out.block, 1)) return -1;
                    }
                    s->dirty[out.block] = 0;
                    s->next_use[out.block] = -1;
                    resident--;
                }
                resident++;
                if (s->event_kind[e] != 1) {
                    s->read_bytes += sc_block_bytes(s, b, k);
                    if (sc_note(s, e, block, 0)) return -1;
                }
            }
            if (s->event_kind[e]) {
                s->dirty[block] = 1;
                s->changed[block] = e;
            }
            if (next < 0 && !g->retained[b]) {
                s->next_use[block] = -1;
                s->dirty[block] = 0;
                resident--;
            } else {
                s->next_use[block] = next < 0 ? SC_NEVER : s->event_at[next] + k;
                if (sc_push(s, s->next_use[block], block)) return -1;
            }
        }
        if (s->read_bytes + s->written_bytes > enough) break;
    }
    return s->read_bytes + s->written_bytes;
}

/* -- local search over topological orders, and random ones */

static inline int64_t sc_below(uint64_t *state, int64_t n) { return (int64_t)(ew_splitmix64(state) % (uint64_t)n); }

static inline int64_t sc_cost(sc_scratch *s, const int32_t *order, int kind, int64_t peak_cap, int64_t *offsets) {
    if (peak_cap < SC_NEVER && sc_footprint(s, order, NULL, NULL) > peak_cap) return SC_NEVER;
    return kind == SC_TRAFFIC ? sc_traffic(s, order, SC_NEVER) : sc_arena(s, order, kind, offsets);
}

/* Annealing over topological orders: move one operator (or a run of them) within the window its neighbours leave.
 * Work units are evaluations. `order` ends as the best order seen; its cost is returned (-1: out of memory).
 * Accepts a worse order when it costs at most `slack` more, slack shrinking linearly from `heat` x cost to 0. */
static inline int64_t sc_improve(sc_scratch *s, int32_t *order, int kind, int64_t peak_cap, int64_t goal,
                                 int64_t evaluations, int64_t done_before, int64_t total, double heat,
                                 uint64_t *random, int32_t *current, int32_t *scratch, int32_t *place,
                                 int64_t *offsets, int64_t *current_cost, int64_t best) {
    const sg_graph *g = s->g;
    int32_t n = g->n_nodes;
    for (int64_t it = 0; it < evaluations && best > goal; it++) {
        for (int32_t i = 0; i < n; i++) place[current[i]] = i;
        int32_t low = 0, high = 0, from = 0, length = 1, tries = 0;
        for (; tries < 64; tries++) {
            from = (int32_t)sc_below(random, n);
            length = 1 + (int32_t)sc_below(random, sc_below(random, 2) ? 1 : 4);
            if (from + length > n) continue;
            low = 0;
            high = n - length;
            for (int32_t k = from; k < from + length; k++) {
                int32_t v = current[k];
                for (int32_t i = g->before_start[v]; i < g->before_start[v + 1]; i++) {
                    int32_t p = place[g->before[i]];
                    if (p < from && p + 1 > low) low = p + 1;
                }
                for (int32_t i = g->after_start[v]; i < g->after_start[v + 1]; i++) {
                    int32_t p = place[g->after[i]];
                    if (p >= from + length && p - length < high) high = p - length;
                }
            }
            if (high > low) break;
        }
        if (high <= low) return best; /* a chain: there is one order only */
        int32_t to = low + (int32_t)sc_below(random, high - low);
        if (to >= from) to++;
        memcpy(scratch, current, (size_t)n * 4);
        if (to < from) {
            memmove(scratch + to + length, current + to, (size_t)(from - to) * 4);
        } else {
            memmove(scratch + from, current + from + length, (size_t)(to - from) * 4);
        }
        memcpy(scratch + to, current + from, (size_t)length * 4);
        int64_t cost = sc_cost(s, scratch, kind, peak_cap, offsets);
        if (cost == SC_LATE) return best;
        if (cost < 0) return -1;
        if (cost == SC_NEVER) continue;
        double left = 1.0 - (double)(done_before + it) / (double)total;
        int64_t slack = (int64_t)(heat * left * (double)*current_cost * (double)(ew_splitmix64(random) >> 11) * 0x1p-53);
        if (cost - *current_cost <= slack) {
            memcpy(current, scratch, (size_t)n * 4);
            *current_cost = cost;
        }
        if (cost < best) {
            best = cost;
            memcpy(order, scratch, (size_t)n * 4);
        }
    }
    return best;
}
