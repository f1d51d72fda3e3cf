/* staged_copy: a use of shared memory that gains nothing. Like in `naive` (naive.cu), each thread computes
 * one element of C. But it first copies its elements of A and B to shared memory, and multiplies from there.
 * The kernel looks like `tiled` (tiled.cu), but no thread reads what another thread copied, so no load is
 * saved. A kernel without a barrier, like this one, shares nothing between threads. docs/lessons/2-tiles.md
 * and docs/kernels.md have measured times. Source: a frequent mistake in first kernels. */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

constexpr unsigned DEPTH = 8; /* elements of A and of B that a thread copies in one step */

struct staged_copy {
    static constexpr unsigned COLS = 32;
    static constexpr unsigned ROWS = 8;
    static constexpr unsigned THREADS_X = COLS;
    static constexpr unsigned THREADS_Y = ROWS;

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        /* Each thread uses one column. A warp accesses neighbouring words, so there are no bank conflicts. */
        __shared__ float a_stage[DEPTH][COLS * ROWS];
        __shared__ float b_stage[DEPTH][COLS * ROWS];
        const unsigned own = threadIdx.y * COLS + threadIdx.x;
        const unsigned col = blockIdx.x * COLS + threadIdx.x;
        const unsigned row = blockIdx.y * ROWS + threadIdx.y;
        if (row >= product.m || col >= product.n)
            return; /* no other thread waits for this thread */

        const float *a = mm_element<TRANSPOSE_A>(product.a, row, 0);
        const float *b = mm_element<TRANSPOSE_B>(product.b, 0, col);
        const size_t a_stride = TRANSPOSE_A ? product.a.ld : 1;
        const size_t b_stride = TRANSPOSE_B ? 1 : product.b.ld;

        float sum = 0.0f;
        for (size_t first_k = 0; first_k < product.k; first_k += DEPTH) {
            const unsigned depth = static_cast<unsigned>(min(product.k - first_k, size_t{DEPTH}));
            for (unsigned i = 0; i < depth; i++) {
                a_stage[i][own] = a[(first_k + i) * a_stride];
                b_stage[i][own] = b[(first_k + i) * b_stride];
            }

            /* No barrier is needed here or after this loop, because a thread sees its own stores. The reads
             * are volatile, because the compiler would otherwise keep the elements in registers. */
            for (unsigned i = 0; i < depth; i++) {
                const volatile float &a_word = a_stage[i][own];
                const volatile float &b_word = b_stage[i][own];
                sum = fmaf(a_word, b_word, sum);
            }
        }
        mm_store_c(product, row, col, sum);
    }
};

} // namespace

MM_CUDA_PLAN(mm_cuda_staged_copy, mm_cuda_plan_by<staged_copy>)
