/* Prefetch decisions of one cache level: which lines to fetch after a demand look-up, and which fetched lines wait for
 * their first use. */
#ifndef EDGEWATT_PREFETCH_H
#define EDGEWATT_PREFETCH_H

#include <stdint.h>
#include <string.h>

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

/* What a prefetcher is: it says after each line look-up of demand with which step (in lines) to fetch on, or 0. A file
 * prefetchers/prefetch_NAME.h defines `static const edgewatt_prefetcher edgewatt_prefetcher_NAME`. */
typedef struct {
    int64_t entry_bytes; /* of a table of the level's entries, all bytes 255 at first */
    int64_t (*step)(void *table, int64_t entries, int32_t stream, int64_t line, int missed, int first_use);
} edgewatt_prefetcher;

#include "cache/prefetchers.h" /* made by the build: prefetchers/prefetch_*.h, and a list of their names */

static const edgewatt_prefetcher *edgewatt_prefetcher_of(const char *name) {
#define EDGEWATT_PREFETCHER(prefetcher) \
    if (strcmp(name, #prefetcher) == 0) return &edgewatt_prefetcher_##prefetcher;
    EDGEWATT_PREFETCHERS(EDGEWATT_PREFETCHER)
#undef EDGEWATT_PREFETCHER
    return 0;
}

/* Return line + stride * k where it lies in [first, last], otherwise -1. */
static inline int64_t edgewatt_target(int64_t line, int64_t stride, int64_t k, int64_t first, int64_t last) {
    int64_t way, target;
    if (__builtin_mul_overflow(stride, k, &way) || __builtin_add_overflow(line, way, &target)) return -1;
    return target >= first && target <= last ? target : -1;
}

#endif
