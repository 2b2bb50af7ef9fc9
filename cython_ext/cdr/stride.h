/* One stride: its tables, the orders that are built in one go, and a lower bound on all orders. */
#pragma once

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

/* A lower bound on the cost of every order of one stride: Lagrangian relaxation to spanning trees (Held and Karp 1970).
 *
 * An order is a spanning tree of the tuples and a root: each tuple hangs on the tuple in the slot before, or on the root
 * where nothing of that tuple is used (all fields base) or the stride begins. No tuple has more than two neighbours, and the
 * number of slots of each class is known. Both facts are priced with multipliers: `pull` per tuple, `price` per class.
 *
 * start[b]: the least that tuple b can cost in slot 1. goal: cost of a known order, sets the step length. Returns the
 * bound, or -1 without memory. O(n^2) per round. */
static double cdr_bound(const cdr_stride *s, const int *start, double goal, int rounds) {
    const int n = s->n;
    int slots[CDR_CLASSES] = {0}, linked[CDR_CLASSES], n_linked = 0, root_class = -1;
    for (int i = 2; i <= n; i++) slots[s->slot_class[i]]++;
    for (int c = 0; c < CDR_CLASSES; c++) {
        if (!slots[c]) continue;
        if (s->keep[c][0] || s->keep[c][1])
            linked[n_linked++] = c;
        else
            root_class = c;
    }
    double *memory = malloc(sizeof(double) * 2 * (size_t)n + sizeof(int) * 2 * (size_t)n + (size_t)2 * n);
    if (!memory) return -1;
    double *pull = memory, *reach = pull + n;
    int *from = (int *)(reach + n), *degree = from + n;
    uint8_t *by = (uint8_t *)(degree + n), *done = by + n;
    double price[CDR_CLASSES + 1] = {0}, best = 0, scale = 1.0; /* price[CDR_CLASSES]: the first slot */
    int stale = 0;
    memset(pull, 0, sizeof(double) * (size_t)n);
    for (int round = 0; round < rounds && scale > 0.02; round++) {
        double bound = -price[CDR_CLASSES];
        int used[CDR_CLASSES + 1] = {0};
        for (int c = 0; c < CDR_CLASSES; c++) bound -= slots[c] * price[c];
        for (int b = 0; b < n; b++) {
            bound -= 2 * pull[b];
            degree[b] = 0;
            done[b] = 0;
            from[b] = -1;
            reach[b] = start[b] + price[CDR_CLASSES] + pull[b];
            by[b] = CDR_CLASSES;
            if (root_class >= 0) {
                double weight = cdr_cost(s, root_class, b, b) + price[root_class] + pull[b];
                if (weight < reach[b]) reach[b] = weight, by[b] = (uint8_t)root_class;
            }
        }
        for (int k = 0; k < n; k++) { /* Prim */
            int a = -1;
            for (int b = 0; b < n; b++)
                if (!done[b] && (a < 0 || reach[b] < reach[a])) a = b;
            done[a] = 1;
            bound += reach[a];
            degree[a]++;
            if (from[a] >= 0) degree[from[a]]++;
            used[by[a]]++;
            for (int l = 0; l < n_linked; l++) {
                const int c = linked[l];
                const double add = price[c] + pull[a];
                for (int b = 0; b < n; b++) {
                    if (done[b]) continue;
                    int there = cdr_cost(s, c, a, b);
                    if (!(s->symmetric && c == 0)) {
                        int back = cdr_cost(s, c, b, a);
                        if (back < there) there = back;
                    }
                    double weight = there + add + pull[b];
                    if (weight < reach[b]) reach[b] = weight, from[b] = a, by[b] = (uint8_t)c;
                }
            }
        }
        if (bound > best + 1e-9)
            best = bound, stale = 0;
        else if (++stale >= 4)
            scale *= 0.6, stale = 0;
        double norm = 0;
        for (int b = 0; b < n; b++) norm += (degree[b] - 2) * (double)(degree[b] - 2);
        for (int c = 0; c <= CDR_CLASSES; c++) {
            int miss = used[c] - (c == CDR_CLASSES ? 1 : slots[c]);
            norm += (double)miss * miss;
        }
        double gap = goal - bound;
        if (norm < 0.5 || gap < 0.5) break;
        double step = scale * gap / norm;
        for (int b = 0; b < n; b++) {
            pull[b] += step * (degree[b] - 2);
            if (pull[b] < 0) pull[b] = 0;
        }
        for (int c = 0; c <= CDR_CLASSES; c++) price[c] += step * (used[c] - (c == CDR_CLASSES ? 1 : slots[c]));
    }
    free(memory);
    return best;
}
