/* The front end and the loop over cycles: ports offer their requests in order, channels take them.
 *
 * At each processed cycle the front end accepts at most `width` requests over all channels, one per channel, the ports
 * in turn; then every channel that has something to do does it (engine.h). A port whose next request finds no room waits
 * with all that is behind it, whichever channels those are for. */
#pragma once

#include "dram/engine.h"

/* ---- a channel left to itself: refreshes and power-down; equal periods of a long idle time are counted */

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
    return refresh_interval(e->c) * (e->c->refresh == REFRESH_PER_BANK ? e->c->refresh_sets : 1);
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
        for (int x = 0; x < BACKGROUNDS; x++) rank->clocks[x] += k * (rank->clocks[x] - was->clocks[x]);
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
    e->now += shift, e->last_progress += shift;
    if (e->next_event != NEVER) e->next_event += shift;
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

/* ---- acceptance */

static inline int32_t channel_of(const dram_memory *m, uint64_t address) {
    const dram_config *c = m->channel[0]->c;
    uint64_t channel = 0;
    for (int f = 0; f < c->n_fields; f++)
        if (c->field_kind[f] == FIELD_CHANNEL)
            channel |= (address >> c->field_source[f] & (((uint64_t)1 << c->field_bits[f]) - 1)) << c->field_target[f];
    return (int32_t)channel;
}

/* Call whenever a port's next request is another one. */
static inline void port_moved(const dram_memory *m, dram_port *port) {
    if (m->n_channels > 1 && port->next < port->length) port->channel = channel_of(m, port->address[port->next]);
}

static inline int has_room(const dram_engine *e, int write) {
    if (e->n_free == 0) return 0;
    if (write && !e->c->strict_order) return e->writes_waiting < e->c->write_queue_entries;
    return e->reads_waiting < e->c->read_queue_entries;
}

/* Earliest cycle at which a port can hand over its next request, NEVER while a queue is full.
 *
 * Relative arrivals say how many clocks after the last access the next one is made (the port's own time: that of its
 * source, which stands still while the source waits); negative: a further request of the same access. */
static inline int64_t made_at(const dram_port *port) {
    int64_t arrival = port->arrival[port->next];
    return port->relative ? port->own_time + later(arrival, 0) : arrival;
}

/* Whether the next request begins a line, and as many as may be are in flight. */
static inline int short_of_lines(const dram_port *port) {
    return !port->write[port->next] && !port->line_left && port->in_flight >= port->limit;
}

static inline int64_t offer_cycle(const dram_memory *m, const dram_port *port) {
    const dram_engine *e = m->channel[port->channel];
    if (!has_room(e, port->write[port->next] != 0)) return NEVER;
    int64_t arrival = made_at(port);
    if (short_of_lines(port)) {
        int64_t first = first_back(&m->answered);
        for (int c = 0; c < m->n_channels; c++) first = sooner(first, first_back(&m->channel[c]->flight));
        arrival = later(arrival, first);
    }
    return arrival;
}

/* Count a read as part of its port's line; return the line's number. */
static int32_t in_line(dram_memory *m, dram_port *port) {
    if (!m->limited) return 0;
    if (!port->line_left) {
        port->line = m->n_free_lines ? m->free_lines[--m->n_free_lines] : m->n_lines++;
        port->line_left = m->lines[port->line].left = port->line_reads;
        m->lines[port->line].port = (int32_t)(port - m->port);
        port->in_flight++;
    }
    port->line_left--;
    return port->line;
}

/* Reads are back by t: with the last one of a line it no longer counts as in flight. */
static inline void land(dram_memory *m, dram_returns *ring, int64_t t) {
    for (; first_back(ring) <= t; ring->head = ring->head + 1 == ring->size ? 0 : ring->head + 1) {
        const int32_t line = ring->read[ring->head].line;
        if (--m->lines[line].left) continue;
        m->port[m->lines[line].port].in_flight--;
        m->free_lines[m->n_free_lines++] = line;
    }
}

static void count_waiting(dram_memory *m, int64_t t, dram_port *port) {
    if (port->offered < t) {
        port->waited += t - port->offered;
        port->waited_bursts += m->out.bursts - port->bursts;
        if (port->short_of_lines) port->waited_for_line += t - port->offered;
    }
    port->offered = NEVER, port->bursts = m->out.bursts;
}

/* Note which requests begin to wait. A further one of an access waits from the clock after the one before it. */
static void note_waiting(dram_memory *m, int64_t t, int n_ports) {
    for (int p = 0; p < n_ports; p++) {
        dram_port *port = &m->port[p];
        if (port->next == port->length || port->offered != NEVER) continue;
        const int64_t at = port->arrival[port->next] < 0 ? port->last_accepted + 1 : made_at(port);
        if (at > t) continue;
        port->offered = at, port->bursts = m->out.bursts;
        port->short_of_lines = short_of_lines(port) && has_room(m->channel[port->channel], 0);
    }
}

/* Where an address lies. */
static inline void place_node(const dram_engine *e, uint64_t address, dram_node *node) {
    int32_t value[FIELD_KINDS] = {0};
    for (int f = 0; f < e->c->n_fields; f++)
        value[e->tables->field[f].kind] |=
            (int32_t)(address >> e->tables->field[f].source & e->tables->field[f].mask) << e->tables->field[f].target;
    node->row = value[FIELD_ROW], node->column = value[FIELD_COLUMN];
    node->bank = (int16_t)((value[FIELD_RANK] * e->c->bank_groups + value[FIELD_GROUP]) * e->c->banks_per_group + value[FIELD_BANK]);
}

static void accept(dram_memory *m, int64_t t, int p) {
    dram_port *port = &m->port[p];
    dram_engine *e = m->channel[port->channel];
    uint64_t address = port->address[port->next];
    int write = port->write[port->next] != 0;
    int masked = e->c->masked_writes && port->write[port->next] == 2;
    int64_t id = port->request[port->next];
    int64_t burst = (int64_t)(address >> e->c->offset_bits);
    int32_t line = write ? 0 : in_line(m, port);
    if (m->limited) count_waiting(m, t, port);
    if (port->relative) { /* a further request of an access costs its source only the clocks beyond one per request */
        int64_t gap = port->arrival[port->next];
        port->own_time = gap >= 0 ? t : port->own_time + later(t - port->last_accepted - 1, 0);
    }
    port->next++;
    port->last_accepted = e->last_accepted = t;
    m->entered |= (uint64_t)1 << port->channel;
    port_moved(m, port);
    if (!e->queued && !e->reads_waiting) e->last_progress = t;
    if (write) e->counts.writes++; else e->counts.reads++;
    int64_t posted = t + e->c->controller_latency_cycles;
    int32_t same_write = e->c->strict_order ? NONE : find_pending(e, burst, 1);
    if (write ? e->c->posted_writes : same_write != NONE) complete(e, id, t, posted);
    if (same_write != NONE) {
        if (write) { /* the waiting write takes the new data: the burst is the later one's */
            dram_node *waiting = &e->pool[same_write];
            if (!e->c->posted_writes) complete(e, waiting->id, waiting->taken, posted);
            e->counts.merged_writes++;
            has_no_burst(e, waiting->id);
            waiting->id = id, waiting->taken = t;
            if (!masked && waiting->command == MWR) { /* which may go earlier than what its bank waits for */
                waiting->command = WR;
                e->changed |= (uint64_t)1 << waiting->bank;
                e->next_event = sooner(e->next_event, t);
            }
        } else {
            e->counts.forwarded_reads++;
            if (m->limited) send_back(&m->answered, posted, line);
            has_no_burst(e, id);
            note_latency(e, e->c->controller_latency_cycles);
        }
        return;
    }
    int32_t k = e->free_nodes[--e->n_free];
    dram_node *node = &e->pool[k];
    place_node(e, address, node);
    node->id = id, node->burst = burst, node->accepted = node->taken = t;
    node->write = (uint8_t)write, node->command = masked ? MWR : write ? WR : RD, node->line = line, node->merged = NONE;
    e->pending++;
    if (!write || !e->c->posted_writes) e->pending_reads++;
    if (!write) {
        int32_t same_read = e->c->strict_order || e->c->pooled ? NONE : find_pending(e, burst, 0);
        if (same_read != NONE) { /* one burst answers both */
            node->merged = e->pool[same_read].merged;
            e->pool[same_read].merged = k;
            e->counts.merged_reads++;
            has_no_burst(e, id);
            return;
        }
    }
    add_pending(e, k);
    int kind = write && !e->c->strict_order;
    if (kind) e->write_queue[e->writes_waiting++] = k; else e->read_queue[e->reads_waiting++] = k;
    e->waiting[kind][node->bank]++;
    e->waiting_banks[kind] |= (uint64_t)1 << node->bank;
}

static void land_reads(dram_memory *m, int64_t t) {
    land(m, &m->answered, t);
    for (int c = 0; c < m->n_channels; c++) land(m, &m->channel[c]->flight, t);
}

static inline void accept_some(dram_memory *m, int64_t t, int n_ports) {
    int accepted = 0, before;
    do { /* another round only where more than one may enter in a clock */
        before = accepted;
        for (int k = 0, p = m->port_turn; k < n_ports; k++) {
            p = p + 1 >= n_ports ? 0 : p + 1;
            dram_port *port = &m->port[p];
            if (port->next == port->length || offer_cycle(m, port) > t) continue;
            if (accepted && m->channel[port->channel]->last_accepted == t) continue;
            m->port_turn = p;
            accept(m, t, p);
            if (++accepted == m->width) return;
        }
    } while (accepted > before);
}

/* ---- the loop */

/* Let the channels do what they have to do at t: those that took a request, and those whose time has come. */
static inline void process_due(dram_memory *m, int64_t t, int flush, int n_channels) {
    if (n_channels == 1) {
        dram_engine *e = m->channel[0];
        if (m->entered || e->next_event <= t || (flush && e->pending && !e->queued)) process(e, t, flush);
        m->next_event[0] = e->next_event;
        return;
    }
    uint64_t due = m->entered; /* channels */
    for (int c = 0; c < n_channels; c++) due |= (uint64_t)(m->next_event[c] <= t) << c;
    for (int c = 0; flush && c < n_channels; c++)
        due |= (uint64_t)(m->channel[c]->pending && !m->channel[c]->queued) << c;
    for (; due; due &= due - 1) {
        const int c = lowest(due);
        process(m->channel[c], t, flush);
        m->next_event[c] = m->channel[c]->next_event;
    }
}

/* One clock. A request may issue in the clock in which it is accepted; with pooled queues in the next one, but it may
 * take a place that becomes free in this one. */
static inline void step(dram_memory *m, int64_t t, int64_t offer, int flush, int n_channels, int n_ports) {
    const int commands_first = m->channel[0]->c->pooled;
    m->now = t;
    m->entered = 0;
    if (commands_first) process_due(m, t, flush, n_channels);
    if (m->limited) note_waiting(m, t, n_ports);
    if (offer <= t || commands_first) {
        if (m->limited) land_reads(m, t);
        accept_some(m, t, n_ports);
        if (m->limited) note_waiting(m, t, n_ports); /* what is due now waits while bursts of this clock begin */
    }
    if (!commands_first) {
        process_due(m, t, flush, n_channels);
        return;
    }
    for (; m->entered; m->entered &= m->entered - 1) {
        const int c = lowest(m->entered);
        m->next_event[c] = m->channel[c]->next_event = sooner(m->channel[c]->next_event, t + 1);
    }
}

static void note_events(dram_memory *m) {
    for (int c = 0; c < m->n_channels; c++) m->next_event[c] = m->channel[c]->next_event;
}

/* Let every channel do what it does by itself before cycle m->until; returns 0 if it is to be called again. */
static int run_all_alone(dram_memory *m) {
    int done = 1;
    for (int c = 0; c < m->n_channels; c++) done &= run_alone(m->channel[c], m->until - 1);
    note_events(m);
    return done;
}

/* Whether requests of some channel wait and no burst was served for longer than the watchdog allows, by cycle `when`. */
static int is_stuck(dram_memory *m, int64_t when) {
    int64_t since = NEVER;
    for (int c = 0; c < m->n_channels; c++) {
        const dram_engine *e = m->channel[c];
        if (e->queued || e->reads_waiting) since = sooner(since, e->last_progress);
    }
    m->moving = sooner(since, m->now);
    return since != NEVER && when - since > m->channel[0]->c->watchdog;
}

static int trace_full(const dram_memory *m) {
    for (int c = 0; c < m->n_channels; c++)
        if (m->channel[c]->trace_size - m->channel[c]->n_trace < TRACE_MARGIN) return 1;
    return 0;
}

/* Go on to the next phase; returns RUN_DONE after the last, RUN_SLICE if there is more to do. */
static int next_phase(dram_memory *m) {
    if (m->phase == COMPLETING) m->now = later(m->now, m->until - 1); /* up to there all channels have done what they do */
    m->until = 0;
    for (int c = 0; c < m->n_channels; c++) {
        const dram_engine *e = m->channel[c];
        m->until = later(m->until, m->phase == OFFERING ? e->counts.last_done : later(e->counts.last_done, e->counts.last_data));
        for (int r = 0; m->phase == COMPLETING && r < e->c->ranks; r++)
            for (int x = 0; x < COMMANDS; x++) m->completed[x] += e->rank[r].count[x];
    }
    if (m->phase == RESTING) return RUN_DONE;
    m->phase++;
    return RUN_SLICE;
}

/* What leaves must be taken before more can: completions, and what was sent where that is wanted. */
static inline int output_full(const dram_output *out) {
    return out->n_done > out->done_limit || out->n_sent > out->done_limit || out->n_unsent > out->done_limit;
}

EW_INLINE int run_cycles(dram_memory *m, int64_t slice, const int n_channels, const int n_ports) {
    const dram_config *config = m->channel[0]->c;
    const int traced = m->channel[0]->trace != NULL;
    const int64_t far = 16 * config->tREFI;
    note_events(m);
    for (; slice > 0; slice--) {
        int over = 1, busy = 0, parked = 0;
        int64_t offer = NEVER, limit = NEVER, when, quiet = 1; /* offer: the first that may come; quiet: none before */
        for (int p = 0; p < n_ports; p++) {
            const dram_port *port = &m->port[p];
            if (port->next < port->length) {
                if (port->next >= port->pause) return RUN_NEEDS_INPUT;
                busy = 1;
                int64_t at = offer_cycle(m, port);
                if (at == NEVER) quiet = 0; /* waits for a channel */
                offer = sooner(offer, at);
            } else if (!port->closed) {
                if (port->asleep > m->now + 1) limit = sooner(limit, port->asleep), busy = 1;
                else if (!port->parked) return RUN_NEEDS_INPUT;
                else parked = 1;
            } else {
                continue;
            }
            over = 0;
        }
        if (parked && !busy) return RUN_NEEDS_INPUT;
        if (output_full(&m->out) || (traced && trace_full(m))) return RUN_OUTPUT_FULL;
        when = offer = later(offer, m->now + 1);
        for (int c = 0; c < n_channels; c++) when = sooner(when, m->next_event[c]);
        if (limit != NEVER && when >= limit) {
            m->now = limit - 1;
            return RUN_NEEDS_INPUT;
        }
        const int flush = over && m->phase == DRAINING; /* no more writes come to fill the queue */
        if (over) {
            int pending = 0, reads = 0;
            if (m->phase == COMPLETING || m->phase == RESTING) {
                if (!run_all_alone(m)) return RUN_SLICE;
                if (next_phase(m) == RUN_DONE) return RUN_DONE;
                continue;
            }
            for (int c = 0; c < n_channels; c++) {
                const dram_engine *e = m->channel[c];
                pending += e->pending;
                reads += e->pending_reads;
                if (flush && e->pending && !e->queued) when = sooner(when, m->now + 1);
            }
            if (!(m->phase == OFFERING ? reads : pending)) {
                next_phase(m);
                continue;
            }
        }
        if (when == NEVER || (when - m->moving > config->watchdog && is_stuck(m, when))) return RUN_STUCK;
        if (busy && quiet && limit == NEVER && offer > when + far) {
            m->until = offer;
            if (!run_all_alone(m)) return RUN_SLICE;
            m->now = offer - 1;
            continue;
        }
        step(m, when, offer, flush, n_channels, n_ports);
    }
    return RUN_SLICE;
}

/* Run until input is needed, output is full, all is done, `slice` cycles were processed, or nothing moves any more. */
static int dram_run(dram_memory *m, int64_t slice) {
    if (m->n_channels == 1 && m->n_ports == 1) return run_cycles(m, slice, 1, 1); /* most parts: a loop of its own */
    return run_cycles(m, slice, m->n_channels, m->n_ports);
}
