/* Counting the wires in segments (rules and entry: wires/wires.h), place by place, for the shortest segments.
 *
 * What the wires do does not depend on whose bytes they are, so it is found for a window of bytes at once: a word of four
 * bytes for each place (wires/words.h). Beside the words lies whose each is. Then the 32 bits of a word are added to 32
 * counters of eight bits: a vector of its stream and of its place in a row. No step branches on the length of a segment. A
 * row is whole beats, so that a place of it is always on the same lane, and at least eight places, so that bytes of one
 * stream that follow each other do not wait for the same counters. A word's bits are spread by vectors of AVX2, or are the
 * mask of an addition of AVX-512; without them an addition takes ten times as long, and rows (wires/tallies/rows.h) are taken
 * for all lengths. */
#ifndef EDGEWATT_PLACES_H
#define EDGEWATT_PLACES_H

#include "wires/words.h"

enum { EP_COUNTERS = 32, EP_AHEAD = 512 /* segments fetched ahead */ };
enum { EP_LEAST_ROW = 8, EP_MOST_ROW = 64, EP_STEP = 16 /* places noted at once */ };
/* Rows that may be added between two looks at the counters: those at most half full have room for as many. */
enum { EP_ROWS = 127, EP_PLACES = EP_ROWS * EP_LEAST_ROW };

/* What streams have sent and is not in their counts yet, all zeros at first: row[stream][place][EP_AT(byte of a
 * word, bit)]; of one stream more, which is nobody. */
typedef struct {
    int64_t rows; /* since the last look */
    uint8_t unused[56], row[];
} ep_tally;

static inline int64_t ep_row(int64_t lanes) { return (EP_LEAST_ROW + lanes - 1) / lanes * lanes; }

static inline int64_t ep_tally_bytes(int64_t n_streams, int64_t lanes) {
    return (int64_t)sizeof(ep_tally) + (n_streams + 1) * ep_row(lanes) * EP_COUNTERS;
}

/* How many streams `of` can tell apart. */
static inline int64_t ep_most_streams(int64_t lanes) { return UINT16_MAX / (ep_row(lanes) * EP_COUNTERS / 8) - 1; }

#if EDGEWATT_X86
typedef struct {
    uint8_t word[4 * (EP_PLACES + 2 * 64)] __attribute__((aligned(64)));
    uint16_t of[EP_PLACES + EP_MOST_ROW + EP_STEP]; /* where the counters of a place's stream begin, in eights of bytes */
    ew_window in;
} ep_window;

/* Where words go to. */
typedef struct {
    ep_tally *tally;
    int64_t *counts;
    int64_t n_streams, lanes, row; /* row: its places */
    uint64_t stride;               /* of the counters of streams, in eights of bytes */
} ep_sums;

static inline ep_sums ep_sums_of(ep_tally *tally, int64_t *counts, int64_t n_streams, int64_t lanes) {
    const int64_t row = ep_row(lanes);
    return (ep_sums){tally, counts, n_streams, lanes, row, (uint64_t)row * EP_COUNTERS / 8};
}

typedef uint8_t ep_bytes __attribute__((vector_size(EP_COUNTERS), may_alias));
typedef uint16_t ep_near __attribute__((vector_size(2 * EP_STEP), may_alias, aligned(2)));

/* Fetches those EP_STEP segments that come EP_AHEAD behind these. */
static inline void ep_fetch(const int64_t *ends, const int64_t *streams) {
    for (int j = 0; j < EP_STEP; j += 8) __builtin_prefetch(ends + EP_AHEAD + j), __builtin_prefetch(streams + EP_AHEAD + j);
}

/* of a kind, with a name */
#define EP_INLINE(kind, name) EP_TARGET static inline __attribute__((always_inline)) kind EP_NAME(name)

#define EP_NAME(name) name##_avx2
#define EP_TARGET EDGEWATT_AVX2
/* The counter of a bit of one of a word's bytes: one bit of all four lies beside the other. */
#define EP_AT(byte, bit) (4 * (bit) + (byte))

/* Adds a word's bits to their counters. */
EP_INLINE(void, ep_add)(ep_bytes *to, const uint8_t *word) {
    const __m256i bit = _mm256_setr_epi32(0x01010101, 0x02020202, 0x04040404, 0x08080808, 0x10101010, 0x20202020, 0x40404040,
                                          (int)0x80808080u);
    int32_t bits;
    memcpy(&bits, word, 4);
    *to += (ep_bytes)_mm256_min_epu8(_mm256_and_si256(_mm256_set1_epi32(bits), bit), _mm256_set1_epi8(1));
}

/* Notes the streams of EP_STEP segments of one byte, the first of which ends at byte `stop`, times stride; returns 0 where
 * they are not that, or of none of the streams up to `last`. */
EP_INLINE(int, ep_singles)(uint16_t *to, const int64_t *ends, const int64_t *streams, int64_t stop, int64_t last,
                         uint64_t stride) {
    const __m256i most = _mm256_set1_epi64x(last), four = _mm256_set1_epi64x(4);
    const __m256i deal = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i want = _mm256_add_epi64(_mm256_set1_epi64x(stop), _mm256_setr_epi64x(0, 1, 2, 3));
    __m256i other = _mm256_setzero_si256(), over = other;
    __m256 name[EP_STEP / 4];
    for (int j = 0; j < EP_STEP / 4; j++, want = _mm256_add_epi64(want, four)) {
        const __m256i end = _mm256_loadu_si256((const __m256i *)(ends + 4 * j));
        const __m256i stream = _mm256_loadu_si256((const __m256i *)(streams + 4 * j));
        other = _mm256_or_si256(other, _mm256_xor_si256(end, want));
        over = _mm256_or_si256(over, _mm256_or_si256(stream, _mm256_sub_epi64(most, stream)));
        name[j] = _mm256_castsi256_ps(stream);
    }
    if (!_mm256_testz_si256(other, other) || _mm256_movemask_pd(_mm256_castsi256_pd(over))) return 0;
    const __m256i low = _mm256_castps_si256(_mm256_shuffle_ps(name[0], name[1], 0x88)); /* halves of 64 bits: 0 1 4 5, 2 3 6 7 */
    const __m256i high = _mm256_castps_si256(_mm256_shuffle_ps(name[2], name[3], 0x88));
    const __m256i all = _mm256_permutevar8x32_epi32(_mm256_packus_epi32(low, high), deal);
    _mm256_storeu_si256((__m256i *)to, _mm256_mullo_epi16(all, _mm256_set1_epi16((int16_t)stride)));
    return 1;
}

#include "wires/tallies/places_body.h"

#define EP_NAME(name) name##_avx512
#define EP_TARGET EDGEWATT_MASKS
#define EP_AT(byte, bit) (8 * (byte) + (bit)) /* a word is a mask of its counters */

EP_INLINE(void, ep_add)(ep_bytes *to, const uint8_t *word) {
    uint32_t bits;
    memcpy(&bits, word, 4);
    const __m256i sum = (__m256i)*to;
    *to = (ep_bytes)_mm256_mask_sub_epi8(sum, bits, sum, _mm256_set1_epi8(-1));
}

EP_INLINE(int, ep_singles)(uint16_t *to, const int64_t *ends, const int64_t *streams, int64_t stop, int64_t last,
                           uint64_t stride) {
    const __m512i most = _mm512_set1_epi64(last), eight = _mm512_set1_epi64(8);
    const __m512i want = _mm512_add_epi64(_mm512_set1_epi64(stop), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    const __m512i low = _mm512_loadu_si512(streams), high = _mm512_loadu_si512(streams + 8);
    const __mmask8 other = _mm512_cmpneq_epi64_mask(_mm512_loadu_si512(ends), want) |
                           _mm512_cmpneq_epi64_mask(_mm512_loadu_si512(ends + 8), _mm512_add_epi64(want, eight)) |
                           _mm512_cmpgt_epu64_mask(low, most) | _mm512_cmpgt_epu64_mask(high, most);
    if (other) return 0;
    const __m256i all = _mm256_set_m128i(_mm512_cvtepi64_epi16(high), _mm512_cvtepi64_epi16(low));
    _mm256_storeu_si256((__m256i *)to, _mm256_mullo_epi16(all, _mm256_set1_epi16((int16_t)stride)));
    return 1;
}
#include "wires/tallies/places_body.h"
#undef EP_INLINE
#endif
#endif
