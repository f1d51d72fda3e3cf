/* Floating-point types that C does not have: conversion to float32, and rounding from float32. Each type is a
 * struct, so arithmetic on it does not compile. For host and device code. Any thread.
 *
 *     type            bits of exponent, mantissa   largest     infinity
 *     float16         5, 10                        65504       yes        IEEE 754's binary16
 *     bfloat16        8, 7                         3.39e38     yes        the upper half of a float32
 *     float8_e4m3fn   4, 3                         448         no         OCP's E4M3; NaN has all bits set
 *     float8_e5m2     5, 2                         57344       yes        OCP's E5M2; a float16's upper half
 *
 * Source of the float8 types: Open Compute Project, "OCP 8-bit Floating Point Specification (OFP8)", 2023. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "gpu/names.h"

typedef struct {
    uint16_t bits;
} mm_float16;

typedef struct {
    uint16_t bits;
} mm_bfloat16;

typedef struct {
    uint8_t bits;
} mm_float8_e4m3fn;

typedef struct {
    uint8_t bits;
} mm_float8_e5m2;

MM_HOST_AND_DEVICE float mm_float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

MM_HOST_AND_DEVICE uint32_t mm_bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Returns the exact value of a float that has a sign bit and these numbers of exponent and mantissa bits.
 * The bits are moved to their places in a float32, and a multiplication by a power of two corrects the
 * exponent. This also works for subnormals, and compilers can vectorize a loop of calls. */
MM_HOST_AND_DEVICE float mm_narrow_value(uint32_t bits, unsigned exponent, unsigned mantissa,
                                         bool has_infinity) {
    const unsigned shift = 23 - mantissa;
    const uint32_t sign = bits >> (exponent + mantissa);
    const uint32_t magnitude = bits & ((UINT32_C(1) << (exponent + mantissa)) - 1);
    const uint32_t infinite = ((UINT32_C(1) << exponent) - 1) << mantissa;
    const uint32_t least_special = has_infinity ? infinite : infinite | ((UINT32_C(1) << mantissa) - 1);
    const uint32_t rebias = (UINT32_C(254) - ((UINT32_C(1) << (exponent - 1)) - 1)) << 23;
    const float scaled = mm_float_of_bits(magnitude << shift) * mm_float_of_bits(rebias);
    const uint32_t special = UINT32_C(0x7f800000) | magnitude << shift;
    const uint32_t wide = magnitude >= least_special ? special : mm_bits_of_float(scaled);
    return mm_float_of_bits(wide | sign << 31);
}

/* Rounds to the nearest float that has a sign bit and these numbers of exponent and mantissa bits, ties to
 * even. Numbers above the type's largest become infinity, or NaN if the type has no infinity. */
MM_HOST_AND_DEVICE uint32_t mm_narrow_bits(float value, unsigned exponent, unsigned mantissa,
                                           bool has_infinity) {
    const unsigned shift = 23 - mantissa;
    const uint32_t bits = mm_bits_of_float(value);
    const uint32_t sign = bits >> 31 << (exponent + mantissa);
    const uint32_t magnitude = bits & UINT32_C(0x7fffffff);
    const uint32_t infinite = ((UINT32_C(1) << exponent) - 1) << mantissa;
    const uint32_t nan =
        has_infinity ? infinite | UINT32_C(1) << (mantissa - 1) : infinite | ((UINT32_C(1) << mantissa) - 1);
    const uint32_t past = has_infinity ? infinite : nan;
    /* The exponent bias of float32 minus the bias of the narrow type. */
    const uint32_t bias = UINT32_C(127) - ((UINT32_C(1) << (exponent - 1)) - 1);
    if (magnitude > UINT32_C(0x7f800000))
        return sign | nan;
    if (magnitude < (bias + 1) << 23) {
        /* The result is subnormal. The addition rounds to a multiple of the type's least number. */
        const uint32_t step = (bias + 1 + shift) << 23;
        const float sum = mm_float_of_bits(magnitude) + mm_float_of_bits(step);
        return sign | (mm_bits_of_float(sum) - step);
    }
    const uint32_t even = magnitude >> shift & 1;
    const uint32_t rounded = (magnitude - (bias << 23) + (UINT32_C(1) << (shift - 1)) - 1 + even) >> shift;
    return sign | (rounded < past ? rounded : past);
}

#define MM_NARROW(TYPE, BITS, EXPONENT, MANTISSA, HAS_INFINITY)                                              \
    MM_HOST_AND_DEVICE float TYPE##_value(TYPE element) {                                                    \
        return mm_narrow_value(element.bits, EXPONENT, MANTISSA, HAS_INFINITY);                              \
    }                                                                                                        \
    MM_HOST_AND_DEVICE TYPE TYPE##_of(float value) {                                                         \
        const TYPE element = {(BITS)mm_narrow_bits(value, EXPONENT, MANTISSA, HAS_INFINITY)};                \
        return element;                                                                                      \
    }

MM_NARROW(mm_float16, uint16_t, 5, 10, true)
MM_NARROW(mm_bfloat16, uint16_t, 8, 7, true)
MM_NARROW(mm_float8_e4m3fn, uint8_t, 4, 3, false)
MM_NARROW(mm_float8_e5m2, uint8_t, 5, 2, true)

/* Truncates a float64 to a float32, and sets the last bit if bits were lost. The caller then rounds the
 * float32 to a type with at least two bits fewer. This gives the same number as rounding the float64
 * directly. */
MM_HOST_AND_DEVICE float mm_round_to_odd(double value) {
    const float nearest = (float)value;
    const uint32_t bits = mm_bits_of_float(nearest);
    const double back = (double)nearest;
    if (back == value || value != value)
        return nearest;
    const bool is_past = value < 0.0 ? back < value : back > value;
    return mm_float_of_bits((is_past ? bits - 1 : bits) | 1);
}
