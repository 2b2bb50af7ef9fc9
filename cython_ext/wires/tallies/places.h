/* Counting the wires in segments (rules and entry: wires/wires.h), place by place, for the shortest segments.
 *
 * What the wires do does not depend on whose bytes they are, so it is found for a window of bytes at once: a word of four
 * bytes for each place (wires/words.h). Beside the words lies whose each is. Then the 32 bits of a word are added to 32
 * counters of eight bits: a vector of its stream and of its place in a row. No step branches on the length of a segment. A
 * row is whole beats, so that a place of it is always on the same lane, and at least eight places, so that bytes of one
 * stream that follow each other do not wait for the same counters. A word's bits are spread by vectors of AVX2; without
 * them an addition takes ten times as long, and rows (wires/tallies/rows.h) are taken for all lengths. */
#ifndef EDGEWATT_PLACES_H
#define EDGEWATT_PLACES_H

#include "wires/words.h"

enum { EP_COUNTERS = 32, EP_COUNT = 4 * 3 + EW_FLAGS /* of them that of EW_TAKEN: how many words a place took */ };
enum { EP_LEAST_ROW = 8, EP_MOST_ROW = 64, EP_STEP = 16 /* places noted at once */ };
/* Rows that may be added between two looks at the counters: those at most half full have room for as many. */
enum { EP_ROWS = 127, EP_PLACES = EP_ROWS * EP_LEAST_ROW };

/* What streams have sent and is not in their counts yet, all zeros at first: row[stream][place][4 * bit + byte of a word]; of
 * one stream more, which is nobody. */
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

#define EP_INLINE EDGEWATT_AVX2 static inline __attribute__((always_inline))

/* The bits of a word, each in the byte of its counter: those of bit k of its bytes are the k-th four. */
EP_INLINE ep_bytes ep_bits(uint32_t word) {
    const __m256i bit = _mm256_setr_epi32(0x01010101, 0x02020202, 0x04040404, 0x08080808, 0x10101010, 0x20202020, 0x40404040,
                                          (int)0x80808080u);
    return (ep_bytes)_mm256_min_epu8(_mm256_and_si256(_mm256_set1_epi32((int)word), bit), _mm256_set1_epi8(1));
}

/* Notes the streams of EP_STEP segments of one byte, the first of which ends at byte `stop`, times stride; returns 0 where
 * they are not that, or of none of the streams up to `last`. */
EP_INLINE int ep_singles(uint16_t *to, const int64_t *ends, const int64_t *streams, int64_t stop, int64_t last,
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

/* Adds a stream's counters to its counts and empties them. */
EDGEWATT_AVX2 static void ep_spill(const ep_sums *to, int64_t stream) {
    const int64_t lanes = to->lanes;
    uint8_t *from = to->tally->row + 8 * to->stride * (uint64_t)stream;
    int64_t *counts = to->counts + stream * 27 * lanes;
    for (int64_t lane = 0; lane < lanes; lane++) {
        uint16_t sum[EP_COUNTERS] = {0};
        for (int64_t place = lane; place < to->row; place += lanes)
            for (int j = 0; j < EP_COUNTERS; j++) sum[j] = (uint16_t)(sum[j] + from[EP_COUNTERS * place + j]);
        for (int kind = 0; kind < 3; kind++) {
            for (int bit = 0; bit < 8; bit++) counts[9 * lanes * kind + 8 * lane + bit] += sum[4 * bit + kind];
            counts[9 * lanes * kind + 8 * lanes + lane] += sum[4 * kind + EW_FLAGS];
        }
    }
    memset(from, 0, 8 * to->stride);
}

/* What a stream's counters are together, one of a place beside the other. */
EP_INLINE ep_bytes ep_any(const ep_sums *to, int64_t stream) {
    const ep_bytes *from = (const ep_bytes *)(to->tally->row + 8 * to->stride * (uint64_t)stream);
    ep_bytes any = from[0];
    for (int64_t place = 1; place < to->row; place++) any |= from[place];
    return any;
}

/* Makes room for EP_ROWS in the counters: where one has more than 127 words, those of streams that have half as many are
 * emptied. */
EDGEWATT_AVX2 static void ep_make_room(const ep_sums *to) {
    ep_bytes any = {0};
    for (int64_t stream = 0; stream < to->n_streams; stream++) any |= ep_any(to, stream);
    for (int64_t stream = 0; stream < to->n_streams && any[EP_COUNT] > 127; stream++)
        if (ep_any(to, stream)[EP_COUNT] > 63) ep_spill(to, stream);
    to->tally->rows = 0;
}

/* Notes that n places from p on, and up to EP_STEP more, are of that stream. */
EP_INLINE void ep_own(ep_window *w, const ep_sums *to, int64_t p, int64_t n, uint64_t stream) {
    const ep_near number = (ep_near){0} + (uint16_t)(stream * to->stride);
    do {
        *(ep_near *)(w->of + p) = number;
        p += EP_STEP;
        n -= EP_STEP;
    } while (n > 0);
}

/* Notes whose bytes segments from *k on, before `next`, are, in places from p to `full` at most; returns the place reached,
 * or -1 where a segment is none. run: the place of byte 0. */
EDGEWATT_AVX2 static __attribute__((noinline)) int64_t ep_note(ep_window *w, const ep_sums *to, const ew_sent *sent,
                                                               int64_t *k, int64_t next, int64_t p, int64_t full,
                                                               int64_t run) {
    const int64_t *ends = sent->ends, *streams = sent->streams, bound = full < sent->n + run ? full : sent->n + run;
    const int64_t last = to->n_streams - 1;
    int64_t at = *k;
    while (at < next && p < full) {
        const int64_t some = at + EP_STEP < next ? at + EP_STEP : next;
        while (at + EP_STEP <= next && p + EP_STEP <= bound && ends[at] == p - run + 1 &&
               ep_singles(w->of + p, ends + at, streams + at, p - run + 1, last, to->stride))
            at += EP_STEP, p += EP_STEP;
        for (; at < some; at++) {
            const uint64_t n = (uint64_t)ends[at] + (uint64_t)run - (uint64_t)p, stream = (uint64_t)streams[at];
            if (stream > (uint64_t)last) return -1;
            if (n > (uint64_t)(bound - p)) { /* it goes on in the next window, or is none */
                if (n > (uint64_t)(sent->n + run - p)) return -1;
                ep_own(w, to, p, full - p, stream);
                *k = at;
                return full;
            }
            ep_own(w, to, p, (int64_t)n, stream);
            p += (int64_t)n;
        }
    }
    *k = at;
    return p;
}

/* Adds the words of a window, rows of them, to the counters of those whose they are. row: of `to`. */
EP_INLINE void ep_add_rows(const ep_sums *to, const ep_window *w, int64_t rows, const int64_t row) {
    uint8_t *sums = to->tally->row;
    for (int64_t start = 0; start < rows * row; start += row)
#pragma GCC unroll 8
        for (int64_t j = 0; j < row; j++) {
            uint32_t word;
            memcpy(&word, w->word + 4 * (start + j), 4);
            *(ep_bytes *)(sums + 8 * (int64_t)w->of[start + j] + EP_COUNTERS * j) += ep_bits(word);
        }
}

/* Counts a window, whose places up to the next row are nobody's behind the last. */
EDGEWATT_AVX2 static void ep_count_window(const ep_sums *to, ep_window *w) {
    const int64_t rows = (w->in.places + to->row - 1) / to->row;
    ew_look_avx2(&w->in, w->word, rows * to->row, to->lanes);
    if (to->tally->rows + rows > EP_ROWS + 1) ep_make_room(to);
    to->tally->rows += rows;
    if (to->row == EP_LEAST_ROW)
        ep_add_rows(to, w, rows, EP_LEAST_ROW);
    else
        ep_add_rows(to, w, rows, to->row);
}

/* Returns 0 where a segment is none: then some before it are sent, and the bus is of no use. */
EDGEWATT_AVX2 static int ep_send(ew_bus *bus, const ew_sent *sent, ep_tally *tally, int64_t *counts) {
    const ep_sums sums = ep_sums_of(tally, counts, sent->n_streams, bus->lanes), *to = &sums;
    const int64_t lanes = bus->lanes, full = EP_PLACES / to->row * to->row;
    const uint64_t nobody = (uint64_t)sent->n_streams;
    int64_t i = 0, k = 0, next = ew_next_rest(sent, 0); /* byte, segment */
    ep_window w;
    ew_start(&w.in, bus, sent->flags != NULL);
    while (k < sent->segments) {
        int64_t p = w.in.places, from = p, run = p - i; /* run: the place of byte 0 */
        ep_own(&w, to, 0, p, nobody);
        while (k < sent->segments && p < full) {
            if (k == next) {
                const uint64_t stream = (uint64_t)sent->streams[k];
                if (stream >= nobody) return 0;
                if (p + 2 * lanes > full) break;
                ew_take_bytes(&w.in, sent, from - run, from, p - from);
                w.in.places = p;
                from = ew_return_to_idle(&w.in, lanes, sent->rest, counts + (int64_t)stream * 27 * lanes);
                ep_own(&w, to, p, from - p, nobody);
                ep_own(&w, to, from, lanes, stream);
                from += lanes;
                run += from - p;
                w.in.places = p = from;
                next = ew_next_rest(sent, k + 1);
            }
            p = ep_note(&w, to, sent, &k, next, p, full, run);
            if (p < 0) return 0;
        }
        ep_own(&w, to, p, to->row, nobody);
        ew_take_bytes(&w.in, sent, from - run, from, p - from);
        w.in.places = p;
        i = p - run;
        ep_count_window(to, &w);
        ew_next_window(&w.in, lanes);
    }
    ew_stop(&w.in, bus);
    return 1;
}

/* Adds to the counts what waits in the counters. */
EDGEWATT_AVX2 static void ep_settle(ep_tally *tally, int64_t n_streams, int64_t lanes, int64_t *counts) {
    const ep_sums to = ep_sums_of(tally, counts, n_streams, lanes);
    for (int64_t stream = 0; stream < n_streams; stream++)
        if (ep_any(&to, stream)[EP_COUNT]) ep_spill(&to, stream);
    tally->rows = 0;
}
#undef EP_INLINE
#endif
#endif
