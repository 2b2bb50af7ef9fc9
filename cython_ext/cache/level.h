/* The look-ups of one level, one after another (cache/sets.h), for every compiled policy; its keys and counts. */
#pragma once

#include <stdlib.h>

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
        return EDGEWATT_WITH_AVX2(ew_lookups_##policy_name); \
    }
    EDGEWATT_POLICIES(EDGEWATT_POLICY_LOOP)
#undef EDGEWATT_POLICY_LOOP
    return 0;
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

/* ---- a growing list of line transactions, kept from call to call */

typedef struct {
    uint64_t *address;
    uint16_t *size;
    uint8_t *is_write;
    int64_t *access;
    int64_t n, capacity;
} ew_transactions;

static int ew_grow(void **array, int64_t bytes) {
    void *grown = realloc(*array, (size_t)bytes);
    if (grown) *array = grown;
    return grown ? 0 : -1;
}

/* Make room for `extra` more; return 0, or -1 without memory. */
static int ew_reserve(ew_transactions *out, int64_t extra) {
    int64_t capacity = out->capacity;
    if (out->n + extra <= capacity) return 0;
    while (capacity < out->n + extra) capacity = 2 * capacity + 4096;
    if (ew_grow((void **)&out->address, capacity * 8) || ew_grow((void **)&out->size, capacity * 2) ||
        ew_grow((void **)&out->is_write, capacity) || ew_grow((void **)&out->access, capacity * 8))
        return -1;
    out->capacity = capacity;
    return 0;
}

static void ew_release(ew_transactions *out) {
    free(out->address);
    free(out->size);
    free(out->is_write);
    free(out->access);
}

static inline void edgewatt_put(ew_transactions *out, uint64_t address, int64_t size, int is_write,
                                int64_t access) {
    out->address[out->n] = address;
    out->size[out->n] = (uint16_t)size;
    out->is_write[out->n] = (uint8_t)is_write;
    out->access[out->n] = access;
    out->n += 1;
}
