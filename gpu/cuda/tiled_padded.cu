/* tiled_padded, tiled_conflicted: what shared memory's banks are worth. Word w of shared memory lies in
 * bank w mod 32, and a bank serves one word at a time. Here both tiles stay as their matrices are
 * stored, so that the threads of a warp, which take neighbouring columns of op(B), walk down a column of
 * the tile where B is transposed. With rows of 32 words (tiled_conflicted) the 32 words they ask for lie in
 * one bank and come one after the other, at each of 32 reads a step. With rows of 33 (tiled_padded)
 * they lie in 32 banks and come at once.
 *
 * That is the whole difference: where B is not transposed, a warp reads along a row of the tile, and
 * the two do the same. A's tile needs no padding: a warp's threads share a row of op(A), and so one
 * word of it, however it is stored. Both have two barriers a step and 1024 threads, as `tiled_32`, and
 * 8 KiB of shared memory; the padding costs 128 bytes more. `tiled_32` itself turns a transposed B while
 * writing its tile, and so meets the conflict at one write a step.
 *
 * Padding a tile is the remedy of NVIDIA's CUDA C++ Best Practices Guide. */
#include "gpu/cuda/kernel.cuh"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/walk.cuh"

namespace {

constexpr unsigned TILE = 32;

template <unsigned PADDING> struct tiled_as_stored : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[TILE][TILE];
        __shared__ float b_tile[TILE][TILE + PADDING];
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;

        mm_walk<TILE, !TRANSPOSE_A> a_walk(product.a, first_row);
        mm_walk<TILE, TRANSPOSE_B> b_walk(product.b, first_col);

        float sum = 0.0f;
        for (unsigned step = 0; step < product.k; step += TILE) {
            /* A warp writes along a row, which no padding changes. */
            a_tile[y][x] = a_walk.take(step);
            b_tile[y][x] = b_walk.take(step);

            /* Each thread reads what others wrote: no one starts before all have written. */
            __syncthreads();

            /* y is one for a warp and x its 32 threads': b_tile[x][i] is the walk down a column. It is
             * volatile, since the compiler would else fetch four words of a row without padding at once, and
             * make eight ways of 32. Past k both tiles hold 0, and nothing is added there. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++) {
                const float a = TRANSPOSE_A ? a_tile[i][y] : a_tile[y][i];
                const volatile float &b = TRANSPOSE_B ? b_tile[x][i] : b_tile[i][x];
                sum = fmaf(a, b, sum);
            }

            /* The next step overwrites the tiles: no one goes on before all have read. */
            __syncthreads();
        }

        const unsigned row = first_row + y;
        const unsigned col = first_col + x;
        if (row < product.m && col < product.n)
            static_cast<float *>(product.c.data)[row * product.c.ld + col] = sum;
    }
};

} // namespace

enum mm_status mm_cuda_tiled_padded(const struct mm_product *product, struct mm_lane *lane,
                                    struct mm_error *error) {
    return mm_cuda_launch_by<tiled_as_stored<1>>(product, lane, error);
}

enum mm_status mm_cuda_tiled_conflicted(const struct mm_product *product, struct mm_lane *lane,
                                        struct mm_error *error) {
    return mm_cuda_launch_by<tiled_as_stored<0>>(product, lane, error);
}
