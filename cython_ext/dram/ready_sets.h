/* Per-command sets of banks and the earliest cycle at which each may issue.
 * A bank is a candidate for each command that it needs next, and ready when only its rank and the wires hold it back. */
#pragma once

#include "dram/commands.h"

/* Whether a queued write would overtake a read of the same burst. */
static int overtakes(const dram_engine *e, const dram_bank *bank, int at) {
    const int64_t burst = e->pool[bank->queue[at]].burst;
    for (uint64_t reads = bank->hit & ~bank->write & (((uint64_t)1 << at) - 1); reads; reads &= reads - 1)
        if (e->pool[bank->queue[lowest(reads)]].burst == burst) return 1;
    return 0;
}

/* Closed page: the last hit known, or the last one allowed, precharges the bank itself; strictly closed: every burst. */
static inline int closes_itself(const dram_engine *e, const dram_bank *bank, int at) {
    if (e->c->page != PAGE_CLOSED) return e->c->page == PAGE_STRICT;
    int others = (bank->hit & ~((uint64_t)1 << at)) != 0, waiting = __builtin_popcountll(bank->hit) < bank->queued;
    return !others || (waiting && bank->hits + 1 >= e->c->hit_cap);
}

/* The cycle from which the timing of the bank and of its group allows a command. */
static inline int64_t bank_ready_at(const dram_engine *e, const dram_bank *bank, int kind) {
    int64_t when = bank->ready[command_of[kind]];
    if (e->c->bank_groups > 1) when = later(when, e->group_ready[bank->group][command_of[kind]]);
    return kind == NEXT_PRE ? later(when, bank->idles_until) : when;
}

static inline void add_candidate(dram_engine *e, int64_t t, const dram_bank *bank, int kind) {
    const int64_t when = bank_ready_at(e, bank, kind);
    e->candidates[kind] |= bank->bit;
    e->issue_from[kind] = 0;
    if (when <= t) e->ready_banks[kind] |= bank->bit; else e->ready_from[kind] = sooner(e->ready_from[kind], when);
}

/* Candidates of a bank with an open row: to close it, and the first read and write that hit it. A row is given up when
 * nothing queued hits it, or when hit_cap hits were served while the oldest request waits for another row. Where that
 * request has waited too long, nothing goes before it. */
static void add_for_open_row(dram_engine *e, int64_t t, dram_bank *bank) {
    uint64_t reads = bank->hit & ~bank->write, writes = bank->hit & bank->write;
    while (writes && overtakes(e, bank, lowest(writes))) writes &= writes - 1;
    bank->idles_until = 0;
    if (e->c->page == PAGE_STRICT && bank->hits) { /* a masked write, which cannot close its bank itself */
        add_candidate(e, t, bank, NEXT_PRE);
        return;
    }
    if (bank->queued && !(bank->hit & 1)) {
        if (e->c->age_cap_cycles) {
            const int64_t aged_at = e->pool[bank->queue[0]].accepted + e->c->age_cap_cycles;
            if (aged_at <= t) reads = writes = 0; else e->ages_at = sooner(e->ages_at, aged_at);
        }
        if (!(reads | writes) || bank->hits >= e->c->hit_cap) {
            add_candidate(e, t, bank, NEXT_PRE);
            if (e->c->hit_cap_strict) return;
        }
    } else if (!bank->queued && e->c->page == PAGE_ADAPTIVE) {
        bank->idles_until = bank->last_column + bank->idle_limit;
        add_candidate(e, t, bank, NEXT_PRE);
    }
    if (reads) bank->first_read = lowest(reads), add_candidate(e, t, bank, NEXT_RD);
    if (writes) {
        bank->first_write = lowest(writes);
        add_candidate(e, t, bank, e->pool[bank->queue[bank->first_write]].command == MWR ? NEXT_MWR : NEXT_WR);
    }
}

/* Find the candidates again of the banks for which something changed. */
static void update_candidates(dram_engine *e, int64_t t) {
    if (t >= e->ages_at) e->ages_at = NEVER, e->changed = all_banks(e);
    for (int kind = 0; kind < NEXT_KINDS; kind++) e->candidates[kind] &= ~e->changed, e->ready_banks[kind] &= ~e->changed;
    for (; e->changed; e->changed &= e->changed - 1) {
        dram_bank *bank = &e->bank[lowest(e->changed)];
        if (bank->row != NONE) add_for_open_row(e, t, bank);
        else if (bank->queued)
            add_candidate(e, t, bank, e->c->rfm_limit && bank->activates >= e->c->rfm_limit ? NEXT_RFM : NEXT_ACT);
    }
}

static void update_ready(dram_engine *e, int64_t t, int kind) {
    e->ready_from[kind] = NEVER;
    for (uint64_t left = e->candidates[kind] & ~e->ready_banks[kind]; left; left &= left - 1) {
        const dram_bank *bank = &e->bank[lowest(left)];
        const int64_t when = bank_ready_at(e, bank, kind);
        if (when <= t) e->ready_banks[kind] |= bank->bit; else e->ready_from[kind] = sooner(e->ready_from[kind], when);
    }
}

/* The banks that can issue a command of a kind by t, barred ones apart; *next: a cycle before which no more can. Earliest
 * cycles only move later: what was found to be later than `from` is not looked up again. */
EW_INLINE uint64_t issuable_banks(
    dram_engine *e, int64_t t, const int kind, uint64_t barred, const int ranks, int64_t from, int64_t *next
) {
    const int command = command_of[kind];
    uint64_t can = 0;
    int64_t first = NEVER;
    if (!e->candidates[kind]) return 0;
    if (e->issue_from[kind] > from) {
        *next = sooner(*next, e->issue_from[kind]);
        return 0;
    }
    if (e->ready_from[kind] <= t) update_ready(e, t, kind);
    for (int r = 0; r < ranks; r++) {
        const dram_rank *rank = &e->rank[r];
        const uint64_t banks = (ranks == 1 ? e->candidates[kind] : e->candidates[kind] & rank->banks) & ~barred;
        const uint64_t ready_banks = banks & e->ready_banks[kind];
        int64_t when = later(rank->ready[command], wires_ready(e, command));
        if (!banks) continue;
        if (command == ACT) {
            when = later(when, rank->acts[rank->act_index] + e->c->tFAW);
            if (e->second_act_by) when = later(when, t + 1); /* no ACT-1 between ACT-1 and ACT-2 */
        }
        if (when <= t) can |= ready_banks;
        first = sooner(first, ready_banks ? when : later(when, e->ready_from[kind]));
    }
    e->issue_from[kind] = barred ? 0 : first;
    *next = sooner(*next, first);
    return can;
}

/* The banks that can issue by t, by kind of command; returns a cycle before which no more can. exact: the first such
 * cycle, for which kinds that are certainly later need no look. */
EW_INLINE int64_t find_for_ranks(
    dram_engine *e, int64_t t, uint64_t barred, uint64_t *can, const int exact, const int ranks, const int kinds
) {
    int64_t next = e->ages_at;
    can[NEXT_RD] = issuable_banks(e, t, NEXT_RD, barred, ranks, exact ? later(t, next - 1) : t, &next);
    can[NEXT_WR] = issuable_banks(e, t, NEXT_WR, barred, ranks, exact ? later(t, next - 1) : t, &next);
    can[NEXT_ACT] = issuable_banks(e, t, NEXT_ACT, barred, ranks, exact ? later(t, next - 1) : t, &next);
    can[NEXT_PRE] = issuable_banks(e, t, NEXT_PRE, barred, ranks, exact ? later(t, next - 1) : t, &next);
    if (kinds < NEXT_KINDS) return next;
    can[NEXT_MWR] = issuable_banks(e, t, NEXT_MWR, barred, ranks, exact ? later(t, next - 1) : t, &next);
    can[NEXT_RFM] = issuable_banks(e, t, NEXT_RFM, barred, ranks, exact ? later(t, next - 1) : t, &next);
    return next;
}

static int64_t find_for_all_ranks(dram_engine *e, int64_t t, uint64_t barred, uint64_t *can, int exact) {
    return find_for_ranks(e, t, barred, can, exact, e->c->ranks, NEXT_KINDS);
}

EW_INLINE int64_t find_issuable(dram_engine *e, int64_t t, uint64_t barred, uint64_t *can, const int exact) {
    if (e->changed || t >= e->ages_at) update_candidates(e, t);
    return e->usual ? find_for_ranks(e, t, barred, can, exact, 1, NEXT_MWR) : find_for_all_ranks(e, t, barred, can, exact);
}

/* After a command or a move: the first cycle at which any bank can issue a command. */
static int64_t next_issuable(dram_engine *e, int64_t t) {
    uint64_t can[NEXT_KINDS];
    return find_issuable(e, t, 0, can, 1);
}
