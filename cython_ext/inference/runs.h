/* The float kernel at every SIMD level, and the choice between them. */
#pragma once

#include "streams/stream.h"

/* Without SIMD intrinsics: vectors of the compiler, multiplication and addition rounded one after the other. On AArch64
 * NEON is part of the base architecture, and the multiply-add is fused. */
typedef float ew_v4 __attribute__((vector_size(16)));
typedef int32_t ew_m4 __attribute__((vector_size(16)));
static inline ew_v4 ew_spread(float x) { return (ew_v4){x, x, x, x}; }
static inline ew_v4 ew_choose(ew_m4 mask, ew_v4 yes, ew_v4 no) {
    return (ew_v4)(((ew_m4)yes & mask) | ((ew_m4)no & ~mask));
}
#if defined(__aarch64__)
#include <arm_neon.h>
#define EW_FMA4(a, b, c) ((ew_v4)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#else
#define EW_FMA4(a, b, c) ((a) * (b) + (c))
#endif
#define LEVEL baseline
#define TARGET
#define V ew_v4
#define WIDTH 4
#define EW_PAIRS 0
#define LOAD(p) (*(const ew_v4 *)(p))
#define STORE(p, x) (*(ew_v4 *)(p) = (x))
#define SET1(x) ew_spread(x)
#define FMA(a, b, c) EW_FMA4(a, b, c)
#define ADD(a, b) ((a) + (b))
#define MAX(a, b) ew_choose((a) > (b), a, b)
#define MIN(a, b) ew_choose((a) < (b), a, b)
#define NOT_ZERO(s, x) ew_choose((s) != ew_spread(0.0f), x, ew_spread(0.0f))
#define QUAD ew_v4
#define LOAD_QUAD_F32(p) ((ew_v4){(p)[0], (p)[1], (p)[2], (p)[3]})
#define LOAD_QUAD_BF16(p) ((ew_v4){ew_bf16(p), ew_bf16((p) + 1), ew_bf16((p) + 2), ew_bf16((p) + 3)})
#define PICK(q, k) ew_spread((q)[k])
#include "inference/runs_body.h"

#if EDGEWATT_X86
#define EW_BF16_TO_F32(p) \
    _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)(p))), 16))

#define LEVEL avx2
#define TARGET EDGEWATT_AVX2
#define V __m256
#define WIDTH 8
#define EW_PAIRS 0 /* 16 registers: the sums of two targets are too many */
#define LOAD(p) _mm256_load_ps(p)
#define STORE(p, x) _mm256_store_ps(p, x)
#define SET1(x) _mm256_set1_ps(x)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define ADD(a, b) _mm256_add_ps(a, b)
#define MAX(a, b) _mm256_max_ps(a, b)
#define MIN(a, b) _mm256_min_ps(a, b)
#define NOT_ZERO(s, x) _mm256_and_ps(_mm256_cmp_ps(s, _mm256_setzero_ps(), _CMP_NEQ_UQ), x)
#define QUAD __m256
#define LOAD_QUAD_F32(p) _mm256_broadcast_ps((const __m128 *)(p))
#define LOAD_QUAD_BF16(p) _mm256_set_m128(EW_BF16_TO_F32(p), EW_BF16_TO_F32(p))
#define PICK(q, k) _mm256_permute_ps(q, 0x55 * (k))
#include "inference/runs_body.h"

#define LEVEL avx512
#define TARGET EDGEWATT_AVX512
#define V __m512
#define WIDTH 16
#define EW_PAIRS 1
#define LOAD(p) _mm512_load_ps(p)
#define STORE(p, x) _mm512_store_ps(p, x)
#define SET1(x) _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define ADD(a, b) _mm512_add_ps(a, b)
#define MAX(a, b) _mm512_max_ps(a, b)
#define MIN(a, b) _mm512_min_ps(a, b)
#define NOT_ZERO(s, x) _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(s, _mm512_setzero_ps(), _CMP_NEQ_UQ), x)
#define QUAD __m512
#define LOAD_QUAD_F32(p) _mm512_broadcast_f32x4(_mm_loadu_ps(p))
#define LOAD_QUAD_BF16(p) _mm512_broadcast_f32x4(EW_BF16_TO_F32(p))
#define PICK(q, k) _mm512_permute_ps(q, 0x55 * (k))
#include "inference/runs_body.h"
#endif

/* columns: a multiple of 16; rows are aligned to 64 bytes. At least one run; a quad more than they have can be read. */
static void ew_columns(const ew_run *run, const ew_run *end, const char *offsets, const char *weights, char *values,
                       const char *inputs, int64_t columns, int kind, int level) {
    EDGEWATT_FOR_LEVEL(ew_columns, level)(run, end, offsets, weights, values, inputs, columns, kind);
}
