/* The integer kernel: int8 weights, uint8 values with a zero point per neuron, int32 sums.
 *
 * A row is 64 bytes per 64 lanes. Four sources at a time: their rows are interleaved byte by byte, so that one 32-bit
 * place holds the four values of one lane (what VNNI multiplies). Sums therefore sit in the order of the interleaving,
 * also in memory between two runs of a target; packing them back to bytes undoes it. The same positions are used by all
 * levels, so sum rows can be read without knowing which wrote them.
 *
 * With w_q weights and u stored values, sum = start + SUM w_q * u; the caller put bias and -SUM w_q * zero into start,
 * so sums do not depend on the order. At the end u = clamp(round(sum * multiplier) + zero), rounded half to even.
 */
#pragma once

#include "common/requantize.h"
#include "streams/stream.h"

/* Byte k of a row of 64 (four parts of 16 bytes): its sum is in vector (k % 16) / 4, place k / 16 * 4 + k % 4. */
static inline int ew_sum_offset(int k) { return (k % 16) / 4 * 16 + k / 16 * 4 + k % 4; }

static void ew_int8_baseline(const uint32_t *p, const uint32_t *end, char *values, const char *inputs,
                             int64_t columns) {
    while (p < end) {
        const uint32_t n = p[1] & EW_MAX_RUN, *source = p + EW_HEADER_INT8;
        const char *const from = p[1] & EW_OUTSIDE ? inputs : values;
        const int8_t *weight = (const int8_t *)(source + n);
        uint8_t *target = (uint8_t *)values + (size_t)p[0] * EW_UNIT;
        int32_t *sums = (int32_t *)(values + (size_t)p[3] * EW_UNIT);
        const int32_t zero = (int32_t)p[5], least = EW_ACTIVATION(p[1]) == EW_RELU ? zero : 0;
        for (int64_t column = 0; column < columns; column += 64) {
            int32_t sum[64];
            for (int k = 0; k < 64; k++) sum[k] = p[1] & EW_FIRST ? (int32_t)p[2] : sums[column + ew_sum_offset(k)];
            for (uint32_t i = 0; i < n; i++) {
                const uint8_t *row = (const uint8_t *)from + (size_t)source[i] * EW_UNIT + column;
                const int32_t w = weight[i];
                for (int k = 0; k < 64; k++) sum[k] += w * row[k];
            }
            if (p[1] & EW_LAST)
                for (int k = 0; k < 64; k++) target[column + k] = ew_requantize(sum[k], ew_float(p[4]), zero, least);
            if (!(p[1] & EW_LAST) || p[1] & EW_WIDE)
                for (int k = 0; k < 64; k++) sums[column + ew_sum_offset(k)] = sum[k];
        }
        p += EW_HEADER_INT8 + n + n / 4;
    }
}

#if EDGEWATT_X86
#define EW_VNNI \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512cd,avx512bitalg,avx512vpopcntdq,avx512vnni," \
                          "avx2,bmi,bmi2,popcnt,lzcnt,fma")))

static int ew_has_vnni(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vnni") != 0;
}

EW_VNNI static void ew_int8_vnni(const uint32_t *p, const uint32_t *end, char *values, const char *inputs,
                             int64_t columns) {
    while (p < end) {
        const uint32_t n = p[1] & EW_MAX_RUN, *source = p + EW_HEADER_INT8;
        const char *const from = p[1] & EW_OUTSIDE ? inputs : values;
        const int8_t *weight = (const int8_t *)(source + n);
        char *target = values + (size_t)p[0] * EW_UNIT, *sums = values + (size_t)p[3] * EW_UNIT;
        for (int64_t column = 0; column < columns; column += 64) {
            __m512i sum[4], *stored = (__m512i *)(sums + column * 4);
            for (int k = 0; k < 4; k++)
                sum[k] = p[1] & EW_FIRST ? _mm512_set1_epi32((int32_t)p[2]) : _mm512_load_si512(stored + k);
            for (uint32_t i = 0; i < n; i += 4) {
                const __m512i a = _mm512_load_si512(from + (size_t)source[i] * EW_UNIT + column);
                const __m512i b = _mm512_load_si512(from + (size_t)source[i + 1] * EW_UNIT + column);
                const __m512i c = _mm512_load_si512(from + (size_t)source[i + 2] * EW_UNIT + column);
                const __m512i d = _mm512_load_si512(from + (size_t)source[i + 3] * EW_UNIT + column);
                const __m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
                const __m512i ab_high = _mm512_unpackhi_epi8(a, b), cd_high = _mm512_unpackhi_epi8(c, d);
                int32_t quad;
                memcpy(&quad, weight + i, 4);
                const __m512i w = _mm512_set1_epi32(quad);
                sum[0] = _mm512_dpbusd_epi32(sum[0], _mm512_unpacklo_epi16(ab, cd), w);
                sum[1] = _mm512_dpbusd_epi32(sum[1], _mm512_unpackhi_epi16(ab, cd), w);
                sum[2] = _mm512_dpbusd_epi32(sum[2], _mm512_unpacklo_epi16(ab_high, cd_high), w);
                sum[3] = _mm512_dpbusd_epi32(sum[3], _mm512_unpackhi_epi16(ab_high, cd_high), w);
            }
            if (!(p[1] & EW_LAST) || p[1] & EW_WIDE)
                for (int k = 0; k < 4; k++) _mm512_store_si512(stored + k, sum[k]);
            if (p[1] & EW_LAST) {
                const __m512 factor = _mm512_set1_ps(ew_float(p[4]));
                const __m512 low = _mm512_set1_ps(-1024.0f), high = _mm512_set1_ps(1024.0f);
                const __m512i zero = _mm512_set1_epi32((int32_t)p[5]);
                for (int k = 0; k < 4; k++) {
                    __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[k]), factor);
                    x = _mm512_min_ps(_mm512_max_ps(x, low), high);
                    sum[k] = _mm512_add_epi32(_mm512_cvtps_epi32(x), zero);
                }
                const __m512i first = _mm512_packs_epi32(sum[0], sum[1]), second = _mm512_packs_epi32(sum[2], sum[3]);
                __m512i bytes = _mm512_packus_epi16(first, second);
                if (EW_ACTIVATION(p[1]) == EW_RELU) bytes = _mm512_max_epu8(bytes, _mm512_set1_epi8((char)p[5]));
                _mm512_store_si512(target + column, bytes);
            }
        }
        p += EW_HEADER_INT8 + n + n / 4;
    }
}

/* 16-bit products of two sources at a time: 8-bit ones would saturate. Sums of one 16-byte part of each row. */
EDGEWATT_AVX2 static inline void ew_int8_add2(__m256i sum[4], __m256i a, __m256i b, int32_t pair) {
    const __m256i w = _mm256_set1_epi32(pair), none = _mm256_setzero_si256();
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    sum[0] = _mm256_add_epi32(sum[0], _mm256_madd_epi16(_mm256_unpacklo_epi8(low, none), w));
    sum[1] = _mm256_add_epi32(sum[1], _mm256_madd_epi16(_mm256_unpackhi_epi8(low, none), w));
    sum[2] = _mm256_add_epi32(sum[2], _mm256_madd_epi16(_mm256_unpacklo_epi8(high, none), w));
    sum[3] = _mm256_add_epi32(sum[3], _mm256_madd_epi16(_mm256_unpackhi_epi8(high, none), w));
}

EDGEWATT_AVX2 static void ew_int8_avx2(const uint32_t *p, const uint32_t *end, char *values, const char *inputs,
                             int64_t columns) {
    while (p < end) {
        const uint32_t n = p[1] & EW_MAX_RUN, *source = p + EW_HEADER_INT8;
        const char *const from = p[1] & EW_OUTSIDE ? inputs : values;
        const int8_t *weight = (const int8_t *)(source + n);
        char *target = values + (size_t)p[0] * EW_UNIT, *sums = values + (size_t)p[3] * EW_UNIT;
        for (int64_t column = 0; column < columns; column += 32) { /* half a row of 64 */
            char *stored = sums + column / 64 * 256 + column % 64;
            __m256i sum[4];
            for (int k = 0; k < 4; k++)
                sum[k] = p[1] & EW_FIRST ? _mm256_set1_epi32((int32_t)p[2])
                                         : _mm256_load_si256((const __m256i *)(stored + 64 * k));
            for (uint32_t i = 0; i < n; i += 2) {
                const __m256i a = _mm256_load_si256((const __m256i *)(from + (size_t)source[i] * EW_UNIT + column));
                const __m256i b = _mm256_load_si256((const __m256i *)(from + (size_t)source[i + 1] * EW_UNIT + column));
                const uint32_t low = (uint16_t)(int16_t)weight[i], high = (uint16_t)(int16_t)weight[i + 1];
                ew_int8_add2(sum, a, b, (int32_t)(low | high << 16));
            }
            if (!(p[1] & EW_LAST) || p[1] & EW_WIDE)
                for (int k = 0; k < 4; k++) _mm256_store_si256((__m256i *)(stored + 64 * k), sum[k]);
            if (p[1] & EW_LAST) {
                const __m256 factor = _mm256_set1_ps(ew_float(p[4]));
                const __m256 least = _mm256_set1_ps(-1024.0f), most = _mm256_set1_ps(1024.0f);
                const __m256i zero = _mm256_set1_epi32((int32_t)p[5]);
                for (int k = 0; k < 4; k++) {
                    __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(sum[k]), factor);
                    x = _mm256_min_ps(_mm256_max_ps(x, least), most);
                    sum[k] = _mm256_add_epi32(_mm256_cvtps_epi32(x), zero);
                }
                const __m256i first = _mm256_packs_epi32(sum[0], sum[1]), second = _mm256_packs_epi32(sum[2], sum[3]);
                __m256i bytes = _mm256_packus_epi16(first, second);
                if (EW_ACTIVATION(p[1]) == EW_RELU) bytes = _mm256_max_epu8(bytes, _mm256_set1_epi8((char)p[5]));
                _mm256_store_si256((__m256i *)(target + column), bytes);
            }
        }
        p += EW_HEADER_INT8 + n + n / 4;
    }
}
#endif

/* out[i][b] = what lane b of row i has summed, times scale[i] in float64, rounded once. */
#define EW_SUMS_OUT(TARGET, name) \
    TARGET static void name(const char *values, const int64_t *offset, int64_t n, const double *scale, float *out, \
                            int64_t step, int64_t here) { \
        for (int64_t i = 0; i < n; i++) \
            for (int64_t column = 0; column < here; column += 64) { \
                const int32_t *sum = (const int32_t *)(values + offset[i]) + column; \
                const int64_t count = here - column < 64 ? here - column : 64; \
                float row[64]; \
                for (int part = 0; part < 4; part++) \
                    for (int vector = 0; vector < 4; vector++) \
                        for (int k = 0; k < 4; k++) \
                            row[16 * part + 4 * vector + k] = (float)(sum[16 * vector + 4 * part + k] * scale[i]); \
                memcpy(out + i * step + column, row, (size_t)count * sizeof(float)); \
            } \
    }
EW_SUMS_OUT(, ew_sums_out_baseline)
#if EDGEWATT_X86
EW_SUMS_OUT(EDGEWATT_AVX2, ew_sums_out_avx2)
#endif

static void ew_sums_out(const char *values, const int64_t *offset, int64_t n, const double *scale, float *out,
                        int64_t step, int64_t here, int level) {
    EDGEWATT_AT_MOST_AVX2(ew_sums_out, level)(values, offset, n, scale, out, step, here);
}

/* columns: a multiple of 64. */
static void ew_int8(const uint32_t *p, const uint32_t *end, char *values, const char *inputs, int64_t columns,
                    int level) {
#if EDGEWATT_X86
    if (level >= EDGEWATT_LEVEL_AVX512 && ew_has_vnni()) {
        ew_int8_vnni(p, end, values, inputs, columns);
        return;
    }
#endif
    EDGEWATT_AT_MOST_AVX2(ew_int8, level)(p, end, values, inputs, columns);
}
