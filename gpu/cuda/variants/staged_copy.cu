/* staged_copy: shared memory that buys nothing. It is `naive` (naive.cu) with a detour: each thread first
 * copies its next elements of A and B to shared memory, and then multiplies from there. It looks like `tiled`
 * (tiled.cu): copy, multiply, next step. But no thread reads what another one copied.
 *
 *        tiled          global ──► shared ──► every thread of a row or column of the block: TILE uses
 *        staged_copy    global ──► shared ──► the same thread, once
 *
 * Shared memory is fast, but that is not why tiles pay. They pay because one load from global memory serves
 * many threads. If each element is used once, its way through shared memory is a store and a load more.
 *
 * Cost: beside the loads of `naive`, two stores and two loads of shared memory for each multiplication, and
 * 16 KiB of shared memory a block. The chip takes these from the L1 cache, in which `naive` finds most of its
 * loads. Measured on an H100: 1.08 ms at 1024³ and 68.1 ms at 4096³; `naive` takes 0.364 and 25.1 ms.
 *
 * What to see: a benchmark predicts the same global loads as for `naive`, and the time is three times as
 * long. And look for the barrier: there is none. A kernel that needs no barrier shares nothing between its
 * threads, so it needs no shared memory.
 *
 * Source: a frequent mistake in first kernels. */
#include "gpu/cuda/variants/kernel.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned DEPTH = 8; /* elements along k that a thread copies at each step, of A and of B */

struct staged_copy {
    static constexpr unsigned COLS = 32;
    static constexpr unsigned ROWS = 8;
    static constexpr unsigned THREADS_X = COLS;
    static constexpr unsigned THREADS_Y = ROWS;

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        /* A column for each thread: a warp uses successive words, so no bank is asked for two. */
        __shared__ float a_stage[DEPTH][COLS * ROWS];
        __shared__ float b_stage[DEPTH][COLS * ROWS];
        const unsigned own = threadIdx.y * COLS + threadIdx.x;
        const unsigned col = blockIdx.x * COLS + threadIdx.x;
        const unsigned row = blockIdx.y * ROWS + threadIdx.y;
        if (row >= product.m || col >= product.n)
            return; /* no thread waits for this one */

        /* The thread's first elements, and the stride along k in each stored matrix, as in `naive`. */
        const size_t lda = product.a.ld;
        const size_t ldb = product.b.ld;
        const float *a = static_cast<const float *>(product.a.data) + (TRANSPOSE_A ? row : row * lda);
        const float *b = static_cast<const float *>(product.b.data) + (TRANSPOSE_B ? col * ldb : col);
        const size_t a_stride = TRANSPOSE_A ? lda : 1;
        const size_t b_stride = TRANSPOSE_B ? 1 : ldb;

        float sum = 0.0f;
        for (size_t first_k = 0; first_k < product.k; first_k += DEPTH) {
            const unsigned depth = static_cast<unsigned>(min(product.k - first_k, size_t{DEPTH}));
            for (unsigned i = 0; i < depth; i++) {
                a_stage[i][own] = a[(first_k + i) * a_stride];
                b_stage[i][own] = b[(first_k + i) * b_stride];
            }

            /* No barrier, neither here nor after this loop: a thread sees its own stores at once. The
             * compiler knows that too, and would keep the elements in registers if the reads were not
             * volatile. */
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

enum mm_status mm_cuda_staged_copy(const struct mm_product *product, struct mm_plan *plan,
                                   struct mm_error *error) {
    return mm_cuda_plan_by<staged_copy>(product, plan, error);
}
