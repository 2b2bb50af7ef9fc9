/* Counting the wires in segments of few streams (rules and entry: wires/wires.h), by blocks and vertical counters.
 *
 * What the wires do does not depend on whose bytes they are, so it is found for a window of bytes at once; beside it lies
 * whose each byte is, so that a segment costs the writing of its stream's number. A window is blocks of 64 places, a whole
 * number of beats each, so that a place is always on the same lane. The blocks in which a stream sends are added up for it,
 * the bytes of others blanked, in vertical counters: plane k holds bit k of 512 sums, one of each bit at each place, and a
 * carry-save adder takes two more blocks into a plane in one step. */
#ifndef EDGEWATT_SEGMENTS_H
#define EDGEWATT_SEGMENTS_H

#include "wires/window.h"

enum { ES_FLAGS = 3, ES_KINDS = 4 }; /* after EW_ONES, EW_TOGGLES and EW_RISING */
enum { ES_BATCH = 8, ES_BLOCKS = 64, ES_PLACES = EW_PLACES, ES_NONE = ES_BLOCKS /* the block that is nobody's */ };
enum { ES_STRIDE = ES_PLACES + 64 };
enum { ES_ROW_PLANES = 3, ES_CARRY_PLANES = 13, ES_MOST_BATCHES = (1 << ES_CARRY_PLANES) - 1 };
/* streams, at most, which a set of 64 bits holds; a number that is none's; segments fetched ahead */
enum { ES_FEW = 64, ES_NOBODY = 255, ES_AHEAD = 256 };
/* bytes of a segment whose stream is written with one vector, and with some; of eight segments that are close together, so
 * that most streams send in every block and are noted for a group of them at once */
enum { ES_SHORT = 16, ES_LONGER = 64, ES_CLOSE = 40, ES_GROUP = 8 };

/* Vertical counters of one stream that are not in its counts yet; all zero at first. Of the carries of a batch (eights, and
 * twos of those, ...) one waits until there is a second, where that bit of `batches` is set. */
typedef struct {
    uint8_t row[ES_KINDS][ES_ROW_PLANES][64];
    uint8_t carry[ES_KINDS][ES_CARRY_PLANES][2][64]; /* the sum, the one that waits */
    int64_t batches;
    int64_t unused[7]; /* to a multiple of 64 bytes, an odd one: tallies then lie in different sets of a cache */
} es_tally;

/* Bytes, and beside them whose they are. */
typedef struct {
    ew_window in;
    uint8_t stream[ES_PLACES + 128];
    uint8_t flips[ES_STRIDE] __attribute__((aligned(64))), flags[ES_STRIDE]; /* 64 places a block; flags: bits 0 to 2 */
    uint8_t owner[ES_STRIDE];   /* `stream`, 64 places a block, where blocks have fewer */
    uint64_t blocks[ES_FEW];    /* those where the stream may send, bit by block */
    int64_t step;               /* places of a block */
    int64_t inverse;            /* of step, in parts of 2^22 */
    int64_t ahead, ahead_stop;  /* segments to be fetched while the window is counted */
} es_window;

/* The block of a place. */
static inline int64_t es_block(const es_window *w, int64_t place) { return (place * w->inverse) >> 22; }

/* Marks the blocks of places start to end (after it) as some where that stream sends. */
static inline void es_mark(es_window *w, int64_t stream, int64_t start, int64_t end) {
    if (end == start) return;
    w->blocks[stream] |= (UINT64_C(2) << es_block(w, end - 1)) - (UINT64_C(1) << es_block(w, start));
}

/* Notes the streams of up to 8 * eights segments of one byte each, the first of which ends at byte `stop`, and adds them to
 * the set of `senders`; returns of how many, a multiple of 8: it stops before eight of which one is longer or of no stream. */
static inline int64_t es_singles_plain(const int64_t *ends, const int64_t *streams, int64_t stop, int64_t eights,
                                       int64_t n_streams, uint8_t *to, uint64_t *senders) {
    int64_t k = 0;
    for (; k < 8 * eights; k += 8) {
        uint64_t other = 0, who = 0;
        for (int j = 0; j < 8; j++) other |= (uint64_t)(ends[k + j] ^ (stop + k + j));
        for (int j = 0; j < 8; j++) other |= (uint64_t)streams[k + j] >= (uint64_t)n_streams;
        if (other) break;
        for (int j = 0; j < 8; j++) to[k + j] = (uint8_t)streams[k + j];
        for (int j = 0; j < 8; j++) who |= UINT64_C(1) << streams[k + j];
        *senders |= who;
    }
    return k;
}

/* The same of segments of 1 to 64 bytes, no further than byte `end`; the first begins at byte `start`, byte 0 is at place
 * `run`. `senders` are those of eights that are close together, up to byte `group`; others are marked here. Up to 64 bytes
 * more than the segments are written. */
static inline int64_t es_shorts_plain(es_window *w, const int64_t *ends, const int64_t *streams, int64_t run, int64_t start,
                                      int64_t group, int64_t end, int64_t eights, int64_t n_streams, uint64_t *senders) {
    int64_t k = 0;
    for (; k < 8 * eights && ends[k + 7] <= end; k += 8) {
        uint64_t other = 0, longer = 0, who = 0;
        for (int j = 0; j < 8; j++) {
            const uint64_t more = (uint64_t)ends[k + j] - (uint64_t)(j ? ends[k + j - 1] : start) - 1;
            other |= more >= ES_LONGER || (uint64_t)streams[k + j] >= (uint64_t)n_streams;
            longer |= more >= ES_SHORT;
        }
        if (other) break;
        const int close = !longer && ends[k + 7] - start <= ES_CLOSE;
        if (close && ends[k + 7] <= group) {
            for (int j = 0; j < 8; j++) {
                memset(w->stream + run + start, (uint8_t)streams[k + j], ES_SHORT);
                start = ends[k + j];
                who |= UINT64_C(1) << streams[k + j];
            }
            *senders |= who;
            continue;
        }
        for (int j = 0; j < 8; j++) {
            memset(w->stream + run + start, (uint8_t)streams[k + j], longer ? ES_LONGER : ES_SHORT);
            es_mark(w, streams[k + j], run + start, run + ends[k + j]);
            start = ends[k + j];
        }
        if (close) return k + 8; /* the next group begins */
    }
    return k;
}

#define ES_NAME(name) name##_plain
#define ES_SINGLES es_singles_plain
#define ES_SHORTS es_shorts_plain
#define ES_TARGET
typedef uint8_t es_16 __attribute__((vector_size(16), may_alias));
typedef uint8_t es_16_any __attribute__((vector_size(16), may_alias, aligned(1)));
#define ES_WIDTH 16
#define ES_VECTOR es_16
#define ES_MASK es_16
#define ES_LOAD(p) (*(const es_16 *)(p))
#define ES_LOAD_ANY(p) (*(const es_16_any *)(p))
#define ES_STORE(p, x) (void)(*(es_16 *)(p) = (x))
#define ES_IS(p, number) ((es_16)(ES_LOAD_ANY(p) == ((es_16){0} + (uint8_t)(number))))
#define ES_PICK(mask, p) ((mask) & ES_LOAD_ANY(p))
#define ES_PARITY(a, b, c) ((a) ^ (b) ^ (c))
#define ES_MAJORITY(a, b, c) (((a) & (b)) | (((a) ^ (b)) & (c)))
#define ES_SPREAD(to, bits, flips, up)                                                          \
    for (int k_ = 0; k_ < 64; k_ += 8) {                                                        \
        const uint64_t x_ = ew_spread_byte((bits) >> k_) | ew_spread_byte((flips) >> k_) << 1 | \
                            ew_spread_byte((up) >> k_) << 2;                                    \
        memcpy((to) + k_, &x_, 8);                                                              \
    }
#include "wires/tallies/segments_body.h"

#if EDGEWATT_X86
#define ES_NAME(name) name##_avx2
#define ES_SINGLES es_singles_plain
#define ES_SHORTS es_shorts_plain
#define ES_TARGET EDGEWATT_AVX2
typedef uint8_t es_32 __attribute__((vector_size(32), may_alias));
typedef uint8_t es_32_any __attribute__((vector_size(32), may_alias, aligned(1)));
#define ES_WIDTH 32
#define ES_VECTOR es_32
#define ES_MASK es_32
#define ES_LOAD(p) (*(const es_32 *)(p))
#define ES_LOAD_ANY(p) (*(const es_32_any *)(p))
#define ES_STORE(p, x) (void)(*(es_32 *)(p) = (x))
#define ES_IS(p, number) ((es_32)(ES_LOAD_ANY(p) == ((es_32){0} + (uint8_t)(number))))
#define ES_PICK(mask, p) ((mask) & ES_LOAD_ANY(p))
#define ES_PARITY(a, b, c) ((a) ^ (b) ^ (c))
#define ES_MAJORITY(a, b, c) (((a) & (b)) | (((a) ^ (b)) & (c)))
#define ES_SPREAD(to, bits, flips, up)                                                                       \
    for (int k_ = 0; k_ < 64; k_ += 32)                                                                      \
        ES_STORE((to) + k_, (es_32)(ew_spread_half((uint32_t)((bits) >> k_), 1) |                            \
                                    ew_spread_half((uint32_t)((flips) >> k_), 2) |                           \
                                    ew_spread_half((uint32_t)((up) >> k_), 4)));
#include "wires/tallies/segments_body.h"

EDGEWATT_MASKS static inline int64_t es_singles_avx512(const int64_t *ends, const int64_t *streams, int64_t stop,
                                                        int64_t eights, int64_t n_streams, uint8_t *to,
                                                        uint64_t *senders) {
    const __m512i all = _mm512_set1_epi64(n_streams), eight = _mm512_set1_epi64(8), one = _mm512_set1_epi64(1);
    __m512i want = _mm512_add_epi64(_mm512_set1_epi64(stop), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    __m512i who = _mm512_setzero_si512();
    int64_t k = 0;
    for (; k < 8 * eights; k += 8, want = _mm512_add_epi64(want, eight)) {
        const __m512i names = _mm512_loadu_si512(streams + k);
        if (_mm512_cmpneq_epi64_mask(_mm512_loadu_si512(ends + k), want) | _mm512_cmpge_epu64_mask(names, all)) break;
        _mm_storel_epi64((__m128i *)(to + k), _mm512_cvtepi64_epi8(names));
        who = _mm512_or_si512(who, _mm512_sllv_epi64(one, names));
    }
    *senders |= (uint64_t)_mm512_reduce_or_epi64(who);
    return k;
}
EDGEWATT_MASKS static inline int64_t es_shorts_avx512(es_window *w, const int64_t *ends, const int64_t *streams, int64_t run,
                                                       int64_t start, int64_t group, int64_t end, int64_t eights,
                                                       int64_t n_streams, uint64_t *senders) {
    const __m512i all = _mm512_set1_epi64(n_streams), one = _mm512_set1_epi64(1), two = _mm512_set1_epi64(2);
    const __m512i most = _mm512_set1_epi64(ES_LONGER), brief = _mm512_set1_epi64(ES_SHORT), from = _mm512_set1_epi64(run);
    const __m512i inverse = _mm512_set1_epi64(w->inverse);
    uint8_t *to = w->stream + run;
    __m512i who = _mm512_setzero_si512(), before = _mm512_set1_epi64(start);
    int64_t k = 0;
    for (; k < 8 * eights && ends[k + 7] <= end; k += 8) {
        const __m512i now = _mm512_loadu_si512(ends + k), names = _mm512_loadu_si512(streams + k);
        const __m512i past = _mm512_alignr_epi64(now, before, 7), n = _mm512_sub_epi64(now, past);
        if (_mm512_cmpge_epu64_mask(_mm512_sub_epi64(n, one), most) | _mm512_cmpge_epu64_mask(names, all)) break;
        const int longer = _mm512_cmpgt_epu64_mask(n, brief);
        before = now;
        const int close = !longer && ends[k + 7] - start <= ES_CLOSE;
        if (close && ends[k + 7] <= group) {
            for (int j = 0; j < 8; j++) {
                _mm_storeu_si128((__m128i *)(to + start), _mm_set1_epi8((char)streams[k + j]));
                start = ends[k + j];
            }
            who = _mm512_or_si512(who, _mm512_sllv_epi64(one, names));
            continue;
        }
        const __m512i first = _mm512_mul_epu32(_mm512_add_epi64(past, from), inverse);
        const __m512i last = _mm512_mul_epu32(_mm512_sub_epi64(_mm512_add_epi64(now, from), one), inverse);
        uint64_t blocks[8];
        _mm512_storeu_si512(blocks, _mm512_sub_epi64(_mm512_sllv_epi64(two, _mm512_srli_epi64(last, 22)),
                                                     _mm512_sllv_epi64(one, _mm512_srli_epi64(first, 22))));
        for (int j = 0; j < 8; j++) {
            w->blocks[streams[k + j]] |= blocks[j];
            if (longer)
                _mm512_storeu_si512(to + start, _mm512_set1_epi8((char)streams[k + j]));
            else
                _mm_storeu_si128((__m128i *)(to + start), _mm_set1_epi8((char)streams[k + j]));
            start = ends[k + j];
        }
        if (close) { /* the next group begins */
            k += 8;
            break;
        }
    }
    *senders |= (uint64_t)_mm512_reduce_or_epi64(who);
    return k;
}
#define ES_NAME(name) name##_avx512
#define ES_SINGLES es_singles_avx512
#define ES_SHORTS es_shorts_avx512
#define ES_TARGET EDGEWATT_MASKS
#define ES_WIDTH 64
#define ES_VECTOR __m512i
#define ES_MASK __mmask64
#define ES_LOAD(p) _mm512_load_si512(p)
#define ES_LOAD_ANY(p) _mm512_loadu_si512(p)
#define ES_STORE(p, x) _mm512_store_si512(p, x)
#define ES_IS(p, number) _mm512_cmpeq_epi8_mask(ES_LOAD_ANY(p), _mm512_set1_epi8((char)(number)))
#define ES_PICK(mask, p) _mm512_maskz_loadu_epi8(mask, p)
#define ES_PARITY(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0x96)
#define ES_MAJORITY(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0xe8)
#define ES_SPREAD(to, bits, flips, up)                                                                          \
    ES_STORE(to, _mm512_or_si512(_mm512_maskz_set1_epi8(bits, 1), _mm512_or_si512(                              \
                                     _mm512_maskz_set1_epi8(flips, 2), _mm512_maskz_set1_epi8(up, 4))))
#include "wires/tallies/segments_body.h"
#endif

#endif
