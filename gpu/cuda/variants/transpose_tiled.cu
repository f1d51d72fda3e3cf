/* transpose shared and padded: transposes through a tile in shared memory. A block loads a 32×32 square of A
 * row by row, and stores it row by row of C, so both matrices are accessed along their rows. Only the tile is
 * read by columns. If the tile's rows have 32 words (`shared`), a column lies in one bank, so reads are slow.
 * If the rows have 33 words (`padded`), a column lies in 32 banks. docs/lessons/7-transposition.md explains
 * this. Source: the second and third step of NVIDIA's "An Efficient Matrix Transpose in CUDA C/C++". */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

constexpr unsigned TILE = 32;
constexpr unsigned STEP = 8; /* rows of the tile that a block copies at a time */

template <unsigned PADDING> struct by_tile {
    static constexpr unsigned ROWS = TILE;
    static constexpr unsigned COLS = TILE;
    static constexpr unsigned THREADS_X = TILE;
    static constexpr unsigned THREADS_Y = STEP;

    template <typename ELEMENT> static __device__ __forceinline__ void run(const struct mm_product &product) {
        /* The tile has the orientation of A. Padding by one element avoids all bank conflicts for elements of
         * 4 and 8 bytes, and most of them for elements of 1 and 2 bytes. */
        __shared__ ELEMENT tile[TILE][TILE + PADDING];
        const ELEMENT *a = static_cast<const ELEMENT *>(product.a.data);
        ELEMENT *c = static_cast<ELEMENT *>(product.c.data);
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;
        const unsigned x = threadIdx.x;

        /* Neighbouring threads load neighbouring elements of a row of A, which is a column of C. */
#pragma unroll
        for (unsigned step = 0; step < TILE; step += STEP) {
            const unsigned y = step + threadIdx.y;
            if (first_col + y < product.n && first_row + x < product.m)
                tile[y][x] = a[(first_col + y) * product.a.ld + first_row + x];
        }

        /* Wait until the tile is complete, because threads read what other threads wrote. */
        __syncthreads();

        /* Neighbouring threads store along a row of C, so they read a column of the tile. */
#pragma unroll
        for (unsigned step = 0; step < TILE; step += STEP) {
            const unsigned y = step + threadIdx.y;
            if (first_row + y < product.m && first_col + x < product.n)
                c[(first_row + y) * product.c.ld + first_col + x] = tile[x][y];
        }
    }
};

} // namespace

MM_CUDA_PLAN(mm_cuda_transpose_shared, mm_cuda_plan_transpose_by<by_tile<0>>)
MM_CUDA_PLAN(mm_cuda_transpose_padded, mm_cuda_plan_transpose_by<by_tile<1>>)
