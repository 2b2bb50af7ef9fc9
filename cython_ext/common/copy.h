/* memcpy of blocks, most of which have one of a few sizes known to the compiler. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline void ew_copy_block(uint8_t *to, const uint8_t *from, int64_t n) {
    switch (n) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    case 16: memcpy(to, from, 16); break;
    case 32: memcpy(to, from, 32); break;
    case 64: memcpy(to, from, 64); break;
    default: memcpy(to, from, (size_t)n);
    }
}
