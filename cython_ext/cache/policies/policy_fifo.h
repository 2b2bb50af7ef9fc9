/* fifo: the ways of a set are filled in turn, so the line filled longest ago goes. */
#ifndef EDGEWATT_POLICY_FIFO_H
#define EDGEWATT_POLICY_FIFO_H

static const edgewatt_policy edgewatt_policy_fifo = {.version = EDGEWATT_POLICY_VERSION, .flags = EDGEWATT_IN_TURN};

#if EDGEWATT_X86
/* FIFO with up to eight ways: the victim is known before the search, so no branch depends on the outcome. */
EDGEWATT_MASKS static int64_t edgewatt_fifo8_avx512(edgewatt_cache *cache, const uint64_t *keys, const int64_t *next_use,
                                                    int64_t n, uint32_t *missed, uint64_t *displaced) {
    const __m512i line_bits = _mm512_set1_epi64(~1ll);
    const uint64_t dirty = cache->dirty, set_mask = cache->set_mask;
    const uint32_t ways = (uint32_t)cache->ways;
    uint64_t previous = EDGEWATT_NO_LINE, *its_word = cache->words;
    int64_t misses = 0;
    (void)next_use;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i], set = (key >> 1) & set_mask;
        if ((key ^ previous) <= 1) {
            i = edgewatt_repeats(keys, i, n, previous, dirty, its_word);
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
        const uint32_t next = cache->filled[set], after = next + 1 == ways ? 0 : next + 1;
        its_word = words + (hits ? (uint32_t)__builtin_ctz(hits) : next);
        cache->filled[set] = hits ? next : after;
        missed[misses] = (uint32_t)i;
        displaced[misses] = *its_word;
        misses += !hits;
        const uint64_t word = hits ? *its_word | (key & dirty) : (key & ~1ull) | (key & dirty);
        if (*its_word != word) *its_word = word; /* a store would delay the next wide load of this set */
        previous = key;
    }
    return misses;
}

#endif

static edgewatt_loop edgewatt_fast_fifo(int simd, int64_t stride) {
#if EDGEWATT_X86
    if (simd == EDGEWATT_LEVEL_AVX512 && stride == 8) return edgewatt_fifo8_avx512;
#endif
    (void)simd, (void)stride;
    return 0;
}

#endif
