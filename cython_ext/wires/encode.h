/* Bus codes over byte streams: Base+XOR (Lee et al. 2018), DBI-DC and the wire counts of a byte-lane bus.
 *
 * Byte i of a stream travels on lane i mod bus_bytes. Every routine continues a stream: what lies before its first byte
 * is given as history. The 64-byte steps exist three times (AVX-512, AVX2, 64-bit words); byte steps do the ends. */
#ifndef EDGEWATT_ENCODE_H
#define EDGEWATT_ENCODE_H

#include <stdint.h>

#include "common/simd.h"

static const uint8_t EW_DBI_COST[9] = {0, 1, 2, 3, 4, 4, 3, 2, 1}; /* ones sent for a byte of weight w, flag included */

static inline int ew_popcount8(uint8_t x) { return __builtin_popcount(x); }
static inline int ew_popcount64(uint64_t x) { return __builtin_popcountll(x); }

/* ---- one 64-bit word at a time (baseline) ---- */

static inline uint64_t ew_byte_weights(uint64_t x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    return (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
}
/* bit 0 of each byte: the byte has five or more ones (weight + 3 reaches 8) */
static inline uint64_t ew_heavy_bytes(uint64_t weights) {
    return ((weights + 0x0303030303030303u) >> 3) & 0x0101010101010101u;
}
static inline uint64_t ew_sum_bytes(uint64_t x) { return (x * 0x0101010101010101u) >> 56; }
/* gathers bit 0 of byte i into bit i */
static inline uint8_t ew_gather_bits(uint64_t x) { return (uint8_t)((x * 0x0102040810204080u) >> 56); }
static inline uint64_t ew_load64(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}
/* spreads bit i to 0xff in byte i */
static inline uint64_t ew_spread_bits(uint8_t bits) {
    uint64_t x = ((uint64_t)bits * 0x0101010101010101u) & 0x8040201008040201u;
    return (((x + 0x7f7f7f7f7f7f7f7fu) | x) >> 7 & 0x0101010101010101u) * 255;
}

/* ---- Base+XOR and DBI-DC in one pass ---- */

/* Which bytes of the 64 from block position p on are XORed: not the base, not the bytes after the last whole element. */
static uint64_t ew_keep_mask(int64_t p, int64_t element, int64_t block) {
    int64_t whole = block / element * element;
    uint64_t mask = 0;
    for (int i = 0; i < 64; i++) {
        int64_t at = (p + i) % block;
        mask |= (uint64_t)(at >= element && at < whole) << i;
    }
    return mask;
}

/* The masks of a block that divides 64 or is a multiple of it, for steps that start at multiples of 64 in the block. */
typedef struct {
    int64_t element, block;
    uint64_t first, last; /* of the first and last 64 bytes of a block; everything between is XORed */
} ew_pattern;

static inline uint64_t ew_keep(const ew_pattern *pattern, int64_t p) {
    if (p == 0) return pattern->first;
    return p == pattern->block - 64 ? pattern->last : ~(uint64_t)0;
}
static inline int64_t ew_next(const ew_pattern *pattern, int64_t p) {
    return pattern->block <= 64 || p + 64 == pattern->block ? 0 : p + 64;
}

static inline int64_t ew_xor_byte(const uint8_t *src, uint8_t *dst, uint8_t *flags, int64_t i, uint8_t before, int keep,
                                  int dbi) {
    uint8_t x = keep ? src[i] ^ before : src[i];
    int weight = ew_popcount8(x);
    if (!dbi) {
        dst[i] = x;
        return weight;
    }
    int heavy = weight > 4;
    dst[i] = heavy ? (uint8_t)~x : x;
    flags[i >> 3] = (uint8_t)((flags[i >> 3] & ~(1 << (i & 7))) | heavy << (i & 7));
    return EW_DBI_COST[weight];
}

static int64_t ew_xor_words(const uint8_t *src, uint8_t *dst, uint8_t *flags, int64_t i, int64_t n,
                            const ew_pattern *pattern, int64_t p, int dbi) {
    int64_t ones = 0;
    for (; i + 64 <= n; i += 64) {
        uint64_t keep = ew_keep(pattern, p);
        for (int w = 0; w < 8; w++, keep >>= 8) {
            const uint8_t *from = src + i + 8 * w;
            uint64_t x = ew_load64(from);
            uint8_t k = (uint8_t)keep;
            if (k) x ^= ew_load64(from - pattern->element) & (k == 255 ? ~(uint64_t)0 : ew_spread_bits(k));
            uint64_t weights = ew_byte_weights(x);
            if (dbi) {
                uint64_t heavy = ew_heavy_bytes(weights);
                x ^= heavy * 255;
                weights = ew_byte_weights(x) + heavy;
                flags[(i >> 3) + w] = ew_gather_bits(heavy);
            }
            ones += (int64_t)ew_sum_bytes(weights);
            memcpy(dst + i + 8 * w, &x, 8);
        }
        p = ew_next(pattern, p);
    }
    return ones;
}

#if EDGEWATT_X86
EDGEWATT_AVX512 static int64_t ew_xor_avx512(const uint8_t *src, uint8_t *dst, uint8_t *flags, int64_t i, int64_t n,
                                             const ew_pattern *pattern, int64_t p, int dbi, int stream) {
    const __m512i four = _mm512_set1_epi8(4), ff = _mm512_set1_epi8(-1), zero = _mm512_setzero_si512();
    __m512i sum = zero;
    int64_t flagged = 0;
    for (; i + 64 <= n; i += 64) {
        uint64_t keep = ew_keep(pattern, p);
        __m512i x = _mm512_loadu_si512(src + i);
        x = _mm512_xor_si512(x, _mm512_maskz_loadu_epi8(keep, src + i - pattern->element));
        __m512i weight = _mm512_popcnt_epi8(x);
        if (dbi) {
            __mmask64 heavy = _mm512_cmpgt_epu8_mask(weight, four);
            x = _mm512_mask_xor_epi32(x, 0xffff, x, _mm512_maskz_mov_epi8(heavy, ff));
            weight = _mm512_min_epu8(weight, _mm512_sub_epi8(_mm512_set1_epi8(8), weight));
            flagged += __builtin_popcountll(heavy);
            memcpy(flags + (i >> 3), &heavy, 8);
        }
        sum = _mm512_add_epi64(sum, _mm512_sad_epu8(weight, zero));
        if (stream)
            _mm512_stream_si512((__m512i *)(dst + i), x);
        else
            _mm512_storeu_si512(dst + i, x);
        p = ew_next(pattern, p);
    }
    if (stream) _mm_sfence();
    return _mm512_reduce_add_epi64(sum) + flagged;
}

EDGEWATT_AVX2 static inline __m256i ew_weights_avx2(__m256i x) {
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2,
                                           2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15);
    return _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(x, low)),
                           _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(x, 4), low)));
}
/* Sums of unsigned bytes in 64-bit lanes. */
EDGEWATT_AVX2 static inline int64_t ew_sum_avx2(__m256i sums) {
    return _mm256_extract_epi64(sums, 0) + _mm256_extract_epi64(sums, 1) + _mm256_extract_epi64(sums, 2) +
           _mm256_extract_epi64(sums, 3);
}
/* 0xff in byte i where bit i is set */
EDGEWATT_AVX2 static inline __m256i ew_spread_avx2(uint32_t bits) {
    const __m256i pick = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3,
                                          3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201u);
    __m256i x = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), pick), bit);
    return _mm256_cmpeq_epi8(x, bit);
}
EDGEWATT_AVX2 static int64_t ew_xor_avx2(const uint8_t *src, uint8_t *dst, uint8_t *flags, int64_t i, int64_t n,
                                         const ew_pattern *pattern, int64_t p, int dbi, int stream) {
    const __m256i four = _mm256_set1_epi8(4), zero = _mm256_setzero_si256(), eight = _mm256_set1_epi8(8);
    __m256i sum = zero, mask[2] = {zero, zero};
    int64_t flagged = 0;
    uint64_t held = 0;
    for (; i + 64 <= n; i += 64) {
        uint64_t keep = ew_keep(pattern, p);
        if (keep != held) {
            held = keep;
            mask[0] = ew_spread_avx2((uint32_t)keep);
            mask[1] = ew_spread_avx2((uint32_t)(keep >> 32));
        }
        for (int h = 0; h < 2; h++) {
            const uint8_t *from = src + i + 32 * h;
            __m256i x = _mm256_loadu_si256((const __m256i *)from);
            if (keep)
                x = _mm256_xor_si256(x, _mm256_and_si256(mask[h], _mm256_loadu_si256((const __m256i *)(from - pattern->element))));
            __m256i weight = ew_weights_avx2(x);
            if (dbi) {
                __m256i heavy = _mm256_cmpgt_epi8(weight, four);
                x = _mm256_xor_si256(x, heavy);
                weight = _mm256_min_epu8(weight, _mm256_sub_epi8(eight, weight));
                uint32_t bits = (uint32_t)_mm256_movemask_epi8(heavy);
                flagged += __builtin_popcount(bits);
                memcpy(flags + (i >> 3) + 4 * h, &bits, 4);
            }
            sum = _mm256_add_epi64(sum, _mm256_sad_epu8(weight, zero));
            if (stream)
                _mm256_stream_si256((__m256i *)(dst + i + 32 * h), x);
            else
                _mm256_storeu_si256((__m256i *)(dst + i + 32 * h), x);
        }
        p = ew_next(pattern, p);
    }
    if (stream) _mm_sfence();
    return ew_sum_avx2(sum) + flagged;
}
#endif

/* Base+XOR (element > 0) and DBI-DC (dbi) in one pass; returns the ones sent, flags counted. `position` is the offset of
 * src[0] in its block, history the `element` bytes before src[0]. flags has (n + 7) / 8 bytes. dst must not overlap src. */
static int64_t ew_encode_xor_dbi(const uint8_t *src, uint8_t *dst, uint8_t *flags, int64_t n, const uint8_t *history,
                                 int64_t element, int64_t block, int64_t position, int dbi) {
    int64_t total = 0, i = 0, p = position;
    const int64_t reach = element; /* partners before src[reach] are in the history */
    if (element == 0) element = block = 64, p = 0; /* no XOR: every byte is a base */
    const int64_t whole = block / element * element;
    const int wide = (64 % block == 0 || block % 64 == 0) && element <= 64;
    const int64_t grid = position == 0 ? 64 : 8; /* 64: steps then write whole cache lines of an aligned dst */
    for (; i < n && !(wide && p == 0 && i % grid == 0 && i >= reach); i++) {
        uint8_t before = i >= reach ? (reach ? src[i - reach] : 0) : history[i];
        total += ew_xor_byte(src, dst, flags, i, before, p >= element && p < whole, dbi);
        if (++p == block) p = 0;
    }
    if (i < n) {
        const ew_pattern pattern = {element, block, ew_keep_mask(0, element, block),
                                    ew_keep_mask(block < 64 ? 0 : block - 64, element, block)};
        const int64_t steps = (n - i) / 64;
        const int stream = steps >= (1 << 16) && ((uintptr_t)(dst + i) & 63) == 0; /* beyond the caches: do not read dst */
#if EDGEWATT_X86
        if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX512)
            total += ew_xor_avx512(src, dst, flags, i, n, &pattern, p, dbi, stream);
        else if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX2)
            total += ew_xor_avx2(src, dst, flags, i, n, &pattern, p, dbi, stream);
        else
#endif
            total += ew_xor_words(src, dst, flags, i, n, &pattern, p, dbi);
        i += steps * 64;
        p = steps * 64 % block;
        for (; i < n; i++) {
            uint8_t before = i >= reach ? (reach ? src[i - reach] : 0) : history[i];
            total += ew_xor_byte(src, dst, flags, i, before, p >= element && p < whole, dbi);
            if (++p == block) p = 0;
        }
    }
    return total;
}

/* ---- ones and toggles of DBI-DC without writing the encoded bytes ----
 * level / flag_level: what each lane carries before src[0] (updated); lane 0 sends src[0]. n is a multiple of lanes. */

typedef struct {
    int64_t ones, toggles; /* DBI wires counted */
} ew_totals;

#if EDGEWATT_X86
EDGEWATT_AVX512 static ew_totals ew_dbi_totals_avx512(const uint8_t *src, int64_t i, int64_t n, int64_t lanes) {
    const __m512i four = _mm512_set1_epi8(4), eight = _mm512_set1_epi8(8),
                  zero = _mm512_setzero_si512();
    __m512i ones = zero, toggles = zero;
    ew_totals total = {0, 0};
    for (; i + 64 <= n; i += 64) {
        /* inversion turns a distance d between sent bytes into 8 - d where exactly one of the two was inverted */
        __m512i x = _mm512_loadu_si512(src + i), before = _mm512_loadu_si512(src + i - lanes);
        __m512i weight = _mm512_popcnt_epi8(x), distance = _mm512_popcnt_epi8(_mm512_xor_si512(x, before));
        __mmask64 heavy = _mm512_cmpgt_epu8_mask(weight, four);
        __mmask64 was = _mm512_cmpgt_epu8_mask(_mm512_popcnt_epi8(before), four);
        __mmask64 differ = heavy ^ was;
        ones = _mm512_add_epi64(ones, _mm512_sad_epu8(_mm512_mask_sub_epi8(weight, heavy, eight, weight), zero));
        toggles =
            _mm512_add_epi64(toggles, _mm512_sad_epu8(_mm512_mask_sub_epi8(distance, differ, eight, distance), zero));
        total.ones += __builtin_popcountll(heavy);
        total.toggles += __builtin_popcountll(differ);
    }
    total.ones += _mm512_reduce_add_epi64(ones);
    total.toggles += _mm512_reduce_add_epi64(toggles);
    return total;
}
/* Sent bytes have at most four ones, so at most 8 wires flip: byte counters hold for 31 steps of 32 bytes. */
enum { EW_BATCH = 31 * 32, EW_MAX_LANES = 64 };

/* Which bytes are inverted is found once and kept (0xff per inverted byte, a batch and the lanes before it), so that the
 * second pass needs no third population count. lanes <= EW_MAX_LANES <= i. */
EDGEWATT_AVX2 static ew_totals ew_dbi_totals_avx2(const uint8_t *src, int64_t i, int64_t n, int64_t lanes) {
    const __m256i four = _mm256_set1_epi8(4), nine = _mm256_set1_epi8(9), zero = _mm256_setzero_si256();
    __m256i ones = zero, toggles = zero;
    uint8_t inverted[EW_MAX_LANES + EW_BATCH], *now = inverted + EW_MAX_LANES;
    for (int64_t k = 1; k <= lanes && i < n; k++) now[-k] = ew_popcount8(src[i - k]) > 4 ? 255 : 0;
    for (; i + 32 <= n; i += EW_BATCH) {
        const int64_t batch = n - i < EW_BATCH ? (n - i) / 32 * 32 : EW_BATCH;
        __m256i sent = zero, flips = zero;
        for (int64_t k = 0; k < batch; k += 32) {
            __m256i weight = ew_weights_avx2(_mm256_loadu_si256((const __m256i *)(src + i + k)));
            _mm256_storeu_si256((__m256i *)(now + k), _mm256_cmpgt_epi8(weight, four));
            sent = _mm256_add_epi8(sent, _mm256_min_epu8(weight, _mm256_sub_epi8(nine, weight)));
        }
        for (int64_t k = 0; k < batch; k += 32) {
            __m256i x = _mm256_loadu_si256((const __m256i *)(src + i + k));
            __m256i before = _mm256_loadu_si256((const __m256i *)(src + i + k - lanes));
            __m256i differ = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(now + k)),
                                              _mm256_loadu_si256((const __m256i *)(now + k - lanes)));
            __m256i data = ew_weights_avx2(_mm256_xor_si256(_mm256_xor_si256(x, before), differ));
            flips = _mm256_add_epi8(flips, _mm256_sub_epi8(data, differ)); /* differ is -1 where the flag flips */
        }
        ones = _mm256_add_epi64(ones, _mm256_sad_epu8(sent, zero));
        toggles = _mm256_add_epi64(toggles, _mm256_sad_epu8(flips, zero));
        memcpy(inverted, inverted + EW_BATCH, EW_MAX_LANES); /* of use after a whole batch only, the others are the last */
    }
    ew_totals total = {ew_sum_avx2(ones), ew_sum_avx2(toggles)};
    return total;
}
#endif

static ew_totals ew_dbi_totals(const uint8_t *src, int64_t n, int64_t lanes, uint8_t *level, uint8_t *flag_level) {
    ew_totals total = {0, 0};
    int64_t i = 0;
    for (; i < n && i < lanes; i++) {
        int heavy = ew_popcount8(src[i]) > 4;
        uint8_t sent = heavy ? (uint8_t)~src[i] : src[i];
        total.ones += ew_popcount8(sent) + heavy;
        total.toggles += ew_popcount8(sent ^ level[i]) + (heavy ^ flag_level[i]);
    }
    int64_t step = 8;
#if EDGEWATT_X86
    ew_totals part = {0, 0};
    if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX512)
        step = 64, part = ew_dbi_totals_avx512(src, i, n, lanes);
    else if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX2 && lanes <= EW_MAX_LANES)
        step = 32, part = ew_dbi_totals_avx2(src, i, n, lanes);
    total.ones += part.ones, total.toggles += part.toggles;
#endif
    if (step > 8) i += (n - i) / step * step;
    for (; i + 8 <= n; i += 8) {
        uint64_t x = ew_load64(src + i), before = ew_load64(src + i - lanes);
        uint64_t heavy = ew_heavy_bytes(ew_byte_weights(x)), was = ew_heavy_bytes(ew_byte_weights(before));
        uint64_t sent = x ^ heavy * 255, sent_before = before ^ was * 255;
        total.ones += (int64_t)ew_sum_bytes(ew_byte_weights(sent) + heavy);
        total.toggles += (int64_t)ew_sum_bytes(ew_byte_weights(sent ^ sent_before) + (heavy ^ was));
    }
    for (; i < n; i++) {
        int heavy = ew_popcount8(src[i]) > 4, was = ew_popcount8(src[i - lanes]) > 4;
        uint8_t sent = heavy ? (uint8_t)~src[i] : src[i], before = was ? (uint8_t)~src[i - lanes] : src[i - lanes];
        total.ones += ew_popcount8(sent) + heavy;
        total.toggles += ew_popcount8(sent ^ before) + (heavy ^ was);
    }
    for (i = 0; i < lanes && n >= lanes; i++) {
        uint8_t last = src[n - lanes + i];
        flag_level[i] = ew_popcount8(last) > 4;
        level[i] = flag_level[i] ? (uint8_t)~last : last;
    }
    return total;
}
#endif
