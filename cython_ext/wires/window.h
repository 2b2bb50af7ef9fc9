/* A window of the bytes that a bus carries, with a beat of what was before in front, so that what each did to its wires can be
 * seen for many at once. Place p is on lane p modulo lanes. */
#ifndef EDGEWATT_WINDOW_H
#define EDGEWATT_WINDOW_H

#include "wires/wires.h"

enum { EW_PLACES = 4096 }; /* at most */

typedef struct {
    uint8_t byte[64 + EW_PLACES + 128]; /* place p is byte 64 + p; vectors may read beyond */
    uint64_t flag[(64 + EW_PLACES) / 64 + 4]; /* bits; zeros behind the places */
    int64_t places; /* filled */
    int flagged;    /* whether a flag may be set */
} ew_window;

static inline void ew_start(ew_window *w, const ew_bus *bus, int flagged) {
    const int64_t lanes = bus->lanes;
    memset(w->flag, 0, sizeof w->flag);
    w->flagged = flagged;
    for (int64_t lane = 0; lane < lanes; lane++) {
        const int64_t at = 64 + lane - (lane < bus->place ? 0 : lanes);
        w->byte[at] = bus->level[lane];
        if (bus->flag[lane]) ew_put_bits(w->flag, at, 1, 1), w->flagged = 1;
    }
    w->places = bus->place;
}

/* Goes on after the last beat, on the lane that is next. */
static inline void ew_next_window(ew_window *w, int64_t lanes) {
    const int64_t last = 64 + w->places - lanes, place = w->places % lanes;
    memmove(w->byte + 64 + place - lanes, w->byte + last, (size_t)lanes);
    if (w->flagged) {
        const uint64_t flags = ew_word_at(w->flag, last);
        memset(w->flag, 0, 8 * (size_t)((64 + w->places) / 64 + 1));
        ew_put_bits(w->flag, 64 + place - lanes, flags, lanes);
    }
    w->places = place;
}

/* Takes n bytes from i on, and their flags, to places from `start` on; `places` stays. */
static inline void ew_take_bytes(ew_window *w, const ew_sent *sent, int64_t i, int64_t start, int64_t n) {
    const int64_t flag_bytes = (sent->n + 7) / 8;
    if (n <= 0) return;
    memcpy(w->byte + 64 + start, sent->src + i, (size_t)n);
    for (int64_t j = 0, some; sent->flags && j < n; j += some) {
        const int64_t at = 64 + start + j, left = 64 - (at & 63);
        const int shift = (int)((i + j) & 7);
        const uint8_t *from = sent->flags + ((i + j) >> 3), *last = sent->flags + flag_bytes - 9;
        if (left == 64) /* whole words */
            for (uint64_t *to = w->flag + (at >> 6); n - j >= 64 && from <= last; j += 64, from += 8) {
                uint64_t word;
                memcpy(&word, from, 8);
                *to++ = word >> shift | (uint64_t)from[8] << 1 << (63 - shift);
            }
        some = n - j < left ? n - j : left;
        if (some > 0) ew_put_bits(w->flag, 64 + start + j, ew_bits_at(sent->flags, flag_bytes, i + j, some), some);
    }
}

static inline void ew_stop(const ew_window *w, ew_bus *bus) {
    for (int64_t lane = 0; lane < bus->lanes; lane++) {
        const int64_t at = 64 + lane - (lane < w->places ? 0 : bus->lanes);
        bus->level[lane] = w->byte[at];
        bus->flag[lane] = w->flag[at >> 6] >> (at & 63) & 1;
    }
    bus->place = w->places;
}

/* All wires go back to the level `rest` (bytes 0 or 255) before a segment of the stream of those counts, in a beat of its own
 * behind the places, which there must be room for; returns its first place. Edges count, the ones of an idle bus do not, for
 * no unit interval is sent: what will be counted of them with the beat is taken off here. */
static inline int64_t ew_return_to_idle(ew_window *w, int64_t lanes, uint8_t rest, int64_t *counts) {
    const int64_t left = (lanes - w->places % lanes) % lanes, start = w->places + left;
    for (int64_t j = 0; j < left; j++) { /* lanes that get no byte in the last beat keep their level */
        const int64_t at = 64 + w->places + j;
        w->byte[at] = w->byte[at - lanes];
        if (w->flag[(at - lanes) >> 6] >> ((at - lanes) & 63) & 1) ew_put_bits(w->flag, at, 1, 1);
    }
    memset(w->byte + 64 + start, rest, (size_t)lanes);
    if (rest) {
        ew_put_bits(w->flag, 64 + start, ~UINT64_C(0), lanes), w->flagged = 1;
        for (int64_t wire = 0; wire < 9 * lanes; wire++) counts[9 * lanes * EW_ONES + wire]--;
    }
    return start;
}

static inline uint64_t ew_spread_byte(uint64_t bits) { /* bit k to byte k */
    const uint64_t each = (bits & 255) * 0x0101010101010101u & 0x8040201008040201u;
    return (each + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
}

#if EDGEWATT_X86
EDGEWATT_AVX2 static inline __m256i ew_spread_half(uint32_t bits, char value) { /* bit k to that value in byte k */
    const __m256i which = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201u);
    const __m256i x = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), which), bit);
    return _mm256_and_si256(_mm256_cmpeq_epi8(x, bit), _mm256_set1_epi8(value));
}
#endif
#endif
