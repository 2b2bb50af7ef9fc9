/* Counting the wires in long segments (rules and entry: wires/wires.h), by counters at positions.
 *
 * What the wires do is found for many bytes at once: a unit, two bytes that follow each other with their flags, has 18 bits
 * of ones, 18 of toggles and 18 of rising edges, one word. A segment adds the words of its units to counters of its stream,
 * one of them for each of the 54 bits, in one step. Very long segments are counted at 64 positions at a time (`wide`).
 * Counters are bytes, emptied into the counts before they can overflow. */
#ifndef EDGEWATT_LONG_SEGMENTS_H
#define EDGEWATT_LONG_SEGMENTS_H

#include "wires/wires.h"

enum { EL_MOST = 255, EL_UNIT_BITS = 18, EL_WIDE_SEGMENT = 256, EL_WINDOW = 1024 }; /* bytes */

/* Those of a unit's 54 bits that are its first byte's, and its second's. */
#define EL_FIRST (UINT64_C(0x100ff) | UINT64_C(0x100ff) << EL_UNIT_BITS | UINT64_C(0x100ff) << 2 * EL_UNIT_BITS)
#define EL_SECOND (EL_FIRST ^ ((UINT64_C(1) << 3 * EL_UNIT_BITS) - 1))

/* The bus in the order of sending. Units lie one behind the other on the lanes; after `period` bytes, one beat or two, they lie so again. */
typedef struct {
    uint8_t past[64];     /* the bytes of the last beat, in the order they were sent */
    uint64_t past_flags;  /* their flags, bit by byte */
    int64_t lanes, place; /* place of the next byte in the period */
} el_bus;

static inline int64_t el_period(int64_t lanes) { return lanes & 1 ? 2 * lanes : lanes; }

/* Counters of one stream that are not in its counts yet; all zero at first. */
typedef struct {
    uint8_t wide[3][8][64], wide_flags[3][64]; /* by position in 64 bytes */
    uint8_t unit[64][64];                      /* by unit of the period and bit */
    int64_t steps, bytes; /* bounds on the counters: of positions, and of units, times the period */
    int64_t unused[14];   /* to a multiple of 64 bytes, an odd one: tallies then lie in different sets of a cache */
} el_tally;

/* Bytes, after those of the last beat and one more, and the flags of all of them: where a byte's predecessor on its lane
 * is at the same distance for all. What the units do that begin at the byte in front of the last beat's end, or at it. */
typedef struct {
    uint8_t byte[1 + 64 + EL_WINDOW + 16]; /* vectors may read beyond, and never use it */
    uint64_t flag[(1 + 64 + EL_WINDOW) / 64 + 3];
    uint64_t unit[EL_WINDOW / 2 + 8];
    int64_t start, stop; /* bytes of the source: unit 0 begins at start, no byte from stop on is here */
} el_window;

/* `steps` times 64 bytes of src and of what the wires carried before each, added to the counters of each position. */
#define EL_COUNT_STEPS                                                       \
    for (int64_t s = 0; s < steps; s++, src += 64, before += 64)             \
        for (int bit = 0; bit < 8; bit++)                                    \
            for (int j = 0; j < 64; j++) {                                   \
                uint8_t x = src[j], flips = x ^ before[j];                   \
                tally[0][bit][j] += x >> bit & 1;                            \
                tally[1][bit][j] += flips >> bit & 1;                        \
                tally[2][bit][j] += (flips & x) >> bit & 1;                  \
            }
static void el_count_steps_plain(const uint8_t *src, const uint8_t *before, int64_t steps, uint8_t tally[3][8][64]) {
    EL_COUNT_STEPS
}
#if EDGEWATT_X86
EDGEWATT_AVX2 static void el_count_steps_avx2(const uint8_t *src, const uint8_t *before, int64_t steps,
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
EDGEWATT_AVX512 static void el_count_steps_avx512(const uint8_t *src, const uint8_t *before, int64_t steps,
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
static inline void el_fold(const uint8_t tally[64], int64_t lanes, int64_t stride, int64_t *counts) {
    uint16_t sum[64];
    for (int j = 0; j < 64; j++) sum[j] = tally[j];
    for (int64_t half = 32; half >= lanes; half >>= 1) /* 64 x 255 fits */
        for (int64_t j = 0; j < half; j++) sum[j] += sum[j + half];
    for (int64_t lane = 0; lane < lanes; lane++) counts[stride * lane] += sum[lane];
}

static void el_empty_wide(el_tally *t, int64_t lanes, int64_t *counts) {
    if (!t->steps) return;
    for (int k = 0; k < 3; k++) {
        for (int bit = 0; bit < 8; bit++) el_fold(t->wide[k][bit], lanes, 8, counts + 9 * lanes * k + bit);
        el_fold(t->wide_flags[k], lanes, 1, counts + 9 * lanes * k + 8 * lanes);
    }
    memset(t->wide, 0, sizeof t->wide);
    memset(t->wide_flags, 0, sizeof t->wide_flags);
    t->steps = 0;
}

/* All wires go back to the level `rest` (bytes 0 or 255): edges count, the ones of an idle bus do not, for no unit interval
 * is sent. */
static void el_return_to_idle(el_bus *bus, uint8_t rest, int64_t *counts) {
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

static el_bus el_start(const ew_bus *bus) {
    el_bus it = {.lanes = bus->lanes, .place = bus->place};
    for (int64_t j = 0; j < bus->lanes; j++) {
        const int64_t lane = (bus->place + j) % bus->lanes;
        it.past[j] = bus->level[lane];
        it.past_flags |= (uint64_t)bus->flag[lane] << j;
    }
    return it;
}

static void el_stop(const el_bus *it, ew_bus *bus) {
    bus->place = it->place % it->lanes;
    for (int64_t j = 0; j < it->lanes; j++) {
        const int64_t lane = (bus->place + j) % it->lanes;
        bus->level[lane] = it->past[j];
        bus->flag[lane] = it->past_flags >> j & 1;
    }
}

/* The bits of a word as 64 bytes of 0 or 1, added to counters. */
static inline void el_add_bits_plain(uint8_t *counters, uint64_t bits) {
    for (int k = 0; k < 8; k++) {
        uint64_t sum, each = (bits >> 8 * k & 255) * 0x0101010101010101u & 0x8040201008040201u;
        memcpy(&sum, counters + 8 * k, 8);
        sum += (each + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
        memcpy(counters + 8 * k, &sum, 8);
    }
}

#define EL_NAME(name) name##_plain
#define EL_TARGET
#define EL_REGISTER uint8_t *
#define EL_LOAD(p) (p)
#define EL_STORE(p, x) (void)(x)
#define EL_ADD(x, bits) el_add_bits_plain(x, bits)
#define EL_MANY 1
#define EL_WORDS uint64_t
#define EL_PAIRS(p) ((p)[0] | (uint64_t)(p)[1] << 8)
#define EL_FLAGS(bits) ((bits) & 3)
#include "wires/long_segments_body.h"

#if EDGEWATT_X86
typedef uint64_t el_four __attribute__((vector_size(32)));
typedef uint64_t el_eight __attribute__((vector_size(64)));
typedef struct {
    __m256i low, high;
} el_two;

EDGEWATT_AVX2 static inline el_two el_load_two(const uint8_t *p) {
    return (el_two){_mm256_loadu_si256((const __m256i *)p), _mm256_loadu_si256((const __m256i *)(p + 32))};
}
EDGEWATT_AVX2 static inline __m256i el_add_half(__m256i sum, uint32_t bits) {
    const __m256i which = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201u);
    const __m256i x = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), which), bit);
    return _mm256_sub_epi8(sum, _mm256_cmpeq_epi8(x, bit));
}
#define EL_NAME(name) name##_avx2
#define EL_TARGET EDGEWATT_AVX2
#define EL_REGISTER el_two
#define EL_LOAD(p) el_load_two(p)
#define EL_STORE(p, x) \
    (_mm256_storeu_si256((__m256i *)(p), (x).low), _mm256_storeu_si256((__m256i *)((p) + 32), (x).high))
#define EL_ADD(x, bits) ((x).low = el_add_half((x).low, (uint32_t)(bits)), \
                         (x).high = el_add_half((x).high, (uint32_t)((bits) >> 32)))
#define EL_MANY 4
#define EL_WORDS el_four
#define EL_PAIRS(p) (el_four)_mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)(p)))
#define EL_FLAGS(bits) (((bits) - (el_four){0}) >> (el_four){0, 2, 4, 6} & 3)
#include "wires/long_segments_body.h"

#define EL_NAME(name) name##_avx512
#define EL_TARGET EDGEWATT_AVX512
#define EL_REGISTER __m512i
#define EL_LOAD(p) _mm512_loadu_si512(p)
#define EL_STORE(p, x) _mm512_storeu_si512(p, x)
#define EL_ADD(x, bits) ((x) = _mm512_sub_epi8(x, _mm512_movm_epi8(bits)))
#define EL_MANY 8
#define EL_WORDS el_eight
#define EL_PAIRS(p) (el_eight)_mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)(p)))
#define EL_FLAGS(bits) (((bits) - (el_eight){0}) >> (el_eight){0, 2, 4, 6, 8, 10, 12, 14} & 3)
#include "wires/long_segments_body.h"
#endif

#endif
