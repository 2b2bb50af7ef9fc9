/* Prices of eight moves at a time, for cdr/search.h: the tuples in the order of the tour, and one body per SIMD level.
 * With what the slots hold side by side in memory, the words of eight candidates are one load. */
#pragma once

#include "cdr/cost.h"
#include "common/simd.h"

enum { CDR_NEAR = 8, CDR_LANES = 8, CDR_MARGIN = 48, CDR_REACH = 16 };

/* Slots -CDR_MARGIN .. n + 1 + CDR_MARGIN of one stride; the margins are zeros that are read and never counted. */
typedef struct {
    int n, words, apart; /* apart: no eight slots in a row hold two bases */
    int64_t cap;         /* in each byte 9 under DBI, which inverts what weighs more than half of that, or 255 */
    int classes, class_of[CDR_CLASSES]; /* the kinds of bases there are */
    const int *next_special;
    uint8_t *class_at;          /* of each slot; 0 in the margins */
    uint8_t *to_next, *to_last; /* where bases are apart: slots up to the next and back to the last, CDR_LANES - 1 at most */
    const uint64_t (*masks)[2];
    int64_t *out[2], *in[2];    /* the words of the tuple in each slot */
    int64_t *keep[2], *counted; /* the bytes that are XORed; all ones, or 0 where the slot costs nothing */
    int64_t *now, *plain;       /* what each slot costs, and what it would inside a block */
    /* What slot k's tuple and the one before it cost more on a base of a class than inside a block; and turned round. */
    int64_t *ahead[CDR_CLASSES + 1], *turned[CDR_CLASSES + 1];
    int64_t *memory;
} cdr_slots;

/* slot = at + slope * length, for lengths 1 to 8 */
typedef struct {
    int at, slope;
} cdr_line;

static inline cdr_line cdr_plus(cdr_line a, cdr_line b) { return (cdr_line){a.at + b.at, a.slope + b.slope}; }
static inline cdr_line cdr_minus(cdr_line a, cdr_line b) { return (cdr_line){a.at - b.at, a.slope - b.slope}; }
static inline cdr_line cdr_shift(cdr_line a, int by) { return (cdr_line){a.at + by, a.slope}; }
static inline int cdr_low(cdr_line a) { return a.at + (a.slope < 0 ? a.slope * CDR_LANES : a.slope); }
static inline int cdr_high(cdr_line a) { return a.at + (a.slope > 0 ? a.slope * CDR_LANES : a.slope); }

static inline int cdr_clamp(int x) { return x < 0 ? 0 : x > CDR_LANES ? CDR_LANES : x; }

/* A bit for each length at which a slot is at most `limit`. */
static inline int cdr_within(cdr_line a, int limit) {
    const int room = limit - a.at;
    if (a.slope == 0) return room >= 0 ? 255 : 0;
    if (a.slope < 0) return 255 << cdr_clamp(-room - 1) & 255;
    return (1 << cdr_clamp(a.slope == 1 ? room : room >> 1)) - 1;
}

/* What a SIMD level offers. `moves`: for each move by which cdr_join (cdr/search.h) puts the tuple of slot j next to that of
 * slot i a byte, and in it a bit per segment length 1 to 8, not set only where the move is impossible or does not lower the
 * cost. `refresh`: now, plain, ahead and turned of slots from..to. `row`: see cdr_row in cdr/stride.h. */
typedef struct {
    uint64_t (*moves)(const cdr_slots *q, int i, int j, int before, int turned);
    void (*refresh)(const cdr_slots *q, int from, int to);
    void (*row)(const cdr_stride *s, int c, int64_t first, int behind, int64_t start, int64_t count, uint8_t *cost);
} cdr_level;

static inline int64_t cdr_cap(const cdr_stride *s) { return s->dbi ? 0x0909090909090909 : -1; }

#if EDGEWATT_X86
#define CDR_TARGET EDGEWATT_AVX512
#define CDR_NAME(name) name##_avx512
#define CDR_WIDE 8
#include "cdr/lanes_body.h"
#undef CDR_WIDE
#undef CDR_TARGET
#undef CDR_NAME

#define CDR_TARGET EDGEWATT_AVX2
#define CDR_NAME(name) name##_avx2
#define CDR_WIDE 4
#define CDR_NARROW
#include "cdr/lanes_body.h"
#undef CDR_NARROW
#undef CDR_WIDE
#undef CDR_TARGET
#undef CDR_NAME
#endif

/* NULL: this machine, or EDGEWATT_SIMD, has none of them. */
static inline const cdr_level *cdr_choose(void) {
#if EDGEWATT_X86
    static const cdr_level avx512 = {cdr_moves_avx512, cdr_refresh_avx512, cdr_row_of_avx512};
    static const cdr_level avx2 = {cdr_moves_avx2, cdr_refresh_avx2, cdr_row_of_avx2};
    const int level = ew_simd_level();
    return level >= EDGEWATT_LEVEL_AVX512 ? &avx512 : level >= EDGEWATT_LEVEL_AVX2 ? &avx2 : NULL;
#else
    return NULL;
#endif
}

static inline void cdr_put(const cdr_slots *q, const cdr_stride *s, int slot, int64_t tuple) {
    for (int w = 0; w < q->words; w++) {
        q->out[w][slot] = (int64_t)s->out[tuple * s->words + w];
        q->in[w][slot] = (int64_t)s->in[tuple * s->words + w];
    }
}

static int cdr_slots_open(cdr_slots *q, const cdr_stride *s) {
    q->n = s->n;
    q->words = s->words;
    q->cap = cdr_cap(s);
    q->next_special = s->next_special;
    q->masks = s->keep;
    q->apart = 1;
    int used[CDR_CLASSES + 1] = {0};
    for (int i = s->next_special[1]; i <= s->n; i = s->next_special[i + 1]) {
        if (!used[s->slot_class[i]]++) q->class_of[q->classes++] = s->slot_class[i];
        if (s->next_special[i + 1] < i + CDR_LANES && s->next_special[i + 1] <= s->n) q->apart = 0;
    }
    const int64_t size = s->n + 2 + 2 * CDR_MARGIN, arrays = 3 * s->words + 3 + 2 * q->classes;
    q->memory = calloc((size_t)size, (size_t)arrays * sizeof(int64_t) + 3);
    if (!q->memory) return -1;
    q->class_at = (uint8_t *)(q->memory + size * arrays) + CDR_MARGIN;
    q->to_next = q->class_at + size;
    q->to_last = q->to_next + size;
    memcpy(q->class_at + 1, s->slot_class + 1, (size_t)s->n);
    memset(q->to_next - CDR_MARGIN, CDR_LANES - 1, (size_t)(2 * size));
    for (int i = s->next_special[1]; i <= s->n; i = s->next_special[i + 1])
        for (int off = CDR_LANES - 1; off >= 0; off--) q->to_next[i - off] = q->to_last[i + off] = (uint8_t)off;
    int64_t *at = q->memory + CDR_MARGIN;
    for (int w = 0; w < s->words; w++, at += 3 * size) {
        q->out[w] = at;
        q->in[w] = at + size;
        q->keep[w] = at + 2 * size;
    }
    q->counted = at;
    q->now = at + size;
    q->plain = at + 2 * size;
    for (int c = 0; c <= CDR_CLASSES; c++) q->ahead[c] = q->turned[c] = q->plain; /* of no base: never counted */
    at += 3 * size;
    for (int k = 0; k < q->classes; k++, at += 2 * size) {
        q->ahead[q->class_of[k]] = at;
        q->turned[q->class_of[k]] = at + size;
    }
    for (int i = 1; i <= s->n + 1; i++) {
        const int c = s->slot_class[i];
        q->counted[i] = c == CDR_OPEN ? 0 : -1;
        for (int w = 0; w < s->words; w++) q->keep[w][i] = c == CDR_OPEN ? 0 : (int64_t)s->keep[c][w];
    }
    return 0;
}
