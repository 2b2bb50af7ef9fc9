/* State of a memory: channels with their queues, banks and the earliest cycle of each command; ports before them. */
#pragma once

#include "common/inline.h"
#include "dram/tables.h"

#ifdef __cplusplus /* C++ does not turn void * into other pointers by itself */
#define EW_FOR(pointer) (decltype(pointer))
#else
#define EW_FOR(pointer)
#endif

enum { ROW_WIRES = 1, COLUMN_WIRES = 2, ALL_WIRES = 3 }; /* command wires */
enum { MAX_LEVELS = 256 };
typedef uint64_t dram_pair __attribute__((vector_size(16))); /* levels and rising edges */

#define NEVER INT64_MAX
#define NONE (-1)

static inline int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }

typedef struct { /* one request inside the controller */
    int64_t id, burst, accepted; /* burst: address in units of one burst */
    int64_t taken; /* when the controller took `id`, which replaces an earlier write where it is later than `accepted` */
    int32_t row, column, chain, merged, line; /* line: of a read, among those in flight */
    int16_t bank;
    uint8_t write, command; /* command: RD, WR or MWR */
} dram_node;

typedef struct {
    int64_t ready[COMMANDS]; /* earliest cycle as far as this bank's own history goes */
    int64_t last_column;     /* cycle of the last column command */
    int64_t idles_until;     /* not closed before: an adaptive page that nothing queued asks for */
    uint64_t bit, levels;    /* its place in sets of banks; its numbers on the command wires */
    uint64_t hit, write;     /* places of the queue: requests for the open row, and writes */
    int64_t count[COMMANDS], row_hits, conflicts; /* conflicts: closings because a request wants another row */
    int32_t row, hits, queued, idle_limit, idle_row;
    int32_t first_read, first_write; /* positions in the queue of its candidates, see ready_sets.h */
    int32_t activates; /* since they were last made good by a refresh */
    int16_t rank, group, number, group_number; /* group: counted over all ranks; number: within its group */
    int32_t queue[64];
} dram_bank;

/* The commands that a bank may need next. The last two only where the part has them. */
enum { NEXT_ACT, NEXT_PRE, NEXT_RD, NEXT_WR, NEXT_MWR, NEXT_RFM, NEXT_KINDS };
static const int command_of[NEXT_KINDS] = {ACT, PRE, RD, WR, MWR, RFM};

enum { ACTIVE, PRECHARGED, DOWN_ACTIVE, DOWN_PRECHARGED, ASLEEP, BACKGROUNDS };

typedef struct {
    uint64_t banks; /* those of the rank */
    int64_t ready[COMMANDS], count[COMMANDS];
    int64_t acts[4]; /* cycles of the last four activates, a ring */
    int64_t refresh_due, next_refresh, refreshing_until, accounted, last_command, powered_down_at;
    int64_t clocks[BACKGROUNDS]; /* in each background state */
    int32_t act_index, open, queued, refresh_bank, powered_down, in_self_refresh, resting; /* resting: either */
    int64_t last_used, sleeps_since, refreshed[MAX_BANKS], refreshes[16]; /* per set, where postponed; of all banks, a ring */
    int32_t refresh_index, refresh_first; /* refresh_first: a refresh goes before all else in this cycle */
} dram_rank;

typedef struct { /* where requests enter, in order: a request that is refused holds up all behind it */
    const uint64_t *address;
    const uint8_t *write;
    const int64_t *arrival; /* absolute cycle; or, relative, clocks after the port's own time, see offer_cycle */
    const int64_t *request; /* the caller's numbers */
    int64_t next, length, last_accepted, limit, in_flight; /* lines of which a read has not come back */
    int64_t own_time;                 /* relative: the cycle at which the last access was made */
    int64_t asleep;                   /* without a request: offers nothing before this cycle */
    int64_t pause;                    /* the memory stops before clocks that begin with this request or a later one */
    /* Clocks in which a request waited; of them, those of a read that found room but too many lines in flight; the bursts
     * that began meanwhile on any channel. offered: since when the next one waits, NEVER: not yet; bursts: begun before,
     * or when the last one was accepted. */
    int64_t waited, waited_for_line, waited_bursts, offered, bursts;
    int32_t line_reads, line_left, line; /* reads of a line; those of the present one still to come; its number */
    int32_t short_of_lines;              /* since `offered` */
    int32_t relative, closed, parked; /* parked: offers nothing until all other ports are closed */
    int32_t channel;                  /* of the next request */
} dram_port;

/* Counters of a channel; of several channels the sum, or the most. Python reads them by these names. */
#define DRAM_COUNTS(SUM, MOST) \
    SUM(reads) SUM(writes) SUM(forwarded_reads) SUM(merged_reads) SUM(merged_writes) SUM(read_row_hits) \
    SUM(write_row_hits) SUM(data_clock_cycles) SUM(read_latency_cycles) MOST(max_read_latency_cycles) \
    MOST(last_done) MOST(last_data)
#define FIELD(name) int64_t name;
typedef struct { DRAM_COUNTS(FIELD, FIELD) } dram_counts;
#undef FIELD
#define NAME(name) #name,
static const char *const dram_count_names[] = {DRAM_COUNTS(NAME, NAME)};
#undef NAME
enum { N_COUNTS = sizeof(dram_counts) / sizeof(int64_t) };

static void add_counts(dram_counts *total, const dram_counts *one) {
#define SUM(name) total->name += one->name;
#define MOST(name) total->name = later(total->name, one->name);
    DRAM_COUNTS(SUM, MOST)
#undef SUM
#undef MOST
}

typedef struct { /* a command as it went over the wires */
    int64_t cycle, request;
    int32_t command, rank, group, bank, row, column;
} dram_command;

typedef struct { /* what leaves a memory, drained by the caller */
    int64_t *done_id, *done_cycle, *done_accepted, *done_bursts; /* done_bursts: begun when this was known; NULL: not wanted */
    int64_t n_done, done_limit; /* beyond the limit the caller must take them first */
    /* Requests whose burst was on the wires, in the order of their commands, with their channel; and those that have no
     * burst: answered by another's burst or by a waiting write, or replaced by a later write. NULL: not wanted. */
    int64_t *sent_id, *unsent_id;
    uint8_t *sent_channel;
    int64_t n_sent, n_unsent;
    int64_t bursts; /* begun so far */
} dram_output;

typedef struct { /* a line on its way: reads that are not back, and whose it is */
    int32_t left, port;
} dram_line;

typedef struct { /* a read on its way back: when it is there, and of which line it is */
    int64_t done;
    int32_t line;
} dram_return;

typedef struct { /* a ring of them, in order */
    dram_return *read;
    int64_t head, tail, size;
} dram_returns;

static inline void send_back(dram_returns *ring, int64_t done, int32_t line) {
    ring->read[ring->tail].done = done, ring->read[ring->tail].line = line;
    ring->tail = ring->tail + 1 == ring->size ? 0 : ring->tail + 1;
}

static inline int64_t first_back(const dram_returns *ring) {
    return ring->head != ring->tail ? ring->read[ring->head].done : NEVER;
}

typedef struct { /* one channel */
    const dram_tables *tables;
    const dram_config *c; /* of the tables */
    /* The banks that need each kind of command next; of them those that their own and their group's timing lets issue; the
     * cycle from which more of them may; and the earliest one at which any of them can issue, as far as was looked. */
    uint64_t candidates[NEXT_KINDS], ready_banks[NEXT_KINDS];
    int64_t ready_from[NEXT_KINDS], issue_from[NEXT_KINDS];
    uint64_t changed; /* banks whose candidates may have changed */
    int64_t ages_at;  /* no request that waits for another row waits too long before */
    dram_counts counts;
    int64_t ca_end, ca_ones[MAX_WIRES], ca_rising[MAX_WIRES]; /* ca_end: first cycle after the last command's levels */
    uint64_t ca_last;                                         /* its last levels */
    int32_t n_levels;
    int64_t now, next_event, last_progress, last_accepted, wires_free[2], last_burst;
    dram_returns flight;
    dram_node *pool;
    int32_t *chains, *free_nodes, *read_queue, *write_queue;
    int32_t n_free, pool_size, chain_mask, reads_waiting, writes_waiting, queued, pending, pending_reads, draining;
    int32_t reads_blocked, writes_blocked; /* so many at the front of each queue cannot move to their bank now */
    /* Requests in the read and write queue per bank; bit b: bank b has some, and has room in its own queue. */
    int16_t waiting[2][MAX_BANKS];
    uint64_t waiting_banks[2], banks_with_room, busy_banks; /* busy: something is in the bank's own queue */
    /* Pooled queues: requests whose row was opened for them, oldest first; until when the data clock runs; the clock by
     * which ACT-2 must follow (0: none is due). */
    int32_t *opened;
    int32_t n_opened, writing;
    int64_t clock_until, second_act_by;
    dram_bank *second_act_bank;
    int32_t n_banks, turn, number;
    int32_t usual; /* one rank, no refresh management, no masked writes */
    int32_t extras; /* refreshes may be postponed, or self-refresh or ACT-2 are to be looked after */
    int64_t upkeep_at;  /* no rank has to be looked after before */
    int32_t refreshing; /* a refresh goes before all else in this cycle, of some rank */
    dram_output *out;
    dram_command *trace;
    int64_t n_trace, trace_size; /* trace_size 0: no trace wanted */
    /* From here on only what the part has, or what has been written, is ever read; there is room for its banks alone. */
    dram_rank rank[MAX_RANKS];
    int64_t group_ready[MAX_BANKS][COMMANDS];             /* of the groups of all ranks */
    dram_pair ca_levels[MAX_LEVELS];                      /* not counted yet, see commands.h */
    dram_bank bank[MAX_BANKS];
} dram_engine;

/* OFFERING until all requests are accepted and all reads served; COMPLETING up to the last completion; DRAINING writes
 * that still wait; RESTING: refreshes up to the end of the last data. */
enum { OFFERING, COMPLETING, DRAINING, RESTING };

typedef struct { /* channels behind one front end */
    dram_engine *channel[MAX_CHANNELS];
    dram_port port[MAX_PORTS];
    dram_output out;
    int64_t now;
    int64_t next_event[MAX_CHANNELS]; /* those of the channels, side by side, while the loop runs */
    uint64_t entered;                 /* channels that took a request in this cycle */
    int64_t moving; /* no request that waits saw its channel's last progress before this cycle */
    int32_t n_channels, n_ports, port_turn, width; /* width: requests accepted per clock, over all channels */
    int32_t limited;                               /* some port has a limit of lines in flight */
    dram_line *lines;
    int32_t *free_lines, n_lines, n_free_lines; /* n_lines: ever used */
    dram_returns answered; /* reads answered by a waiting write */
    int32_t phase;
    int64_t until;                /* COMPLETING, RESTING: to this cycle */
    int64_t completed[COMMANDS];  /* commands up to the last completion, before writes were drained */
} dram_memory;

/* ---- pending requests by address */

static inline int32_t chain_of(const dram_engine *e, int64_t burst) {
    return (int32_t)(((uint64_t)burst * 0x9E3779B97F4A7C15ull) >> 40) & e->chain_mask;
}

static inline int32_t find_pending(const dram_engine *e, int64_t burst, int write) {
    for (int32_t k = e->chains[chain_of(e, burst)]; k != NONE; k = e->pool[k].chain)
        if (e->pool[k].burst == burst && e->pool[k].write == write) return k;
    return NONE;
}

static inline void add_pending(dram_engine *e, int32_t node) {
    int32_t chain = chain_of(e, e->pool[node].burst);
    e->pool[node].chain = e->chains[chain];
    e->chains[chain] = node;
}

static inline void drop_pending(dram_engine *e, int32_t node) {
    int32_t *link = &e->chains[chain_of(e, e->pool[node].burst)];
    while (*link != node) link = &e->pool[*link].chain;
    *link = e->pool[node].chain;
}

static inline int lowest(uint64_t set) { return __builtin_ctzll(set); }

/* Take the place-th bit out of a set; those above come down by one. */
static inline uint64_t without(uint64_t set, int place) {
    uint64_t below = ((uint64_t)1 << place) - 1;
    return (set & below) | ((set >> 1) & ~below);
}

static inline void remove_at(int32_t *queue, int32_t *length, int32_t at) {
    *length -= 1;
    memmove(queue + at, queue + at + 1, (size_t)(*length - at) * sizeof *queue);
}

/* ---- sets of banks */

static inline uint64_t first_banks(int n) { return n ? ~(uint64_t)0 >> (64 - n) : 0; }

static inline uint64_t all_banks(const dram_engine *e) { return first_banks(e->n_banks); }

/* ---- life cycle */

static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; } /* up to whole lines of a cache */

static size_t channel_bytes(int32_t banks) { return offsetof(dram_engine, bank) + (size_t)banks * sizeof(dram_bank); }

static int32_t banks_of(const dram_config *c) { return c->ranks * c->bank_groups * c->banks_per_group; }

/* Every queue full, and as many reads again that wait for a read of the same address. */
static int32_t pool_of(const dram_config *c) {
    return 2 * (c->read_queue_entries + c->write_queue_entries + banks_of(c) * c->bank_queue_entries);
}

/* The arrays of a channel, one after the other behind it: name in dram_engine, type and entries. */
#define DRAM_ARRAYS(ARRAY) \
    ARRAY(pool, dram_node, s.pool) \
    ARRAY(trace, dram_command, s.trace) \
    ARRAY(flight.read, dram_return, s.flight) \
    ARRAY(chains, int32_t, s.chains) \
    ARRAY(free_nodes, int32_t, s.pool) \
    ARRAY(opened, int32_t, s.pool) \
    ARRAY(read_queue, int32_t, c->read_queue_entries) \
    ARRAY(write_queue, int32_t, c->write_queue_entries)

typedef struct {
    size_t bytes; /* of the channel and its arrays */
    int32_t pool, chains;
    int64_t flight, trace;
} dram_space;

static dram_space channel_space(const dram_config *c, int64_t trace_size) {
    dram_space s = {rounded(channel_bytes(banks_of(c))), pool_of(c), 16, 0, trace_size ? trace_size + TRACE_MARGIN : 0};
    while (s.chains < s.pool) s.chains *= 2;
    s.flight = s.pool + c->read_data_end + c->controller_latency_cycles + 2; /* at most one read per clock */
#define ARRAY(name, type, entries) s.bytes += rounded((size_t)(entries) * sizeof(type));
    DRAM_ARRAYS(ARRAY)
#undef ARRAY
    return s;
}

/* A channel at `at`, which has room for s.bytes bytes. */
static dram_engine *channel_new(const dram_tables *tables, int number, dram_output *out, dram_space s, char *at) {
    const dram_config *c = &tables->c;
    const int32_t banks = banks_of(c);
    dram_engine *e = (dram_engine *)(void *)at;
    memset(e, 0, offsetof(dram_engine, rank));
    memset(e->rank, 0, (size_t)c->ranks * sizeof *e->rank);
    memset(e->bank, 0, (size_t)banks * sizeof *e->bank);
    memset(e->group_ready, 0, (size_t)banks * sizeof *e->group_ready);
    e->tables = tables;
    e->c = c;
    e->n_banks = banks;
    e->pool_size = s.pool;
    e->chain_mask = s.chains - 1;
    e->flight.size = s.flight;
    e->number = number;
    e->last_burst = -((int64_t)1 << 40);
    e->usual = c->ranks == 1 && !c->masked_writes && !c->rfm_limit;
    e->ages_at = NEVER;
    for (int kind = 0; kind < NEXT_KINDS; kind++) e->ready_from[kind] = NEVER;
    e->extras = c->refresh_postpone || c->refresh_pull_in || c->self_refresh_cycles || c->second_act;
    for (int r = 0; r < c->ranks; r++) {
        const int in_rank = banks / c->ranks;
        e->rank[r].banks = first_banks(in_rank) << r * in_rank;
        for (int x = 0; x < 16; x++) e->rank[r].refreshes[x] = -((int64_t)1 << 40);
    }
    e->out = out;
    e->trace_size = s.trace;
    at += rounded(channel_bytes(banks));
#define ARRAY(name, type, entries) \
    e->name = (type *)(void *)at; \
    at += rounded((size_t)(entries) * sizeof(type));
    DRAM_ARRAYS(ARRAY)
#undef ARRAY
    if (!s.trace) e->trace = NULL;
    for (int32_t k = 0; k < s.chains; k++) e->chains[k] = NONE;
    for (int32_t k = 0; k < e->pool_size; k++) e->free_nodes[k] = e->pool_size - 1 - k;
    e->n_free = e->pool_size;
    for (int b = 0; b < e->n_banks; b++) {
        dram_bank *bank = &e->bank[b];
        bank->bit = (uint64_t)1 << b;
        bank->row = bank->idle_row = NONE;
        bank->idle_limit = c->page_idle_cycles;
        bank->rank = (int16_t)(b / (c->bank_groups * c->banks_per_group));
        bank->group = (int16_t)(b / c->banks_per_group);
        bank->number = (int16_t)(b % c->banks_per_group);
        bank->group_number = (int16_t)(bank->group % c->bank_groups);
        bank->levels = (uint64_t)bank->number << BANK_BIT | (uint64_t)bank->group_number << GROUP_BIT;
    }
    int64_t interval = refresh_interval(c);
    if (c->refresh == REFRESH_PER_BANK) interval = c->tREFI / (c->bank_groups * c->banks_per_group);
    for (int r = 0; r < c->ranks; r++) {
        /* Cycle 0 is the first clock of the interval (and the one before it where queues are pooled, as in the tool that
         * they are after). */
        const int64_t first = c->refresh_together ? interval : interval * (r + 1) / c->ranks;
        e->rank[r].next_refresh = c->refresh == REFRESH_NONE ? NEVER : first - !c->pooled;
        for (int k = 0; k < 4; k++) e->rank[r].acts[k] = -c->tFAW;
    }
    e->clock_until = -1;
    e->banks_with_room = ~(uint64_t)0;
    e->next_event = 0; /* refresh and power-down begin with the clock, not with the first request */
    e->now = e->last_accepted = -1;
    return e;
}

/* tables: must live as long as the memory. done_size: completions kept before the caller must take them. sent: the caller
 * wants to know what was on the wires. */
static dram_memory *dram_new(
    const dram_tables *tables, int n_channels, int n_ports, int width, int64_t done_size, int64_t trace_size, int sent
) {
    const dram_space each = channel_space(&tables->c, trace_size);
    const int64_t pool = pool_of(&tables->c), done_limit = done_size + n_channels * pool; /* a command completes many */
    const size_t done = (size_t)(done_limit + n_channels * (pool + 2) + 1), column = rounded(done * sizeof(int64_t));
    const int64_t answered = (int64_t)(tables->c.controller_latency_cycles + 1) * width + 1; /* each is back after `latency` clocks */
    const size_t outputs = sent ? 6 * column + rounded(done) : 3 * column;
    const size_t returns = rounded((size_t)answered * sizeof(dram_return));
    /* Each line in flight has a read in flight, or one that is still to come. */
    const size_t n_lines = (size_t)(n_channels * each.flight + answered + n_ports);
    const size_t lines = rounded(n_lines * sizeof(dram_line)), free_lines = rounded(n_lines * sizeof(int32_t));
    char *at = (char *)malloc(
        rounded(sizeof(dram_memory)) + outputs + returns + lines + free_lines + (size_t)n_channels * each.bytes);
    if (!at) return NULL;
    dram_memory *m = (dram_memory *)(void *)at;
    memset(m, 0, sizeof *m);
    at += rounded(sizeof *m);
    m->out.done_limit = done_limit;
    m->out.done_id = (int64_t *)(void *)at;
    m->out.done_cycle = (int64_t *)(void *)(at + column), m->out.done_accepted = (int64_t *)(void *)(at + 2 * column);
    if (sent) {
        m->out.sent_id = (int64_t *)(void *)(at + 3 * column), m->out.unsent_id = (int64_t *)(void *)(at + 4 * column);
        m->out.done_bursts = (int64_t *)(void *)(at + 5 * column);
        m->out.sent_channel = (uint8_t *)(at + 6 * column);
    }
    at += outputs;
    m->answered.size = answered;
    m->answered.read = (dram_return *)(void *)at;
    at += returns;
    m->lines = (dram_line *)(void *)at, m->free_lines = (int32_t *)(void *)(at + lines);
    at += lines + free_lines;
    for (; m->n_channels < n_channels; m->n_channels++, at += each.bytes)
        m->channel[m->n_channels] = channel_new(tables, m->n_channels, &m->out, each, at);
    m->n_ports = n_ports;
    m->width = width;
    m->now = -1;
    for (int p = 0; p < n_ports; p++) {
        m->port[p].last_accepted = -1, m->port[p].limit = m->port[p].offered = m->port[p].pause = NEVER;
        m->port[p].line_reads = 1;
    }
    return m;
}
