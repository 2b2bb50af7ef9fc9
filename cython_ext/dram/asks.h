/* What banks ask for, and the first cycle at which any of it can be had.
 *
 * Banks are kept by the kind of command that they ask for, those apart that only their rank and the wires still hold back:
 * the ripe ones. Only banks that something changed for are asked again; a cycle looks at sets of banks, not at each. */
#ifndef EDGEWATT_DRAM_ASKS_H
#define EDGEWATT_DRAM_ASKS_H

#include "dram/commands.h"

/* Whether a queued write would overtake a read of the same burst. */
static int overtakes(const dram_engine *e, const dram_bank *bank, int at) {
    const int64_t burst = e->pool[bank->queue[at]].burst;
    for (uint64_t reads = bank->hit & ~bank->write & (((uint64_t)1 << at) - 1); reads; reads &= reads - 1)
        if (e->pool[bank->queue[lowest(reads)]].burst == burst) return 1;
    return 0;
}

/* Closed page: the last hit known, or the last one allowed, precharges the bank itself. */
static inline int closes_itself(const dram_engine *e, const dram_bank *bank, int at) {
    if (e->c->page != PAGE_CLOSED) return 0;
    int others = (bank->hit & ~((uint64_t)1 << at)) != 0, waiting = __builtin_popcountll(bank->hit) < bank->queued;
    return !others || (waiting && bank->hits + 1 >= e->c->hit_cap);
}

/* From when on nothing of the bank or its group holds a command back that it asks for. */
static inline int64_t ripe_at(const dram_engine *e, const dram_bank *bank, int kind) {
    int64_t when = bank->ready[asked_command[kind]];
    if (e->c->bank_groups > 1) when = later(when, e->group_ready[bank->group][asked_command[kind]]);
    return kind == ASK_PRE ? later(when, bank->idles_until) : when;
}

static inline void ask(dram_engine *e, int64_t t, const dram_bank *bank, int kind) {
    const int64_t when = ripe_at(e, bank, kind);
    e->asking[kind] |= bank->bit;
    e->look_at[kind] = 0;
    if (when <= t) e->ripe[kind] |= bank->bit; else e->ripens[kind] = sooner(e->ripens[kind], when);
}

/* What a bank with an open row asks for: to close it, and the first read and write that hit it. A row is given up when
 * nothing queued hits it, or when hit_cap hits were served while the oldest request waits for another row. Where that
 * request has waited too long, nothing goes before it. */
static void ask_with_row(dram_engine *e, int64_t t, dram_bank *bank) {
    uint64_t reads = bank->hit & ~bank->write, writes = bank->hit & bank->write;
    while (writes && overtakes(e, bank, lowest(writes))) writes &= writes - 1;
    bank->idles_until = 0;
    if (bank->queued && !(bank->hit & 1)) {
        if (e->c->age_cap_cycles) {
            const int64_t aged_at = e->pool[bank->queue[0]].accepted + e->c->age_cap_cycles;
            if (aged_at <= t) reads = writes = 0; else e->ages_at = sooner(e->ages_at, aged_at);
        }
        if (!(reads | writes) || bank->hits >= e->c->hit_cap) {
            ask(e, t, bank, ASK_PRE);
            if (e->c->hit_cap_strict) return;
        }
    } else if (!bank->queued && e->c->page == PAGE_ADAPTIVE) {
        bank->idles_until = bank->last_column + bank->idle_limit;
        ask(e, t, bank, ASK_PRE);
    }
    if (reads) bank->first_read = lowest(reads), ask(e, t, bank, ASK_RD);
    if (writes) {
        bank->first_write = lowest(writes);
        ask(e, t, bank, e->pool[bank->queue[bank->first_write]].command == MWR ? ASK_MWR : ASK_WR);
    }
}

/* Ask the banks again for which something changed. */
static void ask_again(dram_engine *e, int64_t t) {
    if (t >= e->ages_at) e->ages_at = NEVER, e->changed = all_banks(e);
    for (int kind = 0; kind < ASKS; kind++) e->asking[kind] &= ~e->changed, e->ripe[kind] &= ~e->changed;
    for (; e->changed; e->changed &= e->changed - 1) {
        dram_bank *bank = &e->bank[lowest(e->changed)];
        if (bank->row != NONE) ask_with_row(e, t, bank);
        else if (bank->queued)
            ask(e, t, bank, e->c->rfm_limit && bank->activates >= e->c->rfm_limit ? ASK_RFM : ASK_ACT);
    }
}

static void ripen(dram_engine *e, int64_t t, int kind) {
    e->ripens[kind] = NEVER;
    for (uint64_t left = e->asking[kind] & ~e->ripe[kind]; left; left &= left - 1) {
        const dram_bank *bank = &e->bank[lowest(left)];
        const int64_t when = ripe_at(e, bank, kind);
        if (when <= t) e->ripe[kind] |= bank->bit; else e->ripens[kind] = sooner(e->ripens[kind], when);
    }
}

/* The banks that can have a command of a kind by t, barred ones apart; *next: a cycle before which no more can. What holds
 * banks back only moves later: what was found to be later than `from` is not looked up again. */
static EW_INLINED uint64_t look_for(
    dram_engine *e, int64_t t, const int kind, uint64_t barred, const int ranks, int64_t from, int64_t *next
) {
    const int command = asked_command[kind];
    uint64_t can = 0;
    int64_t first = NEVER;
    if (!e->asking[kind]) return 0;
    if (e->look_at[kind] > from) {
        *next = sooner(*next, e->look_at[kind]);
        return 0;
    }
    if (e->ripens[kind] <= t) ripen(e, t, kind);
    for (int r = 0; r < ranks; r++) {
        const dram_rank *rank = &e->rank[r];
        const uint64_t banks = (ranks == 1 ? e->asking[kind] : e->asking[kind] & rank->banks) & ~barred;
        const uint64_t ripe = banks & e->ripe[kind];
        int64_t when = later(rank->ready[command], wires_ready(e, command));
        if (!banks) continue;
        if (command == ACT) {
            when = later(when, rank->acts[rank->act_index] + e->c->tFAW);
            if (e->second_act_by) when = later(when, t + 1); /* no ACT-1 between ACT-1 and ACT-2 */
        }
        if (when <= t) can |= ripe;
        first = sooner(first, ripe ? when : later(when, e->ripens[kind]));
    }
    e->look_at[kind] = barred ? 0 : first;
    *next = sooner(*next, first);
    return can;
}

/* The banks that can have a command by t, by its kind; returns a cycle before which no more can. exact: no later cycle is
 * such a one, which those that are certainly later need no look for. */
static EW_INLINED int64_t look_with(
    dram_engine *e, int64_t t, uint64_t barred, uint64_t *can, const int exact, const int ranks, const int kinds
) {
    int64_t next = e->ages_at;
    can[ASK_RD] = look_for(e, t, ASK_RD, barred, ranks, exact ? later(t, next - 1) : t, &next);
    can[ASK_WR] = look_for(e, t, ASK_WR, barred, ranks, exact ? later(t, next - 1) : t, &next);
    can[ASK_ACT] = look_for(e, t, ASK_ACT, barred, ranks, exact ? later(t, next - 1) : t, &next);
    can[ASK_PRE] = look_for(e, t, ASK_PRE, barred, ranks, exact ? later(t, next - 1) : t, &next);
    if (kinds < ASKS) return next;
    can[ASK_MWR] = look_for(e, t, ASK_MWR, barred, ranks, exact ? later(t, next - 1) : t, &next);
    can[ASK_RFM] = look_for(e, t, ASK_RFM, barred, ranks, exact ? later(t, next - 1) : t, &next);
    return next;
}

static int64_t look_at_all(dram_engine *e, int64_t t, uint64_t barred, uint64_t *can, int exact) {
    return look_with(e, t, barred, can, exact, e->c->ranks, ASKS);
}

static EW_INLINED int64_t look(dram_engine *e, int64_t t, uint64_t barred, uint64_t *can, const int exact) {
    if (e->changed || t >= e->ages_at) ask_again(e, t);
    return e->usual ? look_with(e, t, barred, can, exact, 1, ASK_MWR) : look_at_all(e, t, barred, can, exact);
}

/* After a command or a move: the first cycle at which any bank can have a command. */
static int64_t next_look(dram_engine *e, int64_t t) {
    uint64_t can[ASKS];
    return look(e, t, 0, can, 1);
}

#endif
