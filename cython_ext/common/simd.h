/* Run-time choice of the SIMD level. Kernels mark variants with EDGEWATT_AVX2 / EDGEWATT_AVX512 and switch on
 * ew_simd_level(); nothing is ever compiled with -march=native, so a wheel runs on any x86-64 (and, through the
 * baseline path, on any other CPU). EDGEWATT_SIMD=baseline|avx2 lowers the level, for tests and comparisons. */
#pragma once

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define EDGEWATT_X86 1
#include <immintrin.h>
#define EDGEWATT_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt,fma")))
#define EDGEWATT_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512cd,avx512bitalg,avx512vpopcntdq,avx2,bmi," \
                          "bmi2,popcnt,lzcnt,fma")))
/* AVX-512 as the first processors with it have it (Skylake, Cascade Lake): masks over bytes and words, no counts of
 * ones. */
#define EDGEWATT_MASKS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi,bmi2,popcnt,lzcnt")))
#else
#define EDGEWATT_X86 0
#endif

#ifdef EDGEWATT_DEBUG
#define EDGEWATT_DEBUG_BUILD 1
#else
#define EDGEWATT_DEBUG_BUILD 0
#endif

enum { EDGEWATT_BASELINE = 0, EDGEWATT_LEVEL_AVX2 = 1, EDGEWATT_LEVEL_AVX512 = 2 };

static inline int ew_simd_level(void) {
    static int level = -1; /* threads that come first together find the same */
    int found = __atomic_load_n(&level, __ATOMIC_RELAXED);
    if (found >= 0) return found;
    found = EDGEWATT_BASELINE;
#if EDGEWATT_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt"))
        found = EDGEWATT_LEVEL_AVX2;
    if (found && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("avx512vpopcntdq"))
        found = EDGEWATT_LEVEL_AVX512;
#endif
    const char *wish = getenv("EDGEWATT_SIMD");
    if (wish && !strcmp(wish, "baseline")) found = EDGEWATT_BASELINE;
    if (wish && !strcmp(wish, "avx2") && found > EDGEWATT_LEVEL_AVX2) found = EDGEWATT_LEVEL_AVX2;
    __atomic_store_n(&level, found, __ATOMIC_RELAXED);
    return found;
}

/* The variant of a function that is compiled for a level, or for this machine: NAME_avx512, NAME_avx2, NAME_baseline. */
#if EDGEWATT_X86
#define EDGEWATT_AT_MOST_AVX2(name, level) ((level) >= EDGEWATT_LEVEL_AVX2 ? name##_avx2 : name##_baseline)
#define EDGEWATT_FOR_LEVEL(name, level) \
    ((level) >= EDGEWATT_LEVEL_AVX512 ? name##_avx512 : EDGEWATT_AT_MOST_AVX2(name, level))
#else
#define EDGEWATT_AT_MOST_AVX2(name, level) ((void)(level), name##_baseline)
#define EDGEWATT_FOR_LEVEL(name, level) EDGEWATT_AT_MOST_AVX2(name, level)
#endif
#define EDGEWATT_WITH_AVX2(name) EDGEWATT_AT_MOST_AVX2(name, ew_simd_level())

/* Whether the processor can run EDGEWATT_MASKS, and no lower level is asked for. */
static inline int ew_has_masks(void) {
#if EDGEWATT_X86
    static int known = -1; /* threads that come first together find the same */
    int found = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (found >= 0) return found;
    const char *wish = getenv("EDGEWATT_SIMD");
    found = ew_simd_level() >= EDGEWATT_LEVEL_AVX2 && !(wish && !strcmp(wish, "avx2")) &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512dq");
    __atomic_store_n(&known, found, __ATOMIC_RELAXED);
    return found;
#else
    return 0;
#endif
}
