/* Base+XOR (Lee et al. 2018) and DBI-DC over a byte stream, in one pass.
 *
 * Byte i of a stream travels on lane i mod bus_bytes. A routine continues a stream: what lies before its first byte is given
 * as history. dst must not overlap src; flags has a bit for each byte, lowest bit first. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "common/inline.h"
#include "common/simd.h"


typedef uint64_t ew_32 __attribute__((vector_size(32)));

/* In each byte 1 where it has five or more ones: its weight + 3 reaches 8. */
static inline ew_32 ew_heavy_bytes(ew_32 x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return ((x + 0x0303030303030303u) >> 3) & 0x0101010101010101u;
}
/* gathers bit 0 of byte i into bit i */
static inline uint8_t ew_gather_bits(uint64_t x) { return (uint8_t)((x * 0x0102040810204080u) >> 56); }

static inline void ew_xor_byte(const uint8_t *src, uint8_t *dst, uint8_t *flags, int64_t i, uint8_t before, int keep, int dbi) {
    const uint8_t x = keep ? src[i] ^ before : src[i];
    const int heavy = dbi && __builtin_popcount(x) > 4;
    dst[i] = heavy ? (uint8_t)~x : x;
    if (dbi) flags[i >> 3] = (uint8_t)((flags[i >> 3] & ~(1 << (i & 7))) | heavy << (i & 7));
}

/* Which bytes of a block are XORed: not the base, not those after the last whole element. */
typedef struct {
    int64_t element, block, whole;
    int by_16, by_32;            /* whether steps of so many bytes fit in */
    uint8_t first[96], last[64]; /* of a block, 255 for those that are XORed; between them all are as first[64] */
} ew_pattern;

/* element 0: no XOR. */
static ew_pattern ew_pattern_of(int64_t element, int64_t block) {
    ew_pattern of = {element, block, element ? block / element * element : 0,
                     (block % 16 == 0 || 16 % block == 0) && element <= 64,
                     (block % 32 == 0 || 32 % block == 0) && element <= 64, {0}, {0}};
    for (int k = 0; element && k < 96; k++) of.first[k] = k % block >= element && k % block < of.whole ? 255 : 0;
    for (int64_t k = 0, at = block - 64; element && k < 64; k++, at++) of.last[k] = at >= element && at < of.whole ? 255 : 0;
    return of;
}

/* n bytes from i on, 16 or 32 that lie in one block or are whole blocks. */
EW_INLINE void ew_encode_step(const ew_pattern *of, const uint8_t *src, uint8_t *dst, uint8_t *flags,
                                                                 int64_t i, int64_t p, int dbi, const int64_t n) {
    const int64_t last = of->block - 64;
    ew_32 x = {0}, before = {0}, keep = {0};
    memcpy(&x, src + i, n);
    memcpy(&before, src + i - of->element, n);
    memcpy(&keep, p < 64 ? of->first + p : p >= last ? of->last + (p - last) : of->first + 64, n);
    x ^= before & keep;
    if (dbi) {
        const ew_32 heavy = ew_heavy_bytes(x);
        x ^= (heavy << 8) - heavy;
        for (int k = 0; k < n / 8; k++) flags[(i >> 3) + k] = ew_gather_bits(heavy[k]);
    }
    memcpy(dst + i, &x, n);
}

/* Bytes from `start` to `end` of a stream, of which src[0] is the first; p: offset of the one at `start` in its block. history:
 * the `element` bytes before src[0]. */
static inline void ew_encode_run_baseline(const ew_pattern *of, const uint8_t *src, uint8_t *dst, uint8_t *flags, int64_t start, int64_t end,
                          const uint8_t *history, int64_t p, int dbi) {
    const int64_t element = of->element, block = of->block;
    for (int64_t i = start, n; i < end; i += n, p = p + n < block ? p + n : 0) {
        if (of->by_32 && p % 32 == 0 && i % 8 == 0 && i >= element && i + 32 <= end) {
            ew_encode_step(of, src, dst, flags, i, p, dbi, n = 32);
        } else if (of->by_16 && p % 16 == 0 && i % 8 == 0 && i >= element && i + 16 <= end) {
            ew_encode_step(of, src, dst, flags, i, p, dbi, n = 16);
        } else {
            const int keep = element && p >= element && p < of->whole;
            ew_xor_byte(src, dst, flags, i, !keep ? 0 : i >= element ? src[i - element] : history[i], keep, dbi);
            n = 1;
        }
    }
}

#if EDGEWATT_X86
EDGEWATT_AVX2 __attribute__((flatten)) static void ew_encode_run_avx2(const ew_pattern *of, const uint8_t *src, uint8_t *dst, uint8_t *flags,
                                                                      int64_t start, int64_t end, const uint8_t *history, int64_t p, int dbi) {
    ew_encode_run_baseline(of, src, dst, flags, start, end, history, p, dbi);
}
#endif
