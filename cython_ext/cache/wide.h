/* Look-ups of sets of many ways under LRU, FIFO and MIN, in a time that does not grow with the ways.
 *
 * Lines keep their way. A table finds the way of a line. LRU: the list of recency is the access stream itself, as in
 * iomodel/fast_memory.h: entry p of a set stands for its way iff that way's last look-up is p; the victim is found by
 * moving `tail` over stale entries. MIN: a heap of next uses, the latest first, in which those that were overtaken by a
 * later one stay until it is full; ties go to the lowest way, which is part of a key. Victims are those of the plain
 * look-ups (lookups.h). */
#pragma once

#include "cache/sets.h"
#include "common/inline.h"

#define EW_WIDE_WAY_BITS 24
#define EW_WIDE_LATEST (((uint64_t)1 << (64 - EW_WIDE_WAY_BITS)) - 1)

struct ew_wide {
    uint32_t *place; /* [mask + 1] word of a line, plus 1; 0: none. The next free place after its own one */
    uint64_t mask;   /* at least twice as many places as words */
    int bits;        /* of a place */
    uint64_t *last;  /* [words] LRU: number of the last look-up of the set that found it; MIN: its key in the heap */
    uint32_t *recent; /* [sets * room] LRU: way of look-up p at p modulo room */
    uint64_t *heap;  /* [sets * room] MIN */
    int64_t room;    /* a power of two, at least four times the ways */
    int64_t *now, *tail; /* [sets] LRU: number of the next look-up, of the first entry that may stand; MIN: now is the heap's size */
};

static inline uint64_t ew_wide_home(const ew_wide *wide, uint64_t line) {
    return (line * 0x9E3779B97F4A7C15ull) >> (64 - wide->bits);
}

/* The place of a line, or the free one where it would be. */
static inline uint64_t ew_wide_place(const ew_wide *wide, const uint64_t *words, uint64_t line) {
    uint64_t at = ew_wide_home(wide, line);
    while (wide->place[at] && words[wide->place[at] - 1] >> 1 != line) at = (at + 1) & wide->mask;
    return at;
}

/* Take a line out; those behind it that would not be found any more move up. */
static inline void ew_wide_remove(ew_wide *wide, const uint64_t *words, uint64_t line) {
    uint64_t hole = ew_wide_place(wide, words, line), at = hole;
    for (;;) {
        at = (at + 1) & wide->mask;
        if (!wide->place[at]) break;
        const uint64_t home = ew_wide_home(wide, words[wide->place[at] - 1] >> 1);
        if (((at - home) & wide->mask) < ((at - hole) & wide->mask)) continue; /* its home lies behind the hole */
        wide->place[hole] = wide->place[at];
        hole = at;
    }
    wide->place[hole] = 0;
}

/* ---- LRU */

static inline void ew_wide_touch(ew_wide *wide, uint64_t set, uint64_t *last, int64_t way) {
    uint32_t *recent = wide->recent + (int64_t)set * wide->room;
    int64_t now = wide->now[set], tail = wide->tail[set];
    const int64_t mask = wide->room - 1;
    if (now - tail == wide->room) { /* entries that stand for something move to the end */
        int64_t to = now;
        for (int64_t p = now - 1; p >= tail; p--) {
            const uint32_t each = recent[p & mask];
            if (last[each] != (uint64_t)p) continue;
            recent[--to & mask] = each;
            last[each] = (uint64_t)to;
        }
        wide->tail[set] = to;
    }
    recent[now & mask] = (uint32_t)way;
    last[way] = (uint64_t)now;
    wide->now[set] = now + 1;
}

static inline int64_t ew_wide_oldest(ew_wide *wide, uint64_t set, const uint64_t *last) {
    const uint32_t *recent = wide->recent + (int64_t)set * wide->room;
    int64_t p = wide->tail[set];
    while (last[recent[p & (wide->room - 1)]] != (uint64_t)p) p++;
    wide->tail[set] = p + 1;
    return recent[p & (wide->room - 1)];
}

/* ---- MIN */

static inline uint64_t ew_wide_key(int64_t next, int64_t way) { /* the larger one goes first */
    const uint64_t most = ((uint64_t)1 << EW_WIDE_WAY_BITS) - 1;
    const uint64_t when = (uint64_t)next < EW_WIDE_LATEST ? (uint64_t)next : EW_WIDE_LATEST;
    return when << EW_WIDE_WAY_BITS | (most - (uint64_t)way);
}

static inline int64_t ew_wide_way(uint64_t key) {
    const uint64_t most = ((uint64_t)1 << EW_WIDE_WAY_BITS) - 1;
    return (int64_t)(most - (key & most));
}

static inline void ew_heap_down(uint64_t *heap, int64_t n, int64_t at, uint64_t key) {
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && heap[child + 1] > heap[child];
        if (heap[child] <= key) break;
        heap[at] = heap[child];
    }
    heap[at] = key;
}

static inline void ew_wide_note(ew_wide *wide, uint64_t set, uint64_t *last, int64_t ways, int64_t way,
                                      int64_t next) {
    uint64_t *heap = wide->heap + (int64_t)set * wide->room;
    const uint64_t key = last[way] = ew_wide_key(next, way);
    int64_t n = wide->now[set];
    if (n == wide->room) { /* only what stands stays */
        n = 0;
        for (int64_t each = 0; each < ways; each++)
            if (last[each]) heap[n++] = last[each];
        for (int64_t at = n / 2 - 1; at >= 0; at--) ew_heap_down(heap, n, at, heap[at]);
        wide->now[set] = n;
        return;
    }
    int64_t at = n;
    for (int64_t up; at && heap[up = (at - 1) / 2] < key; at = up) heap[at] = heap[up];
    heap[at] = key;
    wide->now[set] = n + 1;
}

static inline int64_t ew_wide_latest(ew_wide *wide, uint64_t set, uint64_t *last) {
    uint64_t *heap = wide->heap + (int64_t)set * wide->room;
    for (;;) {
        const uint64_t key = heap[0];
        const int64_t n = --wide->now[set], way = ew_wide_way(key);
        ew_heap_down(heap, n, 0, heap[n]);
        if (last[way] != key) continue; /* overtaken by a later next use */
        last[way] = 0;
        return way;
    }
}

/* ---- look-ups */

enum { EW_WIDE_LRU, EW_WIDE_FIFO, EW_WIDE_MIN };

EW_INLINE int64_t ew_wide_look_up(
    const int policy, ew_cache *cache, const uint64_t *keys, const int64_t *next_use, int64_t n, uint32_t *missed,
    uint64_t *displaced) {
    ew_wide *wide = cache->wide;
    uint64_t *words = cache->words, *last_word = NULL, previous = EW_NO_LINE;
    const int64_t ways = cache->ways;
    const uint64_t dirty = cache->dirty;
    int64_t misses = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i], line = key >> 1, set = line & cache->set_mask;
        if (policy != EW_WIDE_MIN && (key ^ previous) <= 1) {
            i = ew_repeats(keys, i, n, previous, dirty, last_word);
            continue;
        }
        if (i + 8 < n) __builtin_prefetch(&wide->place[ew_wide_home(wide, keys[i + 8] >> 1)]);
        const int64_t first = (int64_t)set * cache->stride;
        uint64_t *last = wide->last + first;
        uint64_t at = ew_wide_place(wide, words, line);
        const int hit = wide->place[at] != 0;
        int64_t way;
        if (hit) {
            way = (int64_t)wide->place[at] - 1 - first;
            words[first + way] |= key & dirty;
        } else {
            missed[misses] = (uint32_t)i;
            if (!cache->allocate && (key & 1)) {
                displaced[misses++] = EW_NO_FILL;
                continue;
            }
            uint32_t *filled = cache->filled + set;
            if (policy == EW_WIDE_FIFO) { /* in turn */
                way = *filled;
                *filled = way + 1 == ways ? 0 : (uint32_t)(way + 1);
            } else if (*filled < ways) {
                way = (*filled)++;
            } else {
                way = policy == EW_WIDE_LRU ? ew_wide_oldest(wide, set, last) : ew_wide_latest(wide, set, last);
            }
            const uint64_t victim = words[first + way];
            displaced[misses++] = victim;
            if (victim != EW_NO_LINE) {
                ew_wide_remove(wide, words, victim >> 1);
                at = ew_wide_place(wide, words, line); /* another may have moved there */
            }
            words[first + way] = (key & ~1ull) | (key & dirty);
            wide->place[at] = (uint32_t)(first + way) + 1;
        }
        if (policy == EW_WIDE_LRU) ew_wide_touch(wide, set, last, way);
        if (policy == EW_WIDE_MIN) ew_wide_note(wide, set, last, ways, way, next_use ? next_use[i] : 0);
        previous = key;
        last_word = words + first + way;
    }
    return misses;
}

#define EW_WIDE(name, policy) \
    static inline int64_t ew_wide_##name(ew_cache *cache, const uint64_t *keys, const int64_t *next_use, \
                                               int64_t n, uint32_t *missed, uint64_t *displaced) { \
        return ew_wide_look_up(policy, cache, keys, next_use, n, missed, displaced); \
    }
EW_WIDE(lru, EW_WIDE_LRU)
EW_WIDE(fifo, EW_WIDE_FIFO)
EW_WIDE(min, EW_WIDE_MIN)
#undef EW_WIDE

/* Return the loop of a policy for sets of many ways, or null where it has none. */
static inline ew_loop ew_wide_loop_of(const char *name) {
    return strcmp(name, "lru") == 0    ? ew_wide_lru
           : strcmp(name, "fifo") == 0 ? ew_wide_fifo
           : strcmp(name, "min") == 0  ? ew_wide_min
                                       : 0;
}
