/* The moduli of fp64_tensor, and the constants that follow from them. docs/accuracy.md proves the bounds that
 * comments here mention. */
#pragma once

#include "gpu/cuda/variants/fp64_tensor/plan.h"

/* The largest numbers up to 256 of which no two share a factor. */
__host__ __device__ constexpr int mm_fp64_modulus(unsigned index) {
    constexpr int moduli[MM_FP64_MODULI] = {256, 255, 253, 251, 247, 241, 239, 233,
                                            229, 227, 223, 217, 211, 199, 197};
    return moduli[index];
}

/* Returns the remainder of x with the least magnitude. For modulus 256 it is at least -128. */
__host__ __device__ constexpr int mm_fp64_balanced(uint64_t x, int modulus) {
    const int rest = static_cast<int>(x % static_cast<uint64_t>(modulus));
    return rest > (modulus - 1) / 2 ? rest - modulus : rest;
}

__host__ __device__ constexpr int mm_fp64_power_of_256(unsigned power, int modulus) {
    uint64_t x = 1;
    for (unsigned i = 0; i < power; i++)
        x = x * 256 % static_cast<uint64_t>(modulus);
    return mm_fp64_balanced(x, modulus);
}

/* Returns the remainders of 256^first to 256^(first + 3), a byte each. */
__host__ __device__ constexpr uint32_t mm_fp64_weights(unsigned first, int modulus) {
    uint32_t word = 0;
    for (unsigned i = 0; i < 4; i++)
        word |= (static_cast<uint32_t>(mm_fp64_power_of_256(first + i, modulus)) & 0xff) << 8 * i;
    return word;
}

/* Adding these bits to the bits of a small integer makes a float: 1.5·2^23 plus the integer. */
constexpr int MM_FP64_FLOAT_BITS = 0x4b400000;
#define MM_FP64_FLOAT 12582912.0f

/* Returns the low byte of the balanced remainder of an integer below 2^18. `bits` are those of the float
 * 1.5·2^23 + integer. The quotient is rounded to the nearest integer. Its error before rounding is at most
 * 2^-14, and it is never closer than 2^-9 to a tie, except for modulus 256, whose reciprocal is exact. The
 * other bytes of the result mean nothing. */
__device__ __forceinline__ uint32_t mm_fp64_reduce(int bits, int modulus, float reciprocal) {
    const float x = __int_as_float(bits) - MM_FP64_FLOAT;
    const float quotient = fmaf(x, reciprocal, MM_FP64_FLOAT);
    return static_cast<uint32_t>(bits) -
           static_cast<uint32_t>(__float_as_int(quotient)) * static_cast<uint32_t>(modulus);
}

/* Returns the low bytes of four words in one word. */
__device__ __forceinline__ uint32_t mm_fp64_pack(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}
