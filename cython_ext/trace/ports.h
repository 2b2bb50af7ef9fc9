/* What an engine does a cycle: resources side by side. An operation takes the maximum over them, not the sum. */
#pragma once

#include <stdint.h>
#include <string.h>

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

enum { EW_ELEMENT, EW_HEADER, EW_ROW, EW_ALONE }; /* an access of a connection, before it, of a row, of no known step */

typedef struct { /* an engine that makes accesses */
    ew_ports ports;
    const uint8_t *kinds; /* of each stream, 64 at most */
    int64_t values;       /* multiply-adds of a connection */
    int64_t source;       /* stream of the rows of sources */
    int single;           /* one port for everything: each access is an operation */
    ew_operation now;
    ew_price price; /* of the operation before: most are like it */
    uint64_t seen;  /* in this operation: a bit for each stream */
    int64_t last;   /* stream of the access before */
    int rows;       /* this operation's rows have begun */
    int64_t made, instructed; /* accesses and instructions of the operations before, and their cycles */
    double before;
} ew_clock;

/* Whether the next eight bytes of a column are those `back` before. */
static inline int ew_recurs(const uint8_t *column, int64_t back) {
    return memcmp(column, column - back, 8) == 0;
}

/* Write the cycles before the operation that each access belongs to. One of the two size arrays is null. What an
 * operation is depends on its own accesses and on the first of the next: while these come again, nothing else is looked at. */
static inline void ew_feed(ew_clock *of, const uint8_t *op, const uint8_t *stream, const uint8_t *bytes,
                           const uint16_t *halves, int64_t n, double *restrict cycles) {
    ew_clock copy = *of, *clock = &copy; /* which no store to a byte can change */
    const int64_t most = clock->ports.access_bytes;
    int64_t start = -8; /* of this operation; too far back to be compared */
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = stream[i], kind = clock->kinds[at];
        const int again = clock->rows || (clock->seen >> at & 1 && at != clock->last);
        if (clock->single || kind == EW_HEADER || kind == EW_ALONE || (kind == EW_ELEMENT && again)) {
            const int64_t length = i - start;
            if (!ew_same(&clock->price.operation, &clock->now)) clock->price = ew_price_of(&clock->ports, &clock->now);
            for (;;) {
                clock->before += clock->price.cycles;
                clock->instructed += clock->price.instructions;
                clock->made += ew_accesses(&clock->now);
                if (!bytes || length >= 8 || i + 8 > n || !ew_recurs(stream + i, length) || !ew_recurs(op + i, length) ||
                    !ew_recurs(bytes + i, length))
                    break;
                for (int64_t k = 0; k < length; k++) cycles[i + k] = clock->before;
                i += length;
            }
            start = i;
            clock->now = (ew_operation){0, 0, 0, 0, 0, 0};
            clock->rows = 0;
            clock->seen = 0;
        }
        const int64_t size = bytes ? bytes[i] : halves[i], taken = size > most ? 1 + (size - 1) / most : size > 0;
        if (kind <= EW_HEADER) {
            clock->now.elements += taken;
            clock->seen |= (uint64_t)1 << at;
            clock->rows = kind == EW_HEADER; /* an operation of its own */
        } else {
            clock->rows = 1;
            if (op[i])
                clock->now.stores += taken;
            else if (kind == EW_ALONE || at == clock->source)
                clock->now.sources += taken;
            else
                clock->now.targets += taken;
            if (kind == EW_ROW) {
                clock->now.values = clock->values;
                if (taken > clock->now.pieces) clock->now.pieces = taken;
            }
        }
        clock->last = at;
        cycles[i] = clock->before;
    }
    *of = copy;
}
