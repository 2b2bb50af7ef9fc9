"""What memory.h declares, as engine.pyx uses it."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "dram/memory.h" nogil:
    enum: COMMANDS
    enum: SCOPES
    enum: MAX_BANKS
    enum: MAX_RANKS
    enum: MAX_CHANNELS
    enum: MAX_PORTS
    enum: MAX_FIELDS
    enum: MAX_WIRES
    enum: MAX_BEATS
    enum: ROW_BIT
    enum: COLUMN_BIT
    enum: BANK_BIT
    enum: GROUP_BIT
    enum: RUN_DONE
    enum: RUN_NEEDS_INPUT
    enum: RUN_OUTPUT_FULL
    enum: RUN_SLICE
    enum: RUN_STUCK
    int64_t NEVER
    ctypedef struct dram_levels:
        uint32_t constant
        uint32_t mask[32]
        int32_t n_pieces
        uint8_t source[32]
        uint8_t target[32]
    ctypedef struct dram_config:
        int64_t gap[4][18][18]
        int64_t wire_cycles[18]
        int64_t faw, refresh_interval, refresh_cycles, refresh_bank_cycles, read_data_end, write_data_end
        int64_t rp, rtp, write_recovery, cke
        int32_t ranks, groups, banks_per_group, command_buses, strict_order, hit_cap, hit_cap_strict, page, page_idle
        int32_t read_entries, write_entries, bank_entries, write_high, write_low, write_idle
        int32_t latency, refresh, precharge_all, power_down, watchdog, refresh_sets, n_fields, offset_bits
        int32_t pooled, posted, sync_cycles, sync_after_read, sync_after_write, second_act
        int32_t second_starts_rcd, postpone, pull_in, pull_in_idle, self_refresh, rfm_limit, rfm_cycles, age_cap, masked
        int64_t clock_run_on
        int32_t field_kind[16]
        int32_t field_source[16]
        int32_t field_bits[16]
        int32_t field_target[16]
        int32_t ca_wires, ca_beats_per_clock
        uint32_t ca_idle
        int32_t ca_beats[18]
        dram_levels ca_level[18][8]
    ctypedef struct dram_tables:
        dram_config c
    ctypedef struct dram_bank:
        int64_t count[18]
        int64_t conflicts
        int32_t queued
    ctypedef struct dram_rank:
        int64_t count[18]
        int64_t active, precharged, down_active, down_precharged, asleep
    ctypedef struct dram_port:
        const uint64_t *address
        const uint8_t *write
        const int64_t *arrival
        const int64_t *request
        int64_t next, length, limit
        int32_t relative, closed, parked
    ctypedef struct dram_counts:
        int64_t reads, writes, forwarded, merged_reads, merged_writes, read_hits, write_hits
        int64_t latency_sum, latency_max, last_done, last_data, bursts, read_syncs, write_syncs, second_acts, data_clock
    ctypedef struct dram_command:
        int64_t cycle, request
        int32_t command, rank, group, bank, row, column
    ctypedef struct dram_output:
        int64_t *done_id
        int64_t *done_cycle
        int64_t *done_accepted
        int64_t *sent_id
        int64_t *unsent_id
        uint8_t *sent_channel
        int64_t n_done, done_limit, n_sent, n_unsent
    ctypedef struct dram_engine:
        const dram_config *c
        dram_bank bank[64]
        dram_rank rank[8]
        dram_counts counts
        int64_t ca_ones[32]
        int64_t ca_rising[32]
        int64_t n_trace
        dram_command *trace
        int32_t n_banks, reads_waiting, writes_waiting, n_opened
    ctypedef struct dram_memory:
        dram_engine *channel[64]
        dram_port port[64]
        dram_output out
        int64_t now
        int32_t n_channels, n_ports, limited
        int64_t completed[18]
    void list_tables(dram_tables *tables)
    dram_memory *dram_new(const dram_tables *tables, int n_channels, int n_ports, int width, int64_t done_size,
                          int64_t trace_size, int sent)
    void dram_free(dram_memory *m)
    void port_moved(const dram_memory *m, dram_port *port)
    int dram_run(dram_memory *m, int64_t slice)
    void unpack_levels(dram_engine *e)
    void account(dram_rank *rank, int64_t now)
