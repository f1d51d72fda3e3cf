/* Rounds float32 or float64 sums of a library to C's type, and stores them in C. */
#include "gpu/cuda/variants/blas.h"
#include "gpu/cuda/variants/kernel.cuh"

namespace {

struct block {
    static constexpr unsigned ROWS = 8;
    static constexpr unsigned COLS = 32;
    static constexpr unsigned THREADS_X = COLS;
    static constexpr unsigned THREADS_Y = ROWS;
};

template <class ELEMENT>
__global__ void __launch_bounds__(block::THREADS_X *block::THREADS_Y)
    round_sums(const __grid_constant__ struct mm_product product) {
    const unsigned col = blockIdx.x * block::COLS + threadIdx.x;
    const unsigned row = blockIdx.y * block::ROWS + threadIdx.y;
    if (row >= product.m || col >= product.n)
        return;
    const typename ELEMENT::sum_type *sums = static_cast<const typename ELEMENT::sum_type *>(product.a.data);
    mm_store_c<ELEMENT>(product, row, col, sums[row * product.a.ld + col]);
}

} // namespace

struct mm_layout mm_blas_round_layout(enum mm_dtype sum) {
    struct mm_layout layout = mm_layout_over<block>();
    layout.kernel = sum == MM_FLOAT64
                        ? reinterpret_cast<const void *>(round_sums<mm_cuda_element<MM_FLOAT64>>)
                        : reinterpret_cast<const void *>(round_sums<mm_cuda_element<MM_FLOAT32>>);
    return layout;
}
