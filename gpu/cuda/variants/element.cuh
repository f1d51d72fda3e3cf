/* How kernels multiply and add elements, and store sums in C. The epilogue is not applied here (finish.h).
 * For kernel files only. */
#pragma once

#include "gpu/product/product.h"

/* Returns a·b + sum, rounded once. Integers wrap around. */
__device__ __forceinline__ float mm_cuda_multiply_add(float a, float b, float sum) {
    return fmaf(a, b, sum);
}
__device__ __forceinline__ double mm_cuda_multiply_add(double a, double b, double sum) {
    return fma(a, b, sum);
}
__device__ __forceinline__ uint32_t mm_cuda_multiply_add(uint32_t a, uint32_t b, uint32_t sum) {
    return a * b + sum;
}
__device__ __forceinline__ uint64_t mm_cuda_multiply_add(uint64_t a, uint64_t b, uint64_t sum) {
    return a * b + sum;
}

/* An element type of A and B, as a template parameter of kernels:
 * `type` is the C type of elements, and `sum_type` the type of sums.
 * `value` converts an element to sum_type without loss.
 * `store` rounds a sum to C's type and stores it at (row, col). C's type is known only at run time. */
template <enum mm_dtype DTYPE> struct mm_cuda_element;

#define X(constant, name, TYPE, word, SUM, VALUE, ...)                                                       \
    template <> struct mm_cuda_element<constant> {                                                           \
        using type = TYPE;                                                                                   \
        using sum_type = SUM;                                                                                \
        static __device__ __forceinline__ sum_type value(type element) {                                     \
            return static_cast<sum_type>(VALUE(element));                                                    \
        }                                                                                                    \
        static __device__ __forceinline__ void store(const struct mm_product &product, size_t row,           \
                                                     size_t col, sum_type sum) {                             \
            mm_store_##SUM(product.c.dtype, product.c.data, row *product.c.ld + col, sum);                   \
        }                                                                                                    \
    };
MM_DTYPE_TABLE(X)
#undef X

/* float32 operands with a float32 C. This case is frequent, so it has its own kernels without checks of C's
 * type. */
struct mm_cuda_float32 : mm_cuda_element<MM_FLOAT32> {
    static __device__ __forceinline__ void store(const struct mm_product &product, size_t row, size_t col,
                                                 float sum) {
        static_cast<float *>(product.c.data)[row * product.c.ld + col] = sum;
    }
};

/* Stores a sum as element (row, col) of C, which must be inside C. */
template <class ELEMENT = mm_cuda_float32>
__device__ __forceinline__ void mm_store_c(const struct mm_product &product, size_t row, size_t col,
                                           typename ELEMENT::sum_type sum) {
    ELEMENT::store(product, row, col, sum);
}

/* Stores a sum as element (row, col) of C, or does nothing if this position is outside C. */
template <class ELEMENT = mm_cuda_float32>
__device__ __forceinline__ void mm_store_c_guarded(const struct mm_product &product, unsigned row,
                                                   unsigned col, typename ELEMENT::sum_type sum) {
    if (row < product.m && col < product.n)
        mm_store_c<ELEMENT>(product, row, col, sum);
}

/* Stores sums in a row of C, at columns col, col + STEP and so on. Drops sums outside C. */
template <unsigned STEP, unsigned COUNT>
__device__ __forceinline__ void mm_store_c_row(const struct mm_product &product, unsigned row, unsigned col,
                                               const float (&sums)[COUNT]) {
    float *to = static_cast<float *>(product.c.data) + row * product.c.ld + col;
    if (row >= product.m)
        return;
#pragma unroll
    for (unsigned j = 0; j < COUNT; j++)
        if (col + j * STEP < product.n)
            to[j * STEP] = sums[j];
}
