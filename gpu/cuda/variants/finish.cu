/* Applies an epilogue to the sums of a product, rounds the results to C's type, and stores them in C. The
 * sums are operand A of this pass, and may lie in C itself. Each thread computes TURNS elements of one
 * column, so it has TURNS loads in flight. Neighbouring threads load neighbouring elements. */
#include "gpu/cuda/variants/finish.h"
#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/kernel.cuh"

namespace {

constexpr unsigned LINES = 8; /* rows that a block computes at a time */
constexpr unsigned TURNS = 8; /* a block computes TURNS·LINES rows */

__device__ __forceinline__ void mm_store(const struct mm_matrix &c, size_t index, float x) {
    mm_store_float(c.dtype, c.data, index, x);
}
__device__ __forceinline__ void mm_store(const struct mm_matrix &c, size_t index, double x) {
    mm_store_double(c.dtype, c.data, index, x);
}
__device__ __forceinline__ void mm_store(const struct mm_matrix &c, size_t index, uint32_t x) {
    mm_store_uint32_t(c.dtype, c.data, index, x);
}

struct block {
    static constexpr unsigned ROWS = LINES * TURNS;
    static constexpr unsigned COLS = 32;
    static constexpr unsigned THREADS_X = COLS;
    static constexpr unsigned THREADS_Y = LINES;
};

template <enum mm_dtype SUM>
__global__ void __launch_bounds__(block::THREADS_X *block::THREADS_Y)
    finish(const __grid_constant__ struct mm_product product) {
    const unsigned col = blockIdx.x * block::COLS + threadIdx.x;
    const unsigned first_row = blockIdx.y * block::ROWS + threadIdx.y;
    mm_trigger_dependent_launch();
    mm_wait_for_kernel_before();
    const auto *sums = static_cast<const typename mm_cuda_element<SUM>::sum_type *>(product.a.data);
    if (col >= product.n)
        return;
    typename mm_cuda_element<SUM>::sum_type x[TURNS] = {};
#pragma unroll
    for (unsigned turn = 0; turn < TURNS; turn++)
        if (first_row + turn * LINES < product.m)
            x[turn] = sums[size_t{first_row + turn * LINES} * product.a.ld + col];
    const auto row = [=](unsigned turn) { return size_t{first_row} + turn * LINES; };
    const auto its_col = [=](unsigned) { return col; };
    if (product.epilogue.is_set && product.c.dtype == SUM)
        mm_cuda_finish<true, true>(product, x, row, its_col);
    else if (product.epilogue.is_set)
        mm_cuda_finish<true, false>(product, x, row, its_col);
#pragma unroll
    for (unsigned turn = 0; turn < TURNS; turn++)
        if (first_row + turn * LINES < product.m)
            mm_store(product.c, size_t{first_row + turn * LINES} * product.c.ld + col, x[turn]);
}

} // namespace

struct mm_layout mm_cuda_finish_layout(enum mm_dtype sum) {
    struct mm_layout layout = mm_layout_over<block>();
    layout.follows = mm_kernels_wait();
    layout.kernel = sum == MM_FLOAT64 ? reinterpret_cast<const void *>(finish<MM_FLOAT64>)
                    : sum == MM_INT32 ? reinterpret_cast<const void *>(finish<MM_INT32>)
                                      : reinterpret_cast<const void *>(finish<MM_FLOAT32>);
    return layout;
}
