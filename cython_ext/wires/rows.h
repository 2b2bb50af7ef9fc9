/* Counting the wires in segments (rules and entry: wires/wires.h), by rows and vertical counters, for any number of streams.
 *
 * What the wires do does not depend on whose bytes they are, so it is found for a window of bytes at once: a word of four
 * bytes for each, which bits are one, flip and rise, and those three of the flag. A segment's words are then copied behind
 * those of its stream, so that it costs one copy whatever its length up to a row and however many streams there are. When a
 * stream has a batch of rows they are added up in vertical counters: plane k holds bit k of 512 sums, one of each bit of a
 * row, and a carry-save adder takes two more rows into a plane in one step. Places of a row are always on the same lane: a
 * segment that starts on another one than is next leaves words of zeros. Lanes above 16 are counted in groups of 16. */
#ifndef EDGEWATT_ROWS_H
#define EDGEWATT_ROWS_H

#include "wires/window.h"

enum { ER_FLAGS = 3 };                                     /* byte of a word, after EW_ONES, EW_TOGGLES and EW_RISING */
enum { ER_ROW = 16, ER_ROWS = 8, ER_ROW_BYTES = 4 * ER_ROW }; /* words of a row; rows of a batch */
/* words that wait: a batch but one, zeros to the next lane and a row; of the two rows behind a batch the first are kept */
enum { ER_LEFT = 2 * ER_ROW, ER_ROOM = ER_ROWS * ER_ROW + ER_LEFT };
enum { ER_ROW_PLANES = 3, ER_CARRY_PLANES = 13, ER_MOST_BATCHES = (1 << ER_CARRY_PLANES) - 1 };
enum { ER_BYTES = 2048, ER_PLACES = ER_BYTES + 64 }; /* of a window, so that it stays in the first cache; room for a beat */

/* What a stream has sent in a group of lanes and is not in its counts yet; all zero at first. Of the carries of a batch
 * (eights, and twos of those, ...) one waits until there is a second, where that bit of `batches` is set. */
typedef struct {
    uint8_t word[4 * ER_ROOM];
    uint8_t row[ER_ROW_PLANES][ER_ROW_BYTES];
    uint8_t carry[ER_CARRY_PLANES][2][ER_ROW_BYTES]; /* the sum, the one that waits */
    int64_t filled, batches;                         /* words that wait */
    int64_t unused[6]; /* to a multiple of 64 bytes, an odd one: tallies then lie in different sets of a cache */
} er_tally;

typedef struct {
    uint8_t word[4 * (ER_PLACES + 64 + ER_ROW)] __attribute__((aligned(64))); /* of each place */
    ew_window in;
} er_window;

/* Where words go to. */
typedef struct {
    er_tally *tallies; /* `groups` of each stream */
    int64_t *counts;
    int64_t lanes, groups, inside; /* lanes of a group */
    int64_t step, batch;           /* words of a row that are used, a whole number of beats; of a batch */
    int64_t inverse;               /* of inside, in parts of 2^22 */
} er_sums;

static inline int64_t er_groups(int64_t lanes) { return (lanes + ER_ROW - 1) / ER_ROW; }

static inline er_sums er_sums_of(er_tally *tallies, int64_t *counts, int64_t lanes) {
    const int64_t inside = lanes < ER_ROW ? lanes : ER_ROW, step = ER_ROW / inside * inside;
    return (er_sums){.tallies = tallies, .counts = counts, .lanes = lanes, .groups = er_groups(lanes), .inside = inside,
                     .step = step, .batch = ER_ROWS * step, .inverse = ((1 << 22) + inside - 1) / inside};
}

/* The first segment from k on before which the bus rests. */
static inline int64_t er_next_rest(const ew_sent *sent, int64_t k) {
    if (!sent->idles) return sent->segments;
    while (k < sent->segments && !sent->idles[k]) k++;
    return k;
}

/* The words of 64 places: their bytes and those before them on their lanes; of their flags, bit by place, ones, flips and
 * rises. */
static inline void er_words_plain(uint8_t *to, const uint8_t *now, const uint8_t *before, uint64_t bits, uint64_t flips,
                                  uint64_t up) {
    uint8_t flags[64];
    for (int k = 0; k < 64; k += 8) {
        const uint64_t x = ew_spread_byte(bits >> k) | ew_spread_byte(flips >> k) << 1 | ew_spread_byte(up >> k) << 2;
        memcpy(flags + k, &x, 8);
    }
    for (int j = 0; j < 64; j++) {
        to[4 * j + EW_ONES] = now[j];
        to[4 * j + EW_TOGGLES] = now[j] ^ before[j];
        to[4 * j + EW_RISING] = now[j] & (uint8_t)~before[j];
        to[4 * j + ER_FLAGS] = flags[j];
    }
}

#define ER_NAME(name) name##_plain
#define ER_TARGET
typedef uint8_t er_16 __attribute__((vector_size(16), may_alias));
typedef uint8_t er_16_any __attribute__((vector_size(16), may_alias, aligned(1)));
#define ER_WIDTH 16
#define ER_VECTOR er_16
#define ER_LOAD(p) (*(const er_16_any *)(p))
#define ER_STORE(p, x) (void)(*(er_16_any *)(p) = (x))
#define ER_PARITY(a, b, c) ((a) ^ (b) ^ (c))
#define ER_MAJORITY(a, b, c) (((a) & (b)) | (((a) ^ (b)) & (c)))
#include "wires/rows_body.h"

#if EDGEWATT_X86
typedef uint8_t er_32 __attribute__((vector_size(32), may_alias));
typedef uint8_t er_32_any __attribute__((vector_size(32), may_alias, aligned(1)));
/* Unpacking goes by 16 bytes: where those have the dwords dealt out to them, it gives vectors of words in order. */
EDGEWATT_AVX2 static inline void er_words_avx2(uint8_t *to, const uint8_t *now, const uint8_t *before, uint64_t bits,
                                               uint64_t flips, uint64_t up) {
    const __m256i deal = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    for (int k = 0; k < 64; k += 32) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(now + k)), past = _mm256_loadu_si256((const __m256i *)(before + k));
        __m256i f = _mm256_setzero_si256();
        if (bits | flips) {
            f = _mm256_or_si256(_mm256_or_si256(ew_spread_half((uint32_t)(bits >> k), 1),
                                                ew_spread_half((uint32_t)(flips >> k), 2)),
                                ew_spread_half((uint32_t)(up >> k), 4));
            f = _mm256_permutevar8x32_epi32(f, deal);
        }
        x = _mm256_permutevar8x32_epi32(x, deal);
        past = _mm256_permutevar8x32_epi32(past, deal);
        const __m256i toggles = _mm256_xor_si256(x, past), rises = _mm256_andnot_si256(past, x);
        const __m256i a = _mm256_unpacklo_epi8(x, toggles), b = _mm256_unpacklo_epi8(rises, f);
        const __m256i c = _mm256_unpackhi_epi8(x, toggles), d = _mm256_unpackhi_epi8(rises, f);
        _mm256_store_si256((__m256i *)(to + 4 * k), _mm256_unpacklo_epi16(a, b));
        _mm256_store_si256((__m256i *)(to + 4 * k + 32), _mm256_unpackhi_epi16(a, b));
        _mm256_store_si256((__m256i *)(to + 4 * k + 64), _mm256_unpacklo_epi16(c, d));
        _mm256_store_si256((__m256i *)(to + 4 * k + 96), _mm256_unpackhi_epi16(c, d));
    }
}
#define ER_NAME(name) name##_avx2
#define ER_TARGET EDGEWATT_AVX2
#define ER_WIDTH 32
#define ER_VECTOR er_32
#define ER_LOAD(p) (*(const er_32_any *)(p))
#define ER_STORE(p, x) (void)(*(er_32_any *)(p) = (x))
#define ER_PARITY(a, b, c) ((a) ^ (b) ^ (c))
#define ER_MAJORITY(a, b, c) (((a) & (b)) | (((a) ^ (b)) & (c)))
#include "wires/rows_body.h"

EDGEWATT_MASKS static inline void er_words_avx512(uint8_t *to, const uint8_t *now, const uint8_t *before, uint64_t bits,
                                                 uint64_t flips, uint64_t up) {
    const __m512i deal = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i x = _mm512_permutexvar_epi32(deal, _mm512_loadu_si512(now));
    const __m512i past = _mm512_permutexvar_epi32(deal, _mm512_loadu_si512(before));
    const __m512i toggles = _mm512_xor_si512(x, past), rises = _mm512_andnot_si512(past, x);
    __m512i f = _mm512_setzero_si512();
    if (bits | flips) {
        f = _mm512_or_si512(_mm512_maskz_set1_epi8(bits, 1),
                            _mm512_or_si512(_mm512_maskz_set1_epi8(flips, 2), _mm512_maskz_set1_epi8(up, 4)));
        f = _mm512_permutexvar_epi32(deal, f);
    }
    const __m512i a = _mm512_unpacklo_epi8(x, toggles), b = _mm512_unpacklo_epi8(rises, f);
    const __m512i c = _mm512_unpackhi_epi8(x, toggles), d = _mm512_unpackhi_epi8(rises, f);
    _mm512_store_si512(to, _mm512_unpacklo_epi16(a, b));
    _mm512_store_si512(to + 64, _mm512_unpackhi_epi16(a, b));
    _mm512_store_si512(to + 128, _mm512_unpacklo_epi16(c, d));
    _mm512_store_si512(to + 192, _mm512_unpackhi_epi16(c, d));
}
#define ER_NAME(name) name##_avx512
#define ER_TARGET EDGEWATT_MASKS
#define ER_WIDTH 64
#define ER_VECTOR __m512i
#define ER_LOAD(p) _mm512_loadu_si512(p)
#define ER_STORE(p, x) _mm512_storeu_si512(p, x)
#define ER_PARITY(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0x96)
#define ER_MAJORITY(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0xe8)
#include "wires/rows_body.h"
#endif

#endif
