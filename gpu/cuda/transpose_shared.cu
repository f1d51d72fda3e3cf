/* transpose shared: through a tile in shared memory. A block reads a 32×32 square of A row by row, and writes
 * it row by row of C, so that both matrices are walked along their rows, a warp's 128 bytes (256, of
 * elements of 8) at a time. What is left of the walk across happens in shared memory, which has no lines to
 * waste. That is where its gain over `naive` comes from.
 *
 * It costs a barrier, 4 or 8 KiB of shared memory, and a conflict: a warp that reads down a column of the
 * tile asks one bank for all of its words, which come one after the other (32-way, 16-way twice of elements
 * of 8 bytes). `padded` mends that. A thread moves four elements, so that the cost of its indices, and its
 * wait at the barrier, are shared by them.
 *
 * It is the second step of NVIDIA's "An Efficient Matrix Transpose in CUDA C/C++". */
#include "gpu/cuda/transpose.h"

namespace {

constexpr unsigned TILE = 32;
constexpr unsigned STEP = 8; /* rows of threads, and so rows of the tile that are moved at a time */

template <typename ELEMENT>
__global__ void __launch_bounds__(TILE *STEP) shared(const __grid_constant__ struct mm_product product) {
    __shared__ ELEMENT tile[TILE][TILE]; /* as A is stored */
    const ELEMENT *a = static_cast<const ELEMENT *>(product.a.data);
    ELEMENT *c = static_cast<ELEMENT *>(product.c.data);
    const unsigned first_row = blockIdx.y * TILE;
    const unsigned first_col = blockIdx.x * TILE;
    const unsigned x = threadIdx.x;

    /* Neighbouring threads read along a row of A, which is a column of C. */
#pragma unroll
    for (unsigned step = 0; step < TILE; step += STEP) {
        const unsigned y = step + threadIdx.y;
        if (first_col + y < product.n && first_row + x < product.m)
            tile[y][x] = a[(first_col + y) * product.a.ld + first_row + x];
    }

    /* Each thread takes what others wrote: no one goes on before all have written. */
    __syncthreads();

    /* Neighbouring threads write along a row of C, and so read down a column of the tile. */
#pragma unroll
    for (unsigned step = 0; step < TILE; step += STEP) {
        const unsigned y = step + threadIdx.y;
        if (first_row + y < product.m && first_col + x < product.n)
            c[(first_row + y) * product.c.ld + first_col + x] = tile[x][y];
    }
}

} // namespace

enum mm_status mm_cuda_transpose_shared(const struct mm_product *product, struct mm_lane *lane,
                                        struct mm_error *error) {
    static const mm_cuda_kernel kernels[2] = {shared<uint32_t>, shared<uint64_t>};
    struct mm_cuda_layout layout = {};
    layout.kernel = mm_cuda_pick_size(kernels, product);
    layout.block_rows = layout.block_cols = layout.threads_x = TILE;
    layout.threads_y = STEP;
    return mm_cuda_transpose(&layout, product, lane, error);
}
