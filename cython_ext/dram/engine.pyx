"""The compiled timing engine of a memory (see memory.h): requests in, completion cycles and commands out.

The engine keeps its state between blocks of requests, so a trace of any length runs in constant memory, and several
ports (sources) may feed it. hwmodel.dram.engine builds its tables from a part and checks what goes in.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from cython_ext.common.checks cimport need

cdef extern from "dram/stream.h" nogil:
    enum: COMMANDS, SCOPES, MAX_BANKS, MAX_CHANNELS, MAX_PORTS, MAX_FIELDS, MAX_WIRES, MAX_BEATS, N_SETTINGS, N_COUNTS
    enum: BACKGROUNDS, ROW_BIT, COLUMN_BIT, BANK_BIT, GROUP_BIT
    enum: PAGE_OPEN, PAGE_CLOSED, PAGE_ADAPTIVE, PAGE_STRICT, REFRESH_NONE, REFRESH_ALL_BANK, REFRESH_PER_BANK
    enum: RUN_DONE, RUN_NEEDS_INPUT, RUN_OUTPUT_FULL, RUN_SLICE, RUN_STUCK
    int64_t NEVER
    ctypedef struct dram_setting:
        const char *name
        int64_t least, most
    const dram_setting *dram_settings
    const char **dram_count_names
    ctypedef struct dram_levels:
        uint32_t constant
        uint32_t mask[32]
        int32_t n_pieces
        uint8_t source[32], target[32]
    ctypedef struct dram_config:
        int64_t gap[4][18][18]
        int64_t wire_cycles[18]
        int32_t ranks, pseudo_channels, n_fields, ca_wires, offset_bits
        int32_t field_kind[16], field_source[16], field_bits[16], field_target[16]
        int32_t ca_beats[18]
        dram_levels ca_level[18][8]
    ctypedef struct dram_tables:
        dram_config c
    ctypedef struct dram_bank:
        int64_t count[18]
        int64_t row_hits, conflicts
        int32_t queued
    ctypedef struct dram_rank:
        int64_t count[18]
        int64_t clocks[5]
    ctypedef struct dram_port:
        const uint64_t *address
        const uint8_t *write
        const int64_t *arrival, *request
        int64_t next, length, limit, asleep, pause, last_accepted, bursts, waited, waited_for_line, waited_bursts
        int32_t line_reads
        int32_t relative, closed, parked
    ctypedef struct dram_counts:
        pass
    ctypedef struct dram_command:
        pass
    ctypedef struct dram_output:
        int64_t *done_id, *done_cycle, *done_accepted, *done_bursts, *sent_id, *unsent_id
        uint8_t *sent_channel
        int64_t n_done, done_limit, n_sent, n_unsent, bursts
    ctypedef struct dram_engine:
        const dram_config *c
        dram_bank bank[64]
        dram_rank rank[8]
        dram_counts counts
        int64_t ca_ones[32], ca_rising[32]
        int64_t n_trace
        dram_command *trace
        int32_t n_banks, reads_waiting, writes_waiting, n_opened
    ctypedef struct dram_memory:
        dram_engine *channel[64]
        dram_port port[64]
        dram_output out
        int64_t now
        int32_t n_channels, n_ports, limited, width
        int64_t completed[18]
    int set_setting(dram_config *c, int k, int64_t value)
    int is_consistent(const dram_config *c)
    void add_counts(dram_counts *total, const dram_counts *one)
    void list_tables(dram_tables *tables)
    dram_memory *dram_new(const dram_tables *tables, int n_channels, int n_ports, int width, int64_t done_size,
                          int64_t trace_size, int sent)
    void memory_moved(dram_memory *m, int64_t shift, int64_t bursts)
    void port_moved(const dram_memory *m, dram_port *port)
    int dram_run(dram_memory *m, int64_t slice)
    void unpack_levels(dram_engine *e)
    void account(dram_rank *rank, int64_t now)
    ctypedef struct stream_period:
        pass
    int stream_span(const dram_config *c, int *turn)
    int64_t state_room(const dram_memory *m)
    int64_t stream_state(const dram_memory *m, uint64_t address, int span, int turn, int reads, int64_t *to)
    uint64_t state_hash(const int64_t *state, int64_t n)
    int period_begin(stream_period *p, dram_engine *e, int64_t t)
    int period_take(stream_period *p, dram_engine *e)
    int period_repeat(stream_period *p, dram_engine *e, int64_t k, int64_t shift, int64_t bursts, int64_t rows,
                      int reads)
    void period_end(stream_period *p)

SETTINGS = {(<bytes>dram_settings[k].name).decode(): (dram_settings[k].least, dram_settings[k].most)
            for k in range(N_SETTINGS)}
"""Scalar settings of a part and its controller: name -> least and most value, in the order of the C library's file."""
CODES = {
    "page": {"open": PAGE_OPEN, "closed": PAGE_CLOSED, "adaptive": PAGE_ADAPTIVE, "strict": PAGE_STRICT},
    "refresh": {"none": REFRESH_NONE, "all-bank": REFRESH_ALL_BANK, "per-bank": REFRESH_PER_BANK},
}
"""Settings whose values have names."""
MOST_BANKS = MAX_BANKS
"""Banks behind one set of command wires."""
FIELD_NAMES = ("column", "bank", "bank_group", "rank", "row", "channel")
TRACE_DTYPE = np.dtype(
    [("cycle", "i8"), ("request", "i8"), ("command", "i4"), ("rank", "i4"), ("bank_group", "i4"), ("bank", "i4"),
     ("row", "i4"), ("column", "i4")]
)

# Where a bit of a command wire comes from: bit numbers of the command's word; negative: a constant level.
WORD_BITS = {"R": ROW_BIT, "C": COLUMN_BIT, "BA": BANK_BIT, "BG": GROUP_BIT}
LEVELS = {"0": -1, "V": -1, "1": -2}
DONE, NEEDS_INPUT, OUTPUT_FULL, SLICE, STUCK = RUN_DONE, RUN_NEEDS_INPUT, RUN_OUTPUT_FULL, RUN_SLICE, RUN_STUCK


cdef enum:
    STREAM_WINDOW = 16384  # requests at hand; the last 64 of them, those of one clock at most, lie behind what is played


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
    """Return the index of the first request that is not at a multiple of the burst below the capacity, no read (0),
    write (1) or masked write (2), or does not arrive from the one before (the first: from `after`) to `latest`; or
    -1."""
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


cdef class _Tables:
    """A part and its controller as memories read them; never changed, so many memories may share one.

    settings: a value for each of SETTINGS; gap int64[scope, from, to]; fields int32[n, 4]; levels: per command an
    int16[beats, wires] array of WORD_BITS + bit or LEVELS, what the command wires carry, or None.
    Raises KeyError for a missing setting, ValueError for one out of range.
    """

    cdef dram_tables tables

    def __cinit__(self, dict settings, const int64_t[:, :, ::1] gap, const int64_t[::1] wire_cycles,
                  const int32_t[:, ::1] fields, list levels):
        cdef dram_config *c = &self.tables.c
        cdef int k
        if gap.shape[0] != SCOPES or gap.shape[1] != COMMANDS or gap.shape[2] != COMMANDS:
            raise ValueError("gap must be int64[4, 18, 18]")
        if wire_cycles.shape[0] != COMMANDS or fields.shape[0] > MAX_FIELDS:
            raise ValueError("wire_cycles or fields out of range")
        memcpy(c.gap, &gap[0, 0, 0], sizeof(c.gap))
        memcpy(c.wire_cycles, &wire_cycles[0], sizeof(c.wire_cycles))
        c.n_fields = <int32_t>fields.shape[0]
        for k in range(c.n_fields):
            c.field_kind[k] = fields[k, 0]
            c.field_source[k] = fields[k, 1]
            c.field_bits[k] = fields[k, 2]
            c.field_target[k] = fields[k, 3]
        c.ca_wires = 1
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
        for k, (name, limits) in enumerate(SETTINGS.items()):
            if not set_setting(c, k, settings[name]):
                raise ValueError(f"{name} {settings[name]} is not from {limits[0]} to {limits[1]}")
        if not is_consistent(c):
            raise ValueError("at most 64 banks, in whole sets of a refresh")
        list_tables(&self.tables)


cdef class _Memory:
    """All channels of a part. width: requests accepted per clock over all channels. trace: keep commands. sent: keep
    what was on the wires. stream: to repeat periods of a stream, instead of trace.
    """

    cdef dram_memory *memory
    cdef _Tables tables
    cdef list held
    cdef int pseudo  # channels that share command wires and queues
    cdef bint untaken  # a run already stopped for what was sent
    cdef readonly int64_t repeated  # bursts of a stream that were counted, not played
    cdef dram_command *traces[64]  # room for commands of a stream's period

    def __cinit__(self, _Tables tables not None, int n_channels=1, int n_ports=1, int width=1, long out_size=65536,
                  bint trace=False, bint sent=False, bint stream=False):
        cdef int c
        if not 1 <= n_ports <= MAX_PORTS:
            raise ValueError("n_ports out of range")
        if not 1 <= n_channels <= MAX_CHANNELS or n_channels % tables.tables.c.pseudo_channels or width < 1:
            raise ValueError("at most 64 channels, all of their pseudo-channels, at least one request per clock")
        self.tables = tables
        self.pseudo = tables.tables.c.pseudo_channels
        self.memory = dram_new(&tables.tables, n_channels // self.pseudo, n_ports, width, out_size,
                               out_size if trace or stream else 0, sent)
        if self.memory is NULL:
            raise MemoryError
        for c in range(self.memory.n_channels if stream else 0):
            self.traces[c], self.memory.channel[c].trace = self.memory.channel[c].trace, NULL
        self.held = [None] * n_ports

    def __dealloc__(self):
        free(self.memory)

    cdef int check_port(self, int port) except -1:
        if not 0 <= port < self.memory.n_ports:
            raise IndexError(f"port {port} of {self.memory.n_ports}")
        return 0

    cdef dram_engine *at(self, int channel) except NULL:
        if not 0 <= channel < self.memory.n_channels:
            raise IndexError(f"channel {channel} of {self.memory.n_channels}")
        return self.memory.channel[channel]

    cdef by_channel(self, counts):
        """Return counts [channel, bank or rank, ...] of channels, those of pseudo-channels one after the other."""
        return counts.reshape(self.n_channels, -1, *counts.shape[2:])

    @property
    def n_channels(self):
        """Number of channels."""
        return self.memory.n_channels * self.pseudo

    def set_port(self, int port, *, limit=None, int line_reads=1, bint relative=False):
        """Allow `limit` lines in flight (None: any number), each of `line_reads` reads one after the other; relative:
        arrivals count from the port's own time."""
        self.check_port(port)
        need(line_reads > 0 and (limit is None or limit > 0), "lines of one read at least")
        self.memory.port[port].limit = NEVER if limit is None else limit
        self.memory.port[port].line_reads = line_reads
        self.memory.port[port].relative = relative
        if limit is not None:
            self.memory.limited = 1

    def feed(self, int port, const int64_t[::1] request, const uint64_t[::1] address, const uint8_t[::1] is_write,
             const int64_t[::1] arrival, bint more=False):
        """Give a port its next block; the previous one must be used up. `request`: the caller's numbers. more: others
        follow whatever becomes of these, so that the last ones wait for those that may be accepted in one clock with
        them.
        """
        self.check_port(port)
        cdef dram_port *p = &self.memory.port[port]
        if p.next < p.length and p.next >= p.pause:
            request, address, is_write, arrival = (
                np.concatenate((kept[p.next:], new))
                for kept, new in zip(self.held[port], (request, address, is_write, arrival), strict=True)
            )
            p.next = p.length
        cdef Py_ssize_t n = address.shape[0]
        if is_write.shape[0] != n or arrival.shape[0] != n or request.shape[0] != n:
            raise ValueError("request, address, is_write and arrival differ in length")
        if p.next != p.length or p.closed:
            raise ValueError(f"port {port} is closed or still has requests")
        self.held[port] = (request, address, is_write, arrival)
        p.next = p.parked = 0
        p.asleep = 0
        p.length = n
        p.pause = max(n - self.memory.width + 1, 0) if more else NEVER
        if n:
            p.request, p.address, p.write, p.arrival = &request[0], &address[0], &is_write[0], &arrival[0]
        port_moved(self.memory, p)

    def close(self, int port):
        """Say that a port gets no more requests."""
        self.check_port(port)
        self.memory.port[port].closed = 1
        self.memory.port[port].parked = 0
        self.memory.port[port].pause = NEVER

    def park(self, int port):
        """Say that a port gets no requests before all other ports are closed."""
        self.check_port(port)
        self.memory.port[port].parked = 1

    def sleep(self, int port, int64_t until):
        """Say that a port gets no requests before clock `until`; then it must be fed, closed or parked."""
        self.check_port(port)
        self.memory.port[port].asleep = until

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

    def play_stream(self, uint64_t address, const int64_t[::1] bursts, const uint8_t[::1] writes):
        """Play requests for consecutive bursts from `address` on, bursts[k] reads or (writes[k]) writes in turn, each
        as soon as it is accepted, to the end; return the status of the last run. Of a memory with one port and no
        limit. With `stream` what repeats is played once (stream.h).
        """
        need(writes.shape[0] == bursts.shape[0] and self.memory.n_ports == 1, "a direction for each run, one port")
        cdef dram_memory *m = self.memory
        cdef dram_port *port = &m.port[0]
        cdef const dram_config *c = m.channel[0].c
        cdef int turn = 0, status, span = 0 if self.traces[0] is NULL else stream_span(c, &turn)
        cdef int64_t total = 0, at = 0, run_end = 0, run = -1, target = 0, period = 0, times, length, n, k, place
        cdef int64_t step = <int64_t>1 << c.offset_bits, tile = <int64_t>1 << span >> c.offset_bits
        cdef int64_t[::1] state = np.zeros(state_room(m) if span else 0, np.int64)
        cdef _Period measured = None
        request, arrival = np.zeros((2, STREAM_WINDOW), np.int64)
        cdef uint64_t[::1] where = np.zeros(STREAM_WINDOW, np.uint64)
        cdef uint8_t[::1] direction = np.zeros(STREAM_WINDOW, np.uint8)
        seen, first, looking = {}, None, False
        for k in range(bursts.shape[0]):
            need(bursts[k] >= 0, "runs of no fewer than no bursts")
            total += bursts[k]
        while at < total:
            if at >= run_end:  # another run, from which its own periods are looked for
                while at >= run_end:
                    run += 1
                    run_end += bursts[run]
                seen, measured, looking = {}, None, span > 0
            place = ((address >> c.offset_bits) + at) % tile if span else 0
            if looking and place < m.width and (measured is None or at >= target):
                length = stream_state(m, address + <uint64_t>(at * step), span, turn, not writes[run], &state[0])
                now = np.asarray(state[:length]).copy()
                if measured is None:
                    period = at - seen.setdefault(state_hash(&state[0], length), at)
                    if period and run_end - at < 2 * period + m.width:
                        looking = False  # too little is left
                    elif period:
                        measured, first, target = _Period(self), now, at + period
                elif np.array_equal(first, now):
                    times = (run_end - at - m.width) // period
                    measured.repeat(times, period, period << c.offset_bits >> turn, not writes[run])
                    at += times * period
                    self.repeated += times * period
                    measured, looking = None, False
                    continue
                else:
                    measured, seen = None, {}  # two states with one hash
            n = min(total - at, STREAM_WINDOW)
            k = run
            place = run_end
            for length in range(n):
                while at + length >= place:
                    k += 1
                    place += bursts[k]
                where[length] = address + <uint64_t>((at + length) * step)
                direction[length] = writes[k]
            port.next = port.length = 0
            self.feed(0, request[:n], np.asarray(where)[:n], np.asarray(direction)[:n], arrival[:n])
            if n < total - at:
                port.pause = STREAM_WINDOW - 64
            if looking:
                place = tile - ((address >> c.offset_bits) + at) % tile
                port.pause = min(port.pause, place)
            if at < run_end:
                port.pause = min(port.pause, run_end - at)
            status = self.run_on(measured)
            if status != RUN_NEEDS_INPUT:
                return status
            at += port.next
        self.close(0)
        return self.run_on(None)

    cdef int run_on(self, _Period measured) except -1:
        """Run and drop what is done, as long as that alone holds the memory up; return the status."""
        cdef int status = RUN_OUTPUT_FULL
        while status == RUN_OUTPUT_FULL:
            status = self.run()
            self.memory.out.n_done = 0
            if measured is not None:
                measured.take()
        return status

    def waited(self, int port):
        """Return clocks that a port's requests waited to be accepted, of them those of reads that found room but as
        many lines in flight as may be, and the bursts that began meanwhile on all channels. Of a memory with a
        limit."""
        self.check_port(port)
        p = &self.memory.port[port]
        return p.waited, p.waited_for_line, p.waited_bursts

    def bursts_since(self, int port):
        """Return the clock at which a port's last request was accepted, and the bursts begun since."""
        self.check_port(port)
        return self.memory.port[port].last_accepted, self.memory.out.bursts - self.memory.port[port].bursts

    def hungry_ports(self):
        """Return the ports that must be fed, closed or parked before the memory can go on."""
        hungry, parked, busy = [], [], False
        cdef int p
        for p in range(self.memory.n_ports):
            if self.memory.port[p].length > self.memory.port[p].next >= self.memory.port[p].pause:
                hungry.append(p)
            elif self.memory.port[p].next < self.memory.port[p].length or self.memory.port[p].asleep > self.memory.now + 1:
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

    def done_bursts(self):
        """Return int64[n]: of each request that `take_done` would return, the bursts begun on all channels when its own
        had begun (a posted write: when it was accepted). Of a memory with `sent`."""
        need(self.memory.out.done_bursts is not NULL, "a memory that keeps what was sent")
        return copied(self.memory.out.done_bursts, self.memory.out.n_done)

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

    def take_traces(self):
        """Return the commands issued since the last call, TRACE_DTYPE[n] of each channel in order of cycle."""
        cdef dram_engine *e
        cdef int c, ranks
        cdef uint8_t[::1] raw
        traces = []
        for c in range(self.memory.n_channels):
            e = self.memory.channel[c]
            trace = np.empty(e.n_trace, TRACE_DTYPE)
            raw = trace.view(np.uint8)
            if e.n_trace:
                memcpy(&raw[0], e.trace, e.n_trace * sizeof(dram_command))
            e.n_trace = 0
            ranks = e.c.ranks // self.pseudo
            pseudo = trace["rank"] // ranks
            trace["rank"] %= ranks
            traces += [trace] if self.pseudo == 1 else [trace[pseudo == p] for p in range(self.pseudo)]
        return traces

    def now(self):
        """Return the last processed cycle."""
        return self.memory.now

    def state(self, int channel):
        """Return what waits where, in the first of pseudo-channels with common queues: for the message of a run that is
        stuck."""
        if channel % self.pseudo:
            return {}
        cdef dram_engine *e = self.at(channel // self.pseudo)
        return {
            "read queue": e.reads_waiting,
            "write queue": e.writes_waiting,
            "opened rows": e.n_opened,
            **{f"bank {b} queue": e.bank[b].queued for b in range(e.n_banks)},
        }

    def counts(self):
        """Return the request counters of all channels as a dict of ints: sums, and the latest of what comes last."""
        cdef dram_counts total
        cdef int c, k
        memset(&total, 0, sizeof(total))
        for c in range(self.memory.n_channels):
            add_counts(&total, &self.memory.channel[c].counts)
        return {(<bytes>dram_count_names[k]).decode(): (<int64_t *>&total)[k] for k in range(N_COUNTS)}

    def bank_counts(self):
        """Return (commands, int64[channel, bank, command], where a PREA is counted at each bank it closed; row hits and
        conflicts, int64[channel, bank], rows closed because a request wanted another row of the bank)."""
        cdef int c, b, banks = self.memory.channel[0].n_banks
        commands = np.empty((self.memory.n_channels, banks, COMMANDS), np.int64)
        row_hits = np.empty((self.memory.n_channels, banks), np.int64)
        conflicts = np.empty((self.memory.n_channels, banks), np.int64)
        cdef int64_t[:, :, ::1] to_commands = commands
        cdef int64_t[:, ::1] to_row_hits = row_hits, to_conflicts = conflicts
        cdef dram_bank *bank
        for c in range(self.memory.n_channels):
            for b in range(banks):
                bank = &self.memory.channel[c].bank[b]
                to_row_hits[c, b], to_conflicts[c, b] = bank.row_hits, bank.conflicts
                memcpy(&to_commands[c, b, 0], bank.count, sizeof(bank.count))
        return self.by_channel(commands), self.by_channel(row_hits), self.by_channel(conflicts)

    def rank_counts(self, int64_t until):
        """Return (commands, int64[channel, rank, command]; clocks up to `until`, int64[channel, rank, 5]: active,
        precharged, power-down active, precharged, self-refresh)."""
        cdef int c, r, ranks = self.memory.channel[0].c.ranks
        commands = np.empty((self.memory.n_channels, ranks, COMMANDS), np.int64)
        clocks = np.empty((self.memory.n_channels, ranks, BACKGROUNDS), np.int64)
        cdef int64_t[:, :, ::1] to_commands = commands, to_clocks = clocks
        cdef dram_rank *rank
        for c in range(self.memory.n_channels):
            for r in range(ranks):
                rank = &self.memory.channel[c].rank[r]
                account(rank, until)
                memcpy(&to_commands[c, r, 0], rank.count, sizeof(rank.count))
                memcpy(&to_clocks[c, r, 0], rank.clocks, sizeof(rank.clocks))
        return self.by_channel(commands), self.by_channel(clocks)

    def completed(self):
        """Return int64[command]: commands up to the last completion, before writes that still waited were drained."""
        return copied(self.memory.completed, COMMANDS)

    def command_wires(self):
        """Return int64[2, channel, wires]: unit intervals at 1, and rising edges, of the command wires (one set of
        pseudo- channels that share them)."""
        cdef int c, wires = self.memory.channel[0].c.ca_wires
        result = np.empty((2, self.memory.n_channels, wires), np.int64)
        cdef int64_t[:, :, ::1] to = result
        cdef dram_engine *e
        for c in range(self.memory.n_channels):
            e = self.memory.channel[c]
            unpack_levels(e)
            memcpy(&to[0, c, 0], e.ca_ones, wires * sizeof(int64_t))
            memcpy(&to[1, c, 0], e.ca_rising, wires * sizeof(int64_t))
        return result


cdef class _Period:
    """A period of a stream while it is measured, from now on until it is repeated: of each channel."""

    cdef _Memory of
    cdef stream_period each[64]
    cdef int64_t began

    def __cinit__(self, _Memory of not None):
        cdef int c
        self.of, self.began = of, of.memory.now
        memset(self.each, 0, sizeof(self.each))
        for c in range(of.memory.n_channels):
            if not period_begin(&self.each[c], of.memory.channel[c], of.memory.now + 1):
                raise MemoryError
        for c in range(of.memory.n_channels):
            of.memory.channel[c].trace = of.traces[c]

    def __dealloc__(self):
        cdef int c
        for c in range(self.of.memory.n_channels):
            self.of.memory.channel[c].trace = NULL
            period_end(&self.each[c])

    cdef int take(self) except -1:
        cdef int c
        for c in range(self.of.memory.n_channels):
            if not period_take(&self.each[c], self.of.memory.channel[c]):
                raise MemoryError
        return 0

    cdef int repeat(self, int64_t times, int64_t bursts, int64_t rows, bint reads) except -1:
        cdef dram_memory *m = self.of.memory
        cdef int c
        cdef int64_t shift = times * (m.now - self.began)
        for c in range(m.n_channels):
            unpack_levels(m.channel[c])
            for r in range(m.channel[c].c.ranks):
                account(&m.channel[c].rank[r], m.now + 1)
            if not period_repeat(&self.each[c], m.channel[c], times, shift, times * bursts, times * rows, reads):
                raise MemoryError
        memory_moved(m, shift, times * bursts)
        return 0


cdef copied(const int64_t *numbers, int64_t n):
    """Return int64[n], a copy."""
    result = np.empty(n, np.int64)
    cdef int64_t[::1] to = result
    if n:
        memcpy(&to[0], numbers, n * sizeof(int64_t))
    return result
