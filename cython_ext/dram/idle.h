/* A channel left to itself: refreshes and power-down. Periods of a long idle time are alike, so they are counted. */
#ifndef EDGEWATT_DRAM_IDLE_H
#define EDGEWATT_DRAM_IDLE_H

#include "dram/engine.h"

/* Nothing but refresh and power-down until a request comes: rows are closed, writes that wait are too few to leave. */
static int is_idle(const dram_engine *e) {
    if ((e->c->pooled && (e->n_opened || e->writes_waiting)) || e->second_act_by) return 0;
    if (e->queued || e->reads_waiting || e->draining || e->writes_waiting > e->c->write_idle ||
        e->writes_waiting >= e->c->write_high)
        return 0;
    for (int r = 0; r < e->c->ranks; r++)
        if (e->rank[r].open) return 0;
    return 1;
}

static int64_t refresh_period(const dram_engine *e) { /* after so many clocks every bank had its turn */
    int64_t sets = e->c->refresh_sets;
    return e->c->refresh == REFRESH_PER_BANK ? e->c->tREFI / sets * sets : e->c->tREFI;
}

typedef struct { /* the state of an idle channel relative to a cycle, and its counts */
    int64_t next_event, next_refresh[MAX_RANKS], last_command[MAX_RANKS], down_at[MAX_RANKS], until[MAX_RANKS];
    int32_t due[MAX_RANKS], bank[MAX_RANKS], down[MAX_RANKS];
    int64_t refreshes[MAX_RANKS][16], refreshed[MAX_RANKS][MAX_BANKS], last_used[MAX_RANKS];
} dram_idle;

static dram_idle idle_state(const dram_engine *e, int64_t t) {
    dram_idle s;
    memset(&s, 0, sizeof s);
    s.next_event = e->next_event - t;
    for (int r = 0; r < e->c->ranks; r++) {
        const dram_rank *rank = &e->rank[r];
        s.next_refresh[r] = rank->next_refresh - t;
        s.last_command[r] = rank->last_command - t;
        for (int x = 0; x < e->c->refresh_sets && e->extras; x++) s.refreshed[r][x] = rank->refreshed[x] - t;
        s.last_used[r] = e->c->self_refresh_cycles ? rank->last_used - t : 0; /* on the way to self-refresh nothing repeats */
        s.until[r] = later(rank->refreshing_until - t, 0);
        s.due[r] = rank->refresh_due, s.bank[r] = rank->refresh_bank, s.down[r] = rank->powered_down;
        s.down_at[r] = rank->powered_down ? rank->powered_down_at - t : 0;
        for (int x = 0; x < 16; x++) /* those that hold nothing back any more are alike */
            s.refreshes[r][x] = later(rank->refreshes[(rank->refresh_index + x) & 15] - t, -3 * e->c->tREFI);
    }
    return s;
}

/* Repeat the last period, in which the counts went from `before` to what they are, k times. */
static void repeat_period(dram_engine *e, const dram_engine *before, int64_t k, int64_t shift) {
    for (int r = 0; r < e->c->ranks; r++) {
        dram_rank *rank = &e->rank[r];
        const dram_rank *was = &before->rank[r];
        rank->active += k * (rank->active - was->active);
        rank->precharged += k * (rank->precharged - was->precharged);
        rank->down_active += k * (rank->down_active - was->down_active);
        rank->down_precharged += k * (rank->down_precharged - was->down_precharged);
        rank->asleep += k * (rank->asleep - was->asleep);
        for (int x = 0; x < COMMANDS; x++) {
            rank->count[x] += k * (rank->count[x] - was->count[x]);
            rank->ready[x] += shift;
        }
        for (int x = 0; x < 4; x++) rank->acts[x] += shift;
        for (int x = 0; x < 16; x++) rank->refreshes[x] += shift;
        for (int x = 0; x < MAX_BANKS; x++) rank->refreshed[x] += shift;
        if (rank->next_refresh != NEVER) rank->next_refresh += shift;
        rank->sleeps_since += shift, rank->refreshing_until += shift, rank->accounted += shift;
        rank->last_command += shift, rank->powered_down_at += shift;
    }
    for (int b = 0; b < e->n_banks; b++) {
        dram_bank *bank = &e->bank[b];
        for (int x = 0; x < COMMANDS; x++) {
            bank->count[x] += k * (bank->count[x] - before->bank[b].count[x]);
            bank->ready[x] += shift;
            e->group_ready[b][x] += shift;
        }
        bank->last_column += shift;
    }
    for (int w = 0; w < e->c->ca_wires; w++) {
        e->ca_ones[w] += k * (e->ca_ones[w] - before->ca_ones[w]);
        e->ca_rising[w] += k * (e->ca_rising[w] - before->ca_rising[w]);
    }
    e->changed = all_banks(e), e->upkeep_at = 0;
    e->wires_free[0] += shift, e->wires_free[1] += shift, e->ca_end += shift;
    e->now += shift, e->next_event += shift, e->last_progress += shift;
}

/* Let a channel do what it does by itself up to and with cycle `limit`. Where it idles long, one period between
 * refreshes is played and the others, which are equal, are counted. Returns 0 if it stopped to let the caller take the
 * trace or answer signals. */
static int run_alone(dram_engine *e, int64_t limit) {
    int64_t period = refresh_period(e), settled = 0, base = 0;
    dram_idle state;
    dram_engine *before = NULL;
    int steps = 1 << 16, done = 1;
    while (e->next_event <= limit) {
        if (!steps-- || (e->trace && e->trace_size - e->n_trace < TRACE_MARGIN)) {
            done = 0;
            break;
        }
        /* Two periods to settle, one to measure, and at least one to repeat. */
        if (e->trace || e->c->refresh == REFRESH_NONE || !is_idle(e)) {
            settled = 0;
            free(before);
            before = NULL;
        } else if (!settled) settled = limit - e->next_event > 8 * period ? e->next_event + 2 * period : NEVER;
        else if (e->next_event >= settled) {
            unpack_levels(e);
            for (int r = 0; r < e->c->ranks; r++) account(&e->rank[r], settled);
            if (!before) {
                before = EW_FOR(before) malloc(channel_bytes(e->n_banks));
                if (before) memcpy(before, e, channel_bytes(e->n_banks));
                state = idle_state(e, settled);
                base = settled;
                settled = before ? base + period : NEVER;
            } else {
                dram_idle now = idle_state(e, settled);
                int64_t k = (limit - settled) / period - 1;
                if (!memcmp(&now, &state, sizeof now) && k > 0) repeat_period(e, before, k, k * period);
                settled = NEVER; /* once is enough: what is left is less than two periods */
            }
        }
        process(e, e->next_event, 0);
    }
    free(before);
    return done;
}

#endif
