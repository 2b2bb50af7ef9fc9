/* A lower bound on the cost of every order of one stride: Lagrangian relaxation to spanning trees (Held and Karp 1970).
 *
 * An order is a spanning tree of the tuples and a root: each tuple hangs on the tuple in the slot before, or on the root
 * where nothing of that tuple is used (all fields base) or the stride begins. No tuple has more than two neighbours, and the
 * number of slots of each class is known. Both facts are priced with multipliers: `pull` per tuple, `price` per class. */
#ifndef EDGEWATT_CDR_BOUND_H
#define EDGEWATT_CDR_BOUND_H

#include "cdr/cost.h"

/* start[b]: the least that tuple b can cost in slot 1. goal: cost of a known order, sets the step length. Returns the
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
#endif
