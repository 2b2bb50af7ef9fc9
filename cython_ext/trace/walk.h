/* The walk of a sparse forward pass over its memory image: every access with its real bytes.
 *
 * One step is one stored connection (or ELLPACK padding). At each step the walk makes, in this order: the structure
 * loads that precede it (row pointers and the like), its element loads (ids and value, or the tuple), the load of the
 * source's row, the load of the target's partial sums, the multiply-add, and the store of the partial sums or, at the
 * target's last step, of its activated values. With `registers`, the source's row and the partial sums stay in
 * registers while consecutive steps share the neuron. A row is one value a lane.
 *
 * In int8 a row holds bytes, and partial sums have rows of 32-bit integers in an array of their own; in other formats
 * they lie in the neuron's row.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "common/copy.h"
#include "common/inline.h"
#include "common/requantize.h"
#include "trace/values.h"

#define EDGEWATT_MOST_ELEMENTS 4

typedef struct { /* where accesses go: the columns of a chunk under way */
    uint64_t *address;
    uint8_t *size8;   /* sizes up to 255; null where size16 is used */
    uint16_t *size16;
    uint8_t *op, *stream;
    int64_t *payload_offset; /* one more than accesses */
    uint8_t *payload;
    double *work;            /* of transfers: cycles of the engine before */
    int64_t n, capacity;     /* accesses written; a step begins while n <= capacity */
} ew_sink;

typedef struct { /* an array that is read at each step */
    int64_t offset, bits; /* of element 0 in the image, of one element */
    int64_t stream;
    const int64_t *slot;  /* index of the step's element */
} ew_element;

typedef struct {
    const int32_t *source, *target;
    const float *weight, *bias, *slope;
    const uint8_t *finish;    /* 0: not the target's last step; 1 + activation: its last */
    const uint8_t *hand_over; /* 1: another engine goes on with this step, registers are empty before it */
    int64_t n_steps;
    ew_element element[EDGEWATT_MOST_ELEMENTS];
    int64_t n_elements;
    const int64_t *event_step, *event_offset; /* structure loads, by the step that they precede */
    const uint8_t *event_size, *event_stream;
    int64_t n_events;
    uint8_t *image;
    uint64_t base;
    int64_t neurons; /* image offset of the rows of the first pass */
    int64_t lanes, value_bytes, row_bytes, row_pitch, pass_bytes, n_passes;
    int64_t sums_at, sum_row_bytes, sum_pitch, sum_pass_bytes; /* of rows of partial sums */
    const float *multiplier;                                   /* int8: from a sum to a byte above the zero point */
    const int32_t *zero;
    int format, registers, input_stream, partial_stream, output_stream;
    /* where the walk stands: the pass, its next step and structure load, the neurons in registers and their values */
    int64_t number, step, event, held_source, held_target;
    int64_t last_byte[EDGEWATT_MOST_ELEMENTS];
    float *source_row, *sums;
    int32_t *integers; /* int8: in place of sums */
} ew_walk;

static inline void ew_start_pass(ew_walk *walk) {
    walk->step = walk->event = 0;
    walk->held_source = walk->held_target = -1;
    for (int e = 0; e < EDGEWATT_MOST_ELEMENTS; e++) walk->last_byte[e] = -1;
}

EW_INLINE int64_t ew_row_of(const ew_walk *walk, int64_t neuron) {
    return walk->neurons + walk->number * walk->pass_bytes + neuron * walk->row_pitch;
}

EW_INLINE int64_t ew_sums_of(const ew_walk *walk, int64_t neuron) {
    return walk->sums_at + walk->number * walk->sum_pass_bytes + neuron * walk->sum_pitch;
}

EW_INLINE void ew_emit(const ew_walk *walk, ew_sink *out, int narrow, int64_t at, int64_t width,
                                   int store, int stream) {
    const int64_t n = out->n, filled = out->payload_offset[n];
    out->address[n] = walk->base + (uint64_t)at;
    if (narrow)
        out->size8[n] = (uint8_t)width;
    else
        out->size16[n] = (uint16_t)width;
    out->op[n] = (uint8_t)store;
    out->stream[n] = (uint8_t)stream;
    ew_copy_block(out->payload + filled, walk->image + at, width);
    out->payload_offset[n + 1] = filled + width;
    out->n = n + 1;
}

/* Make the structure loads that precede step k; return 0 when the buffer is full. */
EW_INLINE int ew_structure(ew_walk *walk, ew_sink *out, int narrow, int64_t k) {
    for (; walk->event < walk->n_events && walk->event_step[walk->event] <= k; walk->event++) {
        if (out->n > out->capacity) return 0;
        ew_emit(walk, out, narrow, walk->event_offset[walk->event], walk->event_size[walk->event], 0,
                      walk->event_stream[walk->event]);
    }
    return 1;
}

static inline float ew_finished(const ew_walk *walk, float sum, int64_t k) {
    if (walk->finish[k] == 3 && sum == walk->bias[walk->target[k]])
        sum = 0; /* clipped-relu adds the bias only where the weighted sum is not zero */
    return ew_activate(sum, walk->finish[k] - 1, walk->slope[walk->target[k]]);
}

static inline void ew_read_row(const ew_walk *walk, int64_t at_row, float *restrict values) {
    const uint8_t *at = walk->image + at_row;
    for (int64_t lane = 0; lane < walk->lanes; lane++)
        values[lane] = ew_read_neuron(at + lane * walk->value_bytes, walk->format);
}

static inline void ew_read_sums(const ew_walk *walk, int64_t target) {
    const int64_t at = ew_sums_of(walk, target);
    if (walk->format == EDGEWATT_INT8)
        memcpy(walk->integers, walk->image + at, (size_t)walk->sum_row_bytes);
    else
        ew_read_row(walk, at, walk->sums);
}

/* Round the sums in registers into the image. */
static inline void ew_write_sums(const ew_walk *walk, int64_t target) {
    uint8_t *at = walk->image + ew_sums_of(walk, target);
    if (walk->format == EDGEWATT_INT8) {
        memcpy(at, walk->integers, (size_t)walk->sum_row_bytes);
        return;
    }
    for (int64_t lane = 0; lane < walk->lanes; lane++)
        ew_write_neuron(at + lane * walk->value_bytes, walk->sums[lane], walk->format);
}

/* int8: add the products to the sums, and write them, or the bytes of a finished target, unless they stay. */
static inline void ew_add_integers(const ew_walk *walk, int64_t k, int keep) {
    const int64_t target = walk->target[k];
    const int32_t weight = (int32_t)walk->weight[k], zero = walk->zero[target];
    for (int64_t lane = 0; lane < walk->lanes; lane++)
        walk->integers[lane] += weight * (int32_t)walk->source_row[lane];
    if (keep) return;
    if (!walk->finish[k]) {
        ew_write_sums(walk, target);
        return;
    }
    uint8_t *at = walk->image + ew_row_of(walk, target);
    const int32_t least = walk->finish[k] - 1 == EDGEWATT_RELU ? zero : 0;
    for (int64_t lane = 0; lane < walk->lanes; lane++)
        at[lane] = ew_requantize(walk->integers[lane], walk->multiplier[target], zero, least);
}

/* Multiply and add; return whether the sums stay in registers. If not, the image holds them now. */
EW_INLINE int ew_compute(ew_walk *walk, int one_lane, int format, int64_t k) {
    const int64_t source = walk->source[k], target = walk->target[k], lanes = one_lane ? 1 : walk->lanes;
    const float weight = walk->weight[k];
    const float *restrict values = walk->source_row;
    float *restrict sums = walk->sums;
    const int goes_on = walk->registers && k + 1 < walk->n_steps && !walk->hand_over[k + 1];
    const int keep = goes_on && walk->target[k + 1] == target;
    if (one_lane) {
        if (source != walk->held_source)
            walk->source_row[0] = ew_read_neuron(walk->image + ew_row_of(walk, source), format);
        if (target != walk->held_target) sums[0] = ew_read_neuron(walk->image + ew_row_of(walk, target), format);
    } else {
        if (source != walk->held_source) ew_read_row(walk, ew_row_of(walk, source), walk->source_row);
        if (target != walk->held_target) ew_read_sums(walk, target);
    }
    walk->held_source = goes_on ? source : -1;
    walk->held_target = keep ? target : -1;
    if (format == EDGEWATT_INT8) {
        ew_add_integers(walk, k, keep);
        return keep;
    }
    for (int64_t lane = 0; lane < lanes; lane++) sums[lane] = sums[lane] + weight * values[lane];
    if (!keep) {
        if (walk->finish[k])
            for (int64_t lane = 0; lane < lanes; lane++) sums[lane] = ew_finished(walk, sums[lane], k);
        if (one_lane)
            ew_write_neuron(walk->image + ew_row_of(walk, target), sums[0], format);
        else
            ew_write_sums(walk, target);
    }
    return keep;
}

/* Write the next accesses until the buffers are full or the last pass has ended. The walk and the sink are copied for
 * the time of a call: nothing that is written through a byte pointer can change a copy, so it stays in registers.
 * one_lane: of floats; width: bytes of its rows, whose sums lie in them. */
EW_INLINE void ew_fill_any(ew_walk *of, ew_sink *into, int one_lane, int narrow, int format, int64_t width) {
    ew_walk copy = *of, *walk = &copy;
    ew_sink sink = *into, *out = &sink;
    const int64_t row_bytes = one_lane ? width : walk->row_bytes, sum_bytes = one_lane ? width : walk->sum_row_bytes;
    for (; walk->number < walk->n_passes; walk->number++, ew_start_pass(walk)) {
        for (; walk->step < walk->n_steps; walk->step++) {
            const int64_t k = walk->step, source = walk->source[k], target = walk->target[k];
            if (!ew_structure(walk, out, narrow, k) || out->n > out->capacity) goto full;
            for (int64_t e = 0; e < walk->n_elements; e++) {
                const ew_element *element = &walk->element[e];
                const int64_t bits = element->bits, at = element->offset + ((element->slot[k] * bits) >> 3);
                if (bits < 8 && at == walk->last_byte[e]) continue; /* two 4-bit elements share a byte: one load */
                walk->last_byte[e] = at;
                ew_emit(walk, out, narrow, at, (bits + 7) >> 3, 0, (int)element->stream);
            }
            if (source != walk->held_source)
                ew_emit(walk, out, narrow, ew_row_of(walk, source), row_bytes, 0, walk->input_stream);
            if (target != walk->held_target)
                ew_emit(walk, out, narrow, ew_sums_of(walk, target), sum_bytes, 0, walk->partial_stream);
            if (ew_compute(walk, one_lane, format, k)) continue;
            if (walk->finish[k])
                ew_emit(walk, out, narrow, ew_row_of(walk, target), row_bytes, 1, walk->output_stream);
            else
                ew_emit(walk, out, narrow, ew_sums_of(walk, target), sum_bytes, 1, walk->partial_stream);
        }
        if (!ew_structure(walk, out, narrow, walk->n_steps)) goto full; /* pointers of empty rows at the end */
    }
full:
    *of = copy;
    *into = sink;
}

static inline void ew_fill(ew_walk *walk, ew_sink *out) {
    const int narrow = out->size8 != 0, one_lane = walk->lanes == 1 && narrow;
    if (one_lane && walk->format == EDGEWATT_FP32)
        ew_fill_any(walk, out, 1, 1, EDGEWATT_FP32, 4);
    else if (one_lane && walk->format != EDGEWATT_INT8)
        ew_fill_any(walk, out, 1, 1, walk->format, 2);
    else if (narrow)
        ew_fill_any(walk, out, 0, 1, walk->format, 0);
    else
        ew_fill_any(walk, out, 0, 0, walk->format, 0);
}
