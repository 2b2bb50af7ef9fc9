/* What a memory is told once, as its channels read it: constants of the part and the controller, and what follows.
 *
 * Timing is one table: after command `from`, command `to` may follow after gap[scope][from][to] clocks, where scope says
 * how close the two are (same bank, bank group, rank, or another rank). Parts differ in the table alone. Most gaps are
 * none, so the few of each command are listed. */
#ifndef EDGEWATT_DRAM_TABLES_H
#define EDGEWATT_DRAM_TABLES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* PDE is the first that the default policies never issue: see kept_commands. */
enum { ACT, RD, WR, RDA, WRA, PRE, PREA, REFAB, REFPB, PDE, PDX, MWR, RFM, CAS, SRE, SRX, REF2B, ACT2, COMMANDS };
enum { SAME_BANK, SAME_GROUP, SAME_RANK, OTHER_RANK, SCOPES };
enum { MAX_BANKS = 64, MAX_RANKS = 8, MAX_CHANNELS = 64, MAX_PORTS = 64, MAX_FIELDS = 16, TRACE_MARGIN = 32 };
enum { MAX_WIRES = 32, MAX_BEATS = 8, ROW_BIT = 0, COLUMN_BIT = 20, BANK_BIT = 36, GROUP_BIT = 44 };
enum { FIELD_COLUMN, FIELD_BANK, FIELD_GROUP, FIELD_RANK, FIELD_ROW, FIELD_CHANNEL, FIELD_KINDS };
enum { PAGE_OPEN, PAGE_CLOSED, PAGE_ADAPTIVE };
enum { REFRESH_NONE, REFRESH_ALL_BANK, REFRESH_PER_BANK };
enum { RUN_DONE, RUN_NEEDS_INPUT, RUN_OUTPUT_FULL, RUN_SLICE, RUN_STUCK };

typedef struct { /* levels of the command wires in one beat: a constant and runs of bits of the command's word */
    uint32_t constant, mask[MAX_WIRES];
    int32_t n_pieces;
    uint8_t source[MAX_WIRES], target[MAX_WIRES];
} dram_levels;

typedef struct {
    int64_t gap[SCOPES][COMMANDS][COMMANDS]; /* 0: no constraint */
    int64_t wire_cycles[COMMANDS];           /* clocks a command holds the command wires */
    int64_t faw, refresh_interval, refresh_cycles, refresh_bank_cycles;
    int64_t read_data_end, write_data_end; /* RL + burst, WL + burst */
    int64_t rp, rtp, write_recovery;       /* auto-precharge: tRP, RD to PRE, WR to PRE */
    int64_t cke;
    int32_t ranks, groups, banks_per_group, command_buses;
    int32_t strict_order, hit_cap, hit_cap_strict, page, page_idle;
    int32_t read_entries, write_entries, bank_entries, write_high, write_low, write_idle;
    int32_t latency, refresh, precharge_all, power_down, watchdog;
    int32_t refresh_sets; /* a REFPB refreshes every refresh_sets-th bank from the one it names */
    int32_t pooled, posted; /* one queue per direction (pooled.h); writes are done when accepted */
    /* Data clock: a CAS command so many clocks before the first burst after it stopped (0: it always runs), and how long
     * it runs on after a read and a write command. second_act: latest distance of ACT-2 (0: one command). */
    int32_t sync_cycles, sync_after_read, sync_after_write, second_act;
    int32_t second_starts_rcd; /* tRCD counts from ACT-2 */
    /* JEDEC's freedoms and duties, 0 without: refreshes that may be postponed and pulled in (per set of banks), idle
     * clocks before one is pulled in; idle clocks before self-refresh; activates of a bank before refresh management
     * and its clocks; clocks after which the oldest request of a bank goes first; masked writes are told apart. */
    int32_t postpone, pull_in, pull_in_idle, self_refresh, rfm_limit, rfm_cycles, age_cap, masked;
    int64_t clock_run_on; /* clocks the data clock runs for a burst that none follows */
    int32_t n_fields;
    int32_t field_kind[MAX_FIELDS], field_source[MAX_FIELDS], field_bits[MAX_FIELDS], field_target[MAX_FIELDS];
    int32_t offset_bits;
    int32_t ca_wires, ca_beats_per_clock, ca_beats[COMMANDS];
    uint32_t ca_idle; /* levels between commands */
    dram_levels ca_level[COMMANDS][MAX_BEATS];
} dram_config;

typedef struct { /* commands that have to wait after another one, and for how long */
    int32_t n;
    struct { int32_t to; int64_t clocks; } gap[COMMANDS];
} dram_gaps;

typedef struct { /* beats of a command side by side: its word turned left by turn[k], of which mask[k] counts */
    uint64_t constant, used, mask[64];
    int32_t n, beats;
    uint8_t turn[64];
} dram_beats;

typedef struct {
    dram_config c;
    dram_gaps gaps[SCOPES][COMMANDS];
    struct { uint64_t mask; uint8_t kind, source, target; } field[MAX_FIELDS]; /* of the address */
    dram_beats beats[COMMANDS][MAX_BEATS * MAX_WIRES / 64];
    int32_t n_beats[COMMANDS], level_clocks[COMMANDS]; /* level_clocks: that the levels of a command last */
    uint64_t idle_levels; /* of as many beats as a word has */
} dram_tables;

/* Commands are kept up to this one: those that the policies issue. */
static int kept_commands(const dram_config *c) {
    if (c->self_refresh || c->rfm_limit || c->masked) return COMMANDS;
    return c->power_down ? PDX + 1 : c->refresh == REFRESH_PER_BANK ? REFPB + 1 : REFAB + 1;
}

/* Whether banks a wider scope away are held as long, so that nothing is left to hold back. */
static int is_covered(const dram_config *c, int scope, int from, int to) {
    const int64_t clocks = c->gap[scope][from][to];
    if (scope == SAME_BANK && to == PRE) return 0; /* which auto-precharges ask for by itself */
    if (scope == SAME_BANK && c->groups > 1 && c->gap[SAME_GROUP][from][to] >= clocks) return 1;
    return scope < SAME_RANK && c->gap[SAME_RANK][from][to] >= clocks;
}

/* Nobody asks when a column command with auto-precharge may go (as without), nor a bank when all may be precharged. */
static void list_gaps(dram_tables *tables) {
    const int kept = kept_commands(&tables->c);
    for (int scope = 0; scope < SCOPES; scope++)
        for (int from = 0; from < COMMANDS; from++) {
            dram_gaps *list = &tables->gaps[scope][from];
            for (int to = 0; to < kept; to++) {
                int64_t clocks = tables->c.gap[scope][from][to];
                if (!clocks || to == RDA || to == WRA || (to == PREA && scope != SAME_RANK)) continue;
                if (is_covered(&tables->c, scope, from, to)) continue;
                list->gap[list->n].to = to;
                list->gap[list->n++].clocks = clocks;
            }
        }
}

static void list_beats(dram_tables *tables) {
    const dram_config *c = &tables->c;
    for (int command = 0; command < COMMANDS; command++) {
        dram_beats *word = &tables->beats[command][0];
        if (c->ca_beats[command])
            tables->level_clocks[command] = (c->ca_beats[command] + c->ca_beats_per_clock - 1) / c->ca_beats_per_clock;
        for (int beat = 0, place = 0; beat < c->ca_beats[command]; beat++, place += c->ca_wires) {
            const dram_levels *levels = &c->ca_level[command][beat];
            if (!beat) tables->n_beats[command] = 1;
            if (place + c->ca_wires > 64) tables->n_beats[command]++, word++, place = 0;
            word->beats++;
            word->used |= (((uint64_t)1 << c->ca_wires) - 1) << place;
            word->constant |= (uint64_t)levels->constant << place;
            for (int k = 0; k < levels->n_pieces; k++) {
                int turn = (place + levels->target[k] - levels->source[k]) & 63, at = 0;
                while (at < word->n && word->turn[at] != turn) at++;
                if (at == word->n) word->turn[word->n++] = (uint8_t)turn;
                word->mask[at] |= (uint64_t)levels->mask[k] << (place + levels->target[k]);
            }
        }
    }
    for (int at = 0; c->ca_wires && at + c->ca_wires <= 64; at += c->ca_wires)
        tables->idle_levels |= (uint64_t)c->ca_idle << at;
}

/* Fill in what follows from the constants `tables->c`; all else is zero before. */
static void list_tables(dram_tables *tables) {
    const dram_config *c = &tables->c;
    list_gaps(tables);
    list_beats(tables);
    for (int f = 0; f < c->n_fields; f++) {
        tables->field[f].mask = ((uint64_t)1 << c->field_bits[f]) - 1, tables->field[f].kind = (uint8_t)c->field_kind[f];
        tables->field[f].source = (uint8_t)c->field_source[f], tables->field[f].target = (uint8_t)c->field_target[f];
    }
}

#endif
