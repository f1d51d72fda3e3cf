/* naive_uncoalesced: `naive` (naive.cu) without coalesced loads, to show what coalescing is worth. The 32
 * threads of a warp compute neighbours in a column of C. In each step along k they load elements from 32 rows
 * of A, which lie in 32 cache lines. Each sum is added up in the order of `naive`, so the results are
 * identical. docs/kernels.md has measured times.
 * Source: the first step of S. Boehm's "How to Optimize a CUDA Matmul Kernel for cuBLAS-like Performance". */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

struct naive_uncoalesced {
    /* A block has as many rows as a warp has threads, so each warp stays in one column of C. */
    static constexpr unsigned ROWS = 32;
    static constexpr unsigned COLS = 8;
    static constexpr unsigned THREADS_X = ROWS;
    static constexpr unsigned THREADS_Y = COLS;

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        const unsigned row = blockIdx.y * ROWS + threadIdx.x;
        const unsigned col = blockIdx.x * COLS + threadIdx.y;
        if (row >= product.m || col >= product.n)
            return;

        const float *a = mm_element<TRANSPOSE_A>(product.a, row, 0);
        const float *b = mm_element<TRANSPOSE_B>(product.b, 0, col);
        const size_t a_stride = TRANSPOSE_A ? product.a.ld : 1;
        const size_t b_stride = TRANSPOSE_B ? 1 : product.b.ld;

        float sum = 0.0f;
        for (size_t i = 0; i < product.k; i++)
            sum = fmaf(a[i * a_stride], b[i * b_stride], sum);
        mm_store_c(product, row, col, sum);
    }
};

} // namespace

MM_CUDA_PLAN(mm_cuda_naive_uncoalesced, mm_cuda_plan_by<naive_uncoalesced>)
