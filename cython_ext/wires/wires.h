/* Ones, toggles and rising edges on every wire of a byte-lane bus, apart for each stream that shares it.
 *
 * Wire 8 * lane + bit carries that bit of the lane's bytes; wire 8 * lanes + lane is the lane's flag (DBI) wire. Counts are
 * int64[3][9 * lanes]: ones, toggles, rising edges.
 */
#ifndef EDGEWATT_WIRES_H
#define EDGEWATT_WIRES_H

#include <stdint.h>

#include "common/simd.h"
#include "wires/flag_bits.h"

enum { EW_ONES = 0, EW_TOGGLES = 1, EW_RISING = 2 };
/* bytes of a segment on average from which on, and below which, rows take less time without AVX-512 (measured) */
enum { EW_LEAST_ROWS = 2, EW_MOST_ROWS = 128 };

typedef struct {
    uint8_t level[64], flag[64]; /* what each lane carries */
    int64_t lanes, place;        /* lane of the next byte */
} ew_bus;

/* Bytes in segments: segment k is the bytes up to ends[k] and belongs to streams[k]; where idles[k] (NULL: nowhere) all wires
 * first go back to `rest` (0 or 255). flags: packed, or NULL. */
typedef struct {
    const uint8_t *src, *flags, *idles;
    const int64_t *ends, *streams;
    int64_t n, segments, n_streams;
    uint8_t rest;
} ew_sent;

#include "wires/rows.h"
#include "wires/segments.h"

/* There are two ways to count, which give the same counts. By blocks, a stream costs an addition for each block of 64 bytes
 * that it sends in, by rows a segment costs a copy; a copy costs more than the additions of a few streams do, where
 * instructions are wide. */
typedef struct {
    es_tally *of_blocks; /* NULL: too many streams */
    er_tally *of_rows;
} ew_tallies;

/* Bytes of the tallies of so many streams. */
static inline int64_t ew_tallies_bytes(int64_t n_streams, int64_t lanes) {
    const int64_t of_blocks = n_streams <= ES_FEW ? n_streams * (int64_t)sizeof(es_tally) : 0;
    return of_blocks + n_streams * er_groups(lanes) * (int64_t)sizeof(er_tally);
}

static inline ew_tallies ew_tallies_in(uint8_t *room, int64_t n_streams) {
    es_tally *of_blocks = n_streams <= ES_FEW ? (es_tally *)room : NULL;
    return (ew_tallies){of_blocks, of_blocks ? (er_tally *)(of_blocks + n_streams) : (er_tally *)room};
}

/* Sends segments over the bus; returns 0 where one of them is none: then some before it are sent, and the bus is of no use.
 * tallies: ew_tallies_bytes at a multiple of 64 bytes, what is not in the counts yet; zeros at first.
 * counts: int64[n_streams][3][9 * lanes]. */
static inline int ew_send(ew_bus *bus, const ew_sent *sent, uint8_t *tallies, int64_t *counts) {
    const ew_tallies t = ew_tallies_in(tallies, sent->n_streams);
    const int in_between = sent->n / EW_LEAST_ROWS >= sent->segments && sent->n / EW_MOST_ROWS < sent->segments;
    const int by_rows = !t.of_blocks || in_between;
#if EDGEWATT_X86
    if (edgewatt_has_masks())
        return t.of_blocks ? es_send_avx512(bus, sent, t.of_blocks, counts) : er_send_avx512(bus, sent, t.of_rows, counts);
    if (edgewatt_simd_level() >= EDGEWATT_LEVEL_AVX2)
        return by_rows ? er_send_avx2(bus, sent, t.of_rows, counts) : es_send_avx2(bus, sent, t.of_blocks, counts);
#endif
    return by_rows ? er_send_plain(bus, sent, t.of_rows, counts) : es_send_plain(bus, sent, t.of_blocks, counts);
}

/* Adds what waits in the tallies of so many streams to their counts. */
static inline void ew_settle(uint8_t *tallies, int64_t n_streams, int64_t lanes, int64_t *counts) {
    const ew_tallies t = ew_tallies_in(tallies, n_streams);
    const er_sums to = er_sums_of(t.of_rows, counts, lanes);
    const int64_t of_blocks = t.of_blocks ? n_streams : 0;
#if EDGEWATT_X86
    if (edgewatt_has_masks()) {
        er_settle_avx512(&to, n_streams);
        es_settle_avx512(t.of_blocks, of_blocks, lanes, counts);
        return;
    }
    if (edgewatt_simd_level() >= EDGEWATT_LEVEL_AVX2) {
        er_settle_avx2(&to, n_streams);
        es_settle_avx2(t.of_blocks, of_blocks, lanes, counts);
        return;
    }
#endif
    er_settle_plain(&to, n_streams);
    es_settle_plain(t.of_blocks, of_blocks, lanes, counts);
}
#endif
