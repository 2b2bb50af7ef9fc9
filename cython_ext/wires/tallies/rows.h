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

#include "wires/words.h"

enum { ER_NARROW = 8 /* lanes */, ER_ROW = 16, ER_ROWS = 8, ER_ROW_BYTES = 4 * ER_ROW }; /* words of a row; rows of a batch */
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

/* Whether segments of up to a row go a shorter way. */
static inline int er_narrow(int64_t lanes) { return lanes <= ER_NARROW && !(lanes & (lanes - 1)); }

static inline er_sums er_sums_of(er_tally *tallies, int64_t *counts, int64_t lanes) {
    const int64_t inside = lanes < ER_ROW ? lanes : ER_ROW, step = ER_ROW / inside * inside;
    return (er_sums){.tallies = tallies, .counts = counts, .lanes = lanes, .groups = er_groups(lanes), .inside = inside,
                     .step = step, .batch = ER_ROWS * step, .inverse = ((1 << 22) + inside - 1) / inside};
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
#include "wires/tallies/rows_body.h"

#if EDGEWATT_X86
typedef uint8_t er_32 __attribute__((vector_size(32), may_alias));
typedef uint8_t er_32_any __attribute__((vector_size(32), may_alias, aligned(1)));
#define ER_NAME(name) name##_avx2
#define ER_TARGET EDGEWATT_AVX2
#define ER_WIDTH 32
#define ER_VECTOR er_32
#define ER_LOAD(p) (*(const er_32_any *)(p))
#define ER_STORE(p, x) (void)(*(er_32_any *)(p) = (x))
#define ER_PARITY(a, b, c) ((a) ^ (b) ^ (c))
#define ER_MAJORITY(a, b, c) (((a) & (b)) | (((a) ^ (b)) & (c)))
#include "wires/tallies/rows_body.h"

#define ER_NAME(name) name##_avx512
#define ER_TARGET EDGEWATT_MASKS
#define ER_WIDTH 64
#define ER_VECTOR __m512i
#define ER_LOAD(p) _mm512_loadu_si512(p)
#define ER_STORE(p, x) _mm512_storeu_si512(p, x)
#define ER_PARITY(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0x96)
#define ER_MAJORITY(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0xe8)
#include "wires/tallies/rows_body.h"
#endif

#endif
