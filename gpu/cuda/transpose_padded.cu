/* transpose padded: `shared` with rows of the tile padded by one element, to 32×33. Word w of shared memory
 * lies in bank w mod 32, and a bank serves one word at a time. With rows of 32 words a column of the tile
 * lies in one bank; with rows of 33 its 32 words lie in 32 banks, and a warp has them at once. (Elements of 8
 * bytes go by half warps: with rows of 66 words, 16 of them fill the 32 banks.) That is the whole difference:
 * what `shared` waits for its reads of the tile is gone. The padding costs 128 or 256 bytes a block.
 *
 * It is the third step of NVIDIA's "An Efficient Matrix Transpose in CUDA C/C++". */
#include "gpu/cuda/transpose.h"

namespace {

constexpr unsigned TILE = 32;
constexpr unsigned STEP = 8; /* rows of threads, and so rows of the tile that are moved at a time */

template <typename ELEMENT>
__global__ void __launch_bounds__(TILE *STEP) padded(const __grid_constant__ struct mm_product product) {
    __shared__ ELEMENT tile[TILE][TILE + 1]; /* as A is stored */
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

    /* Neighbouring threads write along a row of C, and so read down a column of the tile: 33 words apart. */
#pragma unroll
    for (unsigned step = 0; step < TILE; step += STEP) {
        const unsigned y = step + threadIdx.y;
        if (first_row + y < product.m && first_col + x < product.n)
            c[(first_row + y) * product.c.ld + first_col + x] = tile[x][y];
    }
}

} // namespace

enum mm_status mm_cuda_transpose_padded(const struct mm_product *product, struct mm_lane *lane,
                                        struct mm_error *error) {
    static const mm_cuda_kernel kernels[2] = {padded<uint32_t>, padded<uint64_t>};
    struct mm_cuda_layout layout = {};
    layout.kernel = mm_cuda_pick_size(kernels, product);
    layout.block_rows = layout.block_cols = layout.threads_x = TILE;
    layout.threads_y = STEP;
    return mm_cuda_transpose(&layout, product, lane, error);
}
