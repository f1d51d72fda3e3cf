/* Applies epilogues to sums of products, rounds the results to C's type, and stores them in C. Each row of
 * the grid computes one C. Each thread computes TURNS elements of one column, so it has TURNS loads in
 * flight. Neighbouring threads load neighbouring elements. */
#include "gpu/cuda/variants/finish.cuh"
#include "gpu/cuda/variants/finish.h"
#include "gpu/cuda/variants/follow.cuh"

namespace {

constexpr unsigned LINES = 8; /* rows that a block computes at a time */
constexpr unsigned TURNS = 8;
constexpr unsigned ROWS = LINES * TURNS;
constexpr unsigned COLS = 32;

__device__ __forceinline__ void store(enum mm_dtype dtype, void *c, size_t index, float x) {
    mm_store_float(dtype, c, index, x);
}
__device__ __forceinline__ void store(enum mm_dtype dtype, void *c, size_t index, double x) {
    mm_store_double(dtype, c, index, x);
}
__device__ __forceinline__ void store(enum mm_dtype dtype, void *c, size_t index, uint32_t x) {
    mm_store_uint32_t(dtype, c, index, x);
}
__device__ __forceinline__ void store(enum mm_dtype dtype, void *c, size_t index, uint64_t x) {
    mm_store_uint64_t(dtype, c, index, x);
}

template <enum mm_dtype DTYPE>
__global__ void __launch_bounds__(COLS *LINES) finish(const __grid_constant__ struct mm_cuda_pass pass) {
    using sum_type = typename mm_cuda_element<DTYPE>::sum_type;
    const struct mm_cuda_sums &item = pass.of[blockIdx.y];
    const unsigned across = static_cast<unsigned>((item.n + COLS - 1) / COLS); /* blocks along a row of C */
    const size_t col = size_t{blockIdx.x % across} * COLS + threadIdx.x;
    const size_t first_row = size_t{blockIdx.x / across} * ROWS + threadIdx.y;
    mm_trigger_dependent_launch();
    mm_wait_for_kernel_before();
    if (col >= item.n)
        return;
    sum_type x[TURNS] = {};
#pragma unroll
    for (unsigned turn = 0; turn < TURNS; turn++)
        if (first_row + turn * LINES < item.m)
            x[turn] =
                static_cast<const sum_type *>(item.sums)[(first_row + turn * LINES) * item.sums_ld + col];
    const auto row = [=](unsigned turn) { return first_row + turn * LINES; };
    const auto its_col = [=](unsigned) { return col; };
    if (item.terms.epilogue.is_set && item.terms.dtype == DTYPE)
        mm_cuda_finish_sums<true>(item.terms, item.m, item.n, x, row, its_col);
    else if (item.terms.epilogue.is_set)
        mm_cuda_finish_sums<false>(item.terms, item.m, item.n, x, row, its_col);
#pragma unroll
    for (unsigned turn = 0; turn < TURNS; turn++)
        if (first_row + turn * LINES < item.m)
            store(item.terms.dtype, item.c, (first_row + turn * LINES) * item.c_ld + col, x[turn]);
}

} // namespace

struct mm_layout mm_cuda_finish_layout(enum mm_dtype dtype) {
    struct mm_layout layout = {};
    layout.follows = mm_kernels_wait();
    layout.block_rows = ROWS;
    layout.block_cols = layout.threads_x = COLS;
    layout.threads_y = LINES;
    layout.kernel = dtype == MM_FLOAT64 ? reinterpret_cast<const void *>(finish<MM_FLOAT64>)
                    : dtype == MM_INT32 ? reinterpret_cast<const void *>(finish<MM_INT32>)
                    : dtype == MM_INT64 ? reinterpret_cast<const void *>(finish<MM_INT64>)
                                        : reinterpret_cast<const void *>(finish<MM_FLOAT32>);
    return layout;
}
