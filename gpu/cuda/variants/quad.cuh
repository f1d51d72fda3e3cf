/* A quad is four neighbouring floats, which one access of 16 bytes reads or stores. For kernel files only. */
#pragma once

#include "gpu/cuda/variants/element.cuh"

constexpr unsigned MM_QUAD = 4;

/* Returns whether every row of X begins at a multiple of 16 bytes, so one access can read an aligned quad. */
__device__ __forceinline__ bool mm_is_wide(const struct mm_matrix &x) {
    return reinterpret_cast<size_t>(x.data) % sizeof(float4) == 0 && x.ld % MM_QUAD == 0;
}

/* Reads a quad that begins at a multiple of 16 bytes. */
__device__ __forceinline__ void mm_read_quad(float *to, const float *from) {
    const float4 quad = *reinterpret_cast<const float4 *>(from);
    to[0] = quad.x;
    to[1] = quad.y;
    to[2] = quad.z;
    to[3] = quad.w;
}

/* Stores four sums in row `row` of C, from column `col` on. Drops sums past the last column. If `wide`,
 * mm_is_wide(C) must hold, and `col` must be a multiple of 4. */
__device__ __forceinline__ void mm_store_quad(const struct mm_product &product, bool wide, unsigned row,
                                              unsigned col, const float *sums) {
    float *to = static_cast<float *>(product.c.data) + row * product.c.ld + col;
    if (wide && col + MM_QUAD <= product.n) {
        *reinterpret_cast<float4 *>(to) = make_float4(sums[0], sums[1], sums[2], sums[3]);
        return;
    }
#pragma unroll
    for (unsigned j = 0; j < MM_QUAD; j++)
        if (col + j < product.n)
            to[j] = sums[j];
}

/* Stores sums in row `row` of C. The first quad begins at column first_col + col, and each further quad STEP
 * columns after the previous quad. Drops sums outside C. If `wide`, mm_is_wide(C) must hold, and all quads
 * must begin at multiples of 4. The first column is passed in two parts, because the compiler knows the low
 * bits of `col`. This saves two registers in `warp_tiled`. */
template <unsigned STEP, unsigned COUNT>
__device__ __forceinline__ void mm_store_quads(const struct mm_product &product, bool wide, unsigned row,
                                               unsigned first_col, unsigned col, const float (&sums)[COUNT]) {
    if (row >= product.m)
        return;
#pragma unroll
    for (unsigned j = 0; j < COUNT; j += MM_QUAD)
        mm_store_quad(product, wide, row, first_col + (col + j / MM_QUAD * STEP), &sums[j]);
}
