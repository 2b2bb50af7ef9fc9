/* The same forward pass on a scratchpad: what is fetched and written back, not what the engine touches there. */
#pragma once

#include "trace/ports.h"
#include "trace/walk.h"

typedef struct { /* an array of connections, read once from its start to its end, piece by piece */
    int64_t start, end, piece, stream;
} ew_array;

typedef struct {
    ew_walk *walk;
    const int32_t *move_step, *move_neuron; /* neuron rows that move before a step (ascending) */
    const uint8_t *move_kind;               /* 0 load; 1, 2 stores */
    const int64_t *move_scalar;             /* of loads that bring a bias as a scalar: its image offset, else -1 */
    int64_t n_moves;
    const ew_array *arrays;
    int64_t n_arrays, scalar_array; /* of bias scalars */
    int64_t descriptor_array;       /* of 4 bytes for each move; -1: none */
    const int64_t *element_array, *event_array; /* the array that an element or structure load lies in */
    const uint8_t *is_computed;     /* of each neuron */
    int64_t pointers;               /* the stream of structure loads that are operations of their own */
    int64_t n_neurons, row_accesses, sum_accesses; /* accesses that a row, and a row of partial sums, takes */
    ew_ports ports; /* of the engine */
    int64_t *fetched;  /* of each array, up to where */
    uint8_t *finished; /* of each neuron: whether its value is final */
    int64_t elements; /* structure loads so far of the next connection: ids of layouts that code them by their steps */
    int64_t move, row_reads, row_writes, connection_accesses, instructions;
    int64_t sum_reads, sum_writes; /* of rows read and written, those of partial sums */
    int64_t multiply_adds;
    int32_t in_registers; /* the row of the held target was read */
    double cycles;        /* of the engine */
} ew_transfers;

static void ew_start_arrays(ew_transfers *t) {
    t->move = 0;
    for (int64_t p = 0; p < t->n_arrays; p++) t->fetched[p] = t->arrays[p].start;
    for (int64_t p = 0; p < t->n_neurons; p++) t->finished[p] = !t->is_computed[p];
}

static inline int64_t ew_engine_accesses(const ew_transfers *t) {
    const int64_t sums = t->sum_reads + t->sum_writes;
    return (t->row_reads + t->row_writes - sums) * t->row_accesses + sums * t->sum_accesses + t->connection_accesses;
}

static void ew_operate(ew_transfers *t, const ew_operation *operation) {
    t->cycles += ew_cycles(&t->ports, operation);
    t->instructions += ew_instructions(&t->ports, operation);
}

static void ew_transfer(ew_transfers *t, ew_sink *out, int64_t at, int64_t width, int store,
                              int stream) {
    out->work[out->n] = t->cycles;
    ew_emit(t->walk, out, out->size8 != NULL, at, width, store, stream);
}

/* Fetch an array's pieces up to `end`; return 0 when the buffer is full. */
static inline int ew_fetch(ew_transfers *t, ew_sink *out, int64_t array, int64_t end) {
    const ew_array *a = &t->arrays[array];
    while (t->fetched[array] < end) {
        const int64_t start = t->fetched[array], stop = start + a->piece < a->end ? start + a->piece : a->end;
        if (out->n > out->capacity) return 0;
        ew_transfer(t, out, start, stop - start, 0, (int)a->stream);
        t->fetched[array] = stop;
    }
    return 1;
}

static int ew_fetch_structure(ew_transfers *t, ew_sink *out, int64_t k) {
    ew_walk *walk = t->walk;
    for (; walk->event < walk->n_events && walk->event_step[walk->event] <= k; walk->event++) {
        const int64_t end = walk->event_offset[walk->event] + walk->event_size[walk->event];
        if (!ew_fetch(t, out, t->event_array[walk->event], end)) return 0;
        const ew_operation header = {1, 0, 0, 0, 0, 0};
        if (t->arrays[t->event_array[walk->event]].stream == t->pointers) ew_operate(t, &header);
        else t->elements++;
        t->connection_accesses++;
    }
    return 1;
}

/* Make the moves that precede step k; return 0 when the buffer is full. */
static int ew_make_moves(ew_transfers *t, ew_sink *out, int64_t k) {
    ew_walk *walk = t->walk;
    for (; t->move < t->n_moves && t->move_step[t->move] <= k; t->move++) {
        const int64_t neuron = t->move_neuron[t->move], scalar = t->move_scalar[t->move];
        if (t->descriptor_array >= 0) {
            const int64_t end = t->arrays[t->descriptor_array].start + 4 * (t->move + 1);
            if (!ew_fetch(t, out, t->descriptor_array, end)) return 0;
        }
        if (scalar >= 0) {
            if (!ew_fetch(t, out, t->scalar_array, scalar + 4)) return 0;
            continue;
        }
        if (out->n > out->capacity) return 0;
        const int store = t->move_kind[t->move] != 0;
        if (store && neuron == walk->held_target) { /* its sum is in registers: it leaves with it */
            ew_write_sums(walk, neuron);
            walk->held_target = -1;
        }
        if (t->finished[neuron])
            ew_transfer(t, out, ew_row_of(walk, neuron), walk->row_bytes, store,
                              store ? walk->output_stream : walk->input_stream);
        else
            ew_transfer(t, out, ew_sums_of(walk, neuron), walk->sum_row_bytes, store,
                              walk->partial_stream);
    }
    return 1;
}

static inline int64_t ew_element_at(const ew_element *element, int64_t k) {
    return element->offset + ((element->slot[k] * element->bits) >> 3);
}

static int ew_is_zero(const ew_walk *walk) { /* the source of the step that was computed last */
    for (int64_t lane = 0; lane < walk->lanes; lane++)
        if (walk->source_row[lane] != 0) return 0;
    return 1;
}

/* Write the next transfers. Before a step come the pieces of the connection arrays that it needs, then its moves; moves
 * of step n_steps come after the last one. */
static void ew_fill_transfers(ew_transfers *t, ew_sink *out) {
    ew_walk *walk = t->walk;
    for (; walk->number < walk->n_passes; walk->number++, ew_start_pass(walk), ew_start_arrays(t)) {
        for (; walk->step < walk->n_steps; walk->step++) {
            const int64_t k = walk->step;
            if (!ew_fetch_structure(t, out, k)) return;
            for (int64_t e = 0; e < walk->n_elements; e++) {
                const ew_element *element = &walk->element[e];
                const int64_t end = ew_element_at(element, k) + ((element->bits + 7) >> 3);
                if (!ew_fetch(t, out, t->element_array[e], end)) return;
            }
            if (!ew_make_moves(t, out, k)) return;
            ew_operation o = {0, walk->source[k] != walk->held_source, 0, 0, walk->lanes, t->sum_accesses};
            if (walk->target[k] != walk->held_target) t->in_registers = 0;
            for (int64_t e = 0; e < walk->n_elements; e++) {
                const int64_t at = ew_element_at(&walk->element[e], k);
                o.elements += walk->element[e].bits >= 8 || at != walk->last_byte[e];
                walk->last_byte[e] = at;
            }
            const int keeps = ew_compute(walk, 0, walk->format, k);
            if (t->ports.skips && ew_is_zero(walk)) o.values = 0;
            if (!t->in_registers && (o.values || walk->finish[k])) o.targets = t->in_registers = 1;
            if (!keeps) o.stores = t->in_registers, t->in_registers = 0;
            t->multiply_adds += o.values;
            t->connection_accesses += o.elements;
            o.elements += t->elements, t->elements = 0;
            t->row_reads += o.sources + o.targets;
            t->row_writes += o.stores;
            t->sum_reads += o.targets;
            if (!walk->finish[k]) t->sum_writes += o.stores;
            o.sources *= t->row_accesses, o.targets *= t->sum_accesses;
            o.stores *= walk->finish[k] ? t->row_accesses : t->sum_accesses;
            ew_operate(t, &o);
            if (walk->finish[k]) t->finished[walk->target[k]] = 1;
        }
        if (!ew_fetch_structure(t, out, walk->n_steps) || !ew_make_moves(t, out, walk->n_steps)) return;
    }
}
