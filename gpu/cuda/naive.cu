/* naive: one thread per element of C. Each walks along its row of op(A) and down its column of op(B)
 * and reads both from global memory: 2·k reads a thread, 2·m·n·k in all, for 2·m·n·k operations. It
 * is what every other variant here is compared with. It costs no shared memory and no barrier.
 *
 * Neighbouring threads take neighbouring elements of a row of C. A warp's 32 reads of a stored row of
 * B, and its 32 writes of C, are then one 128-byte line, and its reads of A are one address that all
 * of its threads share. A transposed B is read along a stored column, a line a thread: that is not
 * mended here, but in `tiled`.
 *
 * It is the product without shared memory of NVIDIA's CUDA C++ Programming Guide, for any shape. */
#include "gpu/cuda/kernel.cuh"
#include "gpu/cuda/variants.h"

namespace {

struct naive {
    /* As wide as a warp, so that no warp spans two rows of C; eight rows, so that eight warps soon ask for
     * the same lines of B and find them in the L1 cache. */
    static constexpr unsigned COLS = 32;
    static constexpr unsigned ROWS = 8;
    static constexpr unsigned THREADS_X = COLS;
    static constexpr unsigned THREADS_Y = ROWS;

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        const unsigned col = blockIdx.x * COLS + threadIdx.x;
        const unsigned row = blockIdx.y * ROWS + threadIdx.y;
        if (row >= product.m || col >= product.n)
            return;

        /* Offsets are of 64 bits: a matrix may have more than 2³² elements. */
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

enum mm_status mm_cuda_naive(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    return mm_cuda_launch_by<naive>(product, lane, error);
}
