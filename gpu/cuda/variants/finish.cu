/* Applies an epilogue to the sums of a product, rounds them to the type of C, and stores them with C's
 * leading dimension. The sums are operand A of this pass; they may lie in C itself. Each thread computes four
 * elements of a column, so it has several loads in flight. A warp loads neighbouring elements. */
#include "gpu/cuda/variants/finish.h"
#include "gpu/cuda/variants/kernel.cuh"

namespace {

constexpr unsigned LINES = 8; /* rows that a block computes at a time */
constexpr unsigned TURNS = 4; /* how often a block computes LINES rows */

struct block {
    static constexpr unsigned ROWS = LINES * TURNS;
    static constexpr unsigned COLS = 32;
    static constexpr unsigned THREADS_X = COLS;
    static constexpr unsigned THREADS_Y = LINES;
};

template <class ELEMENT>
__global__ void __launch_bounds__(block::THREADS_X *block::THREADS_Y)
    finish(const __grid_constant__ struct mm_product product) {
    const unsigned col = blockIdx.x * block::COLS + threadIdx.x;
    const unsigned first_row = blockIdx.y * block::ROWS + threadIdx.y;
    const auto *sums = static_cast<const typename ELEMENT::sum_type *>(product.a.data);
    if (col >= product.n)
        return;
#pragma unroll
    for (unsigned turn = 0; turn < TURNS; turn++) {
        const size_t row = first_row + turn * LINES;
        if (row < product.m)
            mm_store_c<ELEMENT>(product, row, col, sums[row * product.a.ld + col]);
    }
}

} // namespace

struct mm_layout mm_cuda_finish_layout(enum mm_dtype sum) {
    struct mm_layout layout = mm_layout_over<block>();
    layout.kernel = sum == MM_FLOAT64 ? reinterpret_cast<const void *>(finish<mm_cuda_element<MM_FLOAT64>>)
                    : sum == MM_INT32 ? reinterpret_cast<const void *>(finish<mm_cuda_element<MM_INT32>>)
                                      : reinterpret_cast<const void *>(finish<mm_cuda_element<MM_FLOAT32>>);
    return layout;
}
