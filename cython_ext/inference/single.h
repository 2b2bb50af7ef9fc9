/* One input vector at a time: a neuron is one float, a run a sparse dot product. */
#pragma once

#include "streams/stream.h"

static inline float ew_finish(float sum, float bias, uint32_t kind) {
    if (kind == EW_RELU) return sum > 0.0f ? sum : 0.0f;
    if (kind != EW_CLIPPED) return sum;
    if (sum == 0.0f) return 0.0f;
    sum += bias;
    return sum < 0.0f ? 0.0f : sum > EW_CLIP ? EW_CLIP : sum;
}

static inline float ew_dot_baseline(const uint32_t *wide, const uint16_t *narrow, const float *weight, uint32_t n,
                                    const float *values, const int NARROW) {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) sum[k] += weight[i + k] * values[NARROW ? narrow[i + k] : wide[i + k]];
    for (; i < n; i++) sum[0] += weight[i] * values[NARROW ? narrow[i] : wide[i]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

#if EDGEWATT_X86
/* Four values by scalar loads: gathers take about twice as long. */
EDGEWATT_AVX2 static inline __m128 ew_four_values(const uint32_t *wide, const uint16_t *narrow, const float *values,
                                                  const int NARROW) {
    uint64_t pair[2];
    size_t offset[4];
    if (NARROW) {
        memcpy(pair, narrow, 8);
        for (int k = 0; k < 4; k++) offset[k] = (uint16_t)(pair[0] >> (16 * k));
    } else {
        memcpy(pair, wide, 16);
        for (int k = 0; k < 4; k++) offset[k] = (uint32_t)(pair[k / 2] >> (32 * (k % 2)));
    }
    __m128 four = _mm_load_ss(values + offset[0]);
    four = _mm_insert_ps(four, _mm_load_ss(values + offset[1]), 0x10);
    four = _mm_insert_ps(four, _mm_load_ss(values + offset[2]), 0x20);
    return _mm_insert_ps(four, _mm_load_ss(values + offset[3]), 0x30);
}

EDGEWATT_AVX2 static inline float ew_dot_avx2(const uint32_t *wide, const uint16_t *narrow, const float *weight,
                                              uint32_t n, const float *values, const int NARROW) {
    __m128 sum = _mm_setzero_ps(), more = sum;
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) {
        sum = _mm_fmadd_ps(_mm_loadu_ps(weight + i), ew_four_values(wide + i, narrow + i, values, NARROW), sum);
        more = _mm_fmadd_ps(_mm_loadu_ps(weight + i + 4), ew_four_values(wide + i + 4, narrow + i + 4, values, NARROW),
                            more);
    }
    if (i + 4 <= n) {
        sum = _mm_fmadd_ps(_mm_loadu_ps(weight + i), ew_four_values(wide + i, narrow + i, values, NARROW), sum);
        i += 4;
    }
    __m128 rest = _mm_setzero_ps(); /* of its own: a scalar multiply-add does not keep the lanes above the lowest */
    for (; i < n; i++)
        rest = _mm_fmadd_ss(_mm_load_ss(weight + i), _mm_load_ss(values + (NARROW ? narrow[i] : wide[i])), rest);
    sum = _mm_add_ps(_mm_add_ps(sum, rest), more);
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}
#endif

#define EW_SINGLE(TARGET, level, NARROW, name) \
    TARGET static void name(const ew_run *run, const ew_run *end, const char *offsets, const char *weights, \
                            float *values, const float *inputs) { \
        for (; run < end; run++) { \
            const uint32_t n = run->head & EW_MAX_RUN, kind = EW_ACTIVATION(run->head); \
            const char *const offset = offsets + (size_t)run->quad * (NARROW ? 8 : 16); \
            const float *const weight = (const float *)(weights + (size_t)run->quad * 16); \
            const float *const from = run->head & EW_OUTSIDE ? inputs : values; \
            float sum = !(run->head & EW_FIRST) ? values[run->target] : kind == EW_CLIPPED ? 0.0f : run->start; \
            sum += ew_dot_##level((const uint32_t *)offset, (const uint16_t *)offset, weight, n, from, NARROW); \
            values[run->target] = run->head & EW_LAST ? ew_finish(sum, run->start, kind) : sum; \
        } \
    }
EW_SINGLE(, baseline, 0, ew_single_baseline)
EW_SINGLE(, baseline, 1, ew_single_narrow_baseline)
#if EDGEWATT_X86
EW_SINGLE(EDGEWATT_AVX2, avx2, 0, ew_single_avx2)
EW_SINGLE(EDGEWATT_AVX2, avx2, 1, ew_single_narrow_avx2)
#endif

static void ew_single(const ew_run *run, const ew_run *end, const char *offsets, const char *weights, float *values,
                      const float *inputs, int kind, int level) {
    (kind & EW_NARROW ? EDGEWATT_AT_MOST_AVX2(ew_single_narrow, level) : EDGEWATT_AT_MOST_AVX2(ew_single, level))(
        run, end, offsets, weights, values, inputs);
}
