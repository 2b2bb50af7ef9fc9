/* One level of a set-associative cache, one look-up after another.
 *
 * A look-up is a key: line number * 2 + (1 for a store). A resident line is a word: line number * 2 + (1 if dirty), so
 * a word matches a key when they differ in bit 0 at most. The words of a set lie side by side (`stride` of them, a
 * multiple of 8, each set on a cache line of the host), so that one vector compare searches eight ways.
 *
 * LRU keeps the words of a set in order of recency: a hit rotates the words before it, a miss rotates all of them.
 * The other policies leave words in their ways and keep their state beside them.
 */
#ifndef EDGEWATT_CACHE_H
#define EDGEWATT_CACHE_H

#include <stdint.h>
#include <string.h>

#include "common/simd.h"

#define EDGEWATT_NO_LINE UINT64_MAX          /* an empty way, and "nothing was displaced" */
#define EDGEWATT_NO_FILL (UINT64_MAX - 1)    /* a store miss that does not allocate */

enum { EDGEWATT_LRU = 0, EDGEWATT_FIFO = 1, EDGEWATT_RANDOM = 2, EDGEWATT_PLRU = 3, EDGEWATT_MIN = 4 };

typedef struct {
    uint64_t *words;       /* sets * stride, aligned to 64 bytes */
    int64_t *next;         /* MIN: position of the next look-up of each resident line */
    uint8_t *tree;         /* PLRU: ways - 1 nodes per set, 1 points right; in heap order from index 1 */
    uint32_t *pointer;     /* FIFO: the way filled next; others: ways filled so far */
    uint64_t set_mask;
    uint64_t dirty;        /* 1 for write-back, 0 for write-through: stores then leave lines clean */
    uint64_t random;       /* state of the generator */
    int64_t ways, stride;
    int policy, allocate;
} edgewatt_cache;

/* Sebastiano Vigna's splitmix64 (public domain algorithm), reduced to [0, n) by multiplication. */
static inline uint64_t edgewatt_cache_draw(edgewatt_cache *cache, uint64_t n) {
    uint64_t z = (cache->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ((z >> 32) * n) >> 32;
}

static inline void edgewatt_tree_touch(uint8_t *tree, int64_t ways, int64_t way) {
    for (int64_t node = way + ways; node > 1; node >>= 1) tree[node >> 1] = !(node & 1); /* point away from it */
}

static inline int64_t edgewatt_tree_victim(const uint8_t *tree, int64_t ways) {
    int64_t node = 1;
    while (node < ways) node = 2 * node + tree[node];
    return node - ways;
}

/* Search one set: its way, or -1. */
static inline int64_t edgewatt_find_baseline(const uint64_t *words, int64_t stride, uint64_t key) {
    for (int64_t way = 0; way < stride; way++)
        if ((words[way] ^ key) <= 1) return way;
    return -1;
}

/* LRU: put `word` first and move the words before position `at` one place back; at is its old place or the victim's. */
static inline void edgewatt_rotate(uint64_t *words, int64_t at, uint64_t word) {
    if (at < 16)
        for (int64_t way = at; way > 0; way--) words[way] = words[way - 1];
    else
        memmove(words + 1, words, (size_t)at * sizeof *words);
    words[0] = word;
}

#if EDGEWATT_X86
EDGEWATT_AVX2 static inline int64_t edgewatt_find_avx2(const uint64_t *words, int64_t stride, uint64_t key) {
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

EDGEWATT_AVX512 static inline int64_t edgewatt_find_avx512(const uint64_t *words, int64_t stride, uint64_t key) {
    const __m512i wanted = _mm512_set1_epi64((long long)key), line = _mm512_set1_epi64(~1ll);
    for (int64_t way = 0; way < stride; way += 8) {
        __m512i words8 = _mm512_load_si512(words + way);
        unsigned hits = _mm512_testn_epi64_mask(_mm512_xor_si512(words8, wanted), line);
        if (hits) return way + __builtin_ctz(hits);
    }
    return -1;
}
#endif

#define CORE(name) name##_baseline
#define CORE_TARGET
#include "cache/lookups.h"
#undef CORE
#undef CORE_TARGET

#if EDGEWATT_X86
#define CORE(name) name##_avx2
#define CORE_TARGET EDGEWATT_AVX2
#include "cache/lookups.h"
#undef CORE
#undef CORE_TARGET

#define CORE(name) name##_avx512
#define CORE_TARGET EDGEWATT_AVX512
#include "cache/lookups.h"
#undef CORE
#undef CORE_TARGET

/* FIFO with up to eight ways: the victim is known before the search, so no branch depends on the outcome. */
EDGEWATT_AVX512 static int64_t edgewatt_fifo8_avx512(edgewatt_cache *cache, const uint64_t *keys, int64_t n,
                                                     uint32_t *missed, uint64_t *displaced) {
    const __m512i line_bits = _mm512_set1_epi64(~1ll);
    const uint64_t dirty = cache->dirty, set_mask = cache->set_mask;
    const uint32_t ways = (uint32_t)cache->ways;
    uint64_t previous = EDGEWATT_NO_LINE, *its_word = cache->words;
    int64_t misses = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i], set = (key >> 1) & set_mask;
        if ((key ^ previous) <= 1) {
            *its_word |= key & dirty;
            continue;
        }
        uint64_t *words = cache->words + set * 8;
        const __m512i found = _mm512_xor_si512(_mm512_load_si512(words), _mm512_set1_epi64((long long)key));
        const unsigned hits = _mm512_testn_epi64_mask(found, line_bits);
        if (!hits && !cache->allocate && (key & 1)) {
            missed[misses] = (uint32_t)i;
            displaced[misses++] = EDGEWATT_NO_FILL;
            continue;
        }
        const uint32_t next = cache->pointer[set], after = next + 1 == ways ? 0 : next + 1;
        its_word = words + (hits ? (uint32_t)__builtin_ctz(hits) : next);
        cache->pointer[set] = hits ? next : after;
        missed[misses] = (uint32_t)i;
        displaced[misses] = *its_word;
        misses += !hits;
        const uint64_t word = hits ? *its_word | (key & dirty) : (key & ~1ull) | (key & dirty);
        if (*its_word != word) *its_word = word; /* a store would delay the next wide load of this set */
        previous = key;
    }
    return misses;
}

/* LRU with up to eight ways and half-width registers: blends of the set and of the set shifted by a place. */
EDGEWATT_AVX2 static int64_t edgewatt_lru8_avx2(edgewatt_cache *cache, const uint64_t *keys, int64_t n,
                                                uint32_t *missed, uint64_t *displaced) {
    uint64_t moves[8][8] __attribute__((aligned(32)));
    for (uint64_t at = 0; at < 8; at++)
        for (uint64_t way = 0; way < 8; way++) moves[at][way] = way <= at ? UINT64_MAX : 0;
    const __m256i one = _mm256_set1_epi64x(1);
    const uint64_t dirty = cache->dirty, set_mask = cache->set_mask;
    const int allocate = cache->allocate;
    const unsigned last = 1u << (cache->ways - 1);
    uint64_t *words = cache->words;
    int64_t misses = 0;
    uint64_t previous = EDGEWATT_NO_LINE;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i];
        uint64_t *set = words + ((key >> 1) & set_mask) * 8;
        if ((key ^ previous) <= 1) {
            set[0] |= key & dirty;
            continue;
        }
        const __m256i wanted = _mm256_set1_epi64x((long long)(key | 1));
        const __m256i low = _mm256_load_si256((const __m256i *)set), high = _mm256_load_si256((const __m256i *)(set + 4));
        unsigned hits =
            (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_or_si256(low, one), wanted))) |
            (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_or_si256(high, one), wanted))) << 4;
        if (!hits && !allocate && (key & 1)) {
            missed[misses] = (uint32_t)i;
            displaced[misses++] = EDGEWATT_NO_FILL;
            continue;
        }
        int at = __builtin_ctz(hits | last);
        const __m256i before_low = _mm256_permute4x64_epi64(low, 0x90); /* 0 0 1 2 */
        const __m256i before_high = _mm256_blend_epi32(_mm256_permute4x64_epi64(high, 0x90),
                                                       _mm256_permute4x64_epi64(low, 0xff), 3);
        uint64_t front = set[at];
        uint64_t word = hits ? front | (key & dirty) : (key & ~1ull) | (key & dirty);
        _mm256_store_si256((__m256i *)set, _mm256_blendv_epi8(low, before_low, *(const __m256i *)moves[at]));
        _mm256_store_si256((__m256i *)(set + 4), _mm256_blendv_epi8(high, before_high, *(const __m256i *)(moves[at] + 4)));
        set[0] = word;
        missed[misses] = (uint32_t)i;
        displaced[misses] = front;
        misses += !hits;
        previous = key;
    }
    return misses;
}

/* LRU with up to eight ways: the whole set is one register, and a rotation is one permutation. No branch depends on
 * the outcome of a look-up but those of repeated lines and of stores that do not allocate. A miss is a rotation from the last way whose word is replaced. */
EDGEWATT_AVX512 static int64_t edgewatt_lru8_avx512(edgewatt_cache *cache, const uint64_t *keys, int64_t n,
                                                    uint32_t *missed, uint64_t *displaced) {
    uint64_t rotation[8][8] __attribute__((aligned(64)));
    for (uint64_t at = 0; at < 8; at++)
        for (uint64_t way = 0; way < 8; way++) rotation[at][way] = way == 0 ? at : way <= at ? way - 1 : way;
    const __m512i line_bits = _mm512_set1_epi64(~1ll);
    const uint64_t dirty = cache->dirty, set_mask = cache->set_mask;
    const int allocate = cache->allocate;
    const unsigned last = 1u << (cache->ways - 1);
    uint64_t *words = cache->words;
    int64_t misses = 0;
    uint64_t previous = EDGEWATT_NO_LINE;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i];
        uint64_t *set = words + ((key >> 1) & set_mask) * 8;
        if ((key ^ previous) <= 1) { /* the line of the look-up before: it is the most recent of its set */
            set[0] |= key & dirty;
            continue;
        }
        __m512i held = _mm512_load_si512(set);
        unsigned hits = _mm512_testn_epi64_mask(_mm512_xor_si512(held, _mm512_set1_epi64((long long)key)), line_bits);
        if (!hits && !allocate && (key & 1)) {
            missed[misses] = (uint32_t)i;
            displaced[misses++] = EDGEWATT_NO_FILL;
            continue;
        }
        int at = __builtin_ctz(hits | last);
        __m512i moved = _mm512_permutexvar_epi64(_mm512_load_si512(rotation[at]), held);
        uint64_t front = (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(moved));
        uint64_t fresh = (key & ~1ull) | (key & dirty);
        uint64_t word = hits ? front | (key & dirty) : fresh;
        _mm512_store_si512(set, _mm512_mask_set1_epi64(moved, 1, (long long)word));
        missed[misses] = (uint32_t)i;
        displaced[misses] = front;
        misses += !hits;
        previous = key;
    }
    return misses;
}
#endif

#if EDGEWATT_X86
#define EDGEWATT_BY_LEVEL(name, ...)                                                         \
    (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX512   ? name##_avx512(__VA_ARGS__)           \
     : edgewatt_simd_level() == EDGEWATT_LEVEL_AVX2 ? name##_avx2(__VA_ARGS__) : name##_baseline(__VA_ARGS__))
#else
#define EDGEWATT_BY_LEVEL(name, ...) name##_baseline(__VA_ARGS__)
#endif

/* Make `n` look-ups. For each miss write its index and the displaced word (or NO_LINE, NO_FILL); return the misses.
 * next_use[i] is read by MIN only. */
static int64_t edgewatt_cache_lookups(edgewatt_cache *cache, const uint64_t *keys, const int64_t *next_use, int64_t n,
                                      uint32_t *missed, uint64_t *displaced) {
#if EDGEWATT_X86
    if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX512 && cache->policy == EDGEWATT_LRU && cache->stride == 8)
        return edgewatt_lru8_avx512(cache, keys, n, missed, displaced);
    if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX512 && cache->policy == EDGEWATT_FIFO && cache->stride == 8)
        return edgewatt_fifo8_avx512(cache, keys, n, missed, displaced);
    if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX2 && cache->policy == EDGEWATT_LRU && cache->stride == 8)
        return edgewatt_lru8_avx2(cache, keys, n, missed, displaced);
#endif
    return EDGEWATT_BY_LEVEL(edgewatt_lookups, cache, keys, next_use, n, missed, displaced);
}

static int edgewatt_cache_all_good(const uint64_t *address, const uint8_t *bytes, const uint16_t *halves,
                                   const uint8_t *op, int64_t n, uint64_t limit) {
    return EDGEWATT_BY_LEVEL(edgewatt_all_good, address, bytes, halves, op, n, limit);
}

static int64_t edgewatt_cache_keys(const uint64_t *address, const uint8_t *bytes, const uint16_t *halves,
                                   const uint8_t *op, int64_t n, int shift, uint64_t *keys) {
    return EDGEWATT_BY_LEVEL(edgewatt_keys, address, bytes, halves, op, n, shift, keys);
}

/* Write the transactions of a write-back, allocating level's misses: a dirty victim's write-back, then the fill.
 * `access` numbers the access of each look-up, or is null where look-up k is access first + k. Returns their number. */
static int64_t edgewatt_cache_emit(const uint64_t *keys, const uint32_t *missed, const uint64_t *displaced, int64_t misses,
                                   const int64_t *access, int64_t first, int shift, uint64_t *restrict to_address,
                                   uint16_t *restrict to_size, uint8_t *restrict to_write, int64_t *restrict to_access) {
    const uint16_t line_bytes = (uint16_t)((uint64_t)1 << shift);
    int64_t n = 0;
    for (int64_t j = 0; j < misses; j++) {
        const uint64_t victim = displaced[j];
        const int64_t k = missed[j], at = access ? access[k] : first + k;
        to_address[n] = victim >> 1 << shift; /* stands only if the victim was dirty */
        to_size[n] = line_bytes;
        to_write[n] = 1;
        to_access[n] = at;
        n += victim != EDGEWATT_NO_LINE && (victim & 1);
        to_address[n] = keys[k] >> 1 << shift;
        to_size[n] = line_bytes;
        to_write[n] = 0;
        to_access[n] = at;
        n++;
    }
    return n;
}

#endif
