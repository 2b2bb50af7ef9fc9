/* What a command changes: the earliest cycles of others, rows, background time, command wires, trace, completions. */
#pragma once

#include "dram/state.h"

/* ---- the command wires: ones and rising edges per wire, counted in batches: the beats
 * of a command stand side by side in one word, so all of its edges are found at once. */

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

static inline uint64_t rotated(uint64_t word, int bits) { return word << (bits & 63) | word >> (-bits & 63); }

/* Play a command's levels on the command wires: they rest at their idle level unless one command follows directly on
 * another. */
static void drive_command_wires(dram_engine *e, int64_t t, int command, const dram_bank *bank, int row, int column) {
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
        for (int k = 0; k < beats->n; k++) levels |= rotated(word, beats->turn[k]) & beats->mask[k];
        const uint64_t edges = (levels ^ idle) & ~((levels << wires | before) ^ idle) & beats->used;
        const dram_pair both = {levels, edges};
        e->ca_levels[e->n_levels++] = both;
        before = levels >> (beats->beats - 1) * wires;
    }
    e->ca_last = before;
    e->ca_end = t + tables->level_clocks[command];
}

/* ---- when a command may go */

static inline int is_column(int command) { return (command >= RD && command <= WRA) || command == MWR; }

static inline int64_t earliest(const dram_engine *e, const dram_bank *bank, int command) {
    const dram_rank *rank = &e->rank[bank->rank];
    int64_t t = later(bank->ready[command], rank->ready[command]);
    if (e->c->bank_groups > 1) t = later(t, e->group_ready[bank->group][command]);
    if (command == ACT) t = later(t, rank->acts[rank->act_index] + e->c->tFAW);
    return t;
}

static inline int64_t wires_ready(const dram_engine *e, int command) {
    return e->wires_free[e->c->command_buses == 2 && is_column(command)];
}

/* ---- what a command changes */

/* Background time up to `now`. Refreshing and a pending auto-precharge count as open, as in DRAMPower. */
static void account(dram_rank *rank, int64_t now) {
    int64_t span = now - rank->accounted;
    if (span <= 0) return;
    if (rank->in_self_refresh) {
        int64_t active = later(0, sooner(rank->refreshing_until, now) - rank->accounted);
        rank->clocks[ACTIVE] += active;
        rank->clocks[ASLEEP] += span - active;
    } else if (rank->powered_down) {
        if (rank->open) rank->clocks[DOWN_ACTIVE] += span; else rank->clocks[DOWN_PRECHARGED] += span;
    } else {
        int64_t active = rank->open ? span : later(0, sooner(rank->refreshing_until, now) - rank->accounted);
        rank->clocks[ACTIVE] += active;
        rank->clocks[PRECHARGED] += span - active;
    }
    rank->accounted = now;
}

static void close_row(dram_engine *e, dram_bank *bank) {
    bank->row = NONE;
    bank->hits = 0;
    bank->hit = 0;
    e->changed |= bank->bit;
    e->rank[bank->rank].open--;
}

/* Nothing of a table before its gap after cycle t. */
static inline void hold(int64_t *ready, const dram_gaps *gaps, int64_t t) {
    for (int k = 0; k < gaps->n; k++) {
        int64_t *held = &ready[gaps->gap[k].to];
        *held = later(*held, t + gaps->gap[k].clocks);
    }
}

/* The same for the banks of a group, whose candidates for such a command are not ready any more. */
static inline void hold_group(dram_engine *e, const dram_bank *bank, const dram_gaps *gaps, int64_t t) {
    if (e->c->bank_groups == 1) return;
    const uint64_t banks = first_banks(e->c->banks_per_group) << bank->group * e->c->banks_per_group;
    hold(e->group_ready[bank->group], gaps, t);
    for (int kind = 0; kind < NEXT_KINDS; kind++) {
        const int64_t ready = e->group_ready[bank->group][command_of[kind]];
        if (!(e->ready_banks[kind] & banks) || ready <= t) continue;
        e->ready_banks[kind] &= ~banks;
        e->ready_from[kind] = sooner(e->ready_from[kind], ready);
    }
}

/* A refresh makes good for as many activates as ask for refresh management. */
static inline void credit_refresh(const dram_engine *e, dram_bank *bank) {
    bank->activates = bank->activates > e->c->rfm_limit ? bank->activates - e->c->rfm_limit : 0;
}

/* Record a command and let every constraint that follows from it hold. `bank` is NULL for a rank command. */
EW_INLINE void record(dram_engine *e, int64_t t, const int command, int r, dram_bank *bank, const dram_node *node) {
    dram_rank *rank = &e->rank[r];
    const dram_gaps(*gaps)[COMMANDS] = e->tables->gaps;
    if (command != RD && command != WR) account(rank, t); /* after which it is as open as before */
    rank->count[command]++;
    hold(rank->ready, &gaps[SAME_RANK][command], t);
    if (bank) {
        hold(bank->ready, &gaps[SAME_BANK][command], t);
        hold_group(e, bank, &gaps[SAME_GROUP][command], t);
        bank->count[command]++;
    }
    if (e->c->ranks > 1 && is_column(command)) { /* ranks on the same data wires */
        const int together = e->c->ranks / e->c->pseudo_channels, first = r / together * together;
        for (int other = first; other < first + together; other++)
            if (other != r) hold(e->rank[other].ready, &gaps[OTHER_RANK][command], t);
    }
    if (e->c->wire_cycles[command])
        e->wires_free[e->c->command_buses == 2 && is_column(command)] = t + e->c->wire_cycles[command];
    if (command != PDE && command != PDX) rank->last_command = t;
    if (e->c->self_refresh_cycles && (command == ACT || is_column(command))) rank->last_used = t;
    switch (command) {
    case ACT:
        bank->row = node->row;
        bank->hits = 0;
        for (int at = 0; at < bank->queued; at++)
            bank->hit |= (uint64_t)(e->pool[bank->queue[at]].row == bank->row) << at;
        rank->open++;
        rank->acts[rank->act_index] = t;
        rank->act_index = (rank->act_index + 1) & 3;
        bank->activates++;
        if (e->c->second_act) e->second_act_by = t + e->c->second_act, e->second_act_bank = bank;
        break;
    case ACT2:
        e->second_act_by = 0;
        break;
    case RDA:
    case WRA: { /* the bank closes itself as soon as tRAS, tRTP and tWR allow */
        int64_t closes = later(t + (command == RDA ? e->c->tRTP : e->c->write_recovery), bank->ready[PRE]);
        bank->ready[ACT] = later(bank->ready[ACT], closes + e->c->tRP);
        bank->ready[REFAB] = later(bank->ready[REFAB], closes + e->c->tRP);
        bank->ready[REFPB] = later(bank->ready[REFPB], closes + e->c->tRP);
        bank->ready[RFM] = later(bank->ready[RFM], closes + e->c->tRP);
        rank->ready[PDE] = later(rank->ready[PDE], closes + e->c->tRP);
        rank->refreshing_until = later(rank->refreshing_until, closes);
        close_row(e, bank);
        break;
    }
    case PRE:
        close_row(e, bank);
        break;
    case PREA:
        for (int b = 0; b < e->n_banks; b++)
            if (e->bank[b].rank == r && e->bank[b].row != NONE) {
                e->bank[b].count[PREA]++;
                close_row(e, &e->bank[b]);
            }
        break;
    case REFAB:
        rank->refreshing_until = later(rank->refreshing_until, t + e->c->tRFCab);
        rank->refresh_first = --rank->refresh_due >= later(e->c->refresh_postpone, 1);
        rank->refreshed[0] = rank->refreshes[rank->refresh_index] = t;
        rank->refresh_index = (rank->refresh_index + 1) & 15;
        for (int b = 0; e->c->rfm_limit && b < e->n_banks; b++)
            if (e->bank[b].rank == r) credit_refresh(e, &e->bank[b]), e->changed |= (uint64_t)1 << b;
        break;
    case REFPB:
        rank->refreshing_until = later(rank->refreshing_until, t + e->c->tRFCpb);
        rank->refresh_first = --rank->refresh_due >= later((int64_t)e->c->refresh_postpone * e->c->refresh_sets, 1);
        rank->refreshed[rank->refresh_bank] = t;
        rank->refresh_bank = (rank->refresh_bank + 1) % e->c->refresh_sets;
        credit_refresh(e, bank);
        for (dram_bank *other = bank + e->c->refresh_sets; other < e->bank + e->n_banks && other->rank == r;
             other += e->c->refresh_sets) { /* the other banks of its set */
            e->changed |= other->bit;
            credit_refresh(e, other);
            hold(other->ready, &gaps[SAME_BANK][REFPB], t);
            hold_group(e, other, &gaps[SAME_GROUP][REFPB], t);
        }
        break;
    case PDE:
        rank->powered_down = rank->resting = 1;
        rank->powered_down_at = t;
        break;
    case PDX:
        rank->powered_down = rank->resting = 0;
        break;
    case RFM:
        rank->refreshing_until = later(rank->refreshing_until, t + e->c->tRFM);
        credit_refresh(e, bank);
        break;
    case SRE: /* begins with a refresh; the DRAM refreshes itself from then on */
        rank->refreshing_until = later(rank->refreshing_until, t + e->c->tRFCab);
        rank->in_self_refresh = rank->resting = 1;
        rank->sleeps_since = t;
        rank->next_refresh = NEVER;
        rank->refresh_due = 0;
        break;
    case SRX: /* one more refresh is due after it */
        rank->in_self_refresh = rank->resting = 0;
        rank->next_refresh = t + e->c->tREFI;
        rank->refresh_due = 1;
        for (int x = 0; x < e->c->refresh_sets; x++) rank->refreshed[x] = t;
        break;
    }
    if (bank) e->changed |= bank->bit;
    const int row = command == ACT || is_column(command) ? node->row : command == ACT2 ? bank->row : 0;
    const int column = is_column(command) ? node->column : 0;
    drive_command_wires(e, t, command, bank, row, column);
    if (e->trace) {
        dram_command *out = &e->trace[e->n_trace++];
        out->cycle = t, out->command = command, out->rank = r;
        out->request = node && is_column(command) ? node->id : NONE;
        out->group = bank ? bank->group_number : 0, out->bank = bank ? bank->number : 0;
        out->row = row, out->column = column;
    }
}

static void issue(dram_engine *e, int64_t t, int command, int r, dram_bank *bank, const dram_node *node) {
    record(e, t, command, r, bank, node);
}

/* The same for the most frequent ones, each compiled by itself. */
static void activate(dram_engine *e, int64_t t, dram_bank *bank, const dram_node *node) {
    record(e, t, ACT, bank->rank, bank, node);
}

static void precharge(dram_engine *e, int64_t t, dram_bank *bank) { record(e, t, PRE, bank->rank, bank, NULL); }

EW_INLINE void issue_column(dram_engine *e, int64_t t, int command, dram_bank *bank, const dram_node *node) {
    if (command == RD) record(e, t, RD, bank->rank, bank, node);
    else issue(e, t, command, bank->rank, bank, node);
}

/* ---- completion */

/* Note the refresh of a rank whose time has come. */
static inline void refresh_comes_due(const dram_engine *e, dram_rank *rank, int64_t t) {
    if (t < rank->next_refresh) return;
    rank->refresh_due++;
    rank->next_refresh += refresh_interval(e->c);
}

static inline void complete(dram_engine *e, int64_t id, int64_t accepted, int64_t cycle) {
    dram_output *out = e->out;
    out->done_id[out->n_done] = id;
    if (out->done_bursts) out->done_bursts[out->n_done] = out->bursts;
    out->done_accepted[out->n_done] = accepted;
    out->done_cycle[out->n_done++] = cycle;
    e->counts.last_done = later(e->counts.last_done, cycle);
}

static inline void has_no_burst(dram_engine *e, int64_t id) {
    if (e->out->unsent_id) e->out->unsent_id[e->out->n_unsent++] = id;
}

static inline void note_latency(dram_engine *e, int64_t latency) {
    e->counts.read_latency_cycles += latency;
    e->counts.max_read_latency_cycles = later(e->counts.max_read_latency_cycles, latency);
}

/* A request's column command is out: its burst is on the wires, and reads, those merged with it too, are on their way. */
static void leave(dram_engine *e, int64_t t, dram_bank *bank, int32_t k, int command) {
    dram_node *node = &e->pool[k];
    if (bank->hits++) { /* not the first after the activate */
        bank->row_hits++;
        if (node->write) e->counts.write_row_hits++; else e->counts.read_row_hits++;
    }
    issue_column(e, t, command, bank, node);
    bank->last_column = t;
    e->counts.data_clock_cycles += sooner(t - e->last_burst, e->c->clock_run_on);
    e->last_burst = t;
    e->last_progress = t;
    e->out->bursts++;
    if (e->out->sent_id) {
        const int pseudo = e->c->pseudo_channels;
        e->out->sent_channel[e->out->n_sent] = (uint8_t)(e->number * pseudo + bank->rank * pseudo / e->c->ranks);
        e->out->sent_id[e->out->n_sent++] = node->id;
    }
    drop_pending(e, k);
    if (node->write) {
        e->counts.last_data = later(e->counts.last_data, t + e->c->write_data_end);
        if (!e->c->posted_writes) {
            complete(e, node->id, node->taken, t);
            e->pending_reads--;
        }
        e->free_nodes[e->n_free++] = k;
        e->pending--;
        return;
    }
    int64_t done = t + e->c->read_data_end + e->c->controller_latency_cycles - 1;
    e->counts.last_data = later(e->counts.last_data, t + e->c->read_data_end);
    while (k != NONE) {
        node = &e->pool[k];
        complete(e, node->id, node->accepted, done);
        note_latency(e, done - node->accepted);
        send_back(&e->flight, done, node->line);
        e->free_nodes[e->n_free++] = k;
        e->pending--;
        e->pending_reads--;
        k = node->merged;
    }
}

/* Start the data clock for a column command that could go now; returns 0 where it runs. */
static int sync_first(dram_engine *e, int64_t t, int r, int write) {
    int64_t run = write ? e->c->sync_after_write : e->c->sync_after_read;
    if (!e->c->tCAS_WCK) return 0;
    if (t <= e->clock_until) {
        e->clock_until = later(e->clock_until, t + run);
        return 0;
    }
    issue(e, t, CAS, r, NULL, NULL);
    e->wires_free[0] = e->wires_free[1] = t + e->c->tCAS_WCK;
    e->clock_until = t + e->c->tCAS_WCK + run;
    return 1;
}

/* Serve one request of a bank's queue. */
static inline void serve(dram_engine *e, int64_t t, dram_bank *bank, int at, int command) {
    int32_t k = bank->queue[at];
    bank->hit = without(bank->hit, at), bank->write = without(bank->write, at);
    remove_at(bank->queue, &bank->queued, at);
    if (!bank->queued) e->busy_banks &= ~bank->bit;
    e->reads_blocked = e->writes_blocked = 0; /* there is room in a bank's queue again */
    e->banks_with_room |= bank->bit;
    e->queued--;
    e->rank[bank->rank].queued--;
    leave(e, t, bank, k, command);
}
