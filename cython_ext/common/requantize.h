/* From a sum of 8-bit products to 8 bits (traces/networks/quantization.py). */
#pragma once

#include <stdint.h>

/* Round half to even without libm, for |x| < 2^22: adding 1.5 * 2^23 leaves no bits behind the point. */
static inline int32_t ew_round(float x) {
    const float magic = 12582912.0f;
    volatile float shifted = x + magic; /* rounded to float32 wherever the compiler keeps more */
    return (int32_t)(shifted - magic);
}

static inline uint8_t ew_requantize(int32_t sum, float multiplier, int32_t zero, int32_t least) {
    float x = (float)sum * multiplier;
    x = x < -1024.0f ? -1024.0f : x > 1024.0f ? 1024.0f : x;
    const int32_t u = ew_round(x) + zero;
    return (uint8_t)(u < least ? least : u > 255 ? 255 : u);
}
