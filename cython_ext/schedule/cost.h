/* What an operator order costs: footprint, arena, off-chip traffic. */
#ifndef EDGEWATT_SCHEDULE_COST_H
#define EDGEWATT_SCHEDULE_COST_H

#include "schedule/graph.h"

#include <time.h>

#define SC_ALIGNMENT 64
#define SC_NEVER INT64_MAX
#define SC_LATE (-2)

enum { SC_LINEAR = 0, SC_SIZE_BEST = 1, SC_SIZE_FIRST = 2, SC_TRAFFIC = 3 };

typedef struct { int64_t offset, end; int32_t buffer; } sc_place;
typedef struct { int64_t next; int64_t block; } sc_entry;

typedef struct {
    const sg_graph *g;
    uint64_t *done;
    sc_place *places;           /* buffers in the arena by offset */
    int64_t *first, *last;      /* buffer -> first and last step, by size: also the offset */
    int32_t *by_size;
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
    int64_t *log;               /* if kept: (access, block, is_write, changed) of every off-chip transfer */
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
    free(s->done);
    free(s->places);
    free(s->first);
    free(s->last);
    free(s->by_size);
    free(s->base);
    free(s->event_at);
    free(s->event_next);
    free(s->event_buffer);
    free(s->event_kind);
    free(s->next_use);
    free(s->dirty);
    free(s->owner);
    free(s->heap);
    free(s->log);
    free(s->changed);
    memset(s, 0, sizeof *s);
}

static inline int sc_note(sc_scratch *s, int64_t event, int64_t block, int64_t is_write) {
    if (!s->keep_log) return 0;
    if (s->n_log == s->most_log) return -1;
    if (4 * s->n_log == s->log_capacity) {
        int64_t wanted = s->log_capacity ? s->log_capacity * 2 : 4 * 1024;
        int64_t *grown = (int64_t *)realloc(s->log, (size_t)wanted * sizeof *grown);
        if (!grown) return -1;
        s->log = grown;
        s->log_capacity = wanted;
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

/* block = 0: no traffic will be asked for. The caller has checked that the numbers of blocks fit. */
static inline int sc_create(sc_scratch *s, const sg_graph *g, int64_t capacity, int64_t block) {
    memset(s, 0, sizeof *s);
    s->g = g;
    size_t nb = (size_t)g->n_buffers + 1;
    s->done = (uint64_t *)calloc((size_t)g->words, 8);
    s->places = (sc_place *)malloc(nb * sizeof *s->places);
    s->first = (int64_t *)malloc(nb * 8);
    s->last = (int64_t *)malloc(nb * 8);
    s->by_size = (int32_t *)malloc(nb * 4);
    int bad = !s->done || !s->places || !s->first || !s->last || !s->by_size;
    if (block && !bad) {
        s->capacity = capacity;
        s->block = block;
        for (int32_t b = 0; b < g->n_buffers; b++) s->n_blocks += sc_blocks_of(s, b);
        s->n_events = (int64_t)g->reads_start[g->n_nodes] + g->writes_start[g->n_nodes];
        size_t ne = (size_t)s->n_events + 1, nk = (size_t)s->n_blocks;
        s->heap_capacity = 1024;
        s->base = (int64_t *)malloc(nb * 8);
        s->event_at = (int64_t *)malloc(ne * 8);
        s->event_next = (int64_t *)malloc(ne * 8);
        s->event_buffer = (int32_t *)malloc(ne * 4);
        s->event_kind = (uint8_t *)malloc(ne);
        s->next_use = (int64_t *)malloc(nk * 8);
        s->dirty = (uint8_t *)malloc(nk);
        s->changed = (int64_t *)malloc(nk * 8);
        s->owner = (int32_t *)malloc(nk * 4);
        s->heap = (sc_entry *)malloc((size_t)s->heap_capacity * sizeof *s->heap);
        bad = !s->base || !s->event_at || !s->event_next || !s->event_buffer || !s->event_kind || !s->next_use ||
              !s->dirty || !s->changed || !s->owner || !s->heap;
    }
    if (bad) sc_destroy(s);
    return bad ? -1 : 0;
}

/* Peak of an order; `during` and `after` (or NULL) take the bytes live while and after each step. */
static inline int64_t sc_footprint(sc_scratch *s, const int32_t *order, int64_t *during, int64_t *after) {
    const sg_graph *g = s->g;
    int64_t live = g->live_at_start, peak = 0;
    memset(s->done, 0, (size_t)g->words * 8);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        int32_t v = order[i];
        int64_t held = live + sg_allocated(g, s->done, v), transient = held + g->work[v];
        live = held - sg_freed(g, s->done, v);
        sg_put(s->done, v);
        if (transient > peak) peak = transient;
        if (during) during[i] = transient;
        if (after) after[i] = live;
    }
    return peak;
}

static inline int64_t sc_round_up(int64_t x) { return (x + SC_ALIGNMENT - 1) & ~(int64_t)(SC_ALIGNMENT - 1); }

/* First and last step of every buffer; outputs stay until the end. */
static inline void sc_lifetimes(sc_scratch *s, const int32_t *order) {
    const sg_graph *g = s->g;
    for (int32_t b = 0; b < g->n_buffers; b++) s->first[b] = -1;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t k = g->touches_start[order[i]]; k < g->touches_start[order[i] + 1]; k++) {
            int32_t b = g->touches[k];
            if (s->first[b] < 0) s->first[b] = i;
            s->last[b] = g->kept[b] ? g->n_nodes - 1 : i;
        }
}

/* Find room for `size` bytes among n placed buffers sorted by offset. Best fit: the smallest raw gap; else the lowest. */
static inline int64_t sc_fit(const sc_place *places, int32_t n, int64_t size, int best_fit) {
    int64_t offset = -1, smallest = SC_NEVER, end = 0;
    for (int32_t i = 0; i < n; i++) {
        int64_t start = sc_round_up(end), gap = places[i].offset - end;
        if (places[i].offset - start >= size && gap < smallest) {
            smallest = gap;
            offset = start;
            if (!best_fit) return offset;
        }
        if (places[i].end > end) end = places[i].end;
    }
    return offset >= 0 ? offset : sc_round_up(end);
}

static inline void sc_insert(sc_place *places, int32_t *n, int64_t offset, int64_t size, int32_t buffer) {
    int32_t i = (*n)++;
    for (; i > 0 && places[i - 1].offset > offset; i--) places[i] = places[i - 1];
    places[i].offset = offset;
    places[i].end = offset + size;
    places[i].buffer = buffer;
}

/* The 2017-2019 TensorFlow Lite simple memory arena: place when written, release after the last use, best fit. */
static inline int64_t sc_arena_linear(sc_scratch *s, const int32_t *order, int64_t *offsets) {
    const sg_graph *g = s->g;
    int32_t n = 0;
    int64_t top = 0;
    sc_lifetimes(s, order);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        int32_t v = order[i];
        for (int32_t k = g->writes_start[v]; k < g->writes_start[v + 1]; k++) {
            int32_t b = g->writes[k];
            if (s->first[b] != i) continue;
            int64_t offset = sc_fit(s->places, n, g->bytes[b], 1);
            sc_insert(s->places, &n, offset, g->bytes[b], b);
            if (offsets) offsets[b] = offset;
            if (offset + g->bytes[b] > top) top = offset + g->bytes[b];
        }
        int32_t left = 0;
        for (int32_t k = 0; k < n; k++) {
            int32_t b = s->places[k].buffer;
            if (g->kept[b] || s->last[b] > i) s->places[left++] = s->places[k];
        }
        n = left;
    }
    return top;
}

/* All lifetimes known in advance: by decreasing size (ties: first step, then order of first writer). */
static inline int64_t sc_arena_by_size(sc_scratch *s, const int32_t *order, int best_fit, int64_t *offsets) {
    const sg_graph *g = s->g;
    int32_t nb = 0;
    int64_t top = 0;
    uint64_t *done = s->done;
    memset(done, 0, (size_t)g->words * 8);
    sc_lifetimes(s, order);
    /* buffers in order of first writer, then a stable insertion by size: n is hundreds, the order is nearly random */
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t k = g->writes_start[order[i]]; k < g->writes_start[order[i] + 1]; k++)
            if (s->first[g->writes[k]] == i) s->by_size[nb++] = g->writes[k];
    for (int32_t i = 1; i < nb; i++) {
        int32_t b = s->by_size[i], j = i;
        for (; j > 0 && g->bytes[s->by_size[j - 1]] < g->bytes[b]; j--) s->by_size[j] = s->by_size[j - 1];
        s->by_size[j] = b;
    }
    int64_t *offset_of = offsets;
    if (!offset_of) return -1;
    for (int32_t i = 0; i < nb; i++) {
        int32_t b = s->by_size[i], n = 0;
        for (int32_t j = 0; j < i; j++) {
            int32_t c = s->by_size[j];
            if (s->first[c] <= s->last[b] && s->first[b] <= s->last[c])
                sc_insert(s->places, &n, offset_of[c], g->bytes[c], c);
        }
        offset_of[b] = sc_fit(s->places, n, g->bytes[b], best_fit);
        if (offset_of[b] + g->bytes[b] > top) top = offset_of[b] + g->bytes[b];
    }
    return top;
}

/* -- Belady traffic ------------------------------------------------------------------------------------------------ */

static inline int sc_after(const sc_entry *a, const sc_entry *b) { /* a is evicted before b */
    return a->next != b->next ? a->next > b->next : a->block < b->block;
}

static inline int sc_push(sc_scratch *s, int64_t next, int64_t block) {
    if (s->n_heap == s->heap_capacity) {
        sc_entry *grown = (sc_entry *)realloc(s->heap, (size_t)s->heap_capacity * 2 * sizeof *grown);
        if (!grown) return -1;
        s->heap = grown;
        s->heap_capacity *= 2;
    }
    sc_entry entry = {next, block};
    int64_t i = s->n_heap++;
    while (i > 0 && sc_after(&entry, &s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = entry;
    return 0;
}

static inline sc_entry sc_pop(sc_scratch *s) {
    sc_entry top = s->heap[0], last = s->heap[--s->n_heap];
    int64_t i = 0;
    for (;;) {
        int64_t c = 2 * i + 1;
        if (c >= s->n_heap) break;
        if (c + 1 < s->n_heap && sc_after(&s->heap[c + 1], &s->heap[c])) c++;
        if (!sc_after(&s->heap[c], &last)) break;
        s->heap[i] = s->heap[c];
        i = c;
    }
    if (s->n_heap) s->heap[i] = last;
    return top;
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
                    do out = sc_pop(s);
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
            if (next < 0 && !g->kept[b]) {
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

#endif
