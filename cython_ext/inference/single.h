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

static inline float ew_dot_baseline(const uint32_t *source, const float *weight, uint32_t n, const float *values) {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) sum[k] += weight[i + k] * values[source[i + k]];
    for (; i < n; i++) sum[0] += weight[i] * values[source[i]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

#if EDGEWATT_X86
EDGEWATT_AVX2 static inline float ew_dot_avx2(const uint32_t *source, const float *weight, uint32_t n,
                                              const float *values) {
    __m256 sum = _mm256_setzero_ps(), more = sum;
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(source + i));
        const __m256i b = _mm256_loadu_si256((const __m256i *)(source + i + 8));
        sum = _mm256_fmadd_ps(_mm256_loadu_ps(weight + i), _mm256_i32gather_ps(values, a, 4), sum);
        more = _mm256_fmadd_ps(_mm256_loadu_ps(weight + i + 8), _mm256_i32gather_ps(values, b, 4), more);
    }
    sum = _mm256_add_ps(sum, more);
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    half = _mm_add_ss(half, _mm_movehdup_ps(half));
    return _mm_cvtss_f32(half) + ew_dot_baseline(source + i, weight + i, n - i, values);
}

EDGEWATT_AVX512 static inline float ew_dot_avx512(const uint32_t *source, const float *weight, uint32_t n,
                                                  const float *values) {
    __m512 sum = _mm512_setzero_ps(), more = sum;
    uint32_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m512i a = _mm512_loadu_si512(source + i), b = _mm512_loadu_si512(source + i + 16);
        sum = _mm512_fmadd_ps(_mm512_loadu_ps(weight + i), _mm512_i32gather_ps(a, values, 4), sum);
        more = _mm512_fmadd_ps(_mm512_loadu_ps(weight + i + 16), _mm512_i32gather_ps(b, values, 4), more);
    }
    for (; i < n; i += 16) { /* the last one masked */
        const __mmask16 some = n - i >= 16 ? 0xffff : (__mmask16)((1u << (n - i)) - 1);
        const __m512i at = _mm512_maskz_loadu_epi32(some, source + i);
        const __m512 row = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), some, at, values, 4);
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(some, weight + i), row, sum);
    }
    return _mm512_reduce_add_ps(_mm512_add_ps(sum, more));
}
#endif

#define EW_SINGLE(TARGET, level)                                                                     \
    TARGET static void ew_single_##level(const uint32_t *p, const uint32_t *end, float *values) {    \
        while (p < end) {                                                                            \
            const uint32_t n = p[1] & EW_MAX_RUN, kind = EW_ACTIVATION(p[1]);                        \
            const float start = ew_float(p[2]);                                                      \
            float sum = !(p[1] & EW_FIRST) ? values[p[0]] : kind == EW_CLIPPED ? 0.0f : start;       \
            sum += ew_dot_##level(p + EW_HEADER, (const float *)(p + EW_HEADER + n), n, values);     \
            values[p[0]] = p[1] & EW_LAST ? ew_finish(sum, start, kind) : sum;                       \
            p += EW_HEADER + 2 * n;                                                                  \
        }                                                                                            \
    }
EW_SINGLE(, baseline)
#if EDGEWATT_X86
EW_SINGLE(EDGEWATT_AVX2, avx2)
EW_SINGLE(EDGEWATT_AVX512, avx512)
#endif

static void ew_single(const uint32_t *p, const uint32_t *end, float *values, int level) {
#if EDGEWATT_X86
    if (level >= EDGEWATT_LEVEL_AVX512) {
        ew_single_avx512(p, end, values);
        return;
    }
    if (level == EDGEWATT_LEVEL_AVX2) {
        ew_single_avx2(p, end, values);
        return;
    }
#endif
    (void)level;
    ew_single_baseline(p, end, values);
}

#endif
