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

/* `steps` times 64 bytes of src and of what the wires carried before each, added to the counters of each position. */
#define EW_COUNT_STEPS                                                       \
    for (int64_t s = 0; s < steps; s++, src += 64, before += 64)             \
        for (int bit = 0; bit < 8; bit++)                                    \
            for (int j = 0; j < 64; j++) {                                   \
                uint8_t x = src[j], flips = x ^ before[j];                   \
                tally[0][bit][j] += x >> bit & 1;                            \
                tally[1][bit][j] += flips >> bit & 1;                        \
                tally[2][bit][j] += (flips & x) >> bit & 1;                  \
            }
static void ew_count_steps_plain(const uint8_t *src, const uint8_t *before, int64_t steps, uint8_t tally[3][8][64]) {
    EW_COUNT_STEPS
}
#if EDGEWATT_X86
EDGEWATT_AVX2 static void ew_count_steps_avx2(const uint8_t *src, const uint8_t *before, int64_t steps,
                                              uint8_t tally[3][8][64]) {
    const __m256i one = _mm256_set1_epi8(1);
    for (int half = 0; half < 64; half += 32) {
        const uint8_t *from = src + half, *past = before + half;
        __m256i sum[3][8];
        for (int k = 0; k < 3; k++)
            for (int bit = 0; bit < 8; bit++) sum[k][bit] = _mm256_loadu_si256((const __m256i *)&tally[k][bit][half]);
        for (int64_t s = 0; s < steps; s++, from += 64, past += 64) {
            __m256i x = _mm256_loadu_si256((const __m256i *)from);
            __m256i flips = _mm256_xor_si256(x, _mm256_loadu_si256((const __m256i *)past));
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
EDGEWATT_AVX512 static void ew_count_steps_avx512(const uint8_t *src, const uint8_t *before, int64_t steps,
                                                  uint8_t tally[3][8][64]) {
    const __m512i one = _mm512_set1_epi8(1);
    __m512i sum[3][8];
    for (int k = 0; k < 3; k++)
        for (int bit = 0; bit < 8; bit++) sum[k][bit] = _mm512_loadu_si512(tally[k][bit]);
    for (int64_t s = 0; s < steps; s++, src += 64, before += 64) {
        __m512i x = _mm512_loadu_si512(src), flips = _mm512_xor_si512(x, _mm512_loadu_si512(before));
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

static inline void ew_count_steps(const uint8_t *src, const uint8_t *before, int64_t steps, uint8_t tally[3][8][64]) {
#if EDGEWATT_X86
    if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX512) {
        ew_count_steps_avx512(src, before, steps, tally);
        return;
    }
    if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX2) {
        ew_count_steps_avx2(src, before, steps, tally);
        return;
    }
#endif
    ew_count_steps_plain(src, before, steps, tally);
}

/* Add the counters of positions to those of wires, and empty them; lanes divides 64. */
static void ew_empty_tally(uint8_t tally[3][8][64], int64_t lanes, int64_t *counts) {
    const int64_t wires = 9 * lanes;
    for (int k = 0; k < 3; k++)
        for (int bit = 0; bit < 8; bit++) {
            uint16_t sum[64];
            for (int j = 0; j < 64; j++) sum[j] = tally[k][bit][j];
            for (int64_t half = 32; half >= lanes; half >>= 1) /* 64 x 255 fits */
                for (int64_t j = 0; j < half; j++) sum[j] += sum[j + half];
            for (int64_t lane = 0; lane < lanes; lane++) counts[k * wires + 8 * lane + bit] += sum[lane];
        }
    memset(tally, 0, 3 * 8 * 64);
}

/* 64 bytes by 64 bytes, from a position at lane 0 whose predecessors lie in src; lanes divides 64. */
static void ew_count_wide(const uint8_t *src, int64_t steps, int64_t lanes, int64_t *counts) {
    uint8_t tally[3][8][64];
    memset(tally, 0, sizeof tally);
    while (steps > 0) {
        int64_t now = steps < 255 ? steps : 255;
        ew_count_steps(src, src - lanes, now, tally);
        ew_empty_tally(tally, lanes, counts);
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

/* ---- many short segments: bytes are gathered by stream, so that the wide steps above count them ---- */

enum { EW_HELD_STEPS = 8, EW_HELD = 64 * EW_HELD_STEPS };

/* What one stream has sent and is not counted yet: bytes, what their wires carried before, their flags likewise (bit j
 * of word w belongs to byte 64 w + j, so that the flags of what is held are 64 bytes themselves), and the counters of
 * positions of both. All zero at first. */
typedef struct {
    uint8_t sent[EW_HELD], before[EW_HELD];
    uint64_t flags[EW_HELD_STEPS + 1], flags_before[EW_HELD_STEPS + 1];
    uint8_t tally[3][8][64], flag_tally[3][8][64];
    int64_t held, steps, flag_steps; /* bytes held; steps in the counters */
} ew_gathered;

static void ew_empty_flags(ew_gathered *g, int64_t lanes, int64_t *counts) {
    for (int k = 0; k < 3; k++)
        for (int bit = 0; bit < 8; bit++)
            for (int j = 0; j < 64; j++) counts[(9 * k + 8) * lanes + (8 * j + bit) % lanes] += g->flag_tally[k][bit][j];
    memset(g->flag_tally, 0, sizeof g->flag_tally);
    g->flag_steps = 0;
}

/* Count what is held, the rest of it zeros, which change nothing. */
static void ew_count_held(ew_gathered *g, int64_t lanes, int has_flags, int64_t *counts) {
    const int64_t steps = (g->held + 63) / 64, rest = 64 * steps - g->held;
    if (!g->held) return;
    memset(g->sent + g->held, 0, (size_t)rest);
    memset(g->before + g->held, 0, (size_t)rest);
    if (g->steps + steps > 255) {
        ew_empty_tally(g->tally, lanes, counts);
        g->steps = 0;
    }
    ew_count_steps(g->sent, g->before, steps, g->tally);
    g->steps += steps;
    g->held = 0;
    if (!has_flags) return;
    if (g->flag_steps == 255) ew_empty_flags(g, lanes, counts);
    ew_count_steps((const uint8_t *)g->flags, (const uint8_t *)g->flags_before, 1, g->flag_tally);
    g->flag_steps++;
    memset(g->flags, 0, sizeof g->flags);
    memset(g->flags_before, 0, sizeof g->flags_before);
}

/* Count all that is left of a stream. */
static void ew_count_rest(ew_gathered *g, int64_t lanes, int has_flags, int64_t *counts) {
    ew_count_held(g, lanes, has_flags, counts);
    if (g->steps) ew_empty_tally(g->tally, lanes, counts);
    if (g->flag_steps) ew_empty_flags(g, lanes, counts);
}

/* n bits (1 to 64) of packed `flags` from bit i on; the array has `bytes` bytes. */
static inline uint64_t ew_bits_at(const uint8_t *flags, int64_t bytes, int64_t i, int64_t n) {
    const int64_t first = i >> 3;
    const int shift = (int)(i & 7);
    uint64_t word = 0;
    if (first + 9 <= bytes) {
        memcpy(&word, flags + first, 8);
        word = shift ? word >> shift | (uint64_t)flags[first + 8] << (64 - shift) : word;
    } else {
        for (int64_t k = 0; k < 9 && first + k < bytes; k++) {
            const int64_t place = 8 * k - shift;
            if (place < 64) word |= place >= 0 ? (uint64_t)flags[first + k] << place : (uint64_t)flags[first] >> shift;
        }
    }
    return n == 64 ? word : word & (((uint64_t)1 << n) - 1);
}

static inline void ew_put_bits(uint64_t *words, int64_t at, uint64_t bits) {
    const int shift = (int)(at & 63);
    words[at >> 6] |= bits << shift;
    if (shift) words[(at >> 6) + 1] |= bits >> (64 - shift);
}

/* Sends a segment of whole beats from lane 0: bytes [start, stop) of src, gathered for its stream. `joined`: the byte
 * before `start` in src is what was sent before. lanes divides 64; counts as above, of the stream. */
static void ew_gather_wires(const uint8_t *src, const uint8_t *flags, int64_t flag_bytes, int64_t start, int64_t stop,
                            int joined, ew_bus *bus, uint64_t *carry, ew_gathered *g, int64_t *counts) {
    const int64_t lanes = bus->lanes;
    for (int64_t i = start; i < stop;) {
        if (g->held == EW_HELD) ew_count_held(g, lanes, flags != 0, counts);
        int64_t m = stop - i < EW_HELD - g->held ? stop - i : EW_HELD - g->held;
        if (m > 64) m = 64;
        memcpy(g->sent + g->held, src + i, (size_t)m);
        if (joined || i > start) {
            memcpy(g->before + g->held, src + i - lanes, (size_t)m);
        } else {
            memcpy(g->before + g->held, bus->level, (size_t)lanes);
            memcpy(g->before + g->held + lanes, src + i, (size_t)(m - lanes));
        }
        if (flags) {
            const uint64_t now = ew_bits_at(flags, flag_bytes, i, m);
            const uint64_t past = lanes == 64 ? *carry : now << lanes | *carry;
            ew_put_bits(g->flags, g->held, now);
            ew_put_bits(g->flags_before, g->held, m == 64 ? past : past & (((uint64_t)1 << m) - 1));
            *carry = now >> (m - lanes);
        }
        g->held += m;
        i += m;
    }
    if (stop > start) memcpy(bus->level, src + stop - lanes, (size_t)lanes);
}
#endif
