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

#include "wires/tallies/places.h"
#include "wires/tallies/rows.h"
#include "wires/tallies/segments.h"

/* There are three ways to count, which give the same counts: by places each byte costs an addition, by rows each segment a
 * copy, by blocks each 64 bytes some additions for every stream that sends in them. */
typedef struct {
    es_tally *of_blocks; /* NULL: too many streams */
    ep_tally *of_places; /* NULL: far too many, or not on this processor */
    er_tally *of_rows;
} ew_tallies;

/* Bytes of a segment on average below which places take less time than what is next: rows of few lanes, others, or, with
 * AVX-512, blocks, which of at most EW_FEW streams always take less; from EW_BLOCKS on, and below EW_SINGLES where there are
 * no places, blocks take less than rows (measured). */
enum { EW_ROWS_NARROW = 6, EW_ROWS = 20, EW_BLOCKS_WIDE = 6, EW_FEW = 15, EW_BLOCKS = 128, EW_SINGLES = 2 };

static inline int ew_has_places(void) {
#if EDGEWATT_X86
    return edgewatt_simd_level() >= EDGEWATT_LEVEL_AVX2;
#else
    return 0;
#endif
}

static inline ew_tallies ew_tallies_in(uint8_t *room, int64_t n_streams, int64_t lanes, int64_t *bytes) {
    ew_tallies t = {NULL, NULL, (er_tally *)room};
    int64_t at = n_streams * er_groups(lanes) * (int64_t)sizeof(er_tally);
    if (n_streams <= ES_FEW) t.of_blocks = (es_tally *)(room + at), at += n_streams * (int64_t)sizeof(es_tally);
    if (ew_has_places() && n_streams <= ep_most_streams(lanes))
        t.of_places = (ep_tally *)(room + at), at += ep_tally_bytes(n_streams, lanes);
    *bytes = at;
    return t;
}

/* Bytes of the tallies of so many streams. */
static inline int64_t ew_tallies_bytes(int64_t n_streams, int64_t lanes) {
    int64_t bytes;
    ew_tallies_in(NULL, n_streams, lanes, &bytes);
    return bytes;
}

/* Sends segments over the bus; returns 0 where one of them is none: then some before it are sent, and the bus is of no use.
 * tallies: ew_tallies_bytes at a multiple of 64 bytes, what is not in the counts yet; zeros at first.
 * counts: int64[n_streams][3][9 * lanes]. */
static inline int ew_send(ew_bus *bus, const ew_sent *sent, uint8_t *tallies, int64_t *counts) {
    int64_t bytes;
    const ew_tallies t = ew_tallies_in(tallies, sent->n_streams, bus->lanes, &bytes);
    const int by_blocks = t.of_blocks && sent->n / EW_BLOCKS >= sent->segments;
#if EDGEWATT_X86
    const int masks = edgewatt_has_masks(), wide = masks && t.of_blocks;
    const int64_t next = wide ? EW_BLOCKS_WIDE : er_narrow(bus->lanes) ? EW_ROWS_NARROW : EW_ROWS;
    if (t.of_places && sent->n / next < sent->segments && !(wide && sent->n_streams <= EW_FEW))
        return masks ? ep_send_avx512(bus, sent, t.of_places, counts) : ep_send_avx2(bus, sent, t.of_places, counts);
    if (wide) return es_send_avx512(bus, sent, t.of_blocks, counts);
    if (masks) return er_send_avx512(bus, sent, t.of_rows, counts);
    if (edgewatt_simd_level() >= EDGEWATT_LEVEL_AVX2)
        return by_blocks ? es_send_avx2(bus, sent, t.of_blocks, counts) : er_send_avx2(bus, sent, t.of_rows, counts);
#endif
    const int singles = t.of_blocks && sent->n / EW_SINGLES < sent->segments && !er_narrow(bus->lanes);
    return by_blocks || singles ? es_send_plain(bus, sent, t.of_blocks, counts) : er_send_plain(bus, sent, t.of_rows, counts);
}

/* Adds what waits in the tallies of so many streams to their counts. */
static inline void ew_settle(uint8_t *tallies, int64_t n_streams, int64_t lanes, int64_t *counts) {
    int64_t bytes;
    const ew_tallies t = ew_tallies_in(tallies, n_streams, lanes, &bytes);
    const er_sums rows = er_sums_of(t.of_rows, counts, lanes);
#if EDGEWATT_X86
    if (edgewatt_has_masks()) {
        if (t.of_places) ep_settle_avx512(t.of_places, n_streams, lanes, counts);
        if (t.of_blocks) es_settle_avx512(t.of_blocks, n_streams, lanes, counts);
        er_settle_avx512(&rows, n_streams);
        return;
    }
    if (edgewatt_simd_level() >= EDGEWATT_LEVEL_AVX2) {
        if (t.of_places) ep_settle_avx2(t.of_places, n_streams, lanes, counts);
        if (t.of_blocks) es_settle_avx2(t.of_blocks, n_streams, lanes, counts);
        er_settle_avx2(&rows, n_streams);
        return;
    }
#endif
    if (t.of_blocks) es_settle_plain(t.of_blocks, n_streams, lanes, counts);
    er_settle_plain(&rows, n_streams);
}
#endif
