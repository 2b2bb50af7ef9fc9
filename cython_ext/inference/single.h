/* One input vector at a time: a neuron is one float, a run a sparse dot product. */
#ifndef EDGEWATT_INFERENCE_SINGLE_H
#define EDGEWATT_INFERENCE_SINGLE_H

#include "inference/stream.h"

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
/* Four values by scalar loads: gather instructions take about twice as long on the processors we measured. */
EDGEWATT_AVX2 static inline __m128 ew_four_values(const uint32_t *wide, const uint16_t *narrow, const float *values,
                                                  const int NARROW) {
    uint64_t pair[2];
    size_t place[4];
    if (NARROW) {
        memcpy(pair, narrow, 8);
        for (int k = 0; k < 4; k++) place[k] = (uint16_t)(pair[0] >> (16 * k));
    } else {
        memcpy(pair, wide, 16);
        for (int k = 0; k < 4; k++) place[k] = (uint32_t)(pair[k / 2] >> (32 * (k % 2)));
    }
    __m128 four = _mm_load_ss(values + place[0]);
    four = _mm_insert_ps(four, _mm_load_ss(values + place[1]), 0x10);
    four = _mm_insert_ps(four, _mm_load_ss(values + place[2]), 0x20);
    return _mm_insert_ps(four, _mm_load_ss(values + place[3]), 0x30);
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
    __m128 rest = _mm_setzero_ps(); /* of its own: a scalar multiply-add does not keep the places above the lowest */
    for (; i < n; i++)
        rest = _mm_fmadd_ss(_mm_load_ss(weight + i), _mm_load_ss(values + (NARROW ? narrow[i] : wide[i])), rest);
    sum = _mm_add_ps(_mm_add_ps(sum, rest), more);
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}
#endif

#define EW_SINGLE(TARGET, level, NARROW, name)                                                                    \
    TARGET static void name(const uint32_t *p, const uint32_t *end, float *values, const float *inputs) {         \
        while (p < end) {                                                                                         \
            const uint32_t n = p[1] & EW_MAX_RUN, kind = EW_ACTIVATION(p[1]), *source = p + EW_HEADER;            \
            const uint32_t *weight = source + (NARROW ? (n + 1) / 2 : n);                                         \
            const float start = ew_float(p[2]), *const from = p[1] & EW_OUTSIDE ? inputs : values;                \
            float sum = !(p[1] & EW_FIRST) ? values[p[0]] : kind == EW_CLIPPED ? 0.0f : start;                    \
            sum += ew_dot_##level(source, (const uint16_t *)source, (const float *)weight, n, from, NARROW);      \
            values[p[0]] = p[1] & EW_LAST ? ew_finish(sum, start, kind) : sum;                                    \
            p = weight + n;                                                                                       \
        }                                                                                                         \
    }
EW_SINGLE(, baseline, 0, ew_single_baseline)
EW_SINGLE(, baseline, 1, ew_single_narrow_baseline)
#if EDGEWATT_X86
EW_SINGLE(EDGEWATT_AVX2, avx2, 0, ew_single_avx2)
EW_SINGLE(EDGEWATT_AVX2, avx2, 1, ew_single_narrow_avx2)
#endif

static void ew_single(const uint32_t *p, const uint32_t *end, float *values, const float *inputs, int kind,
                      int level) {
#if EDGEWATT_X86
    if (level >= EDGEWATT_LEVEL_AVX2) {
        (kind & EW_NARROW ? ew_single_narrow_avx2 : ew_single_avx2)(p, end, values, inputs);
        return;
    }
#endif
    (void)level;
    (kind & EW_NARROW ? ew_single_narrow_baseline : ew_single_baseline)(p, end, values, inputs);
}

#endif
