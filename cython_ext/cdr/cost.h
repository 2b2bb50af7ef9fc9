/* What it costs to send tuple b after tuple a in a given slot (commutative data reordering, Feinberg et al. 2020).
 *
 * A tuple is up to 16 bytes: its fields side by side, each in an array of its own in memory. A slot is a position in those
 * arrays; where a field's slot starts a block, the field is sent as is (a base), elsewhere it is XORed with the slot before.
 * Slots therefore fall into few classes, each with a mask of the bytes that are XORed: cost = ones((out[a] & keep) ^ in[b]),
 * DBI-DC counted per byte where it is on. `out` and `in` differ only where a tuple takes several beats. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CDR_CLASSES = 8, CDR_OPEN = 8, CDR_TABLE_LIMIT = 1024 };

/* One stride: tuples 0..n-1, and n standing for what is fixed before (row n of out) and after it (row n of in).
 * Slots are 1..n; slot n+1 belongs to the tuple after the stride and has class CDR_OPEN where that is not known. */
typedef struct {
    int n, words, dbi, symmetric;
    const uint64_t *out, *in; /* [(n + 1) * words] */
    uint64_t keep[CDR_CLASSES][2];
    const uint8_t *slot_class; /* [n + 2]; class 0 is the one where every field is XORed */
    uint8_t *table[CDR_CLASSES + 1]; /* cost of (a, b) at [a * pitch + b], or NULL: computed each time */
    int64_t pitch[CDR_CLASSES + 1];
    int *next_special; /* [n + 3]: the first slot >= i whose class is not 0 (n + 2: none) */
    uint8_t *memory;
} cdr_stride;

static inline uint64_t cdr_weights(uint64_t x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    return (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
}
/* Ones on the wires for eight bytes. DBI: weight w costs min(w, 9 - w); w >= 5 exactly where w + 3 has bit 3. */
static inline int cdr_ones(uint64_t x, int dbi) {
    uint64_t w = cdr_weights(x);
    if (dbi) {
        uint64_t heavy = ((w + 0x0303030303030303u) >> 3 & 0x0101010101010101u) * 255;
        w = (w & ~heavy) | ((0x0909090909090909u - w) & heavy);
    }
    return (int)((w * 0x0101010101010101u) >> 56);
}
static inline int cdr_compute(const cdr_stride *s, int c, int64_t a, int64_t b) {
    int total = 0;
    if (c == CDR_OPEN) return 0;
    for (int w = 0; w < s->words; w++)
        total += cdr_ones((s->out[a * s->words + w] & s->keep[c][w]) ^ s->in[b * s->words + w], s->dbi);
    return total;
}
static inline int cdr_cost(const cdr_stride *s, int c, int64_t a, int64_t b) {
    return s->table[c] ? s->table[c][a * s->pitch[c] + b] : cdr_compute(s, c, a, b);
}
