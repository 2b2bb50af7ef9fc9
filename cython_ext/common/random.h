/* Generators of random numbers, by the names of their algorithms. */
#pragma once

#include <stdint.h>

/* splitmix64 (Steele, Lea and Flood 2014): small, seedable from any integer, and easy to repeat elsewhere. */
static inline uint64_t ew_splitmix64(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number in [0, 1). */
static inline double ew_unit(uint64_t *state) { return (double)(ew_splitmix64(state) >> 11) * 0x1p-53; }

/* xoroshiro128++ 1.0 (Blackman and Vigna 2021): a shorter chain of operations; the state is two numbers, not both 0. */
static inline uint64_t ew_xoroshiro128(uint64_t *s) {
    const uint64_t a = s[0];
    uint64_t b = s[1];
    const uint64_t sum = a + b;
    const uint64_t result = ((sum << 17) | (sum >> 47)) + a;
    b ^= a;
    s[0] = ((a << 49) | (a >> 15)) ^ b ^ (b << 21);
    s[1] = (b << 28) | (b >> 36);
    return result;
}
