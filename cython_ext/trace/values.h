/* Neuron values in memory: float32 <-> fp32, fp16, bf16 bits, rounded to nearest even, bytes, and the activations. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { EDGEWATT_FP32 = 0, EDGEWATT_FP16 = 1, EDGEWATT_BF16 = 2, EDGEWATT_INT8 = 3 };

static inline uint32_t ew_bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline float ew_float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline uint16_t ew_to_bf16(float value) {
    uint32_t bits = ew_bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40); /* keep a NaN a NaN */
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

static inline uint16_t ew_to_fp16(float value) {
    uint32_t bits = ew_bits_of(value), sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (size >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and above round to infinity */
    if (size < 0x38800000u) {                                   /* below 2^-14: subnormal, let the adder round */
        float scaled = ew_float_of(size) + ew_float_of(0x3f000000u);
        return (uint16_t)(sign | (ew_bits_of(scaled) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((size - 0x38000000u + 0xfffu + ((size >> 13) & 1)) >> 13));
}

static inline float ew_from_fp16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 31, fraction = half & 0x3ffu;
    if (exponent == 31) return ew_float_of(sign | 0x7f800000u | (fraction << 13));
    if (exponent == 0) {
        float size = (float)fraction * 5.9604644775390625e-8f; /* 2^-24 */
        return sign ? -size : size;
    }
    return ew_float_of(sign | ((exponent + 112) << 23) | (fraction << 13));
}

static inline float ew_read_neuron(const uint8_t *at, int format) {
    uint32_t word = 0;
    uint16_t half = 0;
    if (format == EDGEWATT_FP32) {
        memcpy(&word, at, 4);
        return ew_float_of(word);
    }
    if (format == EDGEWATT_INT8) return (float)*at;
    memcpy(&half, at, 2);
    return format == EDGEWATT_FP16 ? ew_from_fp16(half) : ew_float_of((uint32_t)half << 16);
}

static inline void ew_write_neuron(uint8_t *at, float value, int format) {
    if (format == EDGEWATT_FP32) {
        memcpy(at, &value, 4);
    } else {
        uint16_t half = format == EDGEWATT_FP16 ? ew_to_fp16(value) : ew_to_bf16(value);
        memcpy(at, &half, 2);
    }
}

/* As traces.networks.network.ACTIVATIONS. */
enum { EDGEWATT_IDENTITY, EDGEWATT_RELU, EDGEWATT_CLIPPED_RELU, EDGEWATT_LEAKY_RELU, EDGEWATT_TANH, EDGEWATT_SIGMOID,
       EDGEWATT_SILU, EDGEWATT_GELU, EDGEWATT_HARD_SWISH, EDGEWATT_RELU6 };

/* slope: of leaky-relu below zero. */
static inline float ew_activate(float value, int kind, float slope) {
    const double z = value;
    switch (kind) {
    case EDGEWATT_IDENTITY: return value;
    case EDGEWATT_LEAKY_RELU: return (float)(z < 0 ? (double)slope * z : z);
    case EDGEWATT_TANH: return (float)tanh(z);
    case EDGEWATT_SIGMOID: return (float)(0.5 * (tanh(0.5 * z) + 1));
    case EDGEWATT_SILU: return (float)(z * 0.5 * (tanh(0.5 * z) + 1));
    case EDGEWATT_GELU: return (float)(0.5 * z * (1 + erf(z / sqrt(2.0))));
    case EDGEWATT_RELU6: return fminf(fmaxf(value, 0.0f), 6.0f);
    case EDGEWATT_HARD_SWISH: return (float)(z * fmin(fmax(z / 6 + 0.5, 0), 1));
    }
    if (!(value > 0.0f)) return 0.0f;
    return kind == EDGEWATT_CLIPPED_RELU && value > 32.0f ? 32.0f : value;
}
