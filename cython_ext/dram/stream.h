/* A sequential stream repeats itself: what a memory is like relative to its clock and to the next address, and so many
 * periods of it at once.
 *
 * Two moments whose states are equal, rows counted from that of the next address and times from the clock, are followed
 * by the same commands, if all that is below the rows of the address is the same, too. Only
 * commands that carry rows, and what follows them directly, are counted one by one. */
#pragma once

#include "dram/memory.h"

/* Bits of an address below which it must be the same; *turn: by how many bits the row lies below it. 0: no such place. */
static int stream_span(const dram_config *c, int *turn) {
    int span = c->offset_bits, found = 0;
    for (int f = 0; f < c->n_fields; f++)
        if (c->field_kind[f] != FIELD_ROW && c->field_source[f] + c->field_bits[f] > span) span = c->field_source[f] + c->field_bits[f];
    for (int f = 0; f < c->n_fields; f++) {
        const int below = c->field_source[f] - c->field_target[f];
        if (c->field_kind[f] != FIELD_ROW || c->field_source[f] < span) continue;
        if (below < 0 || (found++ && below != *turn)) return 0;
        *turn = below;
    }
    return found ? span : 0;
}

/* ---- state */

/* Clocks from t on; at least `least`, before which it makes no difference. */
static inline int64_t ahead_of(int64_t when, int64_t t, int64_t least) { return when == NEVER ? NEVER : later(when - t, least); }

static inline int64_t row_state(int32_t row, int32_t base) { return row == NONE ? NEVER : (int64_t)row - base; }

static int64_t *nodes_state(const dram_engine *e, const int32_t *queue, int n, int64_t t, int64_t burst, int32_t row, int64_t *to) {
    *to++ = n;
    for (int at = 0; at < n; at++) {
        const dram_node *node = &e->pool[queue[at]];
        *to++ = node->burst - burst, *to++ = node->accepted - t, *to++ = node->taken - t, *to++ = row_state(node->row, row);
        *to++ = (int64_t)node->column << 32 | node->bank << 16 | node->command << 8 | node->write << 1 | (node->merged != NONE);
    }
    return to;
}

static int64_t *rank_state(const dram_config *c, const dram_rank *rank, int64_t t, int extras, int64_t *to) {
    for (int x = 0; x < COMMANDS; x++) *to++ = ahead_of(rank->ready[x], t, 0);
    for (int x = 0; x < 4; x++) *to++ = ahead_of(rank->acts[(rank->act_index + x) & 3], t, -c->tFAW);
    *to++ = rank->refresh_due, *to++ = ahead_of(rank->next_refresh, t, INT64_MIN), *to++ = ahead_of(rank->refreshing_until, t, 0);
    *to++ = ahead_of(rank->last_command, t, -(int64_t)c->power_down_cycles - c->pull_in_idle);
    *to++ = rank->powered_down ? ahead_of(rank->powered_down_at, t, -c->tCKE) : 0;
    *to++ = rank->in_self_refresh ? ahead_of(rank->sleeps_since, t, -c->tCKE) : 0;
    *to++ = ahead_of(rank->last_used, t, -(int64_t)c->self_refresh_cycles);
    *to++ = rank->open, *to++ = rank->queued, *to++ = rank->refresh_bank, *to++ = rank->refresh_first;
    *to++ = rank->powered_down | rank->in_self_refresh << 1 | rank->resting << 2;
    for (int x = 0; extras && x < c->refresh_sets; x++) *to++ = ahead_of(rank->refreshed[x], t, -8 * c->tREFI);
    for (int x = 0; extras && x < 16; x++)
        *to++ = ahead_of(rank->refreshes[(rank->refresh_index + x) & 15], t, -3 * c->tREFI);
    return to;
}

/* Writes of the run before that wait while reads are served: only where they are counts, until they leave the queue. */
static int are_left(const dram_engine *e, int reads) { return reads && !e->c->pooled; }

static int64_t *channel_state(const dram_engine *e, int64_t t, int64_t burst, int32_t row, int reads, int64_t *to) {
    const dram_config *c = e->c;
    for (int k = 0; k < NEXT_KINDS; k++) {
        *to++ = (int64_t)e->candidates[k], *to++ = (int64_t)e->ready_banks[k];
        *to++ = e->candidates[k] ? ahead_of(e->ready_from[k], t, 0) : 0; /* without one they are set anew */
        *to++ = e->candidates[k] ? ahead_of(e->issue_from[k], t, 0) : 0;
    }
    *to++ = (int64_t)e->changed, *to++ = ahead_of(e->next_event, t, 0); /* ages_at: looked up again when it comes */
    *to++ = e->last_progress - t, *to++ = ahead_of(e->wires_free[0], t, 0), *to++ = ahead_of(e->wires_free[1], t, 0);
    *to++ = ahead_of(e->last_burst, t, -c->clock_run_on), *to++ = ahead_of(e->clock_until, t, -1), *to++ = ahead_of(e->ca_end, t, -1);
    *to++ = e->second_act_by ? e->second_act_by - t : NEVER, *to++ = e->second_act_by ? e->second_act_bank - e->bank : 0;
    *to++ = ahead_of(e->upkeep_at, t, 0), *to++ = e->turn, *to++ = e->draining, *to++ = e->writing, *to++ = e->refreshing;
    *to++ = e->queued, *to++ = e->pending, *to++ = e->pending_reads, *to++ = e->reads_blocked, *to++ = e->writes_blocked;
    *to++ = (int64_t)e->waiting_banks[0], *to++ = (int64_t)e->waiting_banks[1];
    *to++ = (int64_t)e->banks_with_room, *to++ = (int64_t)e->busy_banks;
    to = nodes_state(e, e->read_queue, e->reads_waiting, t, burst, row, to);
    if (are_left(e, reads)) {
        *to++ = e->writes_waiting;
        for (int at = 0; at < e->writes_waiting; at++) *to++ = e->pool[e->write_queue[at]].burst;
    } else {
        to = nodes_state(e, e->write_queue, e->writes_waiting, t, burst, row, to);
    }
    to = nodes_state(e, e->opened, e->n_opened, t, burst, row, to);
    for (int r = 0; r < c->ranks; r++) to = rank_state(c, &e->rank[r], t, e->extras, to);
    for (int b = 0; b < e->n_banks; b++) {
        const dram_bank *bank = &e->bank[b];
        for (int x = 0; x < COMMANDS; x++) *to++ = ahead_of(bank->ready[x], t, 0), *to++ = ahead_of(e->group_ready[b][x], t, 0);
        *to++ = c->page == PAGE_ADAPTIVE ? ahead_of(bank->last_column, t, -(int64_t)128 * c->page_idle_cycles) : 0;
        *to++ = ahead_of(bank->idles_until, t, 0), *to++ = (int64_t)bank->hit, *to++ = (int64_t)bank->write;
        *to++ = row_state(bank->row, row), *to++ = row_state(bank->idle_row, row), *to++ = sooner(bank->hits, c->hit_cap);
        *to++ = bank->idle_limit, *to++ = c->rfm_limit ? bank->activates : 0;
        *to++ = e->candidates[NEXT_RD] & bank->bit ? bank->first_read : NONE;
        *to++ = (e->candidates[NEXT_WR] | e->candidates[NEXT_MWR]) & bank->bit ? bank->first_write : NONE;
        *to++ = c->pooled ? 0 : (int64_t)e->waiting[0][b] << 32 | e->waiting[1][b]; /* pooled queues count what came */
        to = nodes_state(e, bank->queue, bank->queued, t, burst, row, to);
    }
    return to;
}

/* Numbers that the state of a memory takes at most. */
static int64_t state_room(const dram_memory *m) {
    const dram_engine *e = m->channel[0];
    return m->n_channels * (128 + e->c->ranks * (64 + MAX_BANKS) + e->n_banks * (2 * COMMANDS + 16) + 5 * (int64_t)e->pool_size);
}

/* Write the state of a memory whose next request is for `address`; returns its length. turn: of stream_span. reads: the
 * requests are. */
static int64_t stream_state(const dram_memory *m, uint64_t address, int span, int turn, int reads, int64_t *to) {
    const int64_t *start = to, t = m->now + 1;
    const uint64_t base = address >> span << span;
    *to++ = (int64_t)(address - base);
    for (int c = 0; c < m->n_channels; c++)
        to = channel_state(m->channel[c], t, (int64_t)(base >> m->channel[c]->c->offset_bits), (int32_t)(base >> turn), reads, to);
    return to - start;
}

static uint64_t state_hash(const int64_t *state, int64_t n) {
    uint64_t hash = 0x9E3779B97F4A7C15ull;
    for (int64_t k = 0; k < n; k++) {
        hash = (hash ^ (uint64_t)state[k]) * 0xD6E8FEB86659FD93ull;
        hash ^= hash >> 32;
    }
    return hash;
}

/* ---- one period */

typedef struct { /* a command on the command wires */
    uint64_t before; /* levels before it; known: these, for the command before is not in the log */
    int32_t command, bank, row, column, joined, known; /* joined: follows the one before directly */
} stream_command;

typedef struct { /* a channel while a period is measured */
    dram_engine *before, *wires; /* before: as it was; wires: its command wires, played again */
    stream_command *log, last;   /* log: the first and the last command, those with a row, and what follows these */
    int64_t n, room, commands;
    int32_t stored, rows[COMMANDS]; /* stored: the last command is in the log; rows: commands that carry a row */
    uint64_t first;               /* levels before the period */
} stream_period;

static void period_end(stream_period *p) {
    free(p->before), free(p->wires), free(p->log);
    memset(p, 0, sizeof *p);
}

/* Begin to measure a channel, up to and without clock t; returns 0 without memory. */
static int period_begin(stream_period *p, dram_engine *e, int64_t t) {
    unpack_levels(e);
    for (int r = 0; r < e->c->ranks; r++) account(&e->rank[r], t);
    p->before = EW_FOR(p->before) malloc(channel_bytes(e->n_banks));
    p->wires = EW_FOR(p->wires) calloc(1, sizeof *p->wires);
    if (!p->before || !p->wires) return 0;
    memcpy(p->before, e, channel_bytes(e->n_banks));
    p->wires->tables = e->tables, p->wires->c = e->c;
    p->wires->ca_end = e->ca_end, p->wires->ca_last = p->first = e->ca_last;
    p->stored = 1; /* the last command of the period before */
    for (int k = 0; k < COMMANDS; k++)
        for (int beat = 0; beat < e->c->ca_beats[k]; beat++)
            for (int x = 0; x < e->c->ca_level[k][beat].n_pieces; x++) p->rows[k] |= e->c->ca_level[k][beat].source[x] < COLUMN_BIT;
    return 1;
}

static int period_keep(stream_period *p) {
    if (p->n == p->room) {
        p->room = 2 * p->room + 1024;
        stream_command *longer = EW_FOR(longer) realloc(p->log, (size_t)p->room * sizeof *longer);
        if (!longer) return 0;
        p->log = longer;
    }
    p->log[p->n++] = p->last;
    return 1;
}

/* Take the commands that were issued since; returns 0 without memory. */
static int period_take(stream_period *p, dram_engine *e) {
    dram_engine *wires = p->wires;
    for (int64_t k = 0; k < e->n_trace; k++) {
        const dram_command *c = &e->trace[k];
        const int32_t bank = (c->rank * e->c->bank_groups + c->group) * e->c->banks_per_group + c->bank;
        if (!e->tables->n_beats[c->command]) continue;
        const int after_row = p->commands == 0 || p->rows[p->last.command], joined = c->cycle <= wires->ca_end;
        p->last = (stream_command){wires->ca_last, c->command, bank, c->row, c->column, joined, !p->stored};
        drive_command_wires(wires, c->cycle, c->command, &e->bank[bank], c->row, c->column);
        p->stored = p->commands++ == 0 || p->rows[c->command] || (joined && after_row);
        if (p->stored && !period_keep(p)) return 0;
    }
    e->n_trace = 0;
    return 1;
}

/* Play the command wires of the log `times` times, each time `rows` rows further on. */
static void play_log(stream_period *p, const dram_engine *e, int64_t times, int32_t rows, int32_t from) {
    dram_engine *wires = p->wires;
    memset(wires->ca_ones, 0, sizeof wires->ca_ones), memset(wires->ca_rising, 0, sizeof wires->ca_rising);
    for (; times; times--, from += rows)
        for (int64_t k = 0; k < p->n; k++) {
            const stream_command *c = &p->log[k];
            if (c->joined && c->known) wires->ca_last = c->before;
            drive_command_wires(wires, wires->ca_end + !c->joined, c->command, &e->bank[c->bank], c->row + from, c->column);
        }
    unpack_levels(wires);
}

static void move_nodes(dram_engine *e, const int32_t *queue, int n, int64_t shift, int64_t bursts, int32_t rows) {
    for (int at = 0; at < n; at++) {
        dram_node *node = &e->pool[queue[at]];
        node->burst += bursts, node->accepted += shift, node->taken += shift, node->row += rows;
        add_pending(e, queue[at]);
    }
}

/* Repeat the period that was measured k times, in `shift` clocks, `bursts` and `rows` all in all. Returns 0 without
 * memory. */
static int period_repeat(
    stream_period *p, dram_engine *e, int64_t k, int64_t shift, int64_t bursts, int64_t rows, int reads
) {
    const int left = are_left(e, reads);
    int64_t ones[MAX_WIRES], rising[MAX_WIRES];
    const dram_engine *before = p->before;
    if (p->commands && !p->stored && !period_keep(p)) return 0;
    p->wires->n_levels = 0, p->wires->ca_last = p->first;
    play_log(p, e, 1, 0, 0);
    memcpy(ones, p->wires->ca_ones, sizeof ones), memcpy(rising, p->wires->ca_rising, sizeof rising);
    play_log(p, e, k, (int32_t)(rows / k), (int32_t)(rows / k));
    repeat_period(e, before, k, shift); /* and so for what else there is but refreshes */
    for (int w = 0; w < e->c->ca_wires; w++) {
        e->ca_ones[w] += p->wires->ca_ones[w] - k * ones[w];
        e->ca_rising[w] += p->wires->ca_rising[w] - k * rising[w];
    }
    if (p->commands) e->ca_last = p->wires->ca_last;
    dram_counts more = e->counts;
#define SUM(name) e->counts.name += k * (more.name - before->counts.name);
#define MOST(name)
    DRAM_COUNTS(SUM, MOST)
#undef SUM
#undef MOST
    e->counts.last_done += shift, e->counts.last_data += shift;
    for (int b = 0; b < e->n_banks; b++) {
        dram_bank *bank = &e->bank[b];
        bank->row_hits += k * (bank->row_hits - before->bank[b].row_hits);
        bank->conflicts += k * (bank->conflicts - before->bank[b].conflicts);
        if (bank->row != NONE) bank->row += (int32_t)rows;
        if (bank->idle_row != NONE) bank->idle_row += (int32_t)rows;
        bank->idles_until += shift;
    }
    for (int r = 0; r < e->c->ranks; r++) e->rank[r].last_used += shift;
    e->last_accepted += shift, e->last_burst += shift, e->clock_until += shift;
    if (e->second_act_by) e->second_act_by += shift;
    if (e->ages_at != NEVER) e->ages_at += shift;
    for (int chain = 0; chain <= e->chain_mask; chain++) e->chains[chain] = NONE;
    move_nodes(e, e->read_queue, e->reads_waiting, shift, bursts, (int32_t)rows);
    move_nodes(e, e->write_queue, e->writes_waiting, left ? 0 : shift, left ? 0 : bursts, left ? 0 : (int32_t)rows);
    for (int b = 0; b < e->n_banks; b++) move_nodes(e, e->bank[b].queue, e->bank[b].queued, shift, bursts, (int32_t)rows);
    /* Those of a pooled queue whose row was opened for them are still pending, too. */
    move_nodes(e, e->opened, e->n_opened, shift, bursts, (int32_t)rows);
    return 1;
}

static void memory_moved(dram_memory *m, int64_t shift, int64_t bursts) {
    m->now += shift, m->moving += shift, m->port[0].last_accepted += shift;
    m->out.bursts += bursts;
}
