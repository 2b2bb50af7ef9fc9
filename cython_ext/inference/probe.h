/* What a core can do at most: multiply-adds on registers. */
#ifndef EDGEWATT_INFERENCE_PROBE_H
#define EDGEWATT_INFERENCE_PROBE_H

#include "streams/stream.h"

/* 12 independent chains of `steps` multiply-adds of 4 floats. */
typedef float ew_p4 __attribute__((vector_size(16)));
static float ew_fma_baseline(int64_t steps) {
    ew_p4 sum[12] = {{0}};
    const ew_p4 w = {0.5f, 0.5f, 0.5f, 0.5f};
    for (int64_t s = 0; s < steps; s++)
        for (int k = 0; k < 12; k++) sum[k] = sum[k] * w + w;
    float all = 0.0f;
    for (int k = 0; k < 12; k++) all += sum[k][0];
    return all;
}

#if EDGEWATT_X86
#define EW_PROBE(level, TARGET, V, SET1, FMA, FIRST)                                                  \
    TARGET static float ew_fma_##level(int64_t steps) {                                               \
        V sum[12];                                                                                    \
        const V w = SET1(0.5f);                                                                       \
        _Pragma("GCC unroll 12") for (int k = 0; k < 12; k++) sum[k] = w;                             \
        for (int64_t s = 0; s < steps; s++) {                                                         \
            _Pragma("GCC unroll 12") for (int k = 0; k < 12; k++) {                                   \
                sum[k] = FMA(w, w, sum[k]);                                                           \
                __asm__ volatile("" : "+v"(sum[k]));                                                  \
            }                                                                                         \
        }                                                                                             \
        float all = 0.0f;                                                                             \
        _Pragma("GCC unroll 12") for (int k = 0; k < 12; k++) all += FIRST(sum[k]);                   \
        return all;                                                                                   \
    }
EW_PROBE(avx2, EDGEWATT_AVX2, __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_cvtss_f32)
EW_PROBE(avx512, EDGEWATT_AVX512, __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_cvtss_f32)
#endif

/* Returns floating-point operations per step, and works through the steps. */
static int ew_fma(int64_t steps, int level) {
    volatile float kept;
#if EDGEWATT_X86
    if (level >= EDGEWATT_LEVEL_AVX512) {
        kept = ew_fma_avx512(steps);
        (void)kept;
        return 12 * 16 * 2;
    }
    if (level == EDGEWATT_LEVEL_AVX2) {
        kept = ew_fma_avx2(steps);
        (void)kept;
        return 12 * 8 * 2;
    }
#endif
    (void)level;
    kept = ew_fma_baseline(steps);
    (void)kept;
    return 12 * 4 * 2;
}

#endif
