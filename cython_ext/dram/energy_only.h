/* Energy of commands that a host issues by timing of its own: the implementation of edgewatt_dram_energy_*.
 * A channel of the engine (commands.h: record) counts them; data wires rest between bursts that do not touch. */
#pragma once

#include "dram/memory.h"

enum { PER_ACT, PER_PRE, PER_RD, PER_WR, PER_REFAB, PER_REFPB, PER_RFM, PER_CLOCK, CORE_PJ = PER_CLOCK + BACKGROUNDS };
enum { DBI_NONE, DBI_ONES, DBI_ZEROS, DBI_TOGGLES, MAX_LANES = 64 };

typedef struct { double at_0, at_1, rise; } level_pj;

typedef struct { /* in the order of the file, see hwmodel.dram.library */
    double core[CORE_PJ], strobe[2], clock, data_clock;
    level_pj command;
    int burst, lanes, dbi_rule, idle_level; /* burst: its clocks */
    level_pj wire[2][2]; /* DQ and DBI, reads and writes */
} energy_constants;

typedef struct { /* the wires of one direction of a channel */
    int64_t end, bursts, known, ones[2], rising[2]; /* known: bursts with bytes; of DQ and DBI */
    uint8_t last[2][MAX_LANES];
} data_wires;

struct edgewatt_dram_energy {
    dram_tables tables;
    energy_constants pj;
    dram_memory *memory;
    data_wires wires[MAX_CHANNELS * MAX_RANKS][2]; /* of pseudo-channels */
    int dbi;
    const char *error;
};

static int read_energy(FILE *file, energy_constants *pj, const dram_config *c) {
    double number[CORE_PJ + 4 + 3 + 4 + 12];
    for (size_t k = 0; k < sizeof number / sizeof *number; k++)
        if (fscanf(file, "%lf", &number[k]) != 1 || !(number[k] > -1e15 && number[k] < 1e15)) return 0;
    const double *at = number;
    memcpy(pj->core, at, sizeof pj->core), at += CORE_PJ;
    pj->strobe[0] = *at++, pj->strobe[1] = *at++, pj->clock = *at++, pj->data_clock = *at++;
    pj->command.at_0 = *at++, pj->command.at_1 = *at++, pj->command.rise = *at++;
    if (*at < 1 || *at > 1 << 20) return 0;
    pj->burst = (int)*at++;
    if (at[0] < 0 || at[0] > MAX_LANES || at[1] < 0 || at[1] > DBI_TOGGLES || at[2] < 0 || at[2] > 1) return 0;
    pj->lanes = (int)*at++, pj->dbi_rule = (int)*at++, pj->idle_level = (int)*at++;
    if (pj->lanes && ((int64_t)1 << c->offset_bits) % pj->lanes) return 0;
    for (int k = 0; k < 4; k++, at += 3) {
        level_pj *wire = &pj->wire[k / 2][k % 2];
        wire->at_0 = at[0], wire->at_1 = at[1], wire->rise = at[2];
    }
    return 1;
}

/* What the command wires carry: per command its beats, per beat and wire a bit of the command's word, -1 (0) or -2 (1). */
static int read_command_levels(FILE *file, dram_config *c) {
    int wires, beats, code;
    if (fscanf(file, "%d", &wires) != 1 || wires < 1 || wires > MAX_WIRES) return 0;
    c->ca_wires = wires;
    for (int command = 0; command < COMMANDS; command++) {
        if (fscanf(file, "%d", &beats) != 1 || beats < 0 || beats > MAX_BEATS) return 0;
        c->ca_beats[command] = beats;
        for (int at = 0; at < beats * wires; at++) {
            dram_levels *levels = &c->ca_level[command][at / wires];
            const int wire = at % wires;
            if (fscanf(file, "%d", &code) != 1 || code < -2 || code > 63) return 0;
            if (code == -2) levels->constant |= (uint32_t)1 << wire;
            if (code < 0) continue;
            levels->mask[levels->n_pieces] = 1, levels->source[levels->n_pieces] = (uint8_t)code;
            levels->target[levels->n_pieces++] = (uint8_t)wire;
        }
    }
    return 1;
}

static int edges(unsigned level, unsigned before) { return __builtin_popcount(level & ~before & 255); }

/* Let the wires rest: those that rest at 1 rise to it. */
static void rest_wires(const energy_constants *pj, data_wires *w, int dbi) {
    const unsigned idle = pj->idle_level ? 255 : 0;
    for (int lane = 0; lane < pj->lanes; lane++) {
        w->rising[0] += edges(idle, w->last[0][lane]), w->last[0][lane] = (uint8_t)idle;
        if (dbi) w->rising[1] += edges(idle & 1, w->last[1][lane]), w->last[1][lane] = (uint8_t)(idle & 1);
    }
}

static void send_burst(const energy_constants *pj, data_wires *w, int dbi, const uint8_t *bytes, int64_t n) {
    const int rule = dbi ? pj->dbi_rule : DBI_NONE;
    for (int64_t k = 0, lane = 0; k < n; k++, lane = lane + 1 == pj->lanes ? 0 : lane + 1) {
        unsigned level = bytes[k];
        const int ones = __builtin_popcount(rule == DBI_TOGGLES ? level ^ w->last[0][lane] : level);
        const int inverted = rule == DBI_ZEROS ? ones < 4 : rule != DBI_NONE && ones > 4;
        if (inverted) level ^= 255;
        w->ones[0] += __builtin_popcount(level), w->rising[0] += edges(level, w->last[0][lane]);
        w->last[0][lane] = (uint8_t)level;
        if (!dbi) continue;
        const unsigned pin = (unsigned)(rule == DBI_ZEROS ? !inverted : inverted); /* DBI_n is low where it inverts */
        w->ones[1] += pin, w->rising[1] += edges(pin, w->last[1][lane]);
        w->last[1][lane] = (uint8_t)pin;
    }
    w->known++;
}

static int refuse_command(edgewatt_dram_energy *m, const char *why) {
    m->error = why;
    return 0;
}

edgewatt_dram_energy *edgewatt_dram_energy_open(const char *path, int dbi, char *error, size_t size) {
    int64_t channels, width;
    double clock_ns;
    edgewatt_dram_energy *m = (edgewatt_dram_energy *)calloc(1, sizeof *m);
    FILE *file = open_library_file(path, m ? &m->tables.c : NULL, &channels, &width, &clock_ns, error, size);
    if (!file || !m) {
        free(m);
        return NULL;
    }
    const int sound = read_energy(file, &m->pj, &m->tables.c) && read_command_levels(file, &m->tables.c);
    fclose(file);
    if (sound) {
        list_tables(&m->tables);
        m->memory = dram_new(&m->tables, (int)channels, 1, (int)width, 1024, 0, 0);
    }
    if (!m->memory) {
        if (error && size) snprintf(error, size, "%s: %s", path, sound ? "memory is short" : "its energies are missing");
        free(m);
        return NULL;
    }
    m->dbi = dbi && m->pj.dbi_rule != DBI_NONE;
    for (int k = 0; k < MAX_CHANNELS * MAX_RANKS; k++)
        for (int way = 0; way < 2; way++) {
            memset(m->wires[k][way].last[0], m->pj.idle_level ? 255 : 0, MAX_LANES);
            memset(m->wires[k][way].last[1], m->pj.idle_level, MAX_LANES);
        }
    return m;
}

void edgewatt_dram_energy_close(edgewatt_dram_energy *m) {
    if (!m) return;
    free(m->memory);
    free(m);
}

const char *edgewatt_dram_energy_error(const edgewatt_dram_energy *m) { return m->error ? m->error : ""; }

int edgewatt_dram_energy_command(
    edgewatt_dram_energy *m, int64_t clock, int command, uint64_t address, const void *bytes
) {
    const dram_config *c = &m->tables.c;
    dram_engine *e = m->memory->channel[m->memory->n_channels > 1 ? channel_of(m->memory, address) : 0];
    dram_node node;
    memset(&node, 0, sizeof node);
    place_node(e, address, &node);
    dram_bank *bank = &e->bank[node.bank];
    const int r = bank->rank, in_rank = e->n_banks / c->ranks;
    if (command < 0 || command >= COMMANDS || command == REF2B) return refuse_command(m, "no such command");
    if (clock < e->now || clock >= MAX_CLOCKS) return refuse_command(m, "the clock goes back, or beyond 2^40");
    if (command == ACT && bank->row != NONE) return refuse_command(m, "the bank is open: PRE comes before ACT");
    if (command == PRE && bank->row == NONE) return refuse_command(m, "the bank is closed already");
    if (is_column(command) && bank->row != node.row) return refuse_command(m, "the row is not open: ACT comes before");
    if ((command == REFAB || command == SRE) && e->rank[r].open) return refuse_command(m, "a bank of the rank is open");
    if (is_column(command)) {
        const int write = command != RD && command != RDA;
        data_wires *w = &m->wires[e->number * c->pseudo_channels + r * c->pseudo_channels / c->ranks][write];
        if (w->bursts && clock < w->end) return refuse_command(m, "the burst overlaps the one before");
        if (clock > w->end) rest_wires(&m->pj, w, m->dbi);
        if (bytes && m->pj.lanes) send_burst(&m->pj, w, m->dbi, (const uint8_t *)bytes, (int64_t)1 << c->offset_bits);
        w->bursts++;
        w->end = clock + m->pj.burst;
        e->counts.data_clock_cycles += sooner(clock - e->last_burst, c->clock_run_on);
        e->last_burst = clock;
    }
    const int whole_rank = command == PREA || command == REFAB || command == PDE || command == PDX || command == CAS ||
                           command == SRE || command == SRX;
    if (command == REFPB) bank = &e->bank[r * in_rank + (node.bank - r * in_rank) % c->refresh_sets];
    e->now = clock;
    issue(e, clock, command, r, whole_rank ? NULL : bank, &node);
    return 1;
}

edgewatt_dram_energy_pj edgewatt_dram_energy_read(edgewatt_dram_energy *m, int64_t clock) {
    const dram_config *c = &m->tables.c;
    const energy_constants *pj = &m->pj;
    edgewatt_dram_energy_pj s;
    memset(&s, 0, sizeof s);
    for (int k = 0; k < m->memory->n_channels; k++) {
        dram_engine *e = m->memory->channel[k];
        int64_t beats = 0;
        for (int b = 0; b < e->n_banks; b++) {
            const int64_t *n = e->bank[b].count;
            s.activate += pj->core[PER_ACT] * (double)n[ACT];
            s.precharge += pj->core[PER_PRE] * (double)(n[PRE] + n[PREA] + n[RDA] + n[WRA]);
            s.read += pj->core[PER_RD] * (double)(n[RD] + n[RDA]);
            s.write += pj->core[PER_WR] * (double)(n[WR] + n[WRA] + n[MWR]);
        }
        for (int r = 0; r < c->ranks; r++) {
            dram_rank *rank = &e->rank[r];
            account(rank, clock);
            s.refresh += pj->core[PER_REFAB] * (double)(rank->count[REFAB] + rank->count[SRE]);
            s.refresh += pj->core[PER_REFPB] * (double)rank->count[REFPB] + pj->core[PER_RFM] * (double)rank->count[RFM];
            for (int x = 0; x < BACKGROUNDS; x++) s.background += pj->core[PER_CLOCK + x] * (double)rank->clocks[x];
            for (int x = 0; x < COMMANDS; x++) beats += rank->count[x] * c->ca_beats[x];
        }
        s.clocks += pj->clock * (double)clock * c->pseudo_channels + pj->data_clock * (double)e->counts.data_clock_cycles;
        unpack_levels(e);
        for (int wire = 0; wire < c->ca_wires; wire++) {
            s.command_wires += pj->command.at_1 * (double)e->ca_ones[wire] + pj->command.rise * (double)e->ca_rising[wire];
            s.command_wires += pj->command.at_0 * (double)(beats - e->ca_ones[wire]);
        }
    }
    for (int k = 0; k < m->memory->n_channels * c->pseudo_channels; k++)
        for (int way = 0; way < 2; way++) {
            data_wires w = m->wires[k][way];
            const int64_t n = w.known << c->offset_bits; /* bytes */
            s.strobes += pj->strobe[way] * (double)w.bursts;
            if (!w.known) continue;
            rest_wires(pj, &w, m->dbi);
            for (int group = 0; group < 1 + m->dbi; group++) {
                const level_pj *wire = &pj->wire[group][way];
                s.data_wires += wire->at_1 * (double)w.ones[group] + wire->rise * (double)w.rising[group];
                s.data_wires += wire->at_0 * (double)((group ? n : 8 * n) - w.ones[group]);
            }
        }
    return s;
}
