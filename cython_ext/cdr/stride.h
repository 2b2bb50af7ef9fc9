/* One stride: its tables, and the orders that are built in one go. */
#ifndef EDGEWATT_CDR_STRIDE_H
#define EDGEWATT_CDR_STRIDE_H

#include "cdr/cost.h"
#include "cdr/lanes.h"

static void cdr_close(cdr_stride *s) {
    free(s->memory);
    free(s->next_special);
    s->memory = NULL;
    s->next_special = NULL;
}

/* What it costs that tuple `first` is sent before each of `count` tuples from `start` on (`behind`: after it). */
static void cdr_row(const cdr_level *level, const cdr_stride *s, int c, int64_t first, int behind, int64_t start,
                    int64_t count, uint8_t *cost) {
    if (level) {
        level->row(s, c, first, behind, start, count, cost);
        return;
    }
    for (int64_t k = 0; k < count; k++)
        cost[k] = (uint8_t)(behind ? cdr_compute(s, c, start + k, first) : cdr_compute(s, c, first, start + k));
}

/* Builds the tables of the classes in use; a class that XORs nothing needs one row, others n + 1 rows if n is small. */
static int cdr_open(cdr_stride *s) {
    const cdr_level *const level = cdr_choose();
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
        for (int64_t a = 0; a < (full[c] ? m : 1); a++, at += m) cdr_row(level, s, c, a, 0, 0, m, at);
    }
    s->next_special[s->n + 2] = s->n + 2;
    for (int i = s->n + 1; i >= 0; i--)
        s->next_special[i] = i && s->slot_class[i] ? i : s->next_special[i + 1];
    return 0;
}

static int cdr_cheapest(const uint16_t *cost, int count) {
    uint16_t least = UINT16_MAX;
    for (int k = 0; k < count; k++) least = cost[k] < least ? cost[k] : least; /* compilers vectorise this one */
    int at = 0;
    while (cost[at] != least) at++;
    return at;
}

/* Nearest neighbour from slot 1 on; ties to the lowest tuple. tour[0] = tour[n + 1] = n. left: scratch int[n]. O(n^2).
 * lonely: NULL, or for each tuple what the CDR_NEAR cheapest tuples before it cost together. Tuples to which few come near
 * are then taken while there is still one near: half their mean cost is taken off (1.7 % fewer ones in rows of 5000).
 * Tuples that are placed stay among the candidates, at a cost that no other has, until it pays to close the ranks. */
static int cdr_greedy(const cdr_stride *s, int *tour, int *left, const int *lonely) {
    enum { MOST_PLACED = 64, MOST_LONELY = CDR_NEAR * 255 };
    const cdr_level *const level = cdr_choose();
    const int64_t n = s->n, words = s->words;
    int remaining = s->n, placed = 0, gone[MOST_PLACED];
    uint64_t *in = malloc(sizeof(uint64_t) * (size_t)(n * words) + (sizeof(uint16_t) * 2 + 1) * (size_t)n);
    if (!in) return -1;
    uint16_t *const price = (uint16_t *)(in + n * words), *const more = price + n;
    uint8_t *const cost = (uint8_t *)(more + n);
    memcpy(in, s->in, sizeof(uint64_t) * (size_t)(n * words));
    cdr_stride now = *s;
    now.in = in;
    for (int i = 0; i < s->n; i++) {
        left[i] = i;
        more[i] = (uint16_t)(lonely ? MOST_LONELY - lonely[i] : 0);
    }
    tour[0] = tour[n + 1] = s->n;
    for (int slot = 1; slot <= s->n; slot++) {
        const int c = s->slot_class[slot];
        cdr_row(level, &now, c, tour[slot - 1], 0, 0, remaining, cost);
        for (int k = 0; k < remaining; k++) price[k] = (uint16_t)(2 * CDR_NEAR * cost[k] + more[k]);
        for (int k = 0; k < placed; k++) price[gone[k]] = UINT16_MAX;
        const int at = cdr_cheapest(price, remaining);
        tour[slot] = left[at];
        gone[placed++] = at;
        left[at] = -1;
        if (placed < MOST_PLACED && placed * 8 < remaining) continue;
        int kept = 0; /* keeps the order: ties to the lowest */
        for (int k = 0; k < remaining; k++) {
            if (left[k] < 0) continue;
            left[kept] = left[k];
            more[kept] = more[k];
            for (int w = 0; w < words; w++) in[kept * words + w] = in[k * words + w];
            kept++;
        }
        remaining = kept;
        placed = 0;
    }
    free(in);
    return 0;
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
