/* Placing buffers with known lifetimes one after another. */
#pragma once

#include <stdint.h>

static inline int64_t af_up(int64_t value, int64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

/* Place `count` buffers in `sequence`, each in a gap between those placed whose lifetimes overlap its own; `by_offset` holds
   the placed ones by offset, `placed` at the beginning. Gaps run from the unrounded end of one buffer to the start of the
   next. best: the smallest gap that fits (ties: the lowest), else the lowest. Returns the height, which was `height`. */
static inline int64_t af_fit(const int64_t *sequence, int64_t count, int64_t placed, int64_t height, const int64_t *lower,
                             const int64_t *upper, const int64_t *size, int64_t alignment, int best, int64_t *by_offset,
                             int64_t *offset) {
    for (int64_t i = 0; i < count; i++) {
        int64_t b = sequence[i], end = 0, at = -1, smallest = INT64_MAX;
        for (int64_t k = 0; k < placed; k++) {
            int64_t c = by_offset[k];
            if (lower[c] >= upper[b] || lower[b] >= upper[c]) continue;
            int64_t gap = offset[c] - end, start = af_up(end, alignment);
            if (offset[c] >= start && offset[c] - start >= size[b] && (best ? gap < smallest : at < 0)) {
                smallest = gap;
                at = start;
            }
            if (offset[c] + size[c] > end) end = offset[c] + size[c];
        }
        if (at < 0) at = af_up(end, alignment);
        offset[b] = at;
        int64_t k = placed++;
        for (; k > 0 && offset[by_offset[k - 1]] > at; k--) by_offset[k] = by_offset[k - 1];
        by_offset[k] = b;
        if (at + size[b] > height) height = at + size[b];
    }
    return height;
}

/* Place `count` buffers one above the other, above all others. Returns the height. */
static inline int64_t af_stack(const int64_t *sequence, int64_t count, int64_t height, const int64_t *size,
                               int64_t alignment, int64_t *offset) {
    for (int64_t i = 0; i < count; i++) {
        offset[sequence[i]] = af_up(height, alignment);
        height = offset[sequence[i]] + size[sequence[i]];
    }
    return height;
}
