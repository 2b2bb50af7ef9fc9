"""What an engine does a cycle (trace/ports.h), for all who count its time."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t


cdef extern from "trace/ports.h" nogil:
    ctypedef struct ew_ports:
        double records, loads, stores, accumulates, values, instructions, accesses
        int64_t each, access_bytes
        int32_t fifo, accumulator, skips
    ctypedef struct ew_operation:
        int64_t elements, sources, targets, stores, values, pieces
    int64_t ew_accesses(const ew_operation *operation)
    int64_t ew_instructions(const ew_ports *ports, const ew_operation *operation)
    double ew_cycles(const ew_ports *ports, const ew_operation *operation)
    ctypedef struct ew_price:
        ew_operation operation
        double cycles
        int64_t instructions
    ew_price ew_price_of(const ew_ports *ports, const ew_operation *operation)
    int ew_same(const ew_operation *one, const ew_operation *other)
    ctypedef struct ew_clock:
        ew_ports ports
        const uint8_t *kinds
        int64_t values, source, made, instructed
        int single
        ew_operation now
        ew_price price
        double before
    void ew_feed(ew_clock *clock, const uint8_t *op, const uint8_t *stream, const uint8_t *bytes, const uint16_t *halves,
                 int64_t n, double *cycles)


cdef ew_ports open_ports(engine)
