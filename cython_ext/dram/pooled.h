/* One cycle of a channel with one queue for reads and one for writes (the generic controller of Ramulator 2).
 * The oldest request's command goes. A request for which a row was opened leaves its queue for a list that goes before
 * everything, refresh included; a refresh that is due keeps all others waiting. */
#pragma once

#include "dram/commands.h"

typedef struct { /* the best command of a queue: its place (NONE: nothing may go by now) and when another look is due */
    int32_t at, command, others; /* others: some request needs a command that goes over other wires */
    int64_t next;
} dram_choice;

/* The command a request needs next, and when it may go. */
static int64_t next_command(const dram_engine *e, const dram_node *node, int *command) {
    const dram_bank *bank = &e->bank[node->bank];
    *command = bank->row == NONE ? ACT : bank->row != node->row ? PRE : node->write ? WR : RD;
    int64_t when = later(earliest(e, bank, *command), wires_ready(e, *command));
    return *command == ACT && e->second_act_by ? NEVER : when; /* no ACT-1 between ACT-1 and ACT-2 */
}

static int is_opened_for(const dram_engine *e, int bank) {
    for (int k = 0; k < e->n_opened; k++)
        if (e->pool[e->opened[k]].bank == bank) return 1;
    return 0;
}

static int hit_by_older(const dram_engine *e, const int32_t *queue, int at) {
    const dram_node *node = &e->pool[queue[at]];
    for (int k = 0; k < at; k++) {
        const dram_node *older = &e->pool[queue[k]];
        if (older->bank == node->bank && older->row == e->bank[node->bank].row) return 1;
    }
    return 0;
}

static inline int goes_over(const dram_engine *e, int command, int wires) {
    return e->c->command_buses == 1 || wires & (is_column(command) ? COLUMN_WIRES : ROW_WIRES);
}

static dram_choice choose(const dram_engine *e, int64_t t, const int32_t *queue, int length, int wires) {
    dram_choice best = {NONE, COMMANDS, 0, NEVER};
    for (int at = 0; at < length; at++) {
        const dram_node *node = &e->pool[queue[at]];
        int command;
        const int64_t when = next_command(e, node, &command);
        if (!goes_over(e, command, wires)) {
            best.others = 1;
            continue;
        }
        if (when > t) {
            best.next = sooner(best.next, when);
            continue;
        }
        if (command == PRE && (is_opened_for(e, node->bank) || hit_by_older(e, queue, at))) continue;
        if (node->write && find_pending(e, node->burst, 0) != NONE) continue; /* not before a read of the same burst */
        best.at = at, best.command = command;
        return best;
    }
    return best;
}

/* Issue the chosen command of a queue. A column command first needs the data clock to run. */
static void go(dram_engine *e, int64_t t, dram_choice chosen, int32_t *queue, int32_t *length) {
    int32_t k = queue[chosen.at];
    const dram_node *node = &e->pool[k];
    dram_bank *bank = &e->bank[node->bank];
    if (chosen.command == PRE) {
        bank->conflicts++;
        issue(e, t, PRE, bank->rank, bank, NULL);
    } else if (chosen.command == ACT) {
        issue(e, t, ACT, bank->rank, bank, node);
        remove_at(queue, length, chosen.at);
        int at = e->n_opened++; /* oldest first */
        for (; at > 0 && e->pool[e->opened[at - 1]].accepted > node->accepted; at--) e->opened[at] = e->opened[at - 1];
        e->opened[at] = k;
    } else if (!sync_first(e, t, bank->rank, node->write)) {
        remove_at(queue, length, chosen.at);
        leave(e, t, bank, k, chosen.command);
    }
}

/* Close what is open, with one command, then refresh; no bank is closed before the request it was opened for is served. */
static int refresh_pooled(dram_engine *e, int64_t t, int r, int64_t *next) {
    dram_rank *rank = &e->rank[r];
    int all = e->c->refresh == REFRESH_ALL_BANK, in_rank = e->c->bank_groups * e->c->banks_per_group;
    int from = r * in_rank + (all ? 0 : rank->refresh_bank), step = all ? 1 : e->c->refresh_sets, open = 0;
    int64_t close_at = 0, refresh_at = 0;
    dram_bank *first = NULL; /* of the open banks of a per-bank refresh */
    for (int b = from; b < (r + 1) * in_rank; b += step) {
        dram_bank *bank = &e->bank[b];
        refresh_at = later(refresh_at, earliest(e, bank, all ? REFAB : REFPB));
        if (bank->row == NONE) continue;
        if (is_opened_for(e, b)) return 0;
        open++;
        close_at = all || !first ? later(close_at, earliest(e, bank, PRE)) : close_at;
        if (!first) first = bank;
    }
    int command = open ? (all ? PREA : PRE) : all ? REFAB : REFPB;
    int64_t when = later(open ? close_at : refresh_at, wires_ready(e, command));
    if (when > t) {
        *next = sooner(*next, when);
        return 0;
    }
    issue(e, t, command, r, all ? NULL : command == PRE ? first : &e->bank[from], NULL);
    return 1;
}

/* Where no write may go, ever, by itself: whether more of them than a drain leaves wait for queued reads of their bursts,
 * which it would keep waiting. With fewer of them the others wait for the row that they keep open, up to a refresh. */
static int drain_waits_for_reads(const dram_engine *e) {
    int held = 0;
    if (e->n_opened) return 0; /* goes first, and may be what they wait for */
    if (e->c->refresh == REFRESH_NONE) return 1;
    for (int at = 0; at < e->writes_waiting; at++) held += find_pending(e, e->pool[e->write_queue[at]].burst, 0) != NONE;
    return held > e->c->write_low;
}

/* Issue the command that goes first of those on these wires; returns 0 where none may. due: the rank that is to be
 * refreshed, or NONE. */
static int issue_pooled(dram_engine *e, int64_t t, int due, int wires, int64_t *next) {
    dram_choice chosen = choose(e, t, e->opened, e->n_opened, wires);
    *next = sooner(*next, chosen.next);
    if (chosen.at != NONE) {
        go(e, t, chosen, e->opened, &e->n_opened);
        return 1;
    }
    if (due != NONE) return wires & ROW_WIRES ? refresh_pooled(e, t, due, next) : 0;
    const int reads = e->reads_waiting, writes = e->writes_waiting;
    e->writing = !reads || (e->writing ? writes > e->c->write_low : writes >= e->c->write_high);
    if (e->writing) chosen = choose(e, t, e->write_queue, writes, wires);
    if (e->writing && reads && chosen.at == NONE && chosen.next == NEVER && !chosen.others && drain_waits_for_reads(e))
        e->writing = 0;
    int32_t *queue = e->writing ? e->write_queue : e->read_queue;
    int32_t *length = e->writing ? &e->writes_waiting : &e->reads_waiting;
    if (!e->writing) chosen = choose(e, t, queue, *length, wires);
    *next = sooner(*next, chosen.next);
    if (chosen.at == NONE) return 0;
    go(e, t, chosen, queue, length);
    return 1;
}

static void process_pooled(dram_engine *e, int64_t t) {
    int64_t next = NEVER;
    int issued = 0, due = NONE;
    e->now = t;
    if (!e->reads_waiting && !e->n_opened) e->last_progress = t;
    for (int r = 0; r < e->c->ranks; r++) {
        dram_rank *rank = &e->rank[r];
        refresh_comes_due(e, rank, t);
        if (rank->refresh_due && due == NONE) due = r;
        next = sooner(next, rank->next_refresh);
    }
    if (e->c->command_buses == 2) {
        issued = issue_pooled(e, t, due, COLUMN_WIRES, &next);
        issued |= issue_pooled(e, t, due, ROW_WIRES, &next);
    } else if (wires_ready(e, PRE) > t) {
        next = sooner(next, wires_ready(e, PRE));
    } else {
        const int forced = e->second_act_by && t >= e->second_act_by;
        if (!forced) issued = issue_pooled(e, t, due, ALL_WIRES, &next);
        if (!issued && e->second_act_by) { /* ACT-2 takes a clock that nothing else wants */
            issue(e, t, ACT2, e->second_act_bank->rank, e->second_act_bank, NULL);
            issued = 1;
        }
    }
    e->next_event = issued || e->second_act_by ? t + 1 : later(next, t + 1);
}
