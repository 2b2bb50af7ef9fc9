/* Ones, toggles and rising edges on every wire of a byte-lane bus, apart for each stream that shares it.
 *
 * Wire 8 * lane + bit carries that bit of the lane's bytes; wire 8 * lanes + lane is the lane's flag (DBI) wire. Counts are
 * int64[3][9 * lanes]: ones, toggles, rising edges.
 *
 * There are two ways to count, which give the same counts; a call goes one of them, by the bytes of a segment on average. */
#ifndef EDGEWATT_WIRES_H
#define EDGEWATT_WIRES_H

#include <stdint.h>

#include "common/simd.h"
#include "wires/flag_bits.h"

enum { EW_ONES = 0, EW_TOGGLES = 1, EW_RISING = 2, EW_LONG_SEGMENT = 8 }; /* bytes from which on segments are long ones */

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

#include "wires/long_segments.h"
#include "wires/short_segments.h"

/* What is not in the counts yet, in `room` of ew_tally_bytes for each stream, at a multiple of 64 bytes; zeros at first. */
typedef struct {
    es_tally *of_short;
    el_tally *of_long;
} ew_tallies;

enum { ew_tally_bytes = sizeof(es_tally) + sizeof(el_tally) };

static inline ew_tallies ew_tallies_in(uint8_t *room, int64_t n_streams) {
    es_tally *of_short = (es_tally *)room;
    return (ew_tallies){of_short, (el_tally *)(of_short + n_streams)};
}

static inline int ew_are_long(const ew_sent *sent) { return sent->n / EW_LONG_SEGMENT >= sent->segments; }

/* Sends segments over the bus; returns 0 where one of them is none: then some before it are sent, and the bus is of no use.
 * Long ones must have been checked. counts: int64[n_streams][3][9 * lanes]. */
static inline int ew_send(ew_bus *bus, const ew_sent *sent, ew_tallies tallies, int64_t *counts) {
    const int are_long = ew_are_long(sent);
#if EDGEWATT_X86
    if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX512) {
        if (!are_long) return es_send_avx512(bus, sent, tallies.of_short, counts);
        el_send_avx512(bus, sent, tallies.of_long, counts);
        return 1;
    }
    if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX2) {
        if (!are_long) return es_send_avx2(bus, sent, tallies.of_short, counts);
        el_send_avx2(bus, sent, tallies.of_long, counts);
        return 1;
    }
#endif
    if (!are_long) return es_send_plain(bus, sent, tallies.of_short, counts);
    el_send_plain(bus, sent, tallies.of_long, counts);
    return 1;
}

/* Adds what waits for a stream to its counts. */
static inline void ew_settle(ew_tallies tallies, int64_t stream, int64_t lanes, int64_t *counts) {
    el_empty_wide(tallies.of_long + stream, lanes, counts);
    el_empty_units_plain(tallies.of_long + stream, lanes, counts);
#if EDGEWATT_X86
    if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX512) {
        es_empty_avx512(tallies.of_short + stream, lanes, counts);
        return;
    }
    if (edgewatt_simd_level() == EDGEWATT_LEVEL_AVX2) {
        es_empty_avx2(tallies.of_short + stream, lanes, counts);
        return;
    }
#endif
    es_empty_plain(tallies.of_short + stream, lanes, counts);
}
#endif
