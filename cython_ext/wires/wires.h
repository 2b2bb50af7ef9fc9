/* Ones, toggles and rising edges on every wire of a byte-lane bus.
 *
 * Wire 8 * lane + bit carries that bit of the lane's bytes; wire 8 * lanes + lane is the lane's flag (DBI) wire. Counts are
 * int64[3][9 * lanes]: ones, toggles, rising edges. Sixty-four positions are counted side by side in byte counters that
 * are emptied before they can overflow (255 steps). */
#ifndef EDGEWATT_WIRES_H
#define EDGEWATT_WIRES_H

#include <stdint.h>

#include "common/simd.h"

enum { EW_ONES = 0, EW_TOGGLES = 1, EW_RISING = 2 };

typedef struct {
    uint8_t level[64], flag[64]; /* what each lane carries now */
    int64_t lanes, lane;         /* lane of the next byte */
} ew_bus;

static inline void ew_wire_byte(ew_bus *bus, uint8_t sent, uint8_t flag, int64_t *counts) {
    const int64_t lanes = bus->lanes, wires = 9 * lanes, lane = bus->lane;
    uint8_t flips = sent ^ bus->level[lane], rises = flips & sent;
    int64_t *at = counts + 8 * lane;
    for (int bit = 0; bit < 8; bit++) {
        at[bit] += sent >> bit & 1;
        at[wires + bit] += flips >> bit & 1;
        at[2 * wires + bit] += rises >> bit & 1;
    }
    at = counts + 8 * lanes + lane;
    at[0] += flag;
    at[wires] += flag ^ bus->flag[lane];
    at[2 * wires] += flag & ~bus->flag[lane] & 1;
    bus->level[lane] = sent;
    bus->flag[lane] = flag;
    bus->lane = lane + 1 == lanes ? 0 : lane + 1;
}

/* `steps` (at most 255) times 64 bytes whose predecessors lie `lanes` bytes earlier, counted per position. */
#define EW_COUNT_STEPS                                                       \
    for (int64_t s = 0; s < steps; s++, src += 64)                           \
        for (int bit = 0; bit < 8; bit++)                                    \
            for (int j = 0; j < 64; j++) {                                   \
                uint8_t x = src[j], flips = x ^ src[j - lanes];              \
                tally[0][bit][j] += x >> bit & 1;                            \
                tally[1][bit][j] += flips >> bit & 1;                        \
                tally[2][bit][j] += (flips & x) >> bit & 1;                  \
            }
static void ew_count_steps_plain(const uint8_t *src, int64_t steps, int64_t lanes, uint8_t tally[3][8][64]) {
    EW_COUNT_STEPS
}
#if EDGEWATT_X86
EDGEWATT_AVX2 static void ew_count_steps_avx2(const uint8_t *src, int64_t steps, int64_t lanes,
                                              uint8_t tally[3][8][64]) {
    const __m256i one = _mm256_set1_epi8(1);
    for (int half = 0; half < 64; half += 32) {
        const uint8_t *from = src + half;
        __m256i sum[3][8];
        for (int k = 0; k < 3; k++)
            for (int bit = 0; bit < 8; bit++) sum[k][bit] = _mm256_setzero_si256();
        for (int64_t s = 0; s < steps; s++, from += 64) {
            __m256i x = _mm256_loadu_si256((const __m256i *)from);
            __m256i flips = _mm256_xor_si256(x, _mm256_loadu_si256((const __m256i *)(from - lanes)));
            __m256i rises = _mm256_and_si256(flips, x);
            for (int bit = 0; bit < 8; bit++) {
                sum[0][bit] = _mm256_add_epi8(sum[0][bit], _mm256_and_si256(_mm256_srli_epi16(x, bit), one));
                sum[1][bit] = _mm256_add_epi8(sum[1][bit], _mm256_and_si256(_mm256_srli_epi16(flips, bit), one));
                sum[2][bit] = _mm256_add_epi8(sum[2][bit], _mm256_and_si256(_mm256_srli_epi16(rises, bit), one));
            }
        }
        for (int k = 0; k < 3; k++)
            for (int bit = 0; bit < 8; bit++) _mm256_storeu_si256((__m256i *)&tally[k][bit][half], sum[k][bit]);
    }
}
EDGEWATT_AVX512 static void ew_count_steps_avx512(const uint8_t *src, int64_t steps, int64_t lanes,
                                                  uint8_t tally[3][8][64]) {
    const __m512i one = _mm512_set1_epi8(1);
    __m512i sum[3][8];
    for (int k = 0; k < 3; k++)
        for (int bit = 0; bit < 8; bit++) sum[k][bit] = _mm512_setzero_si512();
    for (int64_t s = 0; s < steps; s++, src += 64) {
        __m512i x = _mm512_loadu_si512(src), flips = _mm512_xor_si512(x, _mm512_loadu_si512(src - lanes));
        __m512i rises = _mm512_and_si512(flips, x);
        for (int bit = 0; bit < 8; bit++) {
            sum[0][bit] = _mm512_add_epi8(sum[0][bit], _mm512_and_si512(_mm512_srli_epi16(x, bit), one));
            sum[1][bit] = _mm512_add_epi8(sum[1][bit], _mm512_and_si512(_mm512_srli_epi16(flips, bit), one));
            sum[2][bit] = _mm512_add_epi8(sum[2][bit], _mm512_and_si512(_mm512_srli_epi16(rises, bit), one));
        }
    }
    for (int k = 0; k < 3; k++)
        for (int bit = 0; bit < 8; bit++) _mm512_storeu_si512(tally[k][bit], sum[k][bit]);
}
#endif

/* 64 bytes by 64 bytes, from a position at lane 0 whose predecessors lie in src; lanes divides 64. */
static void ew_count_wide(const uint8_t *src, int64_t steps, int64_t lanes, int64_t *counts) {
    uint8_t tally[3][8][64];
    const int64_t wires = 9 * lanes;
    while (steps > 0) {
        int64_t now = steps < 255 ? steps : 255;
        memset(tally, 0, sizeof tally);
#if EDGEWATT_X86
        if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX512)
            ew_count_steps_avx512(src, now, lanes, tally);
        else if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX2)
            ew_count_steps_avx2(src, now, lanes, tally);
        else
#endif
            ew_count_steps_plain(src, now, lanes, tally);
        for (int k = 0; k < 3; k++)
            for (int bit = 0; bit < 8; bit++)
                for (int j = 0; j < 64; j++) counts[k * wires + 8 * (j % lanes) + bit] += tally[k][bit][j];
        src += 64 * now;
        steps -= now;
    }
}

/* Sixty-four flags at a time; bit i of the packed `flags` belongs to byte i. `start` is a multiple of 8. */
static void ew_count_flags(const uint8_t *flags, int64_t start, int64_t steps, ew_bus *bus, int64_t *counts) {
    const int64_t lanes = bus->lanes, wires = 9 * lanes;
    uint64_t every = 0, carry = 0;
    for (int64_t j = 0; j < 64; j += lanes) every |= (uint64_t)1 << j;
    for (int64_t lane = 0; lane < lanes; lane++) carry |= (uint64_t)bus->flag[lane] << lane;
    int64_t *at = counts + 8 * lanes;
    for (int64_t s = 0; s < steps; s++) {
        uint64_t now;
        memcpy(&now, flags + (start >> 3) + 8 * s, 8);
        uint64_t before = lanes == 64 ? carry : now << lanes | carry, flips = now ^ before, rises = flips & now;
        carry = lanes == 64 ? now : now >> (64 - lanes);
        for (int64_t lane = 0; lane < lanes; lane++) {
            at[lane] += __builtin_popcountll(now & every << lane);
            at[wires + lane] += __builtin_popcountll(flips & every << lane);
            at[2 * wires + lane] += __builtin_popcountll(rises & every << lane);
        }
    }
    for (int64_t lane = 0; lane < lanes; lane++) bus->flag[lane] = carry >> lane & 1;
}

/* Sends bytes [start, stop) of src over the bus. flags may be NULL (no flag wires). counts is int64[3][9 * lanes]. */
static void ew_count_wires(const uint8_t *src, const uint8_t *flags, int64_t start, int64_t stop, ew_bus *bus,
                           int64_t *counts) {
    const int64_t lanes = bus->lanes;
    const int wide = 64 % lanes == 0;
    int64_t i = start;
    while (i < stop) {
        if (wide && stop - i >= 64 && bus->lane == 0 && i - start >= lanes && (!flags || i % 8 == 0)) {
            int64_t steps = (stop - i) / 64;
            ew_count_wide(src + i, steps, lanes, counts);
            if (flags) ew_count_flags(flags, i, steps, bus, counts);
            i += 64 * steps;
            memcpy(bus->level, src + i - lanes, (size_t)lanes);
            continue;
        }
        ew_wire_byte(bus, src[i], flags ? flags[i >> 3] >> (i & 7) & 1 : 0, counts);
        i++;
    }
}
#endif
