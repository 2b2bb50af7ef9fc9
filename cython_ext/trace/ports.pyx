"""The time of an engine that makes the accesses of a trace: the maximum over its resources, operation by operation."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t

from cython_ext.common.checks cimport need

import numpy as np

cdef enum:
    ELEMENT, HEADER, ROW, ALONE  # what accesses of a stream are: of a connection, before it, of a row, of no known step

ctypedef fused size_type:
    const uint8_t
    const uint16_t


cdef ew_ports open_ports(engine):
    """Return the ports of an engine (hwmodel.machine.EngineSpec, which has checked its values)."""
    cdef ew_ports ports
    one = engine.accesses_per_ns is not None  # one port for everything
    ports.records, ports.loads, ports.stores, ports.accumulates, ports.values, ports.instructions = [
        INFINITY if one or rate is None else rate
        for rate in (engine.records_per_cycle, engine.loads_per_cycle, engine.stores_per_cycle,
                     engine.accumulates_per_cycle, engine.values_per_cycle, engine.instructions_per_cycle)
    ]
    ports.accesses = 1 if one else INFINITY
    ports.each, ports.access_bytes = engine.instructions_per_connection, engine.access_bytes
    need(ports.access_bytes > 0, "accesses of bytes")
    ports.skips = engine.skip_zeros
    ports.fifo, ports.accumulator = engine.records_per_cycle is not None, engine.accumulates_per_cycle is not None
    return ports


cdef class EngineClock:
    """Takes the accesses of a trace, chunk by chunk, and says when the engine makes each.

    kinds: of each stream, uint8[streams]: 0 element of a connection, 1 row pointer, 2 row of a neuron, 3 access of a
    recorded trace. values: of a row, multiply-adds of a connection. A connection begins with its elements, two of one
    stream side by side where it stores two ids, and goes on with the rows that it loads and stores; with one port for
    all accesses each is an operation of its own.
    """

    cdef ew_ports ports
    cdef ew_operation now
    cdef ew_price price  # of the operation before: most are like it
    cdef const uint8_t[::1] kinds
    cdef uint64_t seen  # a bit for each stream
    cdef bint rows, single
    cdef int64_t last  # stream of the access before
    cdef double before
    cdef int64_t values, made, instructed
    cdef uint8_t source

    def __init__(self, engine, const uint8_t[::1] kinds, uint8_t source, int64_t values):
        self.ports, self.kinds, self.values, self.source = open_ports(engine), kinds, values, source
        need(len(kinds) <= 64, "64 streams at most")
        self.single = engine.accesses_per_ns is not None
        self.price = ew_price_of(&self.ports, &self.now)

    cdef inline void begin(self) noexcept nogil:
        cdef ew_operation empty = [0, 0, 0, 0, 0, 0]
        if not ew_same(&self.price.operation, &self.now):
            self.price = ew_price_of(&self.ports, &self.now)
        self.before += self.price.cycles
        self.instructed += self.price.instructions
        self.now, self.rows, self.seen = empty, False, 0

    def feed(self, const uint8_t[::1] op, const uint8_t[::1] stream, size_type[::1] size):
        """Return float64[n]: cycles of the engine before the operation that each access belongs to."""
        cdef Py_ssize_t i, n = op.shape[0]
        cdef int64_t taken
        cdef uint8_t kind
        cdef bint bad = False, again
        need(stream.shape[0] == n and size.shape[0] == n, "a stream and a size for each access")
        cycles = np.empty(n, np.float64)
        cdef double[::1] out = cycles
        with nogil:
            for i in range(n):
                if stream[i] >= self.kinds.shape[0]:
                    bad = True
                    break
                kind = self.kinds[stream[i]]
                taken = size[i] > 0
                if size[i] > self.ports.access_bytes:
                    taken = 1 + (size[i] - 1) // self.ports.access_bytes
                again = self.rows or (self.seen >> stream[i] & 1 and stream[i] != self.last)
                if self.single or kind == ALONE or kind == HEADER or (kind == ELEMENT and again):
                    self.begin()
                self.last = stream[i]
                if kind <= HEADER:
                    self.now.elements += taken
                    self.seen |= <uint64_t>1 << stream[i]
                    self.rows = kind == HEADER  # an operation of its own
                else:
                    self.rows = True
                    if op[i]:
                        self.now.stores += taken
                    elif kind == ALONE or stream[i] == self.source:
                        self.now.sources += taken
                    else:
                        self.now.targets += taken
                    if kind == ROW:
                        self.now.values, self.now.pieces = self.values, max(self.now.pieces, taken)
                self.made += taken
                out[i] = self.before
        need(not bad, "streams that there are")
        return cycles

    @property
    def cycles(self):
        """Cycles of all operations so far."""
        return self.before + ew_cycles(&self.ports, &self.now)

    @property
    def accesses(self):
        """Accesses so far, none wider than access_bytes of the engine."""
        return self.made

    @property
    def instructions(self):
        """Instructions so far: accesses, multiply-adds of access_bytes, and those of each connection beside them."""
        return self.instructed + ew_instructions(&self.ports, &self.now)
