/* Random elements of any type. Element i of a stream depends only on the stream's seed and on i. A device can
 * therefore generate a matrix in any order, and the host can compute single elements again. For host and
 * device code; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gpu/matrix/dtype.h"

#define MM_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Returns the seed of a stream that begins at element `first` of this stream. */
MM_HOST_AND_DEVICE uint64_t mm_random_skip(uint64_t seed, size_t first) {
    return seed + (uint64_t)first * MM_RANDOM_STEP;
}

/* Returns number `index` of the stream, 64 random bits, by SplitMix64, which needs no loop to reach step i.
 * Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014. */
MM_HOST_AND_DEVICE uint64_t mm_random_bits(uint64_t seed, size_t index) {
    uint64_t z = seed + ((uint64_t)index + 1) * MM_RANDOM_STEP;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Returns element `index`, uniform in (-1, 1). Elements are odd multiples of 2^-24, which float32 represents
 * exactly. An element is never 0, because a factor of 0 would hide errors. */
MM_HOST_AND_DEVICE float mm_random_element(uint64_t seed, size_t index) {
    const int32_t odd = (int32_t)(mm_random_bits(seed, index) >> 39) | 1; /* less than 2^25 */
    return (float)(odd - (INT32_C(1) << 24)) * 0x1p-24f;
}

/* Returns an integer from -8 to 7. */
MM_HOST_AND_DEVICE int64_t mm_random_whole(uint64_t seed, size_t index) {
    return (int64_t)mm_random_bits(seed, index) >> 60;
}

/* The functions that generate element `index`, by C type. */
#define MM_RANDOM_float(seed, index) mm_random_element(seed, index)
#define MM_RANDOM_double(seed, index) ((double)mm_random_element(seed, index))
#define MM_RANDOM_mm_float16(seed, index) mm_float16_of(mm_random_element(seed, index))
#define MM_RANDOM_mm_bfloat16(seed, index) mm_bfloat16_of(mm_random_element(seed, index))
#define MM_RANDOM_mm_float8_e4m3fn(seed, index) mm_float8_e4m3fn_of(mm_random_element(seed, index))
#define MM_RANDOM_mm_float8_e5m2(seed, index) mm_float8_e5m2_of(mm_random_element(seed, index))
#define MM_RANDOM_int8_t(seed, index) ((int8_t)mm_random_whole(seed, index))
#define MM_RANDOM_uint8_t(seed, index) ((uint8_t)mm_random_whole(seed, index))
#define MM_RANDOM_mm_bool(seed, index) ((mm_bool)(mm_random_bits(seed, index) >> 63))
#define MM_RANDOM_int32_t(seed, index) ((int32_t)mm_random_whole(seed, index))
#define MM_RANDOM_int64_t(seed, index) mm_random_whole(seed, index)

#define X(constant, name, type, ...)                                                                         \
    MM_HOST_AND_DEVICE type mm_random_##constant(uint64_t seed, size_t index) {                              \
        return MM_RANDOM_##type(seed, index);                                                                \
    }
MM_DTYPE_TABLE(X)
#undef X

/* Returns element `index` exactly, as a double. */
static inline double mm_random_number(enum mm_dtype dtype, uint64_t seed, size_t index) {
    switch (dtype) {
#define X(constant, name, type, word, sum, value, ...)                                                       \
    case constant:                                                                                           \
        return (double)value(mm_random_##constant(seed, index));
        MM_DTYPE_TABLE(X)
#undef X
    case MM_DTYPE_COUNT:
        break;
    }
    return 0.0;
}
