/* What an engine does a cycle: resources side by side. An operation takes the maximum over them, not the sum. */
#pragma once

#include <stdint.h>

typedef struct { /* so many a cycle; INFINITY: no limit */
    double records, loads, stores, accumulates, values, instructions, accesses;
    int64_t each;  /* instructions of a connection beside its loads, stores and multiply-adds */
    int64_t access_bytes;
    int32_t skips; /* a connection whose source is zero costs its record and its test */
    int32_t fifo, accumulator; /* connections come by themselves; rows of targets are read, modified and written at once */
} ew_ports;

typedef struct { /* one operation: a connection, or a row pointer or header alone (values 0) */
    int64_t elements, sources, targets, stores; /* accesses: to connections; to rows, loaded and stored */
    int64_t values, pieces;                     /* of a row: multiply-adds, and accesses */
} ew_operation;

static inline int64_t ew_accesses(const ew_operation *o) {
    return o->elements + o->sources + o->targets + o->stores;
}

static inline int64_t ew_instructions(const ew_ports *p, const ew_operation *o) {
    return ew_accesses(o) + (o->values ? p->each + o->pieces : 0);
}

static inline double ew_cycles(const ew_ports *p, const ew_operation *o) {
    const double loads = (double)(o->sources + (p->fifo ? 0 : o->elements) + (p->accumulator ? 0 : o->targets));
    const double times[] = {
        (double)(o->elements > 0) / p->records,
        loads / p->loads,
        (double)(p->accumulator ? 0 : o->stores) / p->stores,
        (double)o->stores / p->accumulates, /* a run ends: its row was read before, and is written */
        (double)o->values / p->values,
        (double)ew_instructions(p, o) / p->instructions,
        (double)ew_accesses(o) / p->accesses,
    };
    double most = 0;
    for (int k = 0; k < 7; k++) most = times[k] > most ? times[k] : most;
    return most;
}

typedef struct {
    ew_operation operation;
    double cycles;
    int64_t instructions;
} ew_price;

static inline ew_price ew_price_of(const ew_ports *p, const ew_operation *o) {
    return (ew_price){*o, ew_cycles(p, o), ew_instructions(p, o)};
}

static inline int ew_same(const ew_operation *a, const ew_operation *b) {
    return !((a->elements ^ b->elements) | (a->sources ^ b->sources) | (a->targets ^ b->targets) |
             (a->stores ^ b->stores) | (a->values ^ b->values) | (a->pieces ^ b->pieces));
}
