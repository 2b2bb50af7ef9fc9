/* lru: the line used longest ago goes. The words of a set lie in order of recency, so the policy has no state. */
#pragma once

static const edgewatt_policy edgewatt_policy_lru = {.version = EDGEWATT_POLICY_VERSION, .flags = EDGEWATT_IN_ORDER};

#if EDGEWATT_X86
/* LRU with up to eight ways and half-width registers: each half of the set is permuted, and the last word of the first
 * half goes over to the second. The set is written by two wide stores only: a wide load waits for a narrow one. */
EDGEWATT_AVX2 static int64_t ew_lru8_avx2(ew_cache *cache, const uint64_t *keys, const int64_t *next_use,
                                          int64_t n, uint32_t *missed, uint64_t *displaced) {
    uint32_t rotation[8][16] __attribute__((aligned(32))); /* halves of words, counted within each half of the set */
    uint64_t carry[8][4] __attribute__((aligned(32)));
    for (uint32_t at = 0; at < 8; at++) {
        for (uint32_t way = 0; way < 8; way++) { /* place 3 to place 0, from where it is carried to place 4 */
            const uint32_t from = (way == 0 ? 3 : way <= at ? way - 1 : way) & 3;
            rotation[at][2 * way] = 2 * from;
            rotation[at][2 * way + 1] = 2 * from + 1;
        }
        for (uint32_t way = 0; way < 4; way++) carry[at][way] = way == 0 && at >= 4 ? UINT64_MAX : 0;
    }
    const __m256i one = _mm256_set1_epi64x(1);
    const uint64_t dirty = cache->dirty, set_mask = cache->set_mask;
    const int allocate = cache->allocate;
    const unsigned last = 1u << (cache->ways - 1);
    uint64_t *words = cache->words;
    int64_t misses = 0;
    (void)next_use;
    uint64_t previous = EW_NO_LINE;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i];
        uint64_t *set = words + ((key >> 1) & set_mask) * 8;
        if ((key ^ previous) <= 1) {
            i = ew_repeats(keys, i, n, previous, dirty, set);
            continue;
        }
        const __m256i wanted = _mm256_set1_epi64x((long long)(key | 1));
        const __m256i low = _mm256_load_si256((const __m256i *)set), high = _mm256_load_si256((const __m256i *)(set + 4));
        unsigned hits =
            (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_or_si256(low, one), wanted))) |
            (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_or_si256(high, one), wanted))) << 4;
        if (!hits && !allocate && (key & 1)) {
            missed[misses] = (uint32_t)i;
            displaced[misses++] = EW_NO_FILL;
            continue;
        }
        int at = __builtin_ctz(hits | last);
        const uint64_t front = set[at];
        const uint64_t word = hits ? front | (key & dirty) : (key & ~1ull) | (key & dirty);
        const __m256i *turn = (const __m256i *)rotation[at];
        const __m256i moved = _mm256_permutevar8x32_epi32(low, _mm256_load_si256(turn));
        const __m256i rest = _mm256_permutevar8x32_epi32(high, _mm256_load_si256(turn + 1));
        const __m256i first = _mm256_castsi128_si256(_mm_cvtsi64_si128((long long)word));
        _mm256_store_si256((__m256i *)set, _mm256_blend_epi32(moved, first, 3));
        _mm256_store_si256((__m256i *)(set + 4),
                           _mm256_blendv_epi8(rest, moved, _mm256_load_si256((const __m256i *)carry[at])));
        missed[misses] = (uint32_t)i;
        displaced[misses] = front;
        misses += !hits;
        previous = key;
    }
    return misses;
}

/* LRU with up to eight ways: the set is one register, a rotation one permutation, a miss a rotation from the last way. No
 * branch depends on the outcome of a look-up but those of repeated lines and of stores that do not allocate. */
EDGEWATT_MASKS static int64_t ew_lru8_avx512(ew_cache *cache, const uint64_t *keys, const int64_t *next_use,
                                                   int64_t n, uint32_t *missed, uint64_t *displaced) {
    uint64_t rotation[8][8] __attribute__((aligned(64)));
    for (uint64_t at = 0; at < 8; at++)
        for (uint64_t way = 0; way < 8; way++) rotation[at][way] = way == 0 ? at : way <= at ? way - 1 : way;
    const __m512i line_bits = _mm512_set1_epi64(~1ll);
    const uint64_t dirty = cache->dirty, set_mask = cache->set_mask;
    const int allocate = cache->allocate;
    const unsigned last = 1u << (cache->ways - 1);
    uint64_t *words = cache->words;
    int64_t misses = 0;
    (void)next_use;
    uint64_t previous = EW_NO_LINE;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i];
        uint64_t *set = words + ((key >> 1) & set_mask) * 8;
        if ((key ^ previous) <= 1) { /* the line of the look-up before: it is the most recent of its set */
            i = ew_repeats(keys, i, n, previous, dirty, set);
            continue;
        }
        __m512i held = _mm512_load_si512(set);
        unsigned hits = _mm512_testn_epi64_mask(_mm512_xor_si512(held, _mm512_set1_epi64((long long)key)), line_bits);
        if (!hits && !allocate && (key & 1)) {
            missed[misses] = (uint32_t)i;
            displaced[misses++] = EW_NO_FILL;
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
