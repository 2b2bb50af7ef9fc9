/* The sets of one level of a set-associative cache, and how one is searched.
 *
 * A look-up is a key: line number * 2 + (1 for a store). A resident line is a word: line number * 2 + (1 if dirty), so
 * a word matches a key when they differ in bit 0 at most. The words of a set lie side by side (`stride` of them, a
 * multiple of 8, each set on a cache line of the host), so that one vector compare searches eight ways. LRU keeps
 * them in order of recency; the other policies leave words in their ways and keep their state beside (cache/policy.h).
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "cache/policy.h"
#include "common/simd.h"

#define EW_NO_LINE UINT64_MAX          /* an empty way, and "nothing was displaced" */
#define EW_NO_FILL (UINT64_MAX - 1)    /* a store miss that does not allocate */

typedef struct ew_wide ew_wide; /* of sets of many ways, see wide.h */

typedef struct {
    edgewatt_sets sets;    /* what the policy sees */
    uint64_t *words;       /* sets * stride, aligned to 64 bytes */
    uint32_t *filled;      /* ways filled so far; in turn: the way filled next */
    uint64_t set_mask;
    uint64_t dirty;        /* 1 for write-back, 0 for write-through: stores then leave lines clean */
    int64_t ways, stride;
    int allocate;
    ew_wide *wide;   /* null: the words of a set are searched */
} ew_cache;

/* Make `n` look-ups. For each miss write its index and the displaced word (or NO_LINE, NO_FILL); return the misses.
 * next_use[i] is read for policies that see every look-up and need the future; else it may be null. */
typedef int64_t (*ew_loop)(ew_cache *cache, const uint64_t *keys, const int64_t *next_use, int64_t n,
                                 uint32_t *missed, uint64_t *displaced);

/* Look-ups of the line of the look-up before, from i on, change nothing but its dirty bit: return the last of them. */
static inline int64_t ew_repeats(const uint64_t *keys, int64_t i, int64_t n, uint64_t previous, uint64_t dirty,
                                       uint64_t *word) {
    uint64_t marks = keys[i];
    for (; i + 1 < n && (keys[i + 1] ^ previous) <= 1; i++) marks |= keys[i + 1];
    *word |= marks & dirty;
    return i;
}

/* Search one set: its way, or -1. */
static inline int64_t ew_find_baseline(const uint64_t *words, int64_t stride, uint64_t key) {
    for (int64_t way = 0; way < stride; way++)
        if ((words[way] ^ key) <= 1) return way;
    return -1;
}

/* LRU: put `word` first and move the words before position `at` one place back; at is its old place or the victim's. */
static inline void ew_rotate(uint64_t *words, int64_t at, uint64_t word) {
    if (at < 16)
        for (int64_t way = at; way > 0; way--) words[way] = words[way - 1];
    else
        memmove(words + 1, words, (size_t)at * sizeof *words);
    words[0] = word;
}

#if EDGEWATT_X86
EDGEWATT_AVX2 static inline int64_t ew_find_avx2(const uint64_t *words, int64_t stride, uint64_t key) {
    const __m256i wanted = _mm256_set1_epi64x((long long)(key | 1)), one = _mm256_set1_epi64x(1);
    for (int64_t way = 0; way < stride; way += 8) {
        __m256i low = _mm256_or_si256(_mm256_load_si256((const __m256i *)(words + way)), one);
        __m256i high = _mm256_or_si256(_mm256_load_si256((const __m256i *)(words + way + 4)), one);
        unsigned hits = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(low, wanted))) |
                        (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(high, wanted))) << 4;
        if (hits) return way + __builtin_ctz(hits);
    }
    return -1;
}
#endif
