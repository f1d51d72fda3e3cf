/* tiled_dynamic: the caller chooses the tile's edge, request by request. In `tiled` the edge is a constant,
 * and the shared memory it takes is a part of the kernel. Here the kernel declares an array without a size,
 * the launch says how many bytes of it each block gets, and the block carves it in two. So one kernel
 * shows what a larger tile brings, global reads that fall to 1/tile, beside what it takes: 2·tile²·4 bytes
 * of shared memory a block, which is 128 bytes at 4, 2 KiB at 16, 8 KiB at 32, 32 KiB at 64 and 72 KiB at
 * 96. That last is more than the 48 KiB that a kernel has unasked, so that its launch opts in (launch.c).
 *
 * A block has 1024 threads at most. Up to 32, each computes one element of C, as in `tiled`; at 64 it
 * computes 2×2 and at 96 3×3, and uses each word that it fetches from shared memory two or three times.
 * These sums live in registers, which no index reaches: how many there are must be a constant, and is the
 * only one here.
 *
 * It costs two barriers a step, as `tiled`, and what an edge that the compiler does not know costs:
 * computed addresses, a loop that is not unrolled to its end, and no four words of A fetched at once. At 4 a
 * block is half a warp. From 32 on it has 1024 threads, so that a multiprocessor holds one or two blocks, and
 * at a barrier much of it waits.
 *
 * Dynamic shared memory is described in NVIDIA's CUDA C++ Programming Guide. */
#include "gpu/cuda/kernel.cuh"
#include "gpu/cuda/variants.h"

#include <cassert>

const unsigned mm_cuda_dynamic_tiles[] = {4, 8, 16, 32, 64, 96, 0};

namespace {

constexpr unsigned SIDE_MAX = 32; /* threads along either edge of a block */
constexpr unsigned EACH_MAX = 3;  /* elements of C along either edge of a thread's own square */

/* Puts the tile of op(X) whose first element is (row, col) into shared memory, EACH×EACH elements a thread;
 * zeros past an edge. As in `tiled`, elements are read as they are stored, so that the reads are coalesced,
 * and a transposed X is turned while it is written, with that one conflict: at 32 and its multiples a warp's
 * words all lie in one bank. */
template <unsigned EACH, bool TRANSPOSE>
__device__ void load(float *to, unsigned tile, const struct mm_matrix &x, unsigned row, unsigned col) {
    const unsigned first_row = TRANSPOSE ? col : row;
    const unsigned first_col = TRANSPOSE ? row : col;
#pragma unroll
    for (unsigned i = 0; i < EACH * EACH; i++) {
        const unsigned down = threadIdx.y + i / EACH * blockDim.y;
        const unsigned right = threadIdx.x + i % EACH * blockDim.x;
        float element = 0.0f;
        if (first_row + down < x.rows && first_col + right < x.cols)
            element = static_cast<const float *>(x.data)[(first_row + down) * x.ld + first_col + right];
        to[TRANSPOSE ? right * tile + down : down * tile + right] = element;
    }
}

/* Adds the tiles' product to the thread's square, whose rows and columns stand a block's side apart: a
 * warp's threads read neighbouring words of B's tile, and of A's one word for each row of C that they share.
 * No bank is asked for two words. */
template <unsigned EACH>
__device__ void multiply(float (&sums)[EACH][EACH], const float *a_tile, const float *b_tile, unsigned tile) {
#pragma unroll 4
    for (unsigned depth = 0; depth < tile; depth++) {
        float a[EACH];
        float b[EACH];
#pragma unroll
        for (unsigned i = 0; i < EACH; i++) {
            a[i] = a_tile[(threadIdx.y + i * blockDim.y) * tile + depth];
            b[i] = b_tile[depth * tile + threadIdx.x + i * blockDim.x];
        }
#pragma unroll
        for (unsigned i = 0; i < EACH * EACH; i++)
            sums[i / EACH][i % EACH] = fmaf(a[i / EACH], b[i % EACH], sums[i / EACH][i % EACH]);
    }
}

/* Its sizes are the most; a launch has those of its tile. */
template <unsigned EACH> struct tiled_dynamic {
    static constexpr unsigned ROWS = EACH * SIDE_MAX;
    static constexpr unsigned COLS = EACH * SIDE_MAX;
    static constexpr unsigned THREADS_X = SIDE_MAX;
    static constexpr unsigned THREADS_Y = SIDE_MAX;

    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        extern __shared__ float shared[];
        const unsigned tile = product.tile;
        float *const a_tile = shared;
        float *const b_tile = shared + tile * tile;
        const unsigned first_row = blockIdx.y * tile;
        const unsigned first_col = blockIdx.x * tile;

        /* Threads past the edge of C stay: they fetch for the others, and all must meet at the barriers.
         * step cannot wrap: k is below 2³¹. */
        float sums[EACH][EACH] = {};
        for (unsigned step = 0; step < product.k; step += tile) {
            load<EACH, TRANSPOSE_A>(a_tile, tile, product.a, first_row, step);
            load<EACH, TRANSPOSE_B>(b_tile, tile, product.b, step, first_col);

            /* Each thread reads what others wrote: no one starts before all have written. */
            __syncthreads();

            /* Past k both tiles hold 0, so nothing is added there; past m or n the zeros only meet sums that
             * are never stored. */
            multiply(sums, a_tile, b_tile, tile);

            /* The next step overwrites the tiles: no one goes on before all have read. */
            __syncthreads();
        }

#pragma unroll
        for (unsigned i = 0; i < EACH * EACH; i++) {
            const unsigned row = first_row + threadIdx.y + i / EACH * blockDim.y;
            const unsigned col = first_col + threadIdx.x + i % EACH * blockDim.x;
            if (row < product.m && col < product.n)
                static_cast<float *>(product.c.data)[row * product.c.ld + col] = sums[i / EACH][i % EACH];
        }
    }
};

template <unsigned EACH>
enum mm_status launch(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    struct mm_cuda_layout layout = mm_cuda_layout_of<tiled_dynamic<EACH>>(product);
    assert(product->tile % EACH == 0);
    layout.block_rows = layout.block_cols = product->tile;
    layout.threads_x = layout.threads_y = product->tile / EACH;
    layout.dynamic_shared_bytes = 2 * sizeof(float) * product->tile * product->tile;
    return mm_cuda_launch(&layout, product, lane, error);
}

} // namespace

enum mm_status mm_cuda_tiled_dynamic(const struct mm_product *product, struct mm_lane *lane,
                                     struct mm_error *error) {
    static enum mm_status (*const launches[EACH_MAX])(const struct mm_product *, struct mm_lane *,
                                                      struct mm_error *) = {launch<1>, launch<2>, launch<3>};
    struct mm_product chosen = *product;
    if (chosen.tile == 0)
        chosen.tile = mm_cuda_variants[MM_CUDA_ROW_tiled_dynamic].tile;
    const unsigned each = (chosen.tile + SIDE_MAX - 1) / SIDE_MAX;
    assert(each <= EACH_MAX);
    return launches[each - 1](&chosen, lane, error);
}
