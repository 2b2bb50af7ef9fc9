/* edgewatt_dram: the DRAM engine as a C library, to take the place of another memory model inside a simulator.
 *
 * In one C or C++ (11 or later) file of your program:
 *
 *     #define EDGEWATT_DRAM_IMPLEMENTATION
 *     #include "dram/edgewatt_dram.h"
 *
 * and include it plainly wherever else you use it, from C or C++. `edgewatt part library PART FILE` writes the file that
 * edgewatt_dram_open reads (a part and its controller, resolved to clocks), and prints the folder to include from.
 *
 * Per clock: send at most as many requests as the controller accepts, then tick. Or skip the clocks in which nothing can
 * happen: advance to the clock that edgewatt_dram_next_event names, or to the one at which you send again. A request
 * sent in the same clock is done in the same clock as in edgewatt's simulate_dram. Not for use by several threads at once. */
#ifndef EDGEWATT_DRAM_LIBRARY_H
#define EDGEWATT_DRAM_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct edgewatt_dram edgewatt_dram;

/* Called when a request is done, `clock` is the present one: a read has its data, a write is posted or, in a controller
 * with posted_writes false, its command is issued. None needs a further request for it, so each may be waited for. */
typedef void (*edgewatt_dram_done)(void *user, uint64_t id, int64_t accepted, int64_t clock);

typedef struct {
    int64_t clock, reads, writes, forwarded_reads, merged_reads, merged_writes;
    int64_t activates, precharges, read_bursts, write_bursts, refreshes, row_hits, read_latency_clocks;
    int64_t active_clocks, precharged_clocks; /* ranks with and without an open bank, over all ranks and channels */
} edgewatt_dram_statistics;

/* Returns NULL and a text in `error` (may be NULL) if the file is none, or memory is short. */
edgewatt_dram *edgewatt_dram_open(const char *path, edgewatt_dram_done done, void *user, char *error, size_t size);
void edgewatt_dram_close(edgewatt_dram *m);

int64_t edgewatt_dram_clock(const edgewatt_dram *m);
int64_t edgewatt_dram_burst_bytes(const edgewatt_dram *m);
double edgewatt_dram_clock_ns(const edgewatt_dram *m);

/* Whether a request for the burst of `address` would be accepted in the present clock. */
int edgewatt_dram_accepts(const edgewatt_dram *m, uint64_t address, int is_write);
/* Send one; returns 1 if it was accepted, else 0: try again in a later clock. */
int edgewatt_dram_send(edgewatt_dram *m, uint64_t address, int is_write, uint64_t id);

void edgewatt_dram_tick(edgewatt_dram *m);                           /* let the present clock pass */
int64_t edgewatt_dram_next_event(const edgewatt_dram *m);            /* until then nothing changes without a request */
void edgewatt_dram_advance(edgewatt_dram *m, int64_t clock);         /* let all clocks before `clock` pass */
void edgewatt_dram_drain(edgewatt_dram *m);                          /* finish everything, waiting writes too */
edgewatt_dram_statistics edgewatt_dram_read_statistics(edgewatt_dram *m);

/* ---- energy alone, for hosts that have timing of their own */

/* In the order of the engine (tables.h). REFPB refreshes all banks of the named one's set; PREA, REFAB and those of power
 * states concern the rank of the address. */
enum {
    EDGEWATT_DRAM_ACT, EDGEWATT_DRAM_RD, EDGEWATT_DRAM_WR, EDGEWATT_DRAM_RDA, EDGEWATT_DRAM_WRA, EDGEWATT_DRAM_PRE,
    EDGEWATT_DRAM_PREA, EDGEWATT_DRAM_REFAB, EDGEWATT_DRAM_REFPB, EDGEWATT_DRAM_PDE, EDGEWATT_DRAM_PDX, EDGEWATT_DRAM_MWR,
    EDGEWATT_DRAM_RFM, EDGEWATT_DRAM_CAS, EDGEWATT_DRAM_SRE, EDGEWATT_DRAM_SRX, EDGEWATT_DRAM_ACT2 = 17
};

typedef struct edgewatt_dram_energy edgewatt_dram_energy;

typedef struct { /* picojoules, over all channels; the terms of core_energy and interface_energy added up */
    double activate, precharge, read, write, refresh, background; /* background: self-refresh and power-down, too */
    double data_wires, strobes, clocks, command_wires;            /* data_wires: DQ and, with dbi, DBI */
} edgewatt_dram_energy_pj;

/* dbi: the part's data bus inversion is on. Returns NULL and a text in `error` as edgewatt_dram_open does. */
edgewatt_dram_energy *edgewatt_dram_energy_open(const char *path, int dbi, char *error, size_t size);
void edgewatt_dram_energy_close(edgewatt_dram_energy *m);

/* A command that is issued at `clock`, not before the one before on its channel. bytes: of a column command's burst, first
 * beat first, a byte per lane; NULL: unknown, no data wires are counted (as for parts whose bursts carry more than bytes).
 * Returns 0 for a command that cannot be (edgewatt_dram_energy_error says why), which then counts nothing. */
int edgewatt_dram_energy_command(
    edgewatt_dram_energy *m, int64_t clock, int command, uint64_t address, const void *bytes);
const char *edgewatt_dram_energy_error(const edgewatt_dram_energy *m);

/* What was spent up to `clock`, which is not before the last command. */
edgewatt_dram_energy_pj edgewatt_dram_energy_read(edgewatt_dram_energy *m, int64_t clock);

#ifdef __cplusplus
}
#endif
#endif

#if defined(EDGEWATT_DRAM_IMPLEMENTATION) && !defined(EDGEWATT_DRAM_IMPLEMENTED)
#define EDGEWATT_DRAM_IMPLEMENTED

#include <stdio.h>

#include "common/heap.h"
#include "dram/memory.h"

typedef struct { int64_t clock, order, accepted; uint64_t id; } edgewatt_completion;

static int completion_before(const edgewatt_completion *a, const edgewatt_completion *b) {
    return a->clock != b->clock ? a->clock < b->clock : a->order < b->order;
}

EW_HEAP(completion, edgewatt_completion)

struct edgewatt_dram {
    dram_tables tables;
    dram_memory *memory;
    edgewatt_dram_done done;
    void *user;
    double clock_ns;
    int64_t clock, burst_bytes;
    int32_t sent; /* requests accepted in the present clock */
    edgewatt_completion *heap; /* those whose clock is still to come */
    int64_t heap_length, heap_size, order;
    int short_of_memory;
    uint64_t address;
    uint8_t write;
    int64_t arrival, request;
};

/* Whether the commands of a clock go before its requests come (memory.h: step), else when it passes. */
static int commands_first(const edgewatt_dram *m) { return m->tables.c.pooled; }

static void collect_done(edgewatt_dram *m) {
    dram_output *out = &m->memory->out;
    for (int64_t k = 0; k < out->n_done; k++) {
        if (m->heap_length == m->heap_size) {
            int64_t size = 2 * m->heap_size + 64;
            void *grown = realloc(m->heap, (size_t)size * sizeof *m->heap);
            if (!grown) { m->short_of_memory = 1; return; }
            m->heap = EW_FOR(m->heap) grown;
            m->heap_size = size;
        }
        const edgewatt_completion done = {
            out->done_cycle[k], m->order++, out->done_accepted[k], (uint64_t)out->done_id[k]};
        completion_put(m->heap, &m->heap_length, done);
    }
    out->n_done = 0;
}

static void report_done(edgewatt_dram *m, int64_t until) { /* all that are done by clock `until`, in order */
    collect_done(m);
    while (m->heap_length && m->heap[0].clock <= until) {
        const edgewatt_completion done = completion_pop(m->heap, &m->heap_length);
        if (m->done) m->done(m->user, done.id, done.accepted, done.clock);
    }
}

/* ---- the file: "edgewatt-dram 4", then numbers in the order written by hwmodel.dram.tables */

static int read_number(FILE *file, int64_t least, int64_t most, int64_t *value) {
    long long number;
    if (fscanf(file, "%lld", &number) != 1 || number < least || number > most) return 0;
    *value = number;
    return 1;
}

static int read_config(FILE *file, dram_config *c, int64_t *channels, int64_t *width) {
    const int64_t big = (int64_t)1 << 40;
    int64_t n;
    memset(c, 0, sizeof *c);
#define TAKE(field, least, most) { if (!read_number(file, least, most, &n)) return 0; c->field = n; }
    if (!read_number(file, 1, MAX_CHANNELS, channels) || !read_number(file, 1, 64, width)) return 0;
    for (int k = 0; k < N_SETTINGS; k++)
        if (!read_number(file, 0, big, &n) || !set_setting(c, k, n)) return 0;
    if (!is_consistent(c)) return 0;
    for (int x = 0; x < COMMANDS; x++) TAKE(wire_cycles[x], 0, 1 << 24)
    for (int s = 0; s < SCOPES; s++)
        for (int x = 0; x < COMMANDS; x++)
            for (int y = 0; y < COMMANDS; y++) TAKE(gap[s][x][y], 0, big)
    TAKE(n_fields, 1, MAX_FIELDS)
    int32_t bits[FIELD_KINDS] = {0};
    for (int f = 0; f < c->n_fields; f++) {
        TAKE(field_kind[f], 0, FIELD_KINDS - 1) TAKE(field_source[f], 0, 63) TAKE(field_bits[f], 1, 48)
        TAKE(field_target[f], 0, 31)
        bits[c->field_kind[f]] += c->field_bits[f];
        if (c->field_source[f] + c->field_bits[f] > 63 || c->field_target[f] + c->field_bits[f] > 31) return 0;
    }
#undef TAKE
    return (int64_t)1 << bits[FIELD_CHANNEL] <= *channels && (int64_t)1 << bits[FIELD_BANK] <= c->banks_per_group &&
           (int64_t)1 << bits[FIELD_GROUP] <= c->bank_groups && (int64_t)1 << bits[FIELD_RANK] <= c->ranks;
}

/* Open a file of `edgewatt part library` and read all but its energies; NULL and a text in `error` if it is none.
 * config: NULL where memory is short. */
static FILE *open_library_file(
    const char *path, dram_config *config, int64_t *channels, int64_t *width, double *clock_ns, char *error, size_t size
) {
    int version;
    FILE *file = fopen(path, "r");
    const char *why = "cannot be read";
    if (file) {
        why = "not a file of `edgewatt part library`, or of another version";
        if (!config) why = "memory is short";
        else if (fscanf(file, "edgewatt-dram %d %lf", &version, clock_ns) == 2 && version == 4 && *clock_ns > 0) {
            if (read_config(file, config, channels, width)) return file;
            why = "a number is missing or out of range";
        }
        fclose(file);
    }
    if (error && size) snprintf(error, size, "%s: %s", path, why);
    return NULL;
}

edgewatt_dram *edgewatt_dram_open(const char *path, edgewatt_dram_done done, void *user, char *error, size_t size) {
    int64_t channels, width;
    double clock_ns;
    edgewatt_dram *m = (edgewatt_dram *)calloc(1, sizeof *m);
    FILE *file = open_library_file(path, m ? &m->tables.c : NULL, &channels, &width, &clock_ns, error, size);
    if (!file || !m) {
        free(m);
        return NULL;
    }
    fclose(file);
    list_tables(&m->tables);
    m->memory = dram_new(&m->tables, (int)channels, 1, (int)width, 1024, 0, 0);
    if (!m->memory) {
        if (error && size) snprintf(error, size, "%s: memory is short", path);
        free(m);
        return NULL;
    }
    m->done = done, m->user = user, m->clock_ns = clock_ns, m->burst_bytes = (int64_t)1 << m->tables.c.offset_bits;
    dram_port *port = &m->memory->port[0];
    port->address = &m->address, port->write = &m->write, port->arrival = &m->arrival, port->request = &m->request;
    return m;
}

void edgewatt_dram_close(edgewatt_dram *m) {
    if (!m) return;
    free(m->memory);
    free(m->heap);
    free(m);
}

int64_t edgewatt_dram_clock(const edgewatt_dram *m) { return m->clock; }
int64_t edgewatt_dram_burst_bytes(const edgewatt_dram *m) { return m->burst_bytes; }
double edgewatt_dram_clock_ns(const edgewatt_dram *m) { return m->clock_ns; }

int edgewatt_dram_accepts(const edgewatt_dram *m, uint64_t address, int is_write) {
    const dram_engine *e = m->memory->channel[m->memory->n_channels > 1 ? channel_of(m->memory, address) : 0];
    return m->sent < m->memory->width && e->last_accepted != m->clock && has_room(e, is_write != 0);
}

int edgewatt_dram_send(edgewatt_dram *m, uint64_t address, int is_write, uint64_t id) {
    if (!edgewatt_dram_accepts(m, address, is_write)) return 0;
    dram_port *port = &m->memory->port[0];
    m->address = address, m->write = is_write != 0, m->arrival = m->clock, m->request = (int64_t)id;
    port->next = 0, port->length = 1;
    port_moved(m->memory, port);
    dram_engine *e = m->memory->channel[port->channel];
    accept(m->memory, m->clock, 0);
    if (commands_first(m)) e->next_event = sooner(e->next_event, m->clock + 1);
    m->sent++;
    return 1;
}

void edgewatt_dram_tick(edgewatt_dram *m) {
    dram_memory *memory = m->memory;
    const int64_t now = memory->now = m->clock + commands_first(m);
    for (int c = 0; c < memory->n_channels; c++) {
        dram_engine *e = memory->channel[c];
        if (e->next_event <= now || e->last_accepted == now) process(e, now, 0);
    }
    if (!commands_first(m)) report_done(m, now);
    m->clock++;
    m->sent = 0;
    if (commands_first(m)) report_done(m, now);
}

int64_t edgewatt_dram_next_event(const edgewatt_dram *m) {
    if (m->sent) return m->clock;
    int64_t when = m->heap_length ? m->heap[0].clock : NEVER;
    for (int c = 0; c < m->memory->n_channels; c++) when = sooner(when, m->memory->channel[c]->next_event);
    return later(when, m->clock);
}

void edgewatt_dram_advance(edgewatt_dram *m, int64_t clock) {
    if (clock <= m->clock) return;
    if (m->sent) edgewatt_dram_tick(m);
    for (int c = 0; c < m->memory->n_channels && clock > m->clock; c++)
        while (!run_alone(m->memory->channel[c], clock - 1 + commands_first(m))) collect_done(m);
    if (!commands_first(m)) report_done(m, clock - 1);
    m->clock = later(m->clock, clock);
    if (commands_first(m)) report_done(m, m->clock);
    m->memory->now = m->clock - 1 + commands_first(m);
}

void edgewatt_dram_drain(edgewatt_dram *m) {
    if (m->sent) edgewatt_dram_tick(m);
    m->memory->port[0].closed = 1;
    for (int status = RUN_SLICE; status == RUN_SLICE || status == RUN_OUTPUT_FULL;) {
        status = dram_run(m->memory, 1 << 18);
        collect_done(m);
    }
    report_done(m, NEVER);
    m->clock = later(m->clock, m->memory->until);
}

edgewatt_dram_statistics edgewatt_dram_read_statistics(edgewatt_dram *m) {
    edgewatt_dram_statistics s;
    dram_counts total;
    memset(&s, 0, sizeof s);
    memset(&total, 0, sizeof total);
    s.clock = m->clock;
    for (int c = 0; c < m->memory->n_channels; c++) {
        dram_engine *e = m->memory->channel[c];
        add_counts(&total, &e->counts);
        for (int b = 0; b < e->n_banks; b++) {
            const int64_t *count = e->bank[b].count;
            s.activates += count[ACT], s.precharges += count[PRE] + count[PREA] + count[RDA] + count[WRA];
            s.read_bursts += count[RD] + count[RDA], s.write_bursts += count[WR] + count[WRA] + count[MWR];
            s.refreshes += count[REFPB];
        }
        for (int r = 0; r < e->c->ranks; r++) {
            account(&e->rank[r], m->clock);
            s.refreshes += e->rank[r].count[REFAB];
            s.active_clocks += e->rank[r].clocks[ACTIVE], s.precharged_clocks += e->rank[r].clocks[PRECHARGED];
        }
    }
    s.reads = total.reads, s.writes = total.writes, s.forwarded_reads = total.forwarded_reads;
    s.merged_reads = total.merged_reads, s.merged_writes = total.merged_writes;
    s.row_hits = total.read_row_hits + total.write_row_hits, s.read_latency_clocks = total.read_latency_cycles;
    return s;
}

#include "dram/energy_only.h"

#endif
