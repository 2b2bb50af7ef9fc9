/* Constants of a memory, as its channels read them: constants of the part and the controller, and what follows.
 *
 * Timing is one table: after command `from`, command `to` may follow after gap[scope][from][to] clocks, where scope says
 * how close the two are (same bank, bank group, rank, or another rank). Parts differ in the table alone. Most gaps are
 * none, so the few of each command are listed. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* PDE is the first that the default policies never issue: see issued_commands. */
enum { ACT, RD, WR, RDA, WRA, PRE, PREA, REFAB, REFPB, PDE, PDX, MWR, RFM, CAS, SRE, SRX, REF2B, ACT2, COMMANDS };
enum { SAME_BANK, SAME_GROUP, SAME_RANK, OTHER_RANK, SCOPES };
enum { MAX_BANKS = 64, MAX_RANKS = 8, MAX_CHANNELS = 64, MAX_PORTS = 64, MAX_FIELDS = 16, TRACE_MARGIN = 32 };
enum { MAX_WIRES = 32, MAX_BEATS = 8, ROW_BIT = 0, COLUMN_BIT = 20, BANK_BIT = 36, GROUP_BIT = 44 };
enum { FIELD_COLUMN, FIELD_BANK, FIELD_GROUP, FIELD_RANK, FIELD_ROW, FIELD_CHANNEL, FIELD_KINDS };
enum { PAGE_OPEN, PAGE_CLOSED, PAGE_ADAPTIVE, PAGE_STRICT };
enum { REFRESH_NONE, REFRESH_ALL_BANK, REFRESH_PER_BANK };
#define MAX_CLOCKS ((int64_t)1 << 40)
enum { RUN_DONE, RUN_NEEDS_INPUT, RUN_OUTPUT_FULL, RUN_SLICE, RUN_STUCK };

typedef struct { /* levels of the command wires in one beat: a constant and runs of bits of the command's word */
    uint32_t constant, mask[MAX_WIRES];
    int32_t n_pieces;
    uint8_t source[MAX_WIRES], target[MAX_WIRES];
} dram_levels;

/* Every scalar setting of a part and its controller: type, name, least and most value. All that is made of settings follows
 * from this list: the struct, the checks, the names that Python gives values to (cython_ext.dram.engine.SETTINGS), and the
 * order in the file of the C library. A new setting is a line here, what the engine does for it, and its value: a field of
 * that name of the part or the controller, else an expression in hwmodel/dram/tables.py. Times are clocks. */
#define DRAM_SETTINGS(SETTING) \
    SETTING(int64_t, tFAW, 0, MAX_CLOCKS) \
    SETTING(int64_t, tREFI, 1, MAX_CLOCKS) \
    SETTING(int64_t, tRFCab, 0, MAX_CLOCKS) \
    SETTING(int64_t, tRFCpb, 0, MAX_CLOCKS) \
    SETTING(int64_t, read_data_end, 1, MAX_CLOCKS)  /* RL + burst */ \
    SETTING(int64_t, write_data_end, 1, MAX_CLOCKS) /* WL + burst */ \
    SETTING(int64_t, tRP, 0, MAX_CLOCKS) \
    SETTING(int64_t, tRTP, 0, MAX_CLOCKS) \
    SETTING(int64_t, write_recovery, 0, MAX_CLOCKS) /* WR to PRE */ \
    SETTING(int64_t, tCKE, 0, MAX_CLOCKS) \
    SETTING(int32_t, ranks, 1, MAX_RANKS) \
    SETTING(int32_t, bank_groups, 1, MAX_BANKS) \
    SETTING(int32_t, banks_per_group, 1, MAX_BANKS) \
    SETTING(int32_t, command_buses, 1, 2) \
    SETTING(int32_t, dual_in_turn, 0, 1) /* two command buses: the second command is that of the next bank in turn */ \
    SETTING(int32_t, pseudo_channels, 1, MAX_RANKS) /* on the same command wires: of their own ranks and data wires */ \
    SETTING(int32_t, strict_order, 0, 1) /* one request at a time, in the order of arrival */ \
    SETTING(int32_t, hit_cap, 1, 1 << 20) \
    SETTING(int32_t, hit_cap_strict, 0, 1) \
    SETTING(int32_t, page, PAGE_OPEN, PAGE_STRICT) \
    SETTING(int32_t, page_idle_cycles, 1, 1 << 30) \
    SETTING(int32_t, read_queue_entries, 1, 1024) \
    SETTING(int32_t, write_queue_entries, 1, 1024) \
    SETTING(int32_t, bank_queue_entries, 1, 64) \
    SETTING(int32_t, write_high, 1, 1024) \
    SETTING(int32_t, write_low, 0, 1024) \
    SETTING(int32_t, write_idle, 0, 1024) \
    SETTING(int32_t, hazard_ends_drain, 0, 1) /* a write that meets a pending read of its burst ends a drain */ \
    SETTING(int32_t, controller_latency_cycles, 1, 1 << 16) \
    SETTING(int32_t, refresh, REFRESH_NONE, REFRESH_PER_BANK) \
    SETTING(int32_t, precharge_all, 0, 1) \
    SETTING(int32_t, refresh_together, 0, 1) /* all ranks fall due in the same clock, else in turn */ \
    SETTING(int32_t, refresh_sets, 1, MAX_BANKS) /* a REFPB refreshes every refresh_sets-th bank from the one it names */ \
    SETTING(int32_t, power_down_cycles, 0, 1 << 30) \
    SETTING(int32_t, watchdog, 1, INT32_MAX) \
    SETTING(int32_t, pooled, 0, 1)        /* one queue per direction (pooled.h) */ \
    SETTING(int32_t, posted_writes, 0, 1) /* writes are done when accepted */ \
    /* A CAS command so many clocks before the first burst after the data clock stopped (0: it always runs), and how long
     * it runs on after a read and a write command. */ \
    SETTING(int32_t, tCAS_WCK, 0, 1 << 24) \
    SETTING(int32_t, sync_after_read, 0, 1 << 26) \
    SETTING(int32_t, sync_after_write, 0, 1 << 26) \
    SETTING(int32_t, second_act, 0, 1 << 24) /* latest distance of ACT-2; 0: an activate is one command */ \
    SETTING(int32_t, second_starts_rcd, 0, 1) /* tRCD counts from ACT-2 */ \
    /* JEDEC's freedoms and duties, 0 without: refreshes that may be postponed and pulled in (per set of banks), idle
     * clocks before one is pulled in; idle clocks before self-refresh; activates of a bank before refresh management
     * and its clocks; clocks after which the oldest request of a bank goes first; masked writes are distinguished. */ \
    SETTING(int32_t, refresh_postpone, 0, 8) \
    SETTING(int32_t, refresh_pull_in, 0, 8) \
    SETTING(int32_t, pull_in_idle, 0, 1 << 24) \
    SETTING(int32_t, self_refresh_cycles, 0, 1 << 30) \
    SETTING(int32_t, rfm_limit, 0, 1 << 24) \
    SETTING(int32_t, tRFM, 0, 1 << 24) \
    SETTING(int32_t, age_cap_cycles, 0, 1 << 30) \
    SETTING(int32_t, masked_writes, 0, 1) \
    SETTING(int32_t, offset_bits, 0, 48) \
    SETTING(int64_t, clock_run_on, 0, MAX_CLOCKS) /* clocks the data clock runs for a burst that none follows */ \
    SETTING(int32_t, ca_beats_per_clock, 1, 1 << 24) \
    SETTING(uint32_t, ca_idle, 0, UINT32_MAX) /* levels of the command wires between commands */

typedef struct {
    int64_t gap[SCOPES][COMMANDS][COMMANDS]; /* 0: no constraint */
    int64_t wire_cycles[COMMANDS];           /* clocks a command holds the command wires */
#define SETTING(type, name, least, most) type name;
    DRAM_SETTINGS(SETTING)
#undef SETTING
    int32_t n_fields;
    int32_t field_kind[MAX_FIELDS], field_source[MAX_FIELDS], field_bits[MAX_FIELDS], field_target[MAX_FIELDS];
    int32_t ca_wires, ca_beats[COMMANDS];
    dram_levels ca_level[COMMANDS][MAX_BEATS];
} dram_config;

typedef struct {
    const char *name;
    size_t offset, bytes; /* in dram_config */
    int64_t least, most;
} dram_setting;

static const dram_setting dram_settings[] = {
#define SETTING(type, name, least, most) {#name, offsetof(dram_config, name), sizeof(type), least, most},
    DRAM_SETTINGS(SETTING)
#undef SETTING
};

enum { N_SETTINGS = sizeof dram_settings / sizeof *dram_settings };

/* Returns 0 for a value out of range. */
static int set_setting(dram_config *c, int k, int64_t value) {
    const dram_setting *s = &dram_settings[k];
    const int32_t narrow = (int32_t)value;
    if (value < s->least || value > s->most) return 0;
    memcpy((char *)c + s->offset, s->bytes == sizeof narrow ? (const void *)&narrow : &value, s->bytes);
    return 1;
}

/* Whether the settings agree with each other: no more banks than there is room for, in whole sets of a refresh, and as
 * many ranks in each pseudo-channel. */
static int is_consistent(const dram_config *c) {
    const int64_t banks = (int64_t)c->bank_groups * c->banks_per_group;
    return c->ranks * banks <= MAX_BANKS && banks % c->refresh_sets == 0 && c->ranks % c->pseudo_channels == 0;
}

/* Clocks after which a refresh of the same rank (all-bank) or of its next set of banks falls due. Ranks that take turns
 * do so every tREFI / ranks whole clocks. */
static inline int64_t refresh_interval(const dram_config *c) {
    if (c->refresh == REFRESH_PER_BANK) return c->tREFI / c->refresh_sets;
    return c->refresh_together ? c->tREFI : c->tREFI / c->ranks * c->ranks;
}

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
static int issued_commands(const dram_config *c) {
    if (c->self_refresh_cycles || c->rfm_limit || c->masked_writes) return COMMANDS;
    return c->power_down_cycles ? PDX + 1 : c->refresh == REFRESH_PER_BANK ? REFPB + 1 : REFAB + 1;
}

/* Whether banks a wider scope away are held as long, so that nothing is left to hold back. */
static int is_covered(const dram_config *c, int scope, int from, int to) {
    const int64_t clocks = c->gap[scope][from][to];
    if (scope == SAME_BANK && to == PRE) return 0; /* which auto-precharges ask for by itself */
    if (scope == SAME_BANK && c->bank_groups > 1 && c->gap[SAME_GROUP][from][to] >= clocks) return 1;
    return scope < SAME_RANK && c->gap[SAME_RANK][from][to] >= clocks;
}

/* No rule limits when a column command with auto-precharge may go (as without), nor a bank when all may be precharged. */
static void list_gaps(dram_tables *tables) {
    const int kept = issued_commands(&tables->c);
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
