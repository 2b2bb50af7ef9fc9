/* Stack distances of the access stream a1, b1, a2, b2, ... (Mattson et al. 1970), with the writes of the I/O model.
 *
 * The distance of an access is the number of distinct values touched since the same value's last access, itself
 * included: the access hits iff the distance is at most C. Between two updates of a value, one write is due at every C
 * below the largest distance in between (it leaves dirty once, and is clean afterwards); so one pass gives reads and
 * writes for all C.
 * Marks at the last accesses live in a bitmap of slots with a Fenwick tree over its words: O(log N) an access. */
#pragma once

#include <stdint.h>

typedef struct {
    int64_t n, n_slots, n_words, now, marks, cold;
    int64_t *slot;    /* [N] slot of the last access, -1 before the first */
    int64_t *owner;   /* [n_slots] neuron of a slot */
    uint64_t *mark;   /* [n_words] */
    int64_t *fenwick; /* [n_words + 1] marks in words, summed the Fenwick way */
    int64_t *longest; /* [N] largest distance since the value's last update, -1 while it never was updated */
    int64_t *reads;   /* [N + 1] accesses per distance */
    int64_t *writes;  /* [N + 1] spans between updates per largest distance */
} ew_stack;

static void ew_stack_count(ew_stack *s, int64_t word, int64_t change) {
    for (int64_t k = word + 1; k <= s->n_words; k += k & -k) s->fenwick[k] += change;
}

static void ew_stack_pack(ew_stack *s) {
    int64_t free = 0;
    for (int64_t p = 0; p < s->now; p++) {
        const int64_t x = s->owner[p];
        if (s->slot[x] != p) continue;
        s->owner[free] = x;
        s->slot[x] = free++;
    }
    s->now = free;
    for (int64_t w = 0; w < s->n_words; w++) {
        const int64_t left = free - 64 * w;
        s->mark[w] = left >= 64 ? ~(uint64_t)0 : left > 0 ? ((uint64_t)1 << left) - 1 : 0;
    }
    for (int64_t k = 0; k <= s->n_words; k++) s->fenwick[k] = 0;
    for (int64_t w = 0; w < s->n_words; w++) ew_stack_count(s, w, __builtin_popcountll(s->mark[w]));
}

/* Distance of this access of x (0: first access), and x becomes the most recent. */
static int64_t ew_stack_access(ew_stack *s, int64_t x) {
    if (s->now == s->n_slots) ew_stack_pack(s);
    const int64_t p = s->slot[x];
    int64_t distance = 0;
    if (p >= 0) {
        const int64_t word = p >> 6;
        int64_t before = __builtin_popcountll(s->mark[word] & (((uint64_t)1 << (p & 63)) - 1));
        for (int64_t k = word; k > 0; k &= k - 1) before += s->fenwick[k];
        distance = s->marks - before;
        s->mark[word] ^= (uint64_t)1 << (p & 63);
        ew_stack_count(s, word, -1);
    } else
        s->marks++;
    s->mark[s->now >> 6] |= (uint64_t)1 << (s->now & 63);
    ew_stack_count(s, s->now >> 6, 1);
    s->owner[s->now] = x;
    s->slot[x] = s->now++;
    return distance;
}

static void ew_stack_note(ew_stack *s, int64_t x, int64_t distance) {
    if (distance)
        s->reads[distance]++;
    else
        s->cold++;
    if (s->longest[x] >= 0 && distance > s->longest[x]) s->longest[x] = distance;
}

static void ew_stack_run(ew_stack *s, const int32_t *sources, const int32_t *targets, int64_t from, int64_t to,
                         int pin_both) {
    for (int64_t i = from; i < to; i++) {
        const int64_t a = sources[i], b = targets[i];
        /* With b pinned while a is loaded, an a that was older than b cannot have pushed b out. */
        const int spared = pin_both && s->slot[a] < s->slot[b];
        ew_stack_note(s, a, ew_stack_access(s, a));
        ew_stack_note(s, b, ew_stack_access(s, b) - spared);
        if (s->longest[b] >= 0) s->writes[s->longest[b]]++;
        s->longest[b] = 0;
    }
}
