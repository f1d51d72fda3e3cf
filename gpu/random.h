/* Random float32s by number: element i of a stream is a function of the stream's seed and of i alone, so a
 * device can make a matrix in any order, and the host knows any element of it. For C and for CUDA. Any thread
 * of the host or of a kernel may call these functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/names.h"

/* The operands of a product op(A)·op(B), m×k by k×n: dense float32 matrices, each the beginning of a
 * stream in the order in which it is stored. A is stored as k×m if transpose_a is set, B as n×k if
 * transpose_b is. */
struct mm_random_product {
    uint64_t a_seed;
    uint64_t b_seed;
    bool transpose_a;
    bool transpose_b;
    size_t m;
    size_t k;
    size_t n;
};

#define MM_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The stream that begins at element `first` of this one. */
MM_HOST_AND_DEVICE uint64_t mm_random_skip(uint64_t seed, size_t first) {
    return seed + (uint64_t)first * MM_RANDOM_STEP;
}

/* 64 random bits, number `index` of the stream. The mixing is that of SplitMix64 (G. Steele, D. Lea,
 * C. Flood: Fast splittable pseudorandom number generators, 2014), whose state after i steps needs no loop.
 */
MM_HOST_AND_DEVICE uint64_t mm_random_bits(uint64_t seed, size_t index) {
    uint64_t z = seed + ((uint64_t)index + 1) * MM_RANDOM_STEP;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Element `index`: uniform in (-1, 1), an odd multiple of 2^-24, which float32 holds exactly; so never 0,
 * which would hide a product. */
MM_HOST_AND_DEVICE float mm_random_element(uint64_t seed, size_t index) {
    const int32_t odd = (int32_t)(mm_random_bits(seed, index) >> 39) | 1; /* below 2^25 */
    return (float)(odd - (INT32_C(1) << 24)) * 0x1p-24f;
}
