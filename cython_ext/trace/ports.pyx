"""The time of an engine that makes the accesses of a trace: the maximum over its resources, operation by operation."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t

from cython_ext.common.checks cimport need

import numpy as np

ctypedef const uint8_t const_uint8_t
ctypedef const uint16_t const_uint16_t
ctypedef fused size_type:
    const_uint8_t
    const_uint16_t


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

    cdef ew_clock clock
    cdef const uint8_t[::1] kinds

    def __init__(self, engine, const uint8_t[::1] kinds, uint8_t source, int64_t values):
        cdef ew_clock *clock = &self.clock
        need(0 < kinds.shape[0] <= 64, "64 streams at most")
        clock.ports, clock.values, clock.source = open_ports(engine), values, source
        clock.single = engine.accesses_per_ns is not None
        clock.price = ew_price_of(&clock.ports, &clock.now)
        self.kinds, clock.kinds = kinds, &kinds[0]

    def feed(self, const uint8_t[::1] op, const uint8_t[::1] stream, size_type[::1] size):
        """Return float64[n]: cycles of the engine before the operation that each access belongs to."""
        cdef Py_ssize_t i, n = op.shape[0]
        cdef uint8_t most = 0
        cdef const uint8_t *bytes = NULL
        cdef const uint16_t *halves = NULL
        need(stream.shape[0] == n and size.shape[0] == n, "a stream and a size for each access")
        cycles = np.empty(n, np.float64)
        cdef double[::1] out = cycles
        if n:
            if size_type is const_uint8_t:
                bytes = &size[0]
            else:
                halves = &size[0]
            with nogil:
                for i in range(n):
                    most = max(most, stream[i])
            need(most < self.kinds.shape[0], "streams that there are")
            with nogil:
                ew_feed(&self.clock, &op[0], &stream[0], bytes, halves, n, &out[0])
        return cycles

    @property
    def cycles(self):
        """Cycles of all operations so far."""
        return self.clock.before + ew_cycles(&self.clock.ports, &self.clock.now)

    @property
    def accesses(self):
        """Accesses so far, none wider than access_bytes of the engine."""
        return self.clock.made + ew_accesses(&self.clock.now)

    @property
    def instructions(self):
        """Instructions so far: accesses, multiply-adds of access_bytes, and those of each connection beside them."""
        return self.clock.instructed + ew_instructions(&self.clock.ports, &self.clock.now)
