/* Packed flag bits: bit i (least significant first) belongs to byte i of the data. */
#ifndef EDGEWATT_FLAG_BITS_H
#define EDGEWATT_FLAG_BITS_H

#include <stdint.h>
#include <string.h>

/* n bits (1 to 64) of packed `flags` from bit i on; the array has `bytes` bytes. */
static inline uint64_t ew_bits_at(const uint8_t *flags, int64_t bytes, int64_t i, int64_t n) {
    const int64_t first = i >> 3;
    const int shift = (int)(i & 7);
    uint64_t word = 0;
    if (first + 9 <= bytes) {
        memcpy(&word, flags + first, 8);
        word = shift ? word >> shift | (uint64_t)flags[first + 8] << (64 - shift) : word;
    } else {
        for (int64_t k = 0; k < 9 && first + k < bytes; k++) {
            const int64_t place = 8 * k - shift;
            if (place < 64) word |= place >= 0 ? (uint64_t)flags[first + k] << place : (uint64_t)flags[first] >> shift;
        }
    }
    return n == 64 ? word : word & (((uint64_t)1 << n) - 1);
}

/* The 64 bits from bit i on; the array has a word more. */
static inline uint64_t ew_word_at(const uint64_t *words, int64_t i) {
    const int shift = (int)(i & 63);
    const uint64_t low = words[i >> 6] >> shift;
    return shift ? low | words[(i >> 6) + 1] << (64 - shift) : low;
}

/* Write the lowest n bits (1 to 64) of `bits` from bit i on, where zeros are. */
static inline void ew_put_bits(uint64_t *words, int64_t i, uint64_t bits, int64_t n) {
    const int shift = (int)(i & 63);
    if (n < 64) bits &= ((uint64_t)1 << n) - 1;
    words[i >> 6] |= bits << shift;
    if (shift) words[(i >> 6) + 1] |= bits >> (64 - shift);
}
#endif
