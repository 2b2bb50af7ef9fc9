/* The stream of work: runs (consecutive connections of one target), their sources, and their weights.
 *
 * A float stream is three tables. Runs: ew_run. Places: where the source of each connection is, 32 bits, or 16 in a
 * narrow stream. Weights: float32 or bf16. The connections of a run come in quads, the last one padded (with what is
 * not used), so that four offsets and four weights are one aligned load each.
 * An integer stream is one table of 32-bit words, per run a header
 *   target row, connections | flags, start (int32), sum row, multiplier (float), zero point (int32),
 * its sources, and its int8 weights in groups of 4 (their sources padded too).
 *
 * Offsets of rows are in units of EW_UNIT bytes (of 4 where a row is one float), so that an address is one scaled
 * addition and 2^32 units reach 32 GiB. Places of a narrow stream are numbers of 64-byte lines (of floats where a row
 * is one float). Sources of a run are rows of the arena, or (EW_OUTSIDE) rows of the table that the input vectors
 * arrive in.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/inline.h"
#include "common/simd.h"

enum {
    EW_UNIT = 8,
    EW_HEADER_INT8 = 6,
    EW_MAX_RUN = (1 << 26) - 1,
};

typedef struct {
    uint32_t target; /* offset of its row */
    uint32_t head;   /* connections | flags */
    float start;     /* bias */
    uint32_t quad;   /* the first of its quads; of the second run of a pair: how many quads they share */
} ew_run;

#define EW_FIRST 0x80000000u /* nothing has been added to the target yet */
#define EW_LAST 0x40000000u  /* the target is finished by this run */
#define EW_WIDE 0x20000000u  /* int8: keep the finished 32-bit sums too (outputs) */
#define EW_PAIRED 0x20000000u /* float: this run and the next begin with the same sources */
#define EW_OUTSIDE 0x04000000u /* all sources are inputs: rows of their own table, not of the arena */

enum { EW_IDENTITY = 0, EW_RELU = 1, EW_CLIPPED = 2 }; /* of a run: what EW_LAST applies */
#define EW_ACTIVATION_SHIFT 27
#define EW_ACTIVATION(word) (((word) >> EW_ACTIVATION_SHIFT) & 3u)

/* Kinds of streams. Narrow ones are for arenas of at most 65536 lines (4 MiB), of floats where a row is one. */
enum { EW_F32 = 0, EW_BF16 = 1, EW_INT8 = 2, EW_NARROW = 4 };
enum { EW_LINE_UNITS = 8 };

static inline float ew_float(uint32_t word) {
    float value;
    memcpy(&value, &word, 4);
    return value;
}

static inline float ew_bf16(const uint16_t *weight) { return ew_float((uint32_t)*weight << 16); }

/* Offsets of four sources, in units, by few loads: the kernels are limited by loads. */
EW_INLINE void ew_four_offsets(size_t offset[4], const uint64_t pair[2],
                                                                 const int is_narrow) {
    _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++) {
        offset[k] = is_narrow ? (size_t)(uint16_t)(pair[0] >> (16 * k)) * EW_LINE_UNITS
                             : (uint32_t)(pair[k / 2] >> (32 * (k % 2)));
        __asm__("" : "+r"(offset[k])); /* keeps compilers from computing addresses in vector registers, which sums need */
    }
}

#define EW_CLIP 32.0f /* the Graph Challenge's upper limit of an activation */
