/* Annealing of the sequence of connections by full counts, for networks small enough that counting costs little.

A move takes a stretch of the sequence elsewhere: a few connections beside one that shares a neuron, a longer stretch
some places on, or all that a target has in a row. Illegal ones are refused. */
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/random.h"

enum { EW_SEQUENCE_LRU, EW_SEQUENCE_RR, EW_SEQUENCE_MIN, EW_NEVER = 1 << 30 };

typedef struct {
    int32_t n, w, room, policy, pin_both;
    const int32_t *source, *target, *in_start, *in_edge, *out_start, *out_edge;
    const uint8_t *output;
    int32_t *sequence, *place, *moved; /* [w]: connections in turn, where each is, those of the move before it */
    int32_t *next;                     /* [2 w] position of the next use after each use */
    int32_t *last, *slot, *use;        /* [n] */
    int32_t *held;                     /* [room] */
    uint8_t *dirty;                    /* [n] */
    uint64_t random;
} ew_sequence;

static inline int32_t ew_below(ew_sequence *x, int32_t n) {
    return (int32_t)((ew_splitmix64(&x->random) >> 32) * (uint64_t)n >> 32);
}

/* Reads and writes of values; one more than `limit` or more where there are more than that. */
static int32_t ew_sequence_count(ew_sequence *x, int32_t limit) {
    int32_t cost = 0, used = 0, pointer = 0, past = x->policy != EW_SEQUENCE_MIN;
    for (int32_t v = 0; v < x->n; v++) x->last[v] = EW_NEVER, x->slot[v] = -1, x->dirty[v] = 0;
    for (int32_t k = 2 * x->w - 1; k >= 0; k--) {
        int32_t e = x->sequence[k >> 1], v = k & 1 ? x->target[e] : x->source[e];
        x->next[k] = x->last[v], x->last[v] = k;
    }
    for (int32_t k = 0; k < 2 * x->w; k++) {
        int32_t e = x->sequence[k >> 1], a = x->source[e], b = x->target[e], v = k & 1 ? b : a;
        if (x->slot[v] < 0) {
            if (++cost > limit) return cost;
            int32_t at = used;
            if (used < x->room) {
                used++;
            } else {
                int32_t pinned = k & 1 ? a : x->pin_both ? b : -1;
                if (x->policy == EW_SEQUENCE_RR) {
                    while (x->held[pointer] == pinned) pointer = pointer + 1 == x->room ? 0 : pointer + 1;
                    at = pointer, pointer = pointer + 1 == x->room ? 0 : pointer + 1;
                } else {
                    int32_t best = -1;
                    for (int32_t j = 0; j < x->room; j++) {
                        int32_t one = x->held[j], key = past ? EW_NEVER - x->use[one] : x->use[one];
                        if (one != pinned && key > best) best = key, at = j;
                    }
                }
                int32_t gone = x->held[at];
                /* under LRU `use` is the last use: whether there is a next one is in `last`, which loads bring up to
                 * date */
                if (x->dirty[gone] && (x->last[gone] < EW_NEVER || x->output[gone])) cost++;
                x->dirty[gone] = 0, x->slot[gone] = -1;
            }
            x->held[at] = v, x->slot[v] = at, x->dirty[v] = 0;
        }
        x->last[v] = x->next[k];
        x->use[v] = past ? k : x->next[k];
        if (k & 1) x->dirty[v] = 1;
    }
    for (int32_t v = 0; v < x->n; v++) cost += x->dirty[v] && x->output[v];
    return cost;
}

static int ew_sequence_legal(const ew_sequence *x, int32_t from, int32_t length, int32_t to) {
    for (int32_t k = from; k < from + length; k++) {
        int32_t e = x->sequence[k], later = to > from, v = later ? x->target[e] : x->source[e];
        const int32_t *start = later ? x->out_start : x->in_start, *edge = later ? x->out_edge : x->in_edge;
        for (int32_t j = start[v]; j < start[v + 1]; j++) {
            int32_t at = x->place[edge[j]];
            if (later ? at >= from + length && at < to : at >= to && at < from) return 0;
        }
    }
    return 1;
}

/* A connection that shares a neuron with e: its target, its source, or, now and then, what its target feeds. */
static int32_t ew_sequence_related(ew_sequence *x, int32_t e) {
    int32_t a = x->source[e], b = x->target[e], feeds = x->out_start[b + 1] - x->out_start[b];
    if (!ew_below(x, 8) && feeds) return x->out_edge[x->out_start[b] + ew_below(x, feeds)];
    if (ew_below(x, 2)) return x->in_edge[x->in_start[b] + ew_below(x, x->in_start[b + 1] - x->in_start[b])];
    return x->out_edge[x->out_start[a] + ew_below(x, x->out_start[a + 1] - x->out_start[a])];
}

/* Propose so many moves at one temperature; return the cost after them. best: the least so far, with its sequence. */
static int32_t ew_sequence_run(ew_sequence *x, int64_t moves, double temperature, int32_t cost, int32_t *best,
                               int32_t *best_sequence) {
    for (; moves > 0; moves--) {
        int32_t w = x->w, kind = ew_below(x, 10), from, to, length;
        if (kind < 5) {
            length = ew_below(x, 3) ? 1 : 1 + ew_below(x, w - 1 < 12 ? w - 1 : 12);
            from = ew_below(x, w - length + 1);
            to = x->place[ew_sequence_related(x, x->sequence[from])] + ew_below(x, 2);
        } else if (kind < 8) {
            length = 1 + ew_below(x, w / 6 < 2 ? 2 : w / 6);
            if (length >= w) continue;
            from = ew_below(x, w - length + 1);
            int32_t far = 1 + ew_below(x, 1 + w / 8);
            to = ew_below(x, 2) ? from + length + far : from - far;
        } else {
            from = ew_below(x, w), length = 1;
            int32_t b = x->target[x->sequence[from]];
            while (from > 0 && x->target[x->sequence[from - 1]] == b) from--;
            while (from + length < w && x->target[x->sequence[from + length]] == b) length++;
            if (ew_below(x, 2)) {
                to = ew_below(x, w + 1);
            } else {
                int32_t a = x->source[x->sequence[from + ew_below(x, length)]], first = x->out_start[a];
                to = x->place[x->out_edge[first + ew_below(x, x->out_start[a + 1] - first)]] + ew_below(x, 2);
            }
        }
        if (to < 0 || to > w || (to >= from && to <= from + length) || !ew_sequence_legal(x, from, length, to)) continue;
        int32_t low = to > from ? from : to, high = to > from ? to : from + length, middle = to > from ? from + length : from;
        memcpy(x->moved, x->sequence + low, (size_t)(high - low) * sizeof *x->moved);
        memcpy(x->sequence + low, x->moved + (middle - low), (size_t)(high - middle) * sizeof *x->moved);
        memcpy(x->sequence + low + (high - middle), x->moved, (size_t)(middle - low) * sizeof *x->moved);
        double unit = (double)((ew_splitmix64(&x->random) >> 11) + 1) * 0x1p-53;
        int32_t limit = cost + (int32_t)(-temperature * log(unit)), found = ew_sequence_count(x, limit);
        if (found > limit) {
            memcpy(x->sequence + low, x->moved, (size_t)(high - low) * sizeof *x->moved);
            continue;
        }
        cost = found;
        for (int32_t k = low; k < high; k++) x->place[x->sequence[k]] = k;
        if (cost < *best) {
            *best = cost;
            memcpy(best_sequence, x->sequence, (size_t)w * sizeof *best_sequence);
        }
    }
    return cost;
}
