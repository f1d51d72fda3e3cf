/* The kernel of `shared` and `padded`: a transposition through a 32×32 tile in shared memory, whose rows are
 * PADDING elements longer. For their files alone. */
#ifndef MM_GPU_CUDA_TRANSPOSE_TILE_CUH
#define MM_GPU_CUDA_TRANSPOSE_TILE_CUH

#include "gpu/cuda/kernel.cuh"

namespace {

constexpr unsigned TILE = 32;
constexpr unsigned STEP = 8; /* rows of threads, and so rows of the tile that are moved at a time */

template <unsigned PADDING> struct by_tile {
    static constexpr unsigned ROWS = TILE;
    static constexpr unsigned COLS = TILE;
    static constexpr unsigned THREADS_X = TILE;
    static constexpr unsigned THREADS_Y = STEP;

    template <typename ELEMENT> static __device__ __forceinline__ void run(const struct mm_product &product) {
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

        /* Neighbouring threads write along a row of C, and so read down a column of the tile: 32 words apart,
         * and the padding. */
#pragma unroll
        for (unsigned step = 0; step < TILE; step += STEP) {
            const unsigned y = step + threadIdx.y;
            if (first_row + y < product.m && first_col + x < product.n)
                c[(first_row + y) * product.c.ld + first_col + x] = tile[x][y];
        }
    }
};

} // namespace

#endif
