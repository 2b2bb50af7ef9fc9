/* Moving input vectors into rows of the arena, and rows out again. */
#pragma once

#include "streams/stream.h"

/* Row at offset[i] bytes: batch[b][column[i]], for a tile of rows at a time; strides in floats. Lanes beyond `here`
 * become 0. */
static void ew_rows_in(char *table, const int64_t *offset, const int64_t *column, int64_t n, const float *batch, int64_t step_vector,
                       int64_t step_neuron, int64_t here, int64_t lanes) {
    if (step_vector == 1) {
        for (int64_t i = 0; i < n; i++) {
            float *row = (float *)(table + offset[i]);
            memcpy(row, batch + column[i] * step_neuron, (size_t)here * sizeof(float));
            if (here < lanes) memset(row + here, 0, (size_t)(lanes - here) * sizeof(float));
        }
        return;
    }
    for (int64_t i0 = 0; i0 < n; i0 += 16) {
        const int64_t i1 = i0 + 16 < n ? i0 + 16 : n;
        for (int64_t b0 = 0; b0 < here; b0 += 16) {
            const int64_t b1 = b0 + 16 < here ? b0 + 16 : here;
            for (int64_t i = i0; i < i1; i++) {
                float *row = (float *)(table + offset[i]);
                for (int64_t b = b0; b < b1; b++) row[b] = batch[b * step_vector + column[i] * step_neuron];
            }
        }
        for (int64_t i = i0; i < i1 && here < lanes; i++)
            memset((float *)(table + offset[i]) + here, 0, (size_t)(lanes - here) * sizeof(float));
    }
}

/* One value in steps of its scale, rounded half to even without libm: adding 1.5 * 2^52 leaves no bits behind the point.
 * Division and rounding are those of float64; what is not a number becomes 0. */
EW_INLINE uint8_t ew_step(float x, double scale, double zero) {
    const double magic = 6755399441055744.0;
    double steps = (double)x / scale;
    steps = steps > -1024.0 ? steps : -1024.0;
    steps = steps < 1024.0 ? steps : 1024.0;
    steps = (steps + magic) - magic + zero;
    return (uint8_t)(int32_t)(steps < 0.0 ? 0.0 : steps > 255.0 ? 255.0 : steps);
}

/* As ew_rows_in, to bytes: in steps of the scale of each input, above its zero point. Lanes beyond `here` stay. */
#define EW_BYTES_IN(TARGET, name) \
    TARGET static void name(char *table, const int64_t *offset, const int64_t *column, int64_t n, const float *batch, \
                            int64_t step_vector, int64_t step_neuron, int64_t here, const double *scale, \
                            const double *zero) { \
        for (int64_t i0 = 0; i0 < n; i0 += 16) \
            for (int64_t b0 = 0; b0 < here; b0 += 64) { \
                const int64_t i1 = i0 + 16 < n ? i0 + 16 : n, count = b0 + 64 < here ? 64 : here - b0; \
                for (int64_t i = i0; i < i1; i++) { \
                    const float *from = batch + b0 * step_vector + column[i] * step_neuron; \
                    uint8_t *to = (uint8_t *)table + offset[i] + b0; \
                    if (step_vector == 1) \
                        for (int64_t b = 0; b < count; b++) to[b] = ew_step(from[b], scale[i], zero[i]); \
                    else \
                        for (int64_t b = 0; b < count; b++) to[b] = ew_step(from[b * step_vector], scale[i], zero[i]); \
                } \
            } \
    }
EW_BYTES_IN(, ew_bytes_in_baseline)
#if EDGEWATT_X86
EW_BYTES_IN(EDGEWATT_AVX2, ew_bytes_in_avx2)
EW_BYTES_IN(EDGEWATT_AVX512, ew_bytes_in_avx512)
#endif

static void ew_bytes_in(char *table, const int64_t *offset, const int64_t *column, int64_t n, const float *batch,
                        int64_t step_vector, int64_t step_neuron, int64_t here, const double *scale, const double *zero,
                        int level) {
    EDGEWATT_FOR_LEVEL(ew_bytes_in, level)(table, offset, column, n, batch, step_vector, step_neuron, here, scale, zero);
}

/* out[i][b] = row i [b] */
static void ew_rows_out(const char *values, const int64_t *offset, int64_t n, float *out, int64_t step, int64_t here) {
    for (int64_t i = 0; i < n; i++) memcpy(out + i * step, values + offset[i], (size_t)here * sizeof(float));
}
