"""The compiled timing engine of a memory (see memory.h): requests in, completion cycles and commands out.

The engine keeps its state between blocks of requests, so a trace of any length runs in constant memory, and several
ports (sources) may feed it. hwmodel.dram.engine builds its tables from a part and checks what goes in.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from cython_ext.common.checks cimport need

FIELD_NAMES = ("column", "bank", "bank_group", "rank", "row", "channel")
TRACE_DTYPE = np.dtype(
    [("cycle", "i8"), ("request", "i8"), ("command", "i4"), ("rank", "i4"), ("bank_group", "i4"), ("bank", "i4"),
     ("row", "i4"), ("column", "i4")]
)

# Where a bit of a command wire comes from: bit numbers of the command's word; negative: a constant level.
WORD_BITS = {"R": ROW_BIT, "C": COLUMN_BIT, "BA": BANK_BIT, "BG": GROUP_BIT}
LEVELS = {"0": -1, "V": -1, "1": -2}
DONE, NEEDS_INPUT, OUTPUT_FULL, SLICE, STUCK = RUN_DONE, RUN_NEEDS_INPUT, RUN_OUTPUT_FULL, RUN_SLICE, RUN_STUCK


cdef int pack_levels(const int16_t[::1] tokens, dram_levels *levels) except -1:
    """Join neighbouring wires that carry neighbouring bits of the word into one piece."""
    cdef int wire, k = 0
    levels.constant = 0
    for wire in range(tokens.shape[0]):
        if tokens[wire] == -2:
            levels.constant |= <uint32_t>1 << wire
        elif tokens[wire] >= 0:
            if wire and tokens[wire - 1] >= 0 and tokens[wire] == tokens[wire - 1] + 1:
                levels.mask[k - 1] = 2 * levels.mask[k - 1] + 1
            else:
                levels.source[k], levels.target[k], levels.mask[k] = <uint8_t>tokens[wire], <uint8_t>wire, 1
                k += 1
    levels.n_pieces = k
    return 0


def first_bad_request(const uint64_t[::1] address, const uint8_t[::1] is_write, const int64_t[::1] arrival,
                      uint64_t burst_bytes, uint64_t capacity, int64_t after, int64_t latest):
    """Return the index of the first request that is not at a multiple of the burst below the capacity, no read (0), write
    (1) or masked write (2), or does not arrive from the one before (the first: from `after`) to `latest`; or -1."""
    cdef Py_ssize_t k, n = address.shape[0]
    cdef int64_t before = after
    cdef bint bad = False
    need(is_write.shape[0] == n and arrival.shape[0] == n, "a direction and an arrival for each request")
    need(burst_bytes > 0 and not burst_bytes & (burst_bytes - 1), "bursts of a power of two of bytes")
    for k in range(n):  # most are sound: without branches first
        bad |= ((address[k] & (burst_bytes - 1)) != 0) | (address[k] >= capacity) | (is_write[k] > 2)
        bad |= (arrival[k] < before) | (arrival[k] > latest)
        before = arrival[k]
    before = after
    for k in range(n if bad else 0):
        if (address[k] & (burst_bytes - 1) or address[k] >= capacity or is_write[k] > 2 or arrival[k] < before
                or arrival[k] > latest):
            return k
        before = arrival[k]
    return -1


cdef class Tables:
    """A part and its controller as memories read them; never changed, so many memories may share one.

    settings: the scalar fields of dram_config; gap int64[scope, from, to]; fields int32[n, 4]; levels: per command an
    int16[beats, wires] array of WORD_BITS + bit or LEVELS, what the command wires carry, or None.
    Raises KeyError for a missing setting.
    """

    cdef dram_tables tables

    def __cinit__(self, dict settings, const int64_t[:, :, ::1] gap, const int64_t[::1] wire_cycles,
                  const int32_t[:, ::1] fields, list levels):
        cdef dram_config *c = &self.tables.c
        cdef int k, scope, before, after
        if gap.shape[0] != SCOPES or gap.shape[1] != COMMANDS or gap.shape[2] != COMMANDS:
            raise ValueError("gap must be int64[4, 18, 18]")
        if wire_cycles.shape[0] != COMMANDS or fields.shape[0] > MAX_FIELDS:
            raise ValueError("wire_cycles or fields out of range")
        for scope in range(SCOPES):
            for before in range(COMMANDS):
                for after in range(COMMANDS):
                    c.gap[scope][before][after] = gap[scope, before, after]
        for k in range(COMMANDS):
            c.wire_cycles[k] = wire_cycles[k]
        c.n_fields = <int32_t>fields.shape[0]
        for k in range(c.n_fields):
            c.field_kind[k] = fields[k, 0]
            c.field_source[k] = fields[k, 1]
            c.field_bits[k] = fields[k, 2]
            c.field_target[k] = fields[k, 3]
        c.ca_wires = c.ca_beats_per_clock = 1
        cdef const int16_t[:, ::1] pattern
        cdef int beat
        for k in range(COMMANDS):
            c.ca_beats[k] = 0
            if levels[k] is None:
                continue
            pattern = levels[k]
            if pattern.shape[0] > MAX_BEATS or pattern.shape[1] > MAX_WIRES:
                raise ValueError("at most 8 beats of 32 command wires")
            c.ca_beats[k] = <int32_t>pattern.shape[0]
            c.ca_wires = <int32_t>pattern.shape[1]
            for beat in range(pattern.shape[0]):
                pack_levels(pattern[beat], &c.ca_level[k][beat])
        s = settings
        c.ca_beats_per_clock, c.ca_idle = s["ca_beats_per_clock"], s["ca_idle"]
        c.faw, c.refresh_interval, c.refresh_cycles = s["faw"], s["refresh_interval"], s["refresh_cycles"]
        c.refresh_bank_cycles, c.read_data_end = s["refresh_bank_cycles"], s["read_data_end"]
        c.write_data_end, c.rp, c.rtp, c.write_recovery = s["write_data_end"], s["rp"], s["rtp"], s["write_recovery"]
        c.cke, c.ranks, c.groups, c.banks_per_group = s["cke"], s["ranks"], s["groups"], s["banks_per_group"]
        c.command_buses, c.strict_order, c.hit_cap = s["command_buses"], s["strict_order"], s["hit_cap"]
        c.hit_cap_strict = s["hit_cap_strict"]
        c.page, c.page_idle, c.read_entries = s["page"], s["page_idle"], s["read_entries"]
        c.write_entries, c.bank_entries, c.write_high = s["write_entries"], s["bank_entries"], s["write_high"]
        c.write_low, c.write_idle, c.latency = s["write_low"], s["write_idle"], s["latency"]
        c.refresh, c.precharge_all, c.refresh_sets = s["refresh"], s["precharge_all"], s["refresh_sets"]
        c.power_down, c.watchdog = s["power_down"], s["watchdog"]
        c.pooled, c.posted, c.second_act = s["pooled"], s["posted"], s["second_act"]
        c.sync_cycles, c.sync_after_read = s["sync_cycles"], s["sync_after_read"]
        c.sync_after_write, c.offset_bits = s["sync_after_write"], s["offset_bits"]
        c.clock_run_on, c.second_starts_rcd = s["clock_run_on"], s["second_starts_rcd"]
        c.postpone, c.pull_in, c.pull_in_idle = s["postpone"], s["pull_in"], s["pull_in_idle"]
        c.self_refresh, c.rfm_limit, c.rfm_cycles = s["self_refresh"], s["rfm_limit"], s["rfm_cycles"]
        c.age_cap, c.masked = s["age_cap"], s["masked"]
        if not (1 <= c.ranks <= MAX_RANKS and 1 <= c.ranks * c.groups * c.banks_per_group <= MAX_BANKS):
            raise ValueError("at most 8 ranks and 64 banks")
        if not 1 <= c.bank_entries <= 64:
            raise ValueError("bank_entries must be from 1 to 64")
        list_tables(&self.tables)


cdef class Memory:
    """All channels of a part. width: requests accepted per clock over all channels. trace: keep commands. sent: keep
    what was on the wires.

    Raises MemoryError.
    """

    cdef dram_memory *memory
    cdef Tables tables
    cdef list held
    cdef bint untaken  # a run already stopped for what was sent

    def __cinit__(self, Tables tables not None, int n_channels=1, int n_ports=1, int width=1, long out_size=65536,
                  bint trace=False, bint sent=False):
        if not 1 <= n_ports <= MAX_PORTS:
            raise ValueError("n_ports out of range")
        if not 1 <= n_channels <= MAX_CHANNELS or width < 1:
            raise ValueError("at most 64 channels, at least one request per clock")
        self.tables = tables
        self.memory = dram_new(&tables.tables, n_channels, n_ports, width, out_size, out_size if trace else 0, sent)
        if self.memory is NULL:
            raise MemoryError
        self.held = [None] * n_ports

    def __dealloc__(self):
        dram_free(self.memory)

    cdef int check_port(self, int port) except -1:
        if not 0 <= port < self.memory.n_ports:
            raise IndexError(f"port {port} of {self.memory.n_ports}")
        return 0

    cdef dram_engine *at(self, int channel) except NULL:
        if not 0 <= channel < self.memory.n_channels:
            raise IndexError(f"channel {channel} of {self.memory.n_channels}")
        return self.memory.channel[channel]

    @property
    def n_channels(self):
        """Number of channels."""
        return self.memory.n_channels

    def set_port(self, int port, *, limit=None, bint relative=False):
        """Allow `limit` reads in flight (None: any number); relative: arrivals count from the port's own time."""
        self.check_port(port)
        self.memory.port[port].limit = NEVER if limit is None else limit
        self.memory.port[port].relative = relative
        if limit is not None:
            self.memory.limited = 1

    def feed(self, int port, const int64_t[::1] request, const uint64_t[::1] address, const uint8_t[::1] is_write,
             const int64_t[::1] arrival):
        """Give a port its next block; the previous one must be used up. `request`: the caller's numbers."""
        self.check_port(port)
        cdef dram_port *p = &self.memory.port[port]
        cdef Py_ssize_t n = address.shape[0]
        if is_write.shape[0] != n or arrival.shape[0] != n or request.shape[0] != n:
            raise ValueError("request, address, is_write and arrival differ in length")
        if p.next != p.length or p.closed:
            raise ValueError(f"port {port} is closed or still has requests")
        self.held[port] = (request, address, is_write, arrival)
        p.next = p.parked = 0
        p.length = n
        if n:
            p.request, p.address, p.write, p.arrival = &request[0], &address[0], &is_write[0], &arrival[0]
        port_moved(self.memory, p)

    def close(self, int port):
        """Say that a port gets no more requests."""
        self.check_port(port)
        self.memory.port[port].closed = 1
        self.memory.port[port].parked = 0

    def park(self, int port):
        """Say that a port gets no requests before all other ports are closed."""
        self.check_port(port)
        self.memory.port[port].parked = 1

    def run(self, long slices=-1):
        """Run in slices (so that Ctrl-C works) until DONE, NEEDS_INPUT, OUTPUT_FULL or STUCK, or `slices` are over."""
        cdef int status = RUN_SLICE
        while status == RUN_SLICE and slices != 0:
            with nogil:
                status = dram_run(self.memory, 1 << 18)
            PyErr_CheckSignals()
            slices -= 1
        if status == RUN_OUTPUT_FULL and self.memory.out.n_done <= self.memory.out.done_limit:
            if self.memory.out.n_sent > self.memory.out.done_limit or self.memory.out.n_unsent > self.memory.out.done_limit:
                if self.untaken:
                    raise RuntimeError("what was sent must be taken (take_sent) before the memory can go on")
                self.untaken = 1
        return status

    def hungry_ports(self):
        """Return the ports that must be fed, closed or parked before the memory can go on."""
        hungry, parked, busy = [], [], False
        cdef int p
        for p in range(self.memory.n_ports):
            if self.memory.port[p].next < self.memory.port[p].length:
                busy = True
            elif self.memory.port[p].parked:
                parked.append(p)
            elif not self.memory.port[p].closed:
                hungry.append(p)
        return hungry if hungry or busy else parked

    def take_done(self):
        """Return (request, cycle accepted, cycle done) int64[n] of the requests completed since the last call."""
        cdef dram_output *out = &self.memory.out
        taken = copied(out.done_id, out.n_done), copied(out.done_accepted, out.n_done), copied(out.done_cycle, out.n_done)
        out.n_done = 0
        return taken

    def take_sent(self):
        """Return int64[n] requests whose burst was on the wires since the last call, in the order of their commands,
        uint8[n] their channels, and int64[m] requests that turned out to have no burst of their own."""
        cdef dram_output *out = &self.memory.out
        channel = np.empty(out.n_sent, np.uint8)
        cdef uint8_t[::1] to_channel = channel
        if out.n_sent:
            memcpy(&to_channel[0], out.sent_channel, out.n_sent)
        taken = copied(out.sent_id, out.n_sent), channel, copied(out.unsent_id, out.n_unsent)
        out.n_sent = out.n_unsent = 0
        self.untaken = 0
        return taken

    def waiting_output(self):
        """Return how many requests completed that were not taken yet."""
        return self.memory.out.n_done

    def take_trace(self, int channel):
        """Return the commands issued on a channel since the last call, TRACE_DTYPE[n], in order of cycle."""
        cdef dram_engine *e = self.at(channel)
        cdef int64_t n = e.n_trace
        trace = np.empty(n, TRACE_DTYPE)
        cdef uint8_t[::1] raw = trace.view(np.uint8)
        if n:
            memcpy(&raw[0], e.trace, n * sizeof(dram_command))
        e.n_trace = 0
        return trace

    def now(self):
        """Return the last processed cycle."""
        return self.memory.now

    def state(self, int channel):
        """Return what waits where: for the message of a run that is stuck."""
        cdef dram_engine *e = self.at(channel)
        return {
            "read queue": e.reads_waiting,
            "write queue": e.writes_waiting,
            "opened rows": e.n_opened,
            **{f"bank {b} queue": e.bank[b].queued for b in range(e.n_banks)},
        }

    def counts(self):
        """Return the request counters of all channels as a dict of ints: sums, and the latest of what comes last."""
        cdef dram_counts total = self.memory.channel[0].counts, one
        cdef int c
        for c in range(1, self.memory.n_channels):
            one = self.memory.channel[c].counts
            total.reads += one.reads
            total.writes += one.writes
            total.forwarded += one.forwarded
            total.merged_reads += one.merged_reads
            total.merged_writes += one.merged_writes
            total.read_hits += one.read_hits
            total.write_hits += one.write_hits
            total.data_clock += one.data_clock
            total.latency_sum += one.latency_sum
            total.latency_max = max(total.latency_max, one.latency_max)
            total.last_done = max(total.last_done, one.last_done)
            total.last_data = max(total.last_data, one.last_data)
        return {
            "reads": total.reads, "writes": total.writes, "forwarded": total.forwarded,
            "merged_reads": total.merged_reads, "merged_writes": total.merged_writes, "read_hits": total.read_hits,
            "write_hits": total.write_hits, "data_clock": total.data_clock, "latency_sum": total.latency_sum,
            "latency_max": total.latency_max, "last_done": total.last_done, "last_data": total.last_data,
        }

    def bank_counts(self):
        """Return (commands, int64[channel, bank, command], where a PREA is counted at each bank it closed; conflicts,
        int64[channel, bank], rows closed because a request wanted another row of the bank)."""
        cdef int c, b, k, banks = self.memory.channel[0].n_banks
        commands = np.empty((self.memory.n_channels, banks, COMMANDS), np.int64)
        conflicts = np.empty((self.memory.n_channels, banks), np.int64)
        cdef int64_t[:, :, ::1] to_commands = commands
        cdef int64_t[:, ::1] to_conflicts = conflicts
        cdef dram_bank *bank
        for c in range(self.memory.n_channels):
            for b in range(banks):
                bank = &self.memory.channel[c].bank[b]
                to_conflicts[c, b] = bank.conflicts
                for k in range(COMMANDS):
                    to_commands[c, b, k] = bank.count[k]
        return commands, conflicts

    def rank_counts(self, int64_t until):
        """Return (commands, int64[channel, rank, command]; clocks up to `until`, int64[channel, rank, 5]: active,
        precharged, power-down active, precharged, self-refresh)."""
        cdef int c, r, k, ranks = self.memory.channel[0].c.ranks
        commands = np.empty((self.memory.n_channels, ranks, COMMANDS), np.int64)
        clocks = np.empty((self.memory.n_channels, ranks, 5), np.int64)
        cdef int64_t[:, :, ::1] to_commands = commands, to_clocks = clocks
        cdef dram_rank *rank
        for c in range(self.memory.n_channels):
            for r in range(ranks):
                rank = &self.memory.channel[c].rank[r]
                account(rank, until)
                for k in range(COMMANDS):
                    to_commands[c, r, k] = rank.count[k]
                to_clocks[c, r, 0], to_clocks[c, r, 1] = rank.active, rank.precharged
                to_clocks[c, r, 2], to_clocks[c, r, 3] = rank.down_active, rank.down_precharged
                to_clocks[c, r, 4] = rank.asleep
        return commands, clocks

    def completed(self):
        """Return int64[command]: commands up to the last completion, before writes that still waited were drained."""
        return copied(self.memory.completed, COMMANDS)

    def command_wires(self):
        """Return int64[2, channel, wires]: unit intervals at 1, and rising edges, of the command wires."""
        cdef int c, k, wires = self.memory.channel[0].c.ca_wires
        result = np.empty((2, self.memory.n_channels, wires), np.int64)
        cdef int64_t[:, :, ::1] to = result
        cdef dram_engine *e
        for c in range(self.memory.n_channels):
            e = self.memory.channel[c]
            unpack_levels(e)
            for k in range(wires):
                to[0, c, k], to[1, c, k] = e.ca_ones[k], e.ca_rising[k]
        return result


cdef copied(const int64_t *numbers, int64_t n):
    """Return int64[n], a copy."""
    result = np.empty(n, np.int64)
    cdef int64_t[::1] to = result
    if n:
        memcpy(&to[0], numbers, n * sizeof(int64_t))
    return result
