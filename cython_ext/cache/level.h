/* The look-ups of one level, one after another (cache/sets.h), for every compiled policy; its keys and counts. */
#ifndef EDGEWATT_CACHE_LEVEL_H
#define EDGEWATT_CACHE_LEVEL_H

#include "cache/sets.h"

typedef struct { /* what became of misses: those of stores, displaced lines, dirty ones, stores that filled nothing */
    int64_t stores, evictions, writebacks, skipped;
} edgewatt_tally;

#include "cache/policies.h" /* made by the build: policies/policy_*.h, and a list of their names */

/* `policy` is a constant in all uses but one, so its flags and functions are folded into the loop. */
static inline __attribute__((always_inline)) int64_t edgewatt_look_up(
    const edgewatt_policy *policy, int trusted, edgewatt_cache *cache, const uint64_t *keys, const int64_t *next_use,
    int64_t n, uint32_t *missed, uint64_t *displaced) {
    const int in_order = policy->flags & EDGEWATT_IN_ORDER, in_turn = policy->flags & EDGEWATT_IN_TURN;
    const int every = policy->flags & EDGEWATT_EVERY_LOOKUP;
    const int64_t stride = cache->stride, ways = cache->ways;
    const uint64_t dirty = cache->dirty;
    const uint64_t set_mask = cache->set_mask;
    uint64_t previous = EDGEWATT_NO_LINE, *its_word = NULL;
    int64_t misses = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i], set = (key >> 1) & set_mask;
        if ((key ^ previous) <= 1 && !every) {
            i = edgewatt_repeats(keys, i, n, previous, dirty, its_word);
            continue;
        }
        uint64_t *words = cache->words + set * stride;
        int64_t way = edgewatt_find(words, stride, key);
        const int hit = way >= 0;
        if (!hit) {
            missed[misses] = (uint32_t)i;
            if (!cache->allocate && (key & 1)) {
                displaced[misses++] = EDGEWATT_NO_FILL;
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
            edgewatt_rotate(words, way, hit ? words[way] | (key & dirty) : (key & ~1ull) | (key & dirty));
            way = 0;
        } else {
            const uint64_t word = (hit ? words[way] : key & ~1ull) | (key & dirty);
            if (words[way] != word) words[way] = word; /* a store would delay the next wide load of this set */
            if (hit && policy->hit) policy->hit(&cache->sets, set, way, next_use ? next_use[i] : 0);
            if (!hit && policy->fill) policy->fill(&cache->sets, set, way, next_use ? next_use[i] : 0);
        }
        previous = key;
        its_word = words + way;
    }
    return misses;
}

#define EDGEWATT_LOOKUPS(name)                                                                                     \
    static int64_t edgewatt_lookups_##name(edgewatt_cache *cache, const uint64_t *keys,          \
                                                             const int64_t *next_use, int64_t n, uint32_t *missed, \
                                                             uint64_t *displaced) {                                \
        return edgewatt_look_up(&edgewatt_policy_##name, 1, cache, keys, next_use, n, missed, displaced);    \
    }
EDGEWATT_POLICIES(EDGEWATT_LOOKUPS)
#undef EDGEWATT_LOOKUPS

/* Look-ups of a policy known at run time only: written in Python, or of another library. */
static int64_t edgewatt_lookups_outside(const edgewatt_policy *policy, edgewatt_cache *cache,
                                                      const uint64_t *keys, const int64_t *next_use, int64_t n,
                                                      uint32_t *missed, uint64_t *displaced) {
    return edgewatt_look_up(policy, 0, cache, keys, next_use, n, missed, displaced);
}

/* Return the loop of a compiled policy for sets of `stride` words, and the policy; null for an unknown name. */
static edgewatt_loop edgewatt_loop_of(const char *name, int64_t stride, const edgewatt_policy **policy) {
#if EDGEWATT_X86
    if (strcmp(name, "lru") == 0 && stride == 8 && edgewatt_has_masks()) {
        *policy = &edgewatt_policy_lru;
        return edgewatt_lru8_avx512;
    }
#endif
    (void)stride;
#define EDGEWATT_POLICY_LOOP(policy_name)              \
    if (strcmp(name, #policy_name) == 0) {             \
        *policy = &edgewatt_policy_##policy_name;      \
        return edgewatt_lookups_##policy_name;         \
    }
    EDGEWATT_POLICIES(EDGEWATT_POLICY_LOOP)
#undef EDGEWATT_POLICY_LOOP
    return 0;
}

/* ---- before and after the look-ups, compiled for AVX2 too ---- */

#define EDGEWATT_PLAIN_AND_AVX2 static inline __attribute__((always_inline))

/* Whether every access has a byte, a known op and an end up to `limit`. One of the two size arrays is null. */
EDGEWATT_PLAIN_AND_AVX2 int edgewatt_all_good(const uint64_t *restrict address, const uint8_t *restrict bytes,
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
EDGEWATT_PLAIN_AND_AVX2 int64_t edgewatt_keys(const uint64_t *restrict address, const uint8_t *restrict bytes,
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

#if EDGEWATT_X86
EDGEWATT_AVX2 static int edgewatt_all_good_avx2(const uint64_t *address, const uint8_t *bytes, const uint16_t *halves,
                                                const uint8_t *op, int64_t n, uint64_t limit) {
    return edgewatt_all_good(address, bytes, halves, op, n, limit);
}
EDGEWATT_AVX2 static int64_t edgewatt_keys_avx2(const uint64_t *address, const uint8_t *bytes, const uint16_t *halves,
                                                const uint8_t *op, int64_t n, int shift, uint64_t *keys) {
    return edgewatt_keys(address, bytes, halves, op, n, shift, keys);
}
#endif

static int edgewatt_cache_all_good(const uint64_t *address, const uint8_t *bytes, const uint16_t *halves,
                                   const uint8_t *op, int64_t n, uint64_t limit) {
#if EDGEWATT_X86
    if (edgewatt_simd_level() >= EDGEWATT_LEVEL_AVX2) return edgewatt_all_good_avx2(address, bytes, halves, op, n, limit);
#endif
    return edgewatt_all_good(address, bytes, halves, op, n, limit);
}

static int64_t edgewatt_cache_keys(const uint64_t *address, const uint8_t *bytes, const uint16_t *halves,
                                   const uint8_t *op, int64_t n, int shift, uint64_t *keys) {
#if EDGEWATT_X86
    if (edgewatt_simd_level() >= EDGEWATT_LEVEL_AVX2) return edgewatt_keys_avx2(address, bytes, halves, op, n, shift, keys);
#endif
    return edgewatt_keys(address, bytes, halves, op, n, shift, keys);
}

static void edgewatt_cache_tally(const uint64_t *restrict keys, const uint32_t *restrict missed,
                                 const uint64_t *restrict displaced, int64_t misses, edgewatt_tally *found) {
    uint64_t stores = 0, evictions = 0, writebacks = 0, skipped = 0;
    for (int64_t j = 0; j < misses; j++) {
        const uint64_t victim = displaced[j], held = victim < EDGEWATT_NO_FILL;
        stores += keys[missed[j]] & 1;
        evictions += held;
        writebacks += held & victim;
        skipped += victim == EDGEWATT_NO_FILL;
    }
    *found = (edgewatt_tally){(int64_t)stores, (int64_t)evictions, (int64_t)writebacks, (int64_t)skipped};
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
