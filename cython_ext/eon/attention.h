/* The attention of EON's network over one frontier and one cache, and its gradient: rows of 16 lanes, one compiled body
 * per SIMD level. All levels give the same floats.
 *
 * A frontier of F connections, a cache of C neurons, rows of d entries (padded with zeros to `lanes`, a multiple of 16):
 *   A = softmax(Q K^T), X = E + A V, H = norm(X);  logit_i = max_c H_i . O_c + b_c, c over the cache and "empty";
 *   p = softmax over (H, cached nodes N) of (row . sentinel);  summary = sum_k p_k row_k. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/inline.h"
#include "common/simd.h"

#define EW_EPSILON 1e-5f /* of the normalisation */

typedef float ew_lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t ew_bits __attribute__((vector_size(64), aligned(4), may_alias));
#define EW_AT(p) (*(ew_lanes *)(p)) /* 16 lanes of a row */

typedef struct {
    int64_t d, lanes;  /* entries of a row, and rounded up to 16 */
    int64_t capacity, seen; /* of the cache; columns of L: capacity + 2 rounded up to 16 */
    /* tables, rows of d; the last row of offer is that of an empty cache */
    const float *edge, *query, *key, *value, *node, *offer, *offer_bias, *sentinel, *weight, *bias;
    int64_t empty; /* the row of offer of an empty cache */
    /* gradients of the same, or NULL */
    float *d_edge, *d_query, *d_key, *d_value, *d_node, *d_offer, *d_offer_bias, *d_sentinel, *d_weight, *d_bias;
    /* scratch; rows is the largest frontier rounded up to 16 */
    float *q, *k, *v, *kt, *vt, *x, *h, *dx, *dh;  /* [rows * lanes] each; kt and vt transposed */
    float *a, *da;                                 /* [rows * rows] */
    float *ot, *l;                                 /* [lanes * seen], [rows * seen] */
    float *scale, *looks;                          /* [rows], [rows + capacity]: 1 / deviation, p */
    int32_t *best;                                 /* [rows]: the column of the largest logit */
    float *wide;                                   /* [4 * lanes]: sentinel, weight, bias, the summary's gradient */
} ew_attention;

EW_INLINE float ew_sum(const ew_lanes *x) {
    float sum = 0;
    for (int i = 0; i < 16; i++) sum += (*x)[i];
    return sum;
}

EW_INLINE float ew_dot(const float *a, const float *b, int64_t lanes) {
    ew_lanes sum = {0};
    for (int64_t c = 0; c < lanes; c += 16) sum += EW_AT(a + c) * EW_AT(b + c);
    return ew_sum(&sum);
}

EW_INLINE void ew_add(float *to, const float *from, float times, int64_t n) {
    for (int64_t c = 0; c < n; c++) to[c] += times * from[c];
}

/* e^x, -87 <= x <= 0 (below: as -87), within 2 units in the last place. */
EW_INLINE void ew_exp(ew_lanes *at) {
    const ew_lanes lowest = {-87, -87, -87, -87, -87, -87, -87, -87, -87, -87, -87, -87, -87, -87, -87, -87};
    ew_bits below = *at < lowest;
    ew_lanes x = (ew_lanes)(((ew_bits)*at & ~below) | ((ew_bits)lowest & below));
    ew_lanes shifted = x * 1.44269504f + 12582912.0f, n = shifted - 12582912.0f; /* rounded to nearest */
    ew_lanes r = x - n * 0.693359375f + n * 2.12194440e-4f;
    ew_lanes p = r * (1 / 5040.0f) + 1 / 720.0f;
    p = p * r + 1 / 120.0f;
    p = p * r + 1 / 24.0f;
    p = p * r + 1 / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    *at = p * (ew_lanes)(((ew_bits)shifted - 0x4B400000 + 127) << 23);
}

/* C[4, 16 n] = or += A[4, k] B[k, 16 n]; A's entries lie `down` and `right` apart. */
EW_INLINE void ew_tile(
    float *c, int64_t c_row, const float *a, int64_t down, int64_t right, const float *b, int64_t b_row, int64_t k,
    const int n, int add) {
    ew_lanes sum[4][3];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < n; j++) {
            if (add) sum[i][j] = EW_AT(c + i * c_row + 16 * j);
            else sum[i][j] = (ew_lanes){0};
        }
    for (int64_t x = 0; x < k; x++, a += right, b += b_row)
        for (int j = 0; j < n; j++) {
            ew_lanes of = EW_AT(b + 16 * j);
            for (int i = 0; i < 4; i++) sum[i][j] += a[i * down] * of;
        }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < n; j++) EW_AT(c + i * c_row + 16 * j) = sum[i][j];
}

/* C[rows, columns] = or += A[rows, k] B[k, columns]: rows rounded up to 4, columns a multiple of 16. */
typedef void ew_product_kind(float *, int64_t, int64_t, int64_t, const float *, int64_t, int64_t, const float *, int64_t,
                             int64_t, int);

EW_INLINE void ew_product_body(
    float *c, int64_t c_row, int64_t rows, int64_t columns, const float *a, int64_t down, int64_t right, const float *b,
    int64_t b_row, int64_t k, int add, int wide) { /* wide: tiles of 4 x 48, which 32 registers of 16 numbers hold */
    for (int64_t i = 0; i < rows; i += 4)
        for (int64_t j = 0; j < columns;) {
            float *to = c + i * c_row + j;
            const float *from = a + i * down;
            if (wide && columns - j >= 48) { ew_tile(to, c_row, from, down, right, b + j, b_row, k, 3, add); j += 48; }
            else if (wide && columns - j == 32) { ew_tile(to, c_row, from, down, right, b + j, b_row, k, 2, add); j += 32; }
            else { ew_tile(to, c_row, from, down, right, b + j, b_row, k, 1, add); j += 16; }
        }
}

EW_INLINE void ew_row(float *to, const float *table, int64_t row, ew_attention *w) {
    memcpy(to, table + row * w->d, w->d * sizeof(float));
    for (int64_t c = w->d; c < w->lanes; c++) to[c] = 0;
}

/* Fill the scratch for one frontier and cache; logit float32[size], summary float32[d]. */
EW_INLINE void ew_forward_body(
    ew_product_kind *ew_product, ew_attention *w, const int32_t *frontier, int64_t size, const int32_t *cache, int64_t cached, float *logit,
    float *summary) {
    int64_t n = w->lanes, rows = (size + 15) / 16 * 16, four = (size + 3) / 4 * 4;
    for (int64_t i = 0; i < four; i++) {
        if (i < size) {
            ew_row(w->q + i * n, w->query, frontier[i], w);
            ew_row(w->k + i * n, w->key, frontier[i], w);
            ew_row(w->v + i * n, w->value, frontier[i], w);
            ew_row(w->x + i * n, w->edge, frontier[i], w);
        } else {
            memset(w->q + i * n, 0, n * sizeof(float));
            memset(w->x + i * n, 0, n * sizeof(float));
        }
    }
    for (int64_t c = 0; c < n; c++)
        for (int64_t i = 0; i < rows; i++) w->kt[c * rows + i] = i < size ? w->k[i * n + c] : 0;
    ew_product(w->a, rows, four, rows, w->q, n, 1, w->kt, rows, n, 0);
    for (int64_t i = 0; i < four; i++) {
        float *a = w->a + i * rows, most = a[0], sum = 0;
        for (int64_t j = 1; j < size; j++) most = a[j] > most ? a[j] : most;
        for (int64_t j = 0; j < rows; j += 16) {
            EW_AT(a + j) -= most;
            ew_exp(&EW_AT(a + j));
        }
        for (int64_t j = size; j < rows; j++) a[j] = 0;
        for (int64_t j = 0; j < rows; j += 16) sum += ew_sum(&EW_AT(a + j));
        for (int64_t j = 0; j < rows; j += 16) EW_AT(a + j) *= 1 / sum;
    }
    ew_product(w->x, n, four, n, w->a, rows, 1, w->v, n, size, 1);
    memcpy(w->wide, w->sentinel, w->d * sizeof(float));
    memcpy(w->wide + n, w->weight, w->d * sizeof(float));
    memcpy(w->wide + 2 * n, w->bias, w->d * sizeof(float));
    for (int64_t i = 0; i < four; i++) { /* x becomes (x - mean) / deviation; entries behind the d-th are 0 */
        float *x = w->x + i * n, *h = w->h + i * n;
        ew_lanes sum = {0}, square = {0};
        for (int64_t c = 0; c < n; c += 16) sum += EW_AT(x + c);
        float mean = ew_sum(&sum) / w->d;
        for (int64_t c = 0; c < w->d; c++) x[c] -= mean;
        for (int64_t c = 0; c < n; c += 16) square += EW_AT(x + c) * EW_AT(x + c);
        float scale = w->scale[i] = 1 / sqrtf(ew_sum(&square) / w->d + EW_EPSILON);
        for (int64_t c = 0; c < n; c += 16) {
            EW_AT(x + c) *= scale;
            EW_AT(h + c) = EW_AT(x + c) * EW_AT(w->wide + n + c) + EW_AT(w->wide + 2 * n + c);
        }
    }
    /* columns of L: the cache, the empty cache, the sentinel */
    memset(w->ot, 0, n * w->seen * sizeof(float));
    for (int64_t c = 0; c < w->d; c++) {
        float *of = w->ot + c * w->seen;
        for (int64_t j = 0; j < cached; j++) of[j] = w->offer[cache[j] * w->d + c];
        of[cached] = w->offer[w->empty * w->d + c];
        of[cached + 1] = w->sentinel[c];
    }
    ew_product(w->l, w->seen, four, w->seen, w->h, n, 1, w->ot, w->seen, n, 0);
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < size; i++) {
        const float *l = w->l + i * w->seen;
        float top = l[cached] + w->offer_bias[w->empty];
        int32_t at = (int32_t)cached;
        for (int64_t j = 0; j < cached; j++) {
            float now = l[j] + w->offer_bias[cache[j]];
            if (now > top) top = now, at = (int32_t)j;
        }
        logit[i] = top, w->best[i] = at;
        w->looks[i] = l[cached + 1];
    }
    for (int64_t j = 0; j < cached; j++) {
        float score = 0;
        for (int64_t c = 0; c < w->d; c++) score += w->node[cache[j] * w->d + c] * w->sentinel[c];
        w->looks[size + j] = score;
    }
    for (int64_t k = 0; k < size + cached; k++) most = w->looks[k] > most ? w->looks[k] : most;
    for (int64_t k = 0; k < size + cached; k++) sum += w->looks[k] = expf(w->looks[k] - most);
    for (int64_t k = 0; k < size + cached; k++) w->looks[k] /= sum;
    memset(summary, 0, w->d * sizeof(float));
    for (int64_t i = 0; i < size; i++) ew_add(summary, w->h + i * n, w->looks[i], w->d);
    for (int64_t j = 0; j < cached; j++) ew_add(summary, w->node + cache[j] * w->d, w->looks[size + j], w->d);
}

/* Add the gradients, given those of the logits and the summary; the scratch is as `forward` left it. */
EW_INLINE void ew_learn_body(
    ew_product_kind *ew_product, ew_attention *w, const int32_t *frontier, int64_t size, const int32_t *cache, int64_t cached,
    const float *d_logit, const float *summary, const float *d_summary) {
    int64_t n = w->lanes, d = w->d, rows = (size + 15) / 16 * 16, four = (size + 3) / 4 * 4;
    float *gain = w->wide + 3 * n, whole = 0;
    memset(gain, 0, n * sizeof(float));
    memcpy(gain, d_summary, d * sizeof(float));
    for (int64_t c = 0; c < d; c++) whole += summary[c] * d_summary[c];
    for (int64_t j = 0; j < cached; j++) {
        const float *node = w->node + cache[j] * d;
        float p = w->looks[size + j], along = 0;
        for (int64_t c = 0; c < d; c++) along += node[c] * d_summary[c];
        float score = p * (along - whole);
        ew_add(w->d_node + cache[j] * d, d_summary, p, d);
        ew_add(w->d_node + cache[j] * d, w->sentinel, score, d);
        ew_add(w->d_sentinel, node, score, d);
    }
    for (int64_t i = 0; i < four; i++) {
        float *dh = w->dh + i * n, *dx = w->dx + i * n, *h = w->h + i * n, *x = w->x + i * n;
        if (i >= size) {
            memset(dx, 0, n * sizeof(float));
            continue;
        }
        float p = w->looks[i], score = p * (ew_dot(h, gain, n) - whole);
        int64_t of = w->best[i] < cached ? cache[w->best[i]] : w->empty;
        const float *offer = w->offer + of * d;
        for (int64_t c = 0; c < n; c += 16)
            EW_AT(dh + c) = p * EW_AT(gain + c) + score * EW_AT(w->wide + c);
        ew_add(dh, offer, d_logit[i], d);
        ew_add(w->d_offer + of * d, h, d_logit[i], d);
        w->d_offer_bias[of] += d_logit[i];
        ew_add(w->d_sentinel, h, score, d);
        for (int64_t c = 0; c < d; c++) w->d_weight[c] += dh[c] * x[c], w->d_bias[c] += dh[c];
        ew_lanes sum = {0}, along = {0};
        for (int64_t c = 0; c < n; c += 16) {
            ew_lanes back = EW_AT(dh + c) * EW_AT(w->wide + n + c);
            EW_AT(dh + c) = back;
            sum += back, along += back * EW_AT(x + c);
        }
        float mean = ew_sum(&sum) / d, slope = ew_sum(&along) / d;
        for (int64_t c = 0; c < n; c += 16)
            EW_AT(dx + c) = w->scale[i] * (EW_AT(dh + c) - mean - EW_AT(x + c) * slope);
        for (int64_t c = d; c < n; c++) dx[c] = 0;
        ew_add(w->d_edge + frontier[i] * d, dx, 1, d);
    }
    for (int64_t c = 0; c < n; c++)
        for (int64_t i = 0; i < rows; i++) w->vt[c * rows + i] = i < size ? w->v[i * n + c] : 0;
    ew_product(w->da, rows, four, rows, w->dx, n, 1, w->vt, rows, n, 0);
    ew_product(w->dh, n, four, n, w->a, 1, rows, w->dx, n, size, 0);
    for (int64_t i = 0; i < size; i++) ew_add(w->d_value + frontier[i] * d, w->dh + i * n, 1, d);
    for (int64_t i = 0; i < size; i++) {
        float *a = w->a + i * rows, *da = w->da + i * rows, mean = ew_dot(a, da, rows);
        for (int64_t j = 0; j < rows; j += 16) EW_AT(da + j) = EW_AT(a + j) * (EW_AT(da + j) - mean);
    }
    ew_product(w->dh, n, four, n, w->da, rows, 1, w->k, n, size, 0);
    for (int64_t i = 0; i < size; i++) ew_add(w->d_query + frontier[i] * d, w->dh + i * n, 1, d);
    ew_product(w->dh, n, four, n, w->da, 1, rows, w->q, n, size, 0);
    for (int64_t i = 0; i < size; i++) ew_add(w->d_key + frontier[i] * d, w->dh + i * n, 1, d);
}

#define EW_ATTENTION_BODY(level, attributes, wide) \
    attributes static __attribute__((noinline)) void ew_product_##level( \
        float *c, int64_t c_row, int64_t rows, int64_t columns, const float *a, int64_t down, int64_t right, \
        const float *b, int64_t b_row, int64_t k, int add) { \
        ew_product_body(c, c_row, rows, columns, a, down, right, b, b_row, k, add, wide); \
    } \
    attributes static void ew_forward_##level(ew_attention *w, const int32_t *frontier, int64_t size, \
                                           const int32_t *cache, int64_t cached, float *logit, float *summary) { \
        ew_forward_body(ew_product_##level, w, frontier, size, cache, cached, logit, summary); \
    } \
    attributes static void ew_learn_##level(ew_attention *w, const int32_t *frontier, int64_t size, \
                                            const int32_t *cache, int64_t cached, const float *d_logit, \
                                            const float *summary, const float *d_summary) { \
        ew_learn_body(ew_product_##level, w, frontier, size, cache, cached, d_logit, summary, d_summary); \
    }

EW_ATTENTION_BODY(baseline, , 0)
#if EDGEWATT_X86
#define ew_forward_avx2 ew_forward_baseline /* a third slower with AVX2: it has as many registers, of half a tile's row */
#define ew_learn_avx2 ew_learn_baseline
EW_ATTENTION_BODY(avx512, EDGEWATT_AVX512, 1)
#endif
