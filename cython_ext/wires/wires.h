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

#include "wires/segments.h"

/* Sends segments over the bus; returns 0 where one of them is none: then some before it are sent, and the bus is of no use.
 * tallies: one for each stream, at a multiple of 64 bytes, what is not in the counts yet; zeros at first.
 * counts: int64[n_streams][3][9 * lanes]. */
static inline int ew_send(ew_bus *bus, const ew_sent *sent, ew_tally *tallies, int64_t *counts) {
#if EDGEWATT_X86
    if (edgewatt_has_masks()) return es_send_avx512(bus, sent, tallies, counts);
    if (edgewatt_simd_level() >= EDGEWATT_LEVEL_AVX2) return es_send_avx2(bus, sent, tallies, counts);
#endif
    return es_send_plain(bus, sent, tallies, counts);
}

/* Adds what waits for a stream to its counts. */
static inline void ew_settle(ew_tally *tally, int64_t lanes, int64_t *counts) {
#if EDGEWATT_X86
    if (edgewatt_has_masks()) {
        es_empty_avx512(tally, lanes, counts);
        return;
    }
    if (edgewatt_simd_level() >= EDGEWATT_LEVEL_AVX2) {
        es_empty_avx2(tally, lanes, counts);
        return;
    }
#endif
    es_empty_plain(tally, lanes, counts);
}
#endif
