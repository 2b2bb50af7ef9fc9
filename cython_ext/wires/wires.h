/* Ones, toggles and rising edges on every wire of a byte-lane bus, apart for each stream that shares it.
 *
 * Wire 8 * lane + bit carries that bit of the lane's bytes; wire 8 * lanes + lane is the lane's flag (DBI) wire. Counts are
 * int64[3][9 * lanes]: ones, toggles, rising edges.
 *
 * What the wires do does not depend on whose bytes they are, so it is found for many bytes at once: a unit, two bytes that
 * follow each other with their flags, has 18 bits of ones, 18 of toggles and 18 of rising edges, one word. A segment adds
 * the words of its units to counters of its stream, one of them for each of the 54 bits, in one step. Long segments are
 * counted at 64 positions at a time (`wide`). Counters are bytes, emptied into the counts before they can overflow. */
#ifndef EDGEWATT_WIRES_H
#define EDGEWATT_WIRES_H

#include <stdint.h>

#include "common/simd.h"
#include "wires/flag_bits.h"

enum { EW_ONES = 0, EW_TOGGLES = 1, EW_RISING = 2, EW_MOST = 255 };
enum { EW_UNIT_BITS = 18, EW_LONG_SEGMENT = 256, EW_WINDOW = 1024 }; /* bytes */

/* Those of a unit's 54 bits that are its first byte's, and its second's. */
#define EW_FIRST (UINT64_C(0x100ff) | UINT64_C(0x100ff) << EW_UNIT_BITS | UINT64_C(0x100ff) << 2 * EW_UNIT_BITS)
#define EW_SECOND (EW_FIRST ^ ((UINT64_C(1) << 3 * EW_UNIT_BITS) - 1))

/* Units lie one behind the other on the lanes; after `period` bytes, one beat or two, they lie so again. */
typedef struct {
    uint8_t past[64];     /* the bytes of the last beat, in the order they were sent */
    uint64_t past_flags;  /* their flags, bit by byte */
    int64_t lanes, place; /* place of the next byte in the period */
} ew_bus;

static inline int64_t ew_period(int64_t lanes) { return lanes & 1 ? 2 * lanes : lanes; }

/* Counters of one stream that are not in its counts yet; all zero at first. */
typedef struct {
    uint8_t wide[3][8][64], wide_flags[3][64]; /* by position in 64 bytes */
    uint8_t unit[64][64];                      /* by unit of the period and bit */
    int64_t steps, bytes; /* bounds on the counters: of positions, and of units, times the period */
} ew_tally;

/* Bytes, after those of the last beat and one more, and the flags of all of them: where a byte's predecessor on its lane
 * is at the same distance for all. What the units do that begin at the byte in front of the last beat's end, or at it. */
typedef struct {
    uint8_t byte[1 + 64 + EW_WINDOW + 16]; /* vectors may read beyond, and never use it */
    uint64_t flag[(1 + 64 + EW_WINDOW) / 64 + 3];
    uint64_t unit[EW_WINDOW / 2 + 8];
    int64_t start, stop; /* bytes of the source: unit 0 begins at start, no byte from stop on is here */
} ew_window;

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

/* Add the counters of 64 positions to those of the first wire of every lane, `stride` apart; lanes divides 64. */
static inline void ew_fold(const uint8_t tally[64], int64_t lanes, int64_t stride, int64_t *counts) {
    uint16_t sum[64];
    for (int j = 0; j < 64; j++) sum[j] = tally[j];
    for (int64_t half = 32; half >= lanes; half >>= 1) /* 64 x 255 fits */
        for (int64_t j = 0; j < half; j++) sum[j] += sum[j + half];
    for (int64_t lane = 0; lane < lanes; lane++) counts[stride * lane] += sum[lane];
}

static void ew_empty_wide(ew_tally *t, int64_t lanes, int64_t *counts) {
    if (!t->steps) return;
    for (int k = 0; k < 3; k++) {
        for (int bit = 0; bit < 8; bit++) ew_fold(t->wide[k][bit], lanes, 8, counts + 9 * lanes * k + bit);
        ew_fold(t->wide_flags[k], lanes, 1, counts + 9 * lanes * k + 8 * lanes);
    }
    memset(t->wide, 0, sizeof t->wide);
    memset(t->wide_flags, 0, sizeof t->wide_flags);
    t->steps = 0;
}

/* All wires go back to the level `rest` (bytes 0 or 255): edges count, the ones of an idle bus do not, for no unit interval
 * is sent. */
static void ew_return_to_idle(ew_bus *bus, uint8_t rest, int64_t *counts) {
    const int64_t lanes = bus->lanes, wires = 9 * lanes;
    for (int64_t j = 0; j < lanes; j++) {
        const int64_t lane = (bus->place + j) % lanes;
        const int flips = bus->past[j] ^ rest, flag = bus->past_flags >> j & 1, flag_flips = flag ^ (rest & 1);
        for (int bit = 0; bit < 8; bit++) {
            counts[wires + 8 * lane + bit] += flips >> bit & 1;
            counts[2 * wires + 8 * lane + bit] += (flips & rest) >> bit & 1;
        }
        counts[wires + 8 * lanes + lane] += flag_flips;
        counts[2 * wires + 8 * lanes + lane] += flag_flips & rest & 1;
    }
    memset(bus->past, rest, (size_t)lanes);
    bus->past_flags = rest ? ~UINT64_C(0) : 0;
    bus->place = 0;
}

/* The bits of a word as 64 bytes of 0 or 1, added to counters. */
static inline void ew_add_bits_plain(uint8_t *counters, uint64_t bits) {
    for (int k = 0; k < 8; k++) {
        uint64_t sum, each = (bits >> 8 * k & 255) * 0x0101010101010101u & 0x8040201008040201u;
        memcpy(&sum, counters + 8 * k, 8);
        sum += (each + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
        memcpy(counters + 8 * k, &sum, 8);
    }
}

#define EW_NAME(name) name##_plain
#define EW_TARGET
#define EW_REGISTER uint8_t *
#define EW_LOAD(p) (p)
#define EW_STORE(p, x) (void)(x)
#define EW_ADD(x, bits) ew_add_bits_plain(x, bits)
#define EW_MANY 1
#define EW_WORDS uint64_t
#define EW_PAIRS(p) ((p)[0] | (uint64_t)(p)[1] << 8)
#define EW_FLAGS(bits) ((bits) & 3)
#include "wires/segments_body.h"

#if EDGEWATT_X86
typedef uint64_t ew_four __attribute__((vector_size(32)));
typedef uint64_t ew_eight __attribute__((vector_size(64)));
typedef struct {
    __m256i low, high;
} ew_two;

EDGEWATT_AVX2 static inline ew_two ew_load_two(const uint8_t *p) {
    return (ew_two){_mm256_loadu_si256((const __m256i *)p), _mm256_loadu_si256((const __m256i *)(p + 32))};
}
EDGEWATT_AVX2 static inline __m256i ew_add_half(__m256i sum, uint32_t bits) {
    const __m256i which = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201u);
    const __m256i x = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), which), bit);
    return _mm256_sub_epi8(sum, _mm256_cmpeq_epi8(x, bit));
}
#define EW_NAME(name) name##_avx2
#define EW_TARGET EDGEWATT_AVX2
#define EW_REGISTER ew_two
#define EW_LOAD(p) ew_load_two(p)
#define EW_STORE(p, x) \
    (_mm256_storeu_si256((__m256i *)(p), (x).low), _mm256_storeu_si256((__m256i *)((p) + 32), (x).high))
#define EW_ADD(x, bits) ((x).low = ew_add_half((x).low, (uint32_t)(bits)), \
                         (x).high = ew_add_half((x).high, (uint32_t)((bits) >> 32)))
#define EW_MANY 4
#define EW_WORDS ew_four
#define EW_PAIRS(p) (ew_four)_mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)(p)))
#define EW_FLAGS(bits) (((bits) - (ew_four){0}) >> (ew_four){0, 2, 4, 6} & 3)
#include "wires/segments_body.h"

#define EW_NAME(name) name##_avx512
#define EW_TARGET EDGEWATT_AVX512
#define EW_REGISTER __m512i
#define EW_LOAD(p) _mm512_loadu_si512(p)
#define EW_STORE(p, x) _mm512_storeu_si512(p, x)
#define EW_ADD(x, bits) ((x) = _mm512_sub_epi8(x, _mm512_movm_epi8(bits)))
#define EW_MANY 8
#define EW_WORDS ew_eight
#define EW_PAIRS(p) (ew_eight)_mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)(p)))
#define EW_FLAGS(bits) (((bits) - (ew_eight){0}) >> (ew_eight){0, 2, 4, 6, 8, 10, 12, 14} & 3)
#include "wires/segments_body.h"
#endif

/* Sends segments over the bus. Segment k is the bytes up to ends[k] and belongs to streams[k]; where idles[k] (NULL:
 * nowhere) all wires first go back to `rest`. flags: packed, flag_bytes of them, or NULL. tallies: one a stream. counts:
 * int64[streams][3][9 * lanes]. */
static inline void ew_send(ew_bus *bus, const uint8_t *src, const uint8_t *flags, int64_t flag_bytes, const int64_t *ends,
                           const int64_t *streams, const uint8_t *idles, int64_t segments, uint8_t rest,
                           ew_tally *tallies, int64_t *counts) {
#if EDGEWATT_X86
    if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX512) {
        ew_send_avx512(bus, src, flags, flag_bytes, ends, streams, idles, segments, rest, tallies, counts);
        return;
    }
    if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX2) {
        ew_send_avx2(bus, src, flags, flag_bytes, ends, streams, idles, segments, rest, tallies, counts);
        return;
    }
#endif
    ew_send_plain(bus, src, flags, flag_bytes, ends, streams, idles, segments, rest, tallies, counts);
}

static inline void ew_settle(ew_tally *tally, int64_t lanes, int64_t *counts) {
    ew_empty_wide(tally, lanes, counts);
    ew_empty_units_plain(tally, lanes, counts);
}
#endif
