/* The command wires: ones and rising edges per wire, counted in batches.
 *
 * The beats of a command stand side by side in one word (in more, where it has more than 64 levels), so all of its edges
 * are found at once; ones are counted eight wires at a time over many words. */
#ifndef EDGEWATT_DRAM_LEVELS_H
#define EDGEWATT_DRAM_LEVELS_H

#include "dram/state.h"

/* Add to each wire the ones of its column of bits. */
static void count_levels(const dram_config *c, const uint64_t *levels, int n, int64_t *total) {
    for (int shift = 0; shift < 8; shift++) {
        uint64_t packed = 0; /* byte k: bit 8 k + shift */
        for (int k = 0; k < n; k++) packed += levels[k] >> shift & 0x0101010101010101ull;
        for (int place = shift; packed; place += 8, packed >>= 8) total[place % c->ca_wires] += packed & 0xff;
    }
}

static void unpack_levels(dram_engine *e) {
    count_levels(e->c, e->ca_levels, e->n_levels, e->ca_ones);
    count_levels(e->c, e->ca_edges, e->n_levels, e->ca_rising);
    e->n_levels = 0;
}

static inline uint64_t turned(uint64_t word, int places) { return word << (places & 63) | word >> (-places & 63); }

/* Play a command's levels on the command wires: they rest at their idle level unless one command follows directly on
 * another. */
static void play_levels(dram_engine *e, int64_t t, int command, const dram_bank *bank, int row, int column) {
    const dram_tables *tables = e->tables;
    const int n = tables->n_beats[command], wires = e->c->ca_wires;
    if (!n) return;
    uint64_t word = (uint64_t)row << ROW_BIT | (uint64_t)column << COLUMN_BIT;
    if (bank) word |= (uint64_t)bank->number << BANK_BIT | (uint64_t)bank->group_number << GROUP_BIT;
    /* Wires that rest at 1 fall as often as they rise, so there the falling edges are counted. */
    const uint64_t idle = tables->idle_levels;
    uint64_t before = t <= e->ca_end ? e->ca_last : e->c->ca_idle;
    if (e->n_levels + n > MAX_LEVELS) unpack_levels(e);
    for (int at = 0; at < n; at++) {
        const dram_beats *beats = &tables->beats[command][at];
        uint64_t levels = beats->constant;
        for (int k = 0; k < beats->n; k++) levels |= turned(word, beats->turn[k]) & beats->mask[k];
        e->ca_levels[e->n_levels] = levels;
        e->ca_edges[e->n_levels++] = (levels ^ idle) & ~((levels << wires | before) ^ idle) & beats->used;
        before = levels >> (beats->beats - 1) * wires;
    }
    e->ca_last = before;
    e->ca_end = t + tables->level_clocks[command];
}

#endif
