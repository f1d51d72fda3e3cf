/* The kernel of `shared` and `padded`: a transposition through a 32×32 tile in shared memory, whose rows are
 * PADDING elements longer. For their files alone. */
#ifndef MM_GPU_CUDA_TRANSPOSE_TILE_CUH
#define MM_GPU_CUDA_TRANSPOSE_TILE_CUH

#include "gpu/cuda/transpose.h"

namespace {

constexpr unsigned TILE = 32;
constexpr unsigned STEP = 8; /* rows of threads, and so rows of the tile that are moved at a time */

template <typename ELEMENT, unsigned PADDING>
__global__ void __launch_bounds__(TILE *STEP) by_tile(const __grid_constant__ struct mm_product product) {
    __shared__ ELEMENT tile[TILE][TILE + PADDING]; /* as A is stored */
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

    /* Neighbouring threads write along a row of C, and so read down a column of the tile: 32 words apart, and
     * the padding. */
#pragma unroll
    for (unsigned step = 0; step < TILE; step += STEP) {
        const unsigned y = step + threadIdx.y;
        if (first_row + y < product.m && first_col + x < product.n)
            c[(first_row + y) * product.c.ld + first_col + x] = tile[x][y];
    }
}

template <unsigned PADDING>
enum mm_status transpose_by_tile(const struct mm_product *product, struct mm_lane *lane,
                                 struct mm_error *error) {
    static const mm_cuda_kernel kernels[2] = {by_tile<uint32_t, PADDING>, by_tile<uint64_t, PADDING>};
    struct mm_cuda_layout layout = {};
    layout.kernel = mm_cuda_pick_size(kernels, product);
    layout.block_rows = layout.block_cols = layout.threads_x = TILE;
    layout.threads_y = STEP;
    return mm_cuda_transpose(&layout, product, lane, error);
}

} // namespace

#endif
