/* Binary heaps. */
#pragma once

#include <stdint.h>

/* Define the heap NAME_put, NAME_pop of entries of which the one that is NAME_before all others comes first. */
#define EW_HEAP(name, entry_t) \
    static inline void name##_put(entry_t *heap, int64_t *count, entry_t entry) { \
        int64_t at = (*count)++; \
        for (; at && name##_before(&entry, &heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2]; \
        heap[at] = entry; \
    } \
    static inline entry_t name##_pop(entry_t *heap, int64_t *count) { \
        entry_t top = heap[0], last = heap[--*count]; \
        int64_t at = 0; \
        for (int64_t child = 1; child < *count; child = 2 * at + 1) { \
            if (child + 1 < *count && name##_before(&heap[child + 1], &heap[child])) child++; \
            if (!name##_before(&heap[child], &last)) break; \
            heap[at] = heap[child]; \
            at = child; \
        } \
        heap[at] = last; \
        return top; \
    }
