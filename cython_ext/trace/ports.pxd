"""What an engine does a cycle (trace/ports.h), for all who count its time."""

from libc.stdint cimport int32_t, int64_t


cdef extern from "trace/ports.h" nogil:
    ctypedef struct edgewatt_ports:
        double records, loads, stores, accumulates, values, instructions, accesses
        int64_t each, access_bytes
        int32_t fifo, accumulator, skips
    ctypedef struct edgewatt_operation:
        int64_t elements, sources, targets, stores, values, pieces
    int64_t edgewatt_accesses(const edgewatt_operation *operation)
    int64_t edgewatt_instructions(const edgewatt_ports *ports, const edgewatt_operation *operation)
    double edgewatt_cycles(const edgewatt_ports *ports, const edgewatt_operation *operation)


cdef edgewatt_ports open_ports(engine)
