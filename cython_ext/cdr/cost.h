/* What it costs to send tuple b after tuple a in a given slot (commutative data reordering, Feinberg et al. 2020).
 *
 * A tuple is up to 16 bytes: its fields side by side, each in an array of its own in memory. A slot is a position in those
 * arrays; where a field's slot starts a block, the field is sent as is (a base), elsewhere it is XORed with the slot before.
 * Slots therefore fall into few classes, each with a mask of the bytes that are XORed: cost = ones((out[a] & keep) ^ in[b]),
 * DBI-DC counted per byte where it is on. `out` and `in` differ only where a tuple takes several beats. */
#ifndef EDGEWATT_CDR_COST_H
#define EDGEWATT_CDR_COST_H

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

static void cdr_close(cdr_stride *s) {
    free(s->memory);
    free(s->next_special);
    s->memory = NULL;
    s->next_special = NULL;
}

/* Builds the tables of the classes in use; a class that XORs nothing needs one row, others n + 1 rows if n is small. */
static int cdr_open(cdr_stride *s) {
    const int64_t m = s->n + 1;
    int used[CDR_CLASSES + 1] = {1}, full[CDR_CLASSES + 1] = {0};
    int64_t bytes = m;
    for (int i = 1; i <= s->n + 1; i++) used[s->slot_class[i]] = 1;
    for (int c = 0; c < CDR_CLASSES; c++) {
        full[c] = s->keep[c][0] || s->keep[c][1];
        if (used[c] && (!full[c] || s->n <= CDR_TABLE_LIMIT)) bytes += full[c] ? m * m : m;
    }
    s->memory = calloc((size_t)bytes, 1);
    s->next_special = malloc(sizeof(int) * (size_t)(s->n + 3));
    if (!s->memory || !s->next_special) return cdr_close(s), -1;
    s->table[CDR_OPEN] = s->memory;
    s->pitch[CDR_OPEN] = 0;
    uint8_t *at = s->memory + m;
    for (int c = 0; c < CDR_CLASSES; c++) {
        s->table[c] = NULL;
        if (!used[c] || (full[c] && s->n > CDR_TABLE_LIMIT)) continue;
        s->table[c] = at;
        s->pitch[c] = full[c] ? m : 0;
        for (int64_t a = 0; a < (full[c] ? m : 1); a++)
            for (int64_t b = 0; b < m; b++) *at++ = (uint8_t)cdr_compute(s, c, a, b);
    }
    s->next_special[s->n + 2] = s->n + 2;
    for (int i = s->n + 1; i >= 0; i--)
        s->next_special[i] = i && s->slot_class[i] ? i : s->next_special[i + 1];
    return 0;
}

/* Nearest neighbour from slot 1 on; ties to the lowest tuple. tour[0] = tour[n + 1] = n. left: scratch int[n]. */
static void cdr_greedy(const cdr_stride *s, int *tour, int *left) {
    int remaining = s->n;
    for (int i = 0; i < remaining; i++) left[i] = i;
    tour[0] = tour[s->n + 1] = s->n;
    for (int slot = 1; slot <= s->n; slot++) {
        int best = 1 << 20, at = 0;
        for (int i = 0; i < remaining; i++) {
            int cost = cdr_cost(s, s->slot_class[slot], tour[slot - 1], left[i]);
            if (cost < best) best = cost, at = i;
        }
        tour[slot] = left[at];
        remaining--;
        memmove(left + at, left + at + 1, sizeof(int) * (size_t)(remaining - at)); /* keeps the order: ties to the lowest */
    }
}

static int64_t cdr_total(const cdr_stride *s, const int *tour) {
    int64_t total = 0;
    for (int i = 1; i <= s->n + 1; i++) total += cdr_cost(s, s->slot_class[i], tour[i - 1], tour[i]);
    return total;
}

/* Cheapest order by dynamic programming over subsets, n <= 16: best[set][last] = cost of sending `set`, `last` at its end. */
static int cdr_exact(const cdr_stride *s, int *tour) {
    const int n = s->n;
    const size_t sets = (size_t)1 << n;
    int32_t *best = malloc(sizeof(int32_t) * sets * (size_t)n);
    if (!best) return -1;
    for (size_t k = 0; k < sets * (size_t)n; k++) best[k] = 1 << 29;
    for (int b = 0; b < n; b++) best[((size_t)1 << b) * n + b] = cdr_cost(s, s->slot_class[1], n, b);
    for (size_t set = 1; set < sets; set++) {
        int slot = __builtin_popcountll(set) + 1;
        for (int a = 0; a < n; a++) {
            int32_t so_far = best[set * n + a];
            if (!(set >> a & 1) || so_far >= 1 << 29) continue;
            for (int b = 0; b < n; b++) {
                if (set >> b & 1) continue;
                int32_t *to = &best[(set | (size_t)1 << b) * n + b];
                int32_t cost = so_far + cdr_cost(s, s->slot_class[slot], a, b);
                if (cost < *to) *to = cost;
            }
        }
    }
    int last = 0;
    size_t set = sets - 1;
    for (int a = 1; a < n; a++)
        if (best[set * n + a] + cdr_cost(s, s->slot_class[n + 1], a, n) <
            best[set * n + last] + cdr_cost(s, s->slot_class[n + 1], last, n))
            last = a;
    tour[0] = tour[n + 1] = n;
    for (int slot = n; slot >= 1; slot--) {
        tour[slot] = last;
        size_t before = set & ~((size_t)1 << last);
        for (int a = 0; a < n && before; a++)
            if (before >> a & 1 &&
                best[before * n + a] + cdr_cost(s, s->slot_class[slot], a, last) == best[set * n + last]) {
                set = before;
                last = a;
                break;
            }
    }
    free(best);
    return 0;
}
#endif
