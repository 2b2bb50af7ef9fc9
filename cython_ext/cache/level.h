/* The look-ups of one level, one after another (cache/sets.h), for every compiled policy; its keys and counts. */
#pragma once

#include "cache/wide.h"

typedef struct { /* what became of misses: those of stores, displaced lines, dirty ones, stores that filled nothing */
    int64_t stores, evictions, writebacks, skipped;
} ew_miss_counts;

#include "cache/policies.h" /* made by the build: policies/policy_*.h, and a list of their names */

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
#define EDGEWATT_BY_LEVEL(name) (ew_simd_level() >= EDGEWATT_LEVEL_AVX2 ? name##_avx2 : name##_baseline)
#else
#define EDGEWATT_BY_LEVEL(name) name##_baseline
#endif

/* Return the loop of a compiled policy for sets of `stride` words, and the policy; null for an unknown name. */
static ew_loop ew_loop_of(const char *name, int64_t stride, const edgewatt_policy **policy) {
#if EDGEWATT_X86
    if (strcmp(name, "lru") == 0 && stride == 8 && ew_simd_level() >= EDGEWATT_LEVEL_AVX2) {
        *policy = &edgewatt_policy_lru;
        return ew_has_masks() ? ew_lru8_avx512 : ew_lru8_avx2;
    }
#endif
    (void)stride;
#define EDGEWATT_POLICY_LOOP(policy_name) \
    if (strcmp(name, #policy_name) == 0) { \
        *policy = &edgewatt_policy_##policy_name; \
        return EDGEWATT_BY_LEVEL(ew_lookups_##policy_name); \
    }
    EDGEWATT_POLICIES(EDGEWATT_POLICY_LOOP)
#undef EDGEWATT_POLICY_LOOP
    return 0;
}

/* Look-ups of a policy known at run time only: written in Python, or of another library. */
static int64_t ew_lookups_outside(const edgewatt_policy *policy, ew_cache *cache, const uint64_t *keys,
                                        const int64_t *next_use, int64_t n, uint32_t *missed, uint64_t *displaced) {
    return EDGEWATT_BY_LEVEL(ew_lookups_any)(policy, cache, keys, next_use, n, missed, displaced);
}

static int ew_cache_all_good(const uint64_t *address, const uint8_t *bytes, const uint16_t *halves,
                                   const uint8_t *op, int64_t n, uint64_t limit) {
    return EDGEWATT_BY_LEVEL(ew_all_good)(address, bytes, halves, op, n, limit);
}

static int64_t ew_cache_keys(const uint64_t *address, const uint8_t *bytes, const uint16_t *halves,
                                   const uint8_t *op, int64_t n, int shift, uint64_t *keys) {
    return EDGEWATT_BY_LEVEL(ew_keys)(address, bytes, halves, op, n, shift, keys);
}

static void ew_cache_count_misses(const uint64_t *keys, const uint32_t *missed, const uint64_t *displaced, int64_t misses,
                                 ew_miss_counts *found) {
    EDGEWATT_BY_LEVEL(ew_count_misses)(keys, missed, displaced, misses, found);
}

/* Write the transactions of a write-back, allocating level's misses: a dirty victim's write-back, then the fill.
 * `access` numbers the access of each look-up, or is null where look-up k is access first + k. Returns their number. */
static int64_t ew_cache_emit(const uint64_t *keys, const uint32_t *missed, const uint64_t *displaced, int64_t misses,
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
        n += victim != EW_NO_LINE && (victim & 1);
        to_address[n] = keys[k] >> 1 << shift;
        to_size[n] = line_bytes;
        to_write[n] = 0;
        to_access[n] = at;
        n++;
    }
    return n;
}
