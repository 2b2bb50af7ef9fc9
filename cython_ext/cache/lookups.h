/* The look-ups of every policy, compiled once per SIMD level: cache.h includes this file with CORE and CORE_TARGET set. */

CORE_TARGET static inline int64_t CORE(edgewatt_choose)(edgewatt_cache *cache, uint64_t set) {
    uint32_t *pointer = cache->pointer + set;
    if (cache->policy == EDGEWATT_FIFO) { /* the oldest fill is the next way in turn */
        int64_t way = *pointer;
        *pointer = way + 1 == cache->ways ? 0 : (uint32_t)(way + 1);
        return way;
    }
    if (*pointer < cache->ways) return (*pointer)++; /* empty ways first */
    if (cache->policy == EDGEWATT_RANDOM) return (int64_t)edgewatt_cache_draw(cache, (uint64_t)cache->ways);
    if (cache->policy == EDGEWATT_PLRU) return edgewatt_tree_victim(cache->tree + set * cache->ways, cache->ways);
    const int64_t *next = cache->next + set * cache->stride;
    int64_t farthest = 0;
    for (int64_t way = 1; way < cache->ways; way++)
        if (next[way] > next[farthest]) farthest = way;
    return farthest;
}

CORE_TARGET static int64_t CORE(edgewatt_lookups)(edgewatt_cache *cache, const uint64_t *keys, const int64_t *next_use,
                                                  int64_t n, uint32_t *missed, uint64_t *displaced) {
    const int64_t stride = cache->stride, ways = cache->ways;
    const uint64_t dirty = cache->dirty;
    const int policy = cache->policy;
    const uint64_t set_mask = cache->set_mask;
    uint64_t previous = EDGEWATT_NO_LINE, *its_word = NULL;
    int64_t misses = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i], set = (key >> 1) & set_mask;
        if ((key ^ previous) <= 1 && policy != EDGEWATT_MIN) { /* a repeated hit changes nothing but the dirty bit */
            *its_word |= key & dirty;
            continue;
        }
        uint64_t *words = cache->words + set * stride;
        int64_t way = CORE(edgewatt_find)(words, stride, key);
        const int hit = way >= 0;
        if (!hit) {
            missed[misses] = (uint32_t)i;
            if (!cache->allocate && (key & 1)) {
                displaced[misses++] = EDGEWATT_NO_FILL;
                continue;
            }
            way = policy == EDGEWATT_LRU ? ways - 1 : CORE(edgewatt_choose)(cache, set);
            displaced[misses++] = words[way];
        }
        const uint64_t word = hit ? words[way] | (key & dirty) : (key & ~1ull) | (key & dirty);
        if (policy == EDGEWATT_LRU) {
            edgewatt_rotate(words, way, word);
            way = 0;
        } else {
            if (words[way] != word) words[way] = word; /* a store would delay the next wide load of this set */
            if (policy == EDGEWATT_PLRU) edgewatt_tree_touch(cache->tree + set * ways, ways, way);
            if (policy == EDGEWATT_MIN) cache->next[set * stride + way] = next_use[i];
        }
        previous = key;
        its_word = words + way;
    }
    return misses;
}

/* Whether every access has a byte, a known op and an end up to `limit`. One of the two size arrays is null. */
CORE_TARGET static int CORE(edgewatt_all_good)(const uint64_t *restrict address, const uint8_t *restrict bytes,
                                               const uint16_t *restrict halves, const uint8_t *restrict op, int64_t n,
                                               uint64_t limit) {
    uint64_t bad = 0;
    if (bytes)
        for (int64_t i = 0; i < n; i++)
            bad |= (address[i] >= limit) | (address[i] + bytes[i] > limit) | (bytes[i] == 0) | (op[i] > 1);
    else
        for (int64_t i = 0; i < n; i++)
            bad |= (address[i] >= limit) | (address[i] + halves[i] > limit) | (halves[i] == 0) | (op[i] > 1);
    return !bad;
}

/* Keys of `n` accesses if each touches one line only: return the number of stores, or -1 where one crosses a line. */
CORE_TARGET static int64_t CORE(edgewatt_keys)(const uint64_t *restrict address, const uint8_t *restrict bytes,
                                               const uint16_t *restrict halves, const uint8_t *restrict op, int64_t n,
                                               int shift, uint64_t *restrict keys) {
    const uint64_t inside = ((uint64_t)1 << shift) - 1;
    uint64_t crossings = 0, stores = 0;
    if (bytes)
        for (int64_t i = 0; i < n; i++) {
            const uint64_t at = address[i], store = op[i];
            keys[i] = at >> shift << 1 | store;
            stores += store;
            crossings |= (at & inside) + bytes[i] > inside + 1;
        }
    else
        for (int64_t i = 0; i < n; i++) {
            const uint64_t at = address[i], store = op[i];
            keys[i] = at >> shift << 1 | store;
            stores += store;
            crossings |= (at & inside) + halves[i] > inside + 1;
        }
    return crossings ? -1 : (int64_t)stores;
}
