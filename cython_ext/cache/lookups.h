/* The look-ups of every policy, compiled plain and for AVX2: level.h includes this file with CORE and CORE_TARGET set.
 * `policy` is a constant in all uses but one, so its flags and functions are folded into the loop. */

CORE_TARGET EW_INLINE int64_t CORE(ew_look_up)(
    const edgewatt_policy *policy, int trusted, ew_cache *cache, const uint64_t *keys, const int64_t *next_use,
    int64_t n, uint32_t *missed, uint64_t *displaced) {
    const int in_order = policy->flags & EDGEWATT_IN_ORDER, in_turn = policy->flags & EDGEWATT_IN_TURN;
    const int every = policy->flags & EDGEWATT_EVERY_LOOKUP;
    const int64_t stride = cache->stride, ways = cache->ways;
    const uint64_t dirty = cache->dirty;
    const uint64_t set_mask = cache->set_mask;
    uint64_t previous = EW_NO_LINE, *last_word = NULL;
    int64_t misses = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i], set = (key >> 1) & set_mask;
        if ((key ^ previous) <= 1 && !every) {
            i = ew_repeats(keys, i, n, previous, dirty, last_word);
            continue;
        }
        uint64_t *words = cache->words + set * stride;
        int64_t way = CORE(ew_find)(words, stride, key);
        const int hit = way >= 0;
        if (!hit) {
            missed[misses] = (uint32_t)i;
            if (!cache->allocate && (key & 1)) {
                displaced[misses++] = EW_NO_FILL;
                continue;
            }
            uint32_t *filled = cache->filled + set;
            if (in_order) {
                way = ways - 1;
            } else if (in_turn) { /* the oldest fill is the next way in turn */
                way = *filled;
                *filled = way + 1 == ways ? 0 : (uint32_t)(way + 1);
            } else if (*filled < ways) {
                way = (*filled)++; /* empty ways first */
            } else {
                way = policy->victim(&cache->sets, set);
                if (!trusted && (way < 0 || way >= ways)) {
                    cache->sets.failed = 1;
                    return misses;
                }
            }
            displaced[misses++] = words[way];
        }
        if (in_order) {
            ew_rotate(words, way, hit ? words[way] | (key & dirty) : (key & ~1ull) | (key & dirty));
            way = 0;
        } else {
            const uint64_t word = (hit ? words[way] : key & ~1ull) | (key & dirty);
            if (words[way] != word) words[way] = word; /* a store would delay the next wide load of this set */
            if (hit && policy->hit) policy->hit(&cache->sets, set, way, next_use ? next_use[i] : 0);
            if (!hit && policy->fill) policy->fill(&cache->sets, set, way, next_use ? next_use[i] : 0);
        }
        previous = key;
        last_word = words + way;
    }
    return misses;
}

#define EDGEWATT_LOOKUPS(name) \
    CORE_TARGET static int64_t CORE(ew_lookups_##name)(ew_cache *cache, const uint64_t *keys, \
                                                             const int64_t *next_use, int64_t n, uint32_t *missed, \
                                                             uint64_t *displaced) { \
        return CORE(ew_look_up)(&edgewatt_policy_##name, 1, cache, keys, next_use, n, missed, displaced); \
    }
EDGEWATT_POLICIES(EDGEWATT_LOOKUPS)
#undef EDGEWATT_LOOKUPS

/* A policy known at run time only: written in Python, or of another library. */
CORE_TARGET static int64_t CORE(ew_lookups_any)(const edgewatt_policy *policy, ew_cache *cache,
                                                      const uint64_t *keys, const int64_t *next_use, int64_t n,
                                                      uint32_t *missed, uint64_t *displaced) {
    return CORE(ew_look_up)(policy, 0, cache, keys, next_use, n, missed, displaced);
}

/* Return the first access of no byte, of an unknown op, or with an end beyond `limit`; else -1. One of the two size arrays
 * is null. Ends are looked at only where the bits of all addresses together, at least the largest, come near the limit. */
CORE_TARGET static int64_t CORE(ew_first_bad)(const uint64_t *restrict address, const uint8_t *restrict bytes,
                                              const uint16_t *restrict halves, const uint8_t *restrict op, int64_t n,
                                              uint64_t limit) {
    uint64_t far = 0;
    uint8_t ops = 0, empty = 0;
    for (int64_t i = 0; i < n; i++) far |= address[i];
    for (int64_t i = 0; i < n; i++) ops |= op[i];
    if (bytes)
        for (int64_t i = 0; i < n; i++) empty |= bytes[i] == 0;
    else
        for (int64_t i = 0; i < n; i++) empty |= halves[i] == 0;
    if (far < limit && limit - far >= UINT16_MAX && ops <= 1 && !empty) return -1;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t size = bytes ? bytes[i] : halves[i];
        if (address[i] >= limit || address[i] + size > limit || size == 0 || op[i] > 1) return i;
    }
    return -1;
}

/* Keys of `n` accesses if each touches one line only: return the number of stores, or -1 where one crosses a line. */
CORE_TARGET static int64_t CORE(ew_keys)(const uint64_t *restrict address, const uint8_t *restrict bytes,
                                               const uint16_t *restrict halves, const uint8_t *restrict op, int64_t n,
                                               int shift, uint64_t *restrict keys) {
    uint64_t differing = 0, stores = 0; /* bits in which a first and a last byte differ */
    if (bytes)
        for (int64_t i = 0; i < n; i++) {
            const uint64_t at = address[i], store = op[i];
            keys[i] = at >> shift << 1 | store;
            stores += store;
            differing |= at ^ (at + bytes[i] - 1);
        }
    else
        for (int64_t i = 0; i < n; i++) {
            const uint64_t at = address[i], store = op[i];
            keys[i] = at >> shift << 1 | store;
            stores += store;
            differing |= at ^ (at + halves[i] - 1);
        }
    return differing >> shift ? -1 : (int64_t)stores;
}

CORE_TARGET static void CORE(ew_count_misses)(const uint64_t *restrict keys, const uint32_t *restrict missed,
                                                    const uint64_t *restrict displaced, int64_t misses,
                                                    ew_miss_counts *found) {
    uint64_t stores = 0, evictions = 0, writebacks = 0, skipped = 0;
    for (int64_t j = 0; j < misses; j++) {
        const uint64_t victim = displaced[j], held = victim < EW_NO_FILL;
        stores += keys[missed[j]] & 1;
        evictions += held;
        writebacks += held & victim;
        skipped += victim == EW_NO_FILL;
    }
    *found = (ew_miss_counts){(int64_t)stores, (int64_t)evictions, (int64_t)writebacks, (int64_t)skipped};
}
