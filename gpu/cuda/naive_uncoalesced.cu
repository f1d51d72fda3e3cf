/* naive_uncoalesced: `naive` with the threads of a block turned, so that neighbouring threads walk down
 * a column of C. It stands here to be compared with: the arithmetic, the count of reads and the bits of
 * the result are those of `naive`, and only who reads what at one time differs.
 *
 * It is slower because a warp's 32 threads now ask for 32 rows of A at a time, each on a cache line of its
 * own, where the warp of `naive` asks for one address of A and one line of B; and because they write C a line
 * each. Every such access is 32 transactions in place of one. (A transposed A is read along a stored row,
 * so that there only the writes suffer.) It costs no shared memory and no barrier.
 *
 * It is the first step of S. Boehm's "How to Optimize a CUDA Matmul Kernel for cuBLAS-like Performance". */
#include "gpu/cuda/kernel.cuh"
#include "gpu/cuda/variants.h"

namespace {

struct naive_uncoalesced {
    /* The block of `naive`, turned: as tall as a warp, so that no warp spans two columns of C. */
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
        const size_t a_step = TRANSPOSE_A ? lda : 1;
        const size_t b_step = TRANSPOSE_B ? 1 : ldb;

        float sum = 0.0f;
        for (size_t i = 0; i < product.k; i++)
            sum = fmaf(a[i * a_step], b[i * b_step], sum);
        static_cast<float *>(product.c.data)[row * product.c.ld + col] = sum;
    }
};

} // namespace

enum mm_status mm_cuda_naive_uncoalesced(const struct mm_product *product, struct mm_lane *lane,
                                         struct mm_error *error) {
    return mm_cuda_launch_by<naive_uncoalesced>(product, lane, error);
}
