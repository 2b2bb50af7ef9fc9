/* Connections as they are processed: an order is checked while the ends of its connections are gathered.
 *
 * Valid: a permutation in which no connection out of a neuron stands before one into it. Connections are taken from the
 * first to the last or back; either way the neurons that later ones must not touch are marked. */
#pragma once

#include <stdint.h>

enum { EW_AHEAD = 128, EW_BLOCK = 1024 }; /* connections: far enough ahead for a miss of all caches; few enough for L1 */

typedef struct {
    const int32_t *ends;     /* [W][2] source and target of each connection, as stored */
    const int64_t *order;     /* [W] any values, or NULL: as stored */
    int64_t w;
    uint64_t *met;    /* [(W + 63) / 64], zero at first: the connections that were taken; not used without an order */
    uint8_t *closed;  /* [N], zero at first: forwards the sources that were taken, backwards the targets */
    int32_t previous_target;   /* target of the connection taken last, -1 at first */
    int64_t runs;     /* stretches of connections with one target */
} ew_processing;

/* Ask for the ends of a connection. What lies nowhere is not fetched. */
static inline void ew_fetch_ends(const int32_t *ends, int64_t edge) {
    __builtin_prefetch((const void *)((uintptr_t)ends + 8 * (uintptr_t)edge));
}

/* Put the ends of the connections at the places [from, to) of the order into source and target; return whether they
 * are valid so far. Of an order that is not, the arrays mean nothing. fetch_ahead: the ends of those to come. */
static inline __attribute__((always_inline)) int ew_take(ew_processing *given, int64_t from, int64_t to, int32_t *source,
                                                         int32_t *target, const int backwards, const int stored,
                                                         const int fetch_ahead) {
    const ew_processing p = *given;
    const int64_t step = backwards ? -1 : 1, n = to - from;
    int64_t i = backwards ? to - 1 : from, runs = p.runs;
    int32_t previous_target = p.previous_target;
    uint64_t wrong = 0;
    for (int64_t k = 0; k < n; k++, i += step) {
        int64_t edge = i;
        if (!stored) {
            if (fetch_ahead && (backwards ? i >= EW_AHEAD : i < p.w - EW_AHEAD))
                ew_fetch_ends(p.ends, p.order[i + step * EW_AHEAD]);
            edge = p.order[i];
            if ((uint64_t)edge >= (uint64_t)p.w) return 0;
            const uint64_t bit = (uint64_t)1 << (edge & 63), word = p.met[edge >> 6];
            wrong |= word & bit;
            p.met[edge >> 6] = word | bit;
        }
        const int32_t a = p.ends[2 * edge], b = p.ends[2 * edge + 1];
        wrong |= p.closed[backwards ? a : b];
        p.closed[backwards ? b : a] = 1;
        runs += b != previous_target;
        previous_target = b;
        source[i - from] = a, target[i - from] = b;
    }
    given->runs = runs, given->previous_target = previous_target;
    return !wrong;
}

static inline int ew_take_forwards(ew_processing *p, int64_t from, int64_t to, int32_t *source, int32_t *target) {
    return p->order ? ew_take(p, from, to, source, target, 0, 0, 1) : ew_take(p, from, to, source, target, 0, 1, 0);
}

static inline int ew_take_backwards(ew_processing *p, int64_t from, int64_t to, int32_t *source, int32_t *target) {
    return p->order ? ew_take(p, from, to, source, target, 1, 0, 1) : ew_take(p, from, to, source, target, 1, 1, 0);
}

/* Forwards, where whoever plays what was taken asks for the ends of what comes. There has to be an order. */
static inline int ew_take_asked(ew_processing *p, int64_t from, int64_t to, int32_t *source, int32_t *target) {
    return ew_take(p, from, to, source, target, 0, 0, 0);
}
