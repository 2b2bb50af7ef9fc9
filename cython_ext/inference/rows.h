/* Moving input vectors into rows of the arena, and rows out again. */
#ifndef EDGEWATT_INFERENCE_ROWS_H
#define EDGEWATT_INFERENCE_ROWS_H

#include "inference/stream.h"

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

/* out[i][b] = row i [b] */
static void ew_rows_out(const char *values, const int64_t *offset, int64_t n, float *out, int64_t step, int64_t here) {
    for (int64_t i = 0; i < n; i++) memcpy(out + i * step, values + offset[i], (size_t)here * sizeof(float));
}

#endif
