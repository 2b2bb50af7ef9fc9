/* Timing of one DRAM channel: what it does in one cycle at which a request, a command or a refresh can move.
 *
 * Each processed cycle: issue at most one command per set of command wires (a refresh that is due goes first, then the
 * banks in turn), then move at most one request from the read or write queue to its bank's queue. Cycles in
 * which nothing can happen are not processed. */
#pragma once

#include "dram/ready_sets.h"

/* ---- refreshes, power-down, self-refresh */

/* Whether a refresh is to go before everything else: where JEDEC's freedom is used, only if no more may be postponed or
 * nothing else wants the rank; *next: when one may be pulled in. */
static int refresh_wanted(const dram_engine *e, int64_t t, int r, int64_t *next) {
    const dram_rank *rank = &e->rank[r];
    int sets = e->c->refresh == REFRESH_PER_BANK ? e->c->refresh_sets : 1;
    if (e->c->refresh == REFRESH_NONE || rank->in_self_refresh) return 0;
    if (rank->refresh_due >= later((int64_t)e->c->refresh_postpone * sets, 1)) return 1; /* an interval is left to close rows */
    int64_t longest = rank->refreshed[sets > 1 ? rank->refresh_bank : 0] + 8 * e->c->tREFI;
    if (t >= longest) return 1; /* pulled in before, but nine intervals are the longest pause */
    *next = sooner(*next, longest);
    if (rank->queued || e->reads_waiting || e->draining || rank->refresh_due <= -(int64_t)e->c->refresh_pull_in * sets) return 0;
    if (rank->powered_down && rank->refresh_due <= 0) return 0; /* none is pulled in out of power-down */
    int64_t when = rank->refresh_due > 0 ? t : rank->last_command + e->c->pull_in_idle;
    if (sets == 1) when = later(when, rank->refreshes[rank->refresh_index] + 2 * e->c->tREFI);
    if (when <= t) return 1;
    *next = sooner(*next, when);
    return 0;
}

/* A refresh that is due: close what is open, then refresh. Returns 1 if a command was issued. */
static int try_refresh(dram_engine *e, int64_t t, int r, int64_t *next) {
    dram_rank *rank = &e->rank[r];
    int in_rank = e->c->bank_groups * e->c->banks_per_group;
    int all = e->c->refresh == REFRESH_ALL_BANK;
    int from = r * in_rank + (all ? 0 : rank->refresh_bank), step = all ? 1 : e->c->refresh_sets;
    int open = 0;
    int64_t close_at = 0, refresh_at = 0;
    dram_bank *first = NULL; /* of the open banks, the one that may be precharged first */
    int64_t first_at = NEVER;
    for (int b = from; b < (r + 1) * in_rank; b += step) {
        dram_bank *bank = &e->bank[b];
        if (bank->row != NONE) {
            int64_t when = earliest(e, bank, PRE);
            open++;
            close_at = later(close_at, when);
            if (later(when, t) < first_at) first_at = later(when, t), first = bank;
        }
        refresh_at = later(refresh_at, earliest(e, bank, all ? REFAB : REFPB));
    }
    int together = all && open > 1 && e->c->precharge_all;
    int command = together ? PREA : open ? PRE : all ? REFAB : REFPB;
    int64_t when = together ? close_at : open ? first_at : refresh_at;
    when = later(later(when, wires_ready(e, command)), command == PREA ? rank->ready[PREA] : 0);
    if (when <= t) {
        issue(e, t, command, r, command == PRE ? first : command == REFPB ? &e->bank[from] : NULL, NULL);
        return 1;
    }
    *next = sooner(*next, when);
    return 0;
}

/* Enter or leave power-down; returns 1 if the rank changed state. */
static int try_power(dram_engine *e, int64_t t, int r, int64_t *next) {
    dram_rank *rank = &e->rank[r];
    int wanted = rank->queued || rank->refresh_due > 0 || rank->refresh_first;
    int64_t when;
    if (rank->powered_down) {
        if (!wanted) return 0;
        when = later(rank->powered_down_at + e->c->tCKE, rank->ready[PDX]);
    } else {
        if (wanted || !e->c->power_down_cycles) return 0;
        when = later(rank->last_command + e->c->power_down_cycles, rank->ready[PDE]);
    }
    if (e->c->wire_cycles[PDE]) when = later(when, wires_ready(e, PDE));
    if (when <= t) {
        issue(e, t, rank->powered_down ? PDX : PDE, r, NULL, NULL);
        return 1;
    }
    *next = sooner(*next, when);
    return 0;
}

/* Self-refresh after a long idle time: leave power-down, close all rows, enter. Returns 1 if a command was issued. */
static int try_self_refresh(dram_engine *e, int64_t t, int r, int64_t *next) {
    dram_rank *rank = &e->rank[r];
    int command = SRX, in_rank = e->c->bank_groups * e->c->banks_per_group;
    int64_t when;
    if (rank->in_self_refresh) {
        if (!rank->queued) return 0;
        when = later(rank->sleeps_since + e->c->tCKE, rank->ready[SRX]);
    } else {
        if (!e->c->self_refresh_cycles || rank->queued) return 0;
        when = rank->last_used + e->c->self_refresh_cycles;
        if (rank->powered_down) {
            command = PDX;
            when = later(when, later(rank->powered_down_at + e->c->tCKE, rank->ready[PDX]));
        } else {
            command = rank->open ? PREA : SRE;
            for (int b = r * in_rank; b < (r + 1) * in_rank; b++)
                if (command == SRE || e->bank[b].row != NONE)
                    when = later(when, earliest(e, &e->bank[b], command == SRE ? REFAB : PRE));
            when = later(when, rank->ready[command]);
        }
    }
    if (e->c->wire_cycles[command]) when = later(when, wires_ready(e, command));
    if (when <= t) {
        issue(e, t, command, r, NULL, NULL);
        return 1;
    }
    *next = sooner(*next, when);
    return 0;
}

/* ---- choosing a command */

/* Banks that must not have a command of their own now: their rank rests, or a refresh goes before. */
static uint64_t barred_banks(const dram_engine *e) {
    const int in_rank = e->c->bank_groups * e->c->banks_per_group;
    uint64_t barred = 0;
    for (int r = 0; r < e->c->ranks; r++) {
        const dram_rank *rank = &e->rank[r];
        if (rank->resting || (rank->refresh_first && e->c->refresh == REFRESH_ALL_BANK)) barred |= rank->banks;
        else if (rank->refresh_first)
            for (int b = rank->refresh_bank; b < in_rank; b += e->c->refresh_sets) barred |= (uint64_t)1 << (r * in_rank + b);
    }
    return barred;
}

/* Issue what a bank can have: of the column commands that of the older request. */
static void issue_for(dram_engine *e, int64_t t, dram_bank *bank, const uint64_t *can) {
    if (can[NEXT_PRE] & bank->bit) {
        if (bank->queued) bank->conflicts++; else bank->idle_row = bank->row;
        precharge(e, t, bank);
    } else if (can[NEXT_RFM] & bank->bit) {
        issue(e, t, RFM, bank->rank, bank, NULL);
    } else if (bank->row == NONE) {
        activate(e, t, bank, &e->pool[bank->queue[0]]);
    } else {
        const int read = (can[NEXT_RD] & bank->bit) != 0, write = ((can[NEXT_WR] | can[NEXT_MWR]) & bank->bit) != 0;
        const int at = !write || (read && bank->first_read < bank->first_write) ? bank->first_read : bank->first_write;
        const int command = e->pool[bank->queue[at]].command;
        if (e->c->tCAS_WCK && sync_first(e, t, bank->rank, command != RD)) return;
        serve(e, t, bank, at, command != MWR && closes_itself(e, bank, at) ? command + RDA - RD : command);
    }
}

/* Of the banks that ask for a command on some wires (`look`) take the next in turn, and issue it if it goes over `wires`.
 * Returns the wires that it went over. */
EW_INLINE int issue_in_turn(dram_engine *e, int64_t t, const int look, const int wires, int64_t *next) {
    uint64_t can[NEXT_KINDS] = {0};
    const int64_t when = find_issuable(e, t, e->refreshing || e->extras || e->c->power_down_cycles ? barred_banks(e) : 0, can, 0);
    const uint64_t rows = can[NEXT_ACT] | can[NEXT_PRE] | can[NEXT_RFM];
    uint64_t banks = look & ROW_WIRES ? rows : 0;
    if (look & COLUMN_WIRES) banks |= (can[NEXT_RD] | can[NEXT_WR] | can[NEXT_MWR]) & ~can[NEXT_PRE];
    if (!banks) {
        if (look & COLUMN_WIRES) *next = sooner(*next, when);
        return 0;
    }
    const uint64_t after = banks & ~(((uint64_t)2 << e->turn) - 1); /* the last one served */
    e->turn = lowest(after ? after : banks);
    const int used = rows >> e->turn & 1 ? ROW_WIRES : COLUMN_WIRES;
    if (!(used & wires)) return 0;
    issue_for(e, t, &e->bank[e->turn], can);
    return used;
}

/* Issue one command, if one can go over these wires: a refresh that is due, or what a bank asks for, the banks in turn. */
EW_INLINE int issue_one(dram_engine *e, int64_t t, const int wires, int64_t *next) {
    if (wires & ROW_WIRES)
        for (int r = 0; r < e->c->ranks; r++)
            if (e->rank[r].refresh_first && !e->rank[r].resting && try_refresh(e, t, r, next)) return ROW_WIRES;
    return issue_in_turn(e, t, wires, wires, next);
}

/* Two command buses: one command on each; or, in turn, the next bank's, and that of the bank after it unless it needs the
 * same wires, in which case nothing else goes over the others. */
static int issue_two(dram_engine *e, int64_t t, int64_t *next) {
    if (!e->c->dual_in_turn) {
        const int row = issue_one(e, t, ROW_WIRES, next);
        return row | issue_one(e, t, COLUMN_WIRES, next);
    }
    const int first = issue_one(e, t, ALL_WIRES, next);
    if (!first) return 0;
    int64_t *busy = &e->wires_free[first == COLUMN_WIRES], until = *busy;
    *busy = t; /* they do not matter in the choice of the next bank */
    issue_in_turn(e, t, ALL_WIRES, ALL_WIRES & ~first, next);
    *busy = until;
    return first;
}

/* ---- the queues before the banks */

/* Adaptive page: learn from each request that reaches a bank whether closing its last row early was right. */
static void learn_idle_limit(const dram_engine *e, dram_bank *bank, int32_t row) {
    if (bank->row == NONE && bank->idle_row == row && bank->idle_limit < 64 * e->c->page_idle_cycles) bank->idle_limit *= 2;
    else if (bank->row != NONE && bank->row != row && bank->idle_limit > 1) bank->idle_limit /= 2;
    bank->idle_row = NONE;
}

EW_INLINE int move_from(dram_engine *e, int kind, int32_t *queue, int32_t *length, int32_t *blocked) {
    const uint64_t room = e->banks_with_room;
    if (!(e->waiting_banks[kind] & room)) return 0;
    for (int at = *blocked; at < *length; at++) {
        const int32_t k = queue[at];
        const dram_node *node = &e->pool[k];
        const uint64_t bit = (uint64_t)1 << node->bank;
        if (!(room & bit)) continue;
        if (node->write && !e->c->strict_order && find_pending(e, node->burst, 0) != NONE) {
            if (!e->c->hazard_ends_drain) continue;
            e->draining = 0;
            *blocked = at;
            return 0;
        }
        dram_bank *bank = &e->bank[node->bank];
        if (e->c->page == PAGE_ADAPTIVE) learn_idle_limit(e, bank, node->row);
        bank->hit |= (uint64_t)(node->row == bank->row) << bank->queued;
        bank->write |= (uint64_t)node->write << bank->queued;
        bank->queue[bank->queued++] = k;
        e->busy_banks |= bit;
        if (bank->queued >= e->c->bank_queue_entries) e->banks_with_room &= ~bit;
        if (--e->waiting[kind][node->bank] == 0) e->waiting_banks[kind] &= ~bit;
        e->changed |= bit;
        e->queued++;
        e->rank[bank->rank].queued++;
        remove_at(queue, length, at);
        *blocked = at;
        return 1;
    }
    *blocked = *length;
    return 0;
}

EW_INLINE int move_read(dram_engine *e) { return move_from(e, 0, e->read_queue, &e->reads_waiting, &e->reads_blocked); }
static int move_write(dram_engine *e) { return move_from(e, 1, e->write_queue, &e->writes_waiting, &e->writes_blocked); }

/* Move one request to its bank: writes while draining, else reads. A write that is done by its command is waited for
 * like a read, so where nothing else is to be done such writes do not wait for more. */
EW_INLINE int move_request(dram_engine *e, int flush) {
    if (e->c->strict_order) return !e->queued && move_read(e);
    if (!e->draining) {
        if (e->writes_waiting >= e->c->write_high) e->draining = e->writes_waiting - e->c->write_low;
        else if (e->writes_waiting > e->c->write_idle && !e->queued) e->draining = e->writes_waiting;
        else if ((flush || !e->c->posted_writes) && !e->reads_waiting && !e->queued) e->draining = e->writes_waiting;
    }
    if (e->draining) {
        if (move_write(e)) {
            e->draining--;
            return 1;
        }
        /* A drain that ended may begin again in the next clock, and would for ever with nothing in the banks' queues. */
        if (e->c->hazard_ends_drain) return !e->draining && !e->queued && move_read(e);
        /* Writes that wait for an older read of the same burst must not keep that read from moving. */
        for (int at = 0; at < e->writes_waiting && e->waiting_banks[0] & e->banks_with_room; at++) {
            const dram_node *node = &e->pool[e->write_queue[at]];
            if (find_pending(e, node->burst, 0) != NONE) return move_read(e);
        }
        return 0;
    }
    return move_read(e);
}

/* Whether move_request may find something to do: some request has room at its bank, or writes may begin to be drained. */
static inline int can_move(const dram_engine *e, int flush) {
    return (e->waiting_banks[0] & e->banks_with_room) || e->draining || e->writes_waiting > e->c->write_idle ||
           e->writes_waiting >= e->c->write_high || (e->writes_waiting && (flush || !e->c->posted_writes));
}

/* ---- one cycle */

#include "dram/pooled.h"

/* End a cycle: move a request to its bank, and find the next cycle. next: that without what was issued or moves. */
EW_INLINE void end_cycle(dram_engine *e, int64_t t, int flush, int issued, int64_t next) {
    int moved = move_request(e, flush);
    /* Another request may move in the next clock; and where a rank looks at what is queued for it, that has changed. */
    const int reads_can = (e->waiting_banks[0] & e->banks_with_room) != 0, full = e->writes_waiting >= e->c->write_high;
    int more = moved ? reads_can || e->draining || full || e->extras
                     : e->c->hazard_ends_drain && !e->c->strict_order && !e->draining && reads_can && !full; /* one ended */
    if (more || ((issued || moved) && (e->refreshing || e->c->power_down_cycles || e->extras))) next = t + 1;
    else if (issued || moved) next = sooner(next, next_issuable(e, t));
    e->next_event = later(next, t + 1);
}

/* Look after refreshes and the states of the ranks; returns when to do so again. */
static int64_t maintain_ranks(dram_engine *e, int64_t t, int64_t *next) {
    int64_t refresh_at = NEVER;
    e->refreshing = 0;
    for (int r = 0; r < e->c->ranks; r++) {
        dram_rank *rank = &e->rank[r];
        refresh_comes_due(e, rank, t);
        int asleep = 0;
        rank->refresh_first = rank->refresh_due > 0;
        if (e->extras) {
            if (e->c->refresh_postpone || e->c->refresh_pull_in) rank->refresh_first = refresh_wanted(e, t, r, next);
            if ((e->c->self_refresh_cycles || rank->in_self_refresh) && try_self_refresh(e, t, r, next)) *next = t + 1, asleep = 1;
            asleep |= rank->in_self_refresh;
        }
        e->refreshing |= rank->refresh_first;
        refresh_at = sooner(refresh_at, rank->next_refresh);
        if ((e->c->power_down_cycles || rank->powered_down) && !asleep && try_power(e, t, r, next)) *next = t + 1;
    }
    *next = sooner(*next, refresh_at);
    return e->refreshing || e->extras || e->c->power_down_cycles ? 0 : refresh_at;
}

static void process(dram_engine *e, int64_t t, int flush) {
    if (e->c->pooled) {
        process_pooled(e, t);
        return;
    }
    int64_t next = NEVER;
    int issued;
    e->now = t;
    if (!e->queued && !e->reads_waiting) e->last_progress = t;
    if (t < e->next_event && !e->extras && !e->c->power_down_cycles) { /* only a request came: no command can go before */
        if (can_move(e, flush)) end_cycle(e, t, flush, 0, e->next_event);
        return;
    }
    if (t >= e->upkeep_at) e->upkeep_at = maintain_ranks(e, t, &next); else next = e->upkeep_at;
    if (e->second_act_by && t >= e->second_act_by) { /* ACT-2 can wait no longer */
        issue(e, t, ACT2, e->second_act_bank->rank, e->second_act_bank, NULL);
    }
    if (e->c->command_buses == 2) {
        issued = issue_two(e, t, &next);
    } else {
        issued = issue_one(e, t, ALL_WIRES, &next);
    }
    if (e->second_act_by) {
        if (t > e->second_act_by - e->c->second_act && wires_ready(e, ACT2) <= t) { /* a clock that nothing else wants */
            issue(e, t, ACT2, e->second_act_bank->rank, e->second_act_bank, NULL);
            issued = 1;
        }
        next = t + 1;
    }
    end_cycle(e, t, flush, issued, next);
}
