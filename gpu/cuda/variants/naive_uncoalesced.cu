/* naive_uncoalesced: `naive` with the threads of a block turned. It shows what coalescing is worth: it adds
 * the sums in the order of `naive`, issues as many loads, and computes identical bits.
 *
 * Loads: the 32 threads of a warp have successive elements of a column of C. So they load from 32 rows of A
 * at a time, each on a cache line of its own, and share one element of B. `naive` loads one element of A and
 * one line of B. They also store C to a line each. Every such access is 32 transactions instead of one. (A
 * transposed A is loaded along a stored row, and then only the stores are slow.)
 *
 * Edges and cost: as in `naive`. Launch: ⌈n/8⌉×⌈m/32⌉ blocks of 32×8 threads, threadIdx.x down the rows of C.
 * Measured on an H200: 4.44 ms at 1024³, 275 ms at 4096³; `naive` 0.366 and 27.2 ms.
 *
 * Source: the first step of S. Boehm's "How to Optimize a CUDA Matmul Kernel for cuBLAS-like Performance". */
#include "gpu/cuda/variants/kernel.cuh"
#include "gpu/cuda/variants.h"

namespace {

struct naive_uncoalesced {
    /* The block of `naive`, turned: it is as tall as a warp, so no warp spans two columns of C. */
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

        const size_t lda = product.a.ld;
        const size_t ldb = product.b.ld;
        const float *a = static_cast<const float *>(product.a.data) + (TRANSPOSE_A ? row : row * lda);
        const float *b = static_cast<const float *>(product.b.data) + (TRANSPOSE_B ? col * ldb : col);
        const size_t a_stride = TRANSPOSE_A ? lda : 1;
        const size_t b_stride = TRANSPOSE_B ? 1 : ldb;

        float sum = 0.0f;
        for (size_t i = 0; i < product.k; i++)
            sum = fmaf(a[i * a_stride], b[i * b_stride], sum);
        mm_store_c(product, row, col, sum);
    }
};

} // namespace

enum mm_status mm_cuda_naive_uncoalesced(const struct mm_product *product, struct mm_plan *plan,
                                         struct mm_error *error) {
    return mm_cuda_plan_by<naive_uncoalesced>(product, plan, error);
}
