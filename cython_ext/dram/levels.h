/* The command wires: ones and rising edges per wire, counted in batches.
 *
 * The beats of a command stand side by side in one word (in more, where it has more than 64 levels), so all of its edges
 * are found at once; ones are counted by adding words bit by bit, all of their bits at once. */
#ifndef EDGEWATT_DRAM_LEVELS_H
#define EDGEWATT_DRAM_LEVELS_H

#include "dram/state.h"

/* Add to each wire its bits of a word, as often as that counts. */
static void add_bits(const dram_config *c, uint64_t word, int64_t times, int64_t *total) {
    for (int wire = 0; word; word >>= 1, wire = wire + 1 == c->ca_wires ? 0 : wire + 1)
        total[wire] += times * (int64_t)(word & 1);
}

/* Each bit of two words and of the sum before gives a sum and what it carries to words that count twice as often. */
static void unpack_levels(dram_engine *e) {
    dram_pair *words = e->ca_levels;
    for (int64_t n = e->n_levels, times = 1; n; n /= 2, times *= 2) {
        dram_pair sum = {0, 0};
        if (n & 1) sum = words[n - 1];
        for (int64_t k = 0; k < n / 2; k++) {
            const dram_pair one = words[2 * k], other = words[2 * k + 1], odd = one ^ other;
            words[k] = (one & other) | (odd & sum);
            sum ^= odd;
        }
        add_bits(e->c, sum[0], times, e->ca_ones);
        add_bits(e->c, sum[1], times, e->ca_rising);
    }
    e->n_levels = 0;
}

static inline uint64_t turned(uint64_t word, int places) { return word << (places & 63) | word >> (-places & 63); }

/* Play a command's levels on the command wires: they rest at their idle level unless one command follows directly on
 * another. */
static void play_levels(dram_engine *e, int64_t t, int command, const dram_bank *bank, int row, int column) {
    const dram_tables *tables = e->tables;
    const int n = tables->n_beats[command], wires = e->c->ca_wires;
    if (!n) return;
    const uint64_t word = (uint64_t)row << ROW_BIT | (uint64_t)column << COLUMN_BIT | (bank ? bank->levels : 0);
    /* Wires that rest at 1 fall as often as they rise, so there the falling edges are counted. */
    const uint64_t idle = tables->idle_levels;
    uint64_t before = t <= e->ca_end ? e->ca_last : e->c->ca_idle;
    if (e->n_levels + n > MAX_LEVELS) unpack_levels(e);
    for (int at = 0; at < n; at++) {
        const dram_beats *beats = &tables->beats[command][at];
        uint64_t levels = beats->constant;
        for (int k = 0; k < beats->n; k++) levels |= turned(word, beats->turn[k]) & beats->mask[k];
        const uint64_t edges = (levels ^ idle) & ~((levels << wires | before) ^ idle) & beats->used;
        const dram_pair both = {levels, edges};
        e->ca_levels[e->n_levels++] = both;
        before = levels >> (beats->beats - 1) * wires;
    }
    e->ca_last = before;
    e->ca_end = t + tables->level_clocks[command];
}

#endif
