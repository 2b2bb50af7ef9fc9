/* Prefetch decisions of one cache level: which lines to fetch after a demand look-up, and which fetched lines wait for
 * their first use.
 *
 * Stride: the reference prediction table of Chen & Baer, "Effective hardware-based data prefetching for
 * high-performance processors" (IEEE Trans. Computers 44(5), 1995), on lines: entry = last line, stride and a state of
 * two bits. The stream number stands for the address of the load instruction.
 */
#ifndef EDGEWATT_PREFETCH_H
#define EDGEWATT_PREFETCH_H

#include <stdint.h>

enum { EDGEWATT_NEXT_LINE = 1, EDGEWATT_STRIDE = 2 };
enum { EDGEWATT_INITIAL = 0, EDGEWATT_TRANSIENT = 1, EDGEWATT_STEADY = 2, EDGEWATT_NO_PREDICTION = 3 };

typedef struct {
    int64_t last, stride;
    int32_t stream; /* -1: unused */
    int32_t state;
} edgewatt_prediction;

/* The lines prefetched and not used yet: open addressing, linear probing, removal without tombstones. Free slots hold
 * UINT64_MAX; the table has at least twice as many slots as the cache has lines. */
typedef struct {
    uint64_t *slots;
    uint64_t mask;
    int64_t n;
} edgewatt_line_set;

static inline uint64_t edgewatt_line_home(const edgewatt_line_set *set, uint64_t line) {
    return ((line * 0x9e3779b97f4a7c15u) >> 32) & set->mask;
}

static inline void edgewatt_line_add(edgewatt_line_set *set, uint64_t line) {
    uint64_t at = edgewatt_line_home(set, line);
    while (set->slots[at] != UINT64_MAX) at = (at + 1) & set->mask;
    set->slots[at] = line;
    set->n++;
}

/* Remove a line; return whether it was there. */
static inline int edgewatt_line_remove(edgewatt_line_set *set, uint64_t line) {
    uint64_t at = edgewatt_line_home(set, line);
    while (set->slots[at] != line) {
        if (set->slots[at] == UINT64_MAX) return 0;
        at = (at + 1) & set->mask;
    }
    uint64_t hole = at;
    for (;;) { /* close the gap with every later line whose home does not lie after the gap */
        at = (at + 1) & set->mask;
        if (set->slots[at] == UINT64_MAX) break;
        uint64_t home = edgewatt_line_home(set, set->slots[at]);
        if (((at - home) & set->mask) >= ((at - hole) & set->mask)) {
            set->slots[hole] = set->slots[at];
            hole = at;
        }
    }
    set->slots[hole] = UINT64_MAX;
    set->n--;
    return 1;
}

/* Train the entry of a stream with a line; return the stride to follow, or 0. A look-up of the line the stream was at
 * is no step. */
static inline int64_t edgewatt_predict(edgewatt_prediction *table, int64_t entries, int32_t stream, int64_t line) {
    edgewatt_prediction *entry = table + stream % entries;
    if (entry->stream != stream) {
        entry->stream = stream;
        entry->last = line;
        entry->stride = 0;
        entry->state = EDGEWATT_INITIAL;
        return 0;
    }
    if (entry->last == line) return 0;
    const int64_t step = line - entry->last; /* lines are below 2^63: no overflow */
    entry->last = line;
    if (step == entry->stride) {
        entry->state = entry->state == EDGEWATT_NO_PREDICTION ? EDGEWATT_TRANSIENT : EDGEWATT_STEADY;
    } else if (entry->state == EDGEWATT_STEADY) {
        entry->state = EDGEWATT_INITIAL; /* one odd step does not forget the stride */
    } else {
        entry->stride = step;
        entry->state = entry->state == EDGEWATT_INITIAL ? EDGEWATT_TRANSIENT : EDGEWATT_NO_PREDICTION;
    }
    return entry->state == EDGEWATT_STEADY ? entry->stride : 0;
}

/* Return line + stride * k where it lies in [first, last], otherwise -1. */
static inline int64_t edgewatt_target(int64_t line, int64_t stride, int64_t k, int64_t first, int64_t last) {
    int64_t way, target;
    if (__builtin_mul_overflow(stride, k, &way) || __builtin_add_overflow(line, way, &target)) return -1;
    return target >= first && target <= last ? target : -1;
}

#endif
