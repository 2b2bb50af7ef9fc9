/* Base+XOR (Lee et al. 2018) and DBI-DC over a byte stream, in one pass.
 *
 * Byte i of a stream travels on lane i mod bus_bytes. A routine continues a stream: what lies before its first byte is given
 * as history. Steps are of 64 bytes; byte steps do the ends. */
#ifndef EDGEWATT_ENCODE_H
#define EDGEWATT_ENCODE_H

#include <stdint.h>
#include <string.h>

static inline int ew_popcount8(uint8_t x) { return __builtin_popcount(x); }
static inline int ew_popcount64(uint64_t x) { return __builtin_popcountll(x); }

typedef uint64_t ew_16 __attribute__((vector_size(16), may_alias, aligned(1)));

/* In each byte 1 where it has five or more ones: its weight + 3 reaches 8. */
static inline ew_16 ew_heavy_bytes(ew_16 x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return ((x + 0x0303030303030303u) >> 3) & 0x0101010101010101u;
}
/* gathers bit 0 of byte i into bit i */
static inline uint8_t ew_gather_bits(uint64_t x) { return (uint8_t)((x * 0x0102040810204080u) >> 56); }

static inline void ew_xor_byte(const uint8_t *src, uint8_t *dst, uint8_t *flags, int64_t i, uint8_t before, int keep, int dbi) {
    const uint8_t x = keep ? src[i] ^ before : src[i];
    const int heavy = dbi && ew_popcount8(x) > 4;
    dst[i] = heavy ? (uint8_t)~x : x;
    if (dbi) flags[i >> 3] = (uint8_t)((flags[i >> 3] & ~(1 << (i & 7))) | heavy << (i & 7));
}

/* 64 bytes from i on. keep: 255 for those that are XORed. */
static inline void ew_xor_step(const uint8_t *src, uint8_t *dst, uint8_t *flags, int64_t i, int64_t element, const uint8_t *keep,
                               int dbi) {
    for (int64_t k = i; k < i + 64; k += 16, keep += 16) {
        ew_16 x = *(const ew_16 *)(src + k) ^ (*(const ew_16 *)(src + k - element) & *(const ew_16 *)keep);
        if (dbi) {
            const ew_16 heavy = ew_heavy_bytes(x);
            x ^= (heavy << 8) - heavy;
            flags[k >> 3] = ew_gather_bits(heavy[0]);
            flags[(k >> 3) + 1] = ew_gather_bits(heavy[1]);
        }
        *(ew_16 *)(dst + k) = x;
    }
}

/* Base+XOR (element > 0) and DBI-DC (dbi) in one pass. `position` is the offset of src[0] in its block, history the `element`
 * bytes before src[0]. flags has (n + 7) / 8 bytes. dst must not overlap src. The first element of a block and the bytes after
 * its last whole one are sent as they are. */
static void ew_encode_xor_dbi(const uint8_t *src, uint8_t *dst, uint8_t *flags, int64_t n, const uint8_t *history,
                              int64_t element, int64_t block, int64_t position, int dbi) {
    const int64_t reach = element; /* partners before src[reach] are in the history */
    if (element == 0) element = block = 64, position = 0; /* no XOR: every byte is a base */
    const int64_t whole = block / element * element;
    const int in_steps = (64 % block == 0 || block % 64 == 0) && element <= 64;
    uint8_t keep[3][64]; /* of the first 64 bytes of a block, of those between, of the last */
    for (int k = 0; in_steps && k < 64; k++) {
        const int64_t at = k % block, last = block < 64 ? at : block - 64 + k;
        keep[0][k] = at >= element && at < whole ? 255 : 0;
        keep[1][k] = 255;
        keep[2][k] = last >= element && last < whole ? 255 : 0;
    }
    int64_t p = position;
    for (int64_t i = 0; i < n;) {
        if (in_steps && p == 0 && i % 8 == 0 && i >= reach)
            for (; i + 64 <= n; i += 64) {
                ew_xor_step(src, dst, flags, i, element, keep[p == 0 ? 0 : p + 64 < block ? 1 : 2], dbi);
                p = p + 64 < block ? p + 64 : 0;
            }
        if (i == n) break;
        const uint8_t before = i >= reach ? (reach ? src[i - reach] : 0) : history[i];
        ew_xor_byte(src, dst, flags, i, before, p >= element && p < whole, dbi);
        i++;
        if (++p == block) p = 0;
    }
}
#endif
