/* tiled_dynamic: `tiled` with a tile edge that each request chooses. In `tiled` the edge is a constant, and
 * the compiler reserves the shared memory. Here the kernel declares an array without a size (extern
 * __shared__), the launch says how many bytes each block gets, and the block divides them into its two tiles.
 * So one kernel shows what a larger tile brings, global loads that fall to 1/tile, and what it costs:
 * 2·tile²·4 bytes of shared memory a block, 128 bytes at 4, 2 KiB at 16, 8 KiB at 32, 32 KiB at 64 and 72 KiB
 * at 96. The last is more than the 48 KiB that every kernel may use, so its launch opts in to more
 * (launch.c).
 *
 * Loads: a block has at most 1024 threads, 32×32. Up to tile 32 each thread computes one element of C, as in
 * `tiled`. At 64 it computes 2×2 and at 96 3×3, and reads each word of shared memory for two or three
 * multiplications. It loads as many elements of each tile. They lie a block's side apart: at 64, thread (x,
 * y) has rows y and y + 32 and columns x and x + 32. The sums live in registers, and registers cannot be
 * indexed, so their number (EACH) is a constant. It is the only one here.
 *
 * Edges: as in `tiled`. For m = n = k = 100 and tile 96, 2×2 blocks cover C, two steps cover k, and zeros
 * fill the tiles past 100.
 *
 * Launch: ⌈n/tile⌉×⌈m/tile⌉ blocks of (tile/EACH)×(tile/EACH) threads with 8·tile² bytes of dynamic shared
 * memory.
 *
 * Cost: two barriers a step, as in `tiled`, and what an unknown edge costs: computed addresses, a loop that
 * is not fully unrolled, and no read of four words of A at once. At 4 a block is half a warp. From 32 on it
 * has 1024 threads, so a multiprocessor holds one or two blocks, and at a barrier much of it waits. Measured
 * on an H200 at 4096³: 145, 32.8, 23.2, 22.1, 10.4 and 7.8 ms for the tiles 4 to 96.
 *
 * Source: NVIDIA's CUDA C++ Programming Guide describes dynamic shared memory. */
#include "gpu/cuda/variants/kernel.cuh"
#include "gpu/cuda/variants.h"

#include <cassert>

namespace {

constexpr unsigned SIDE_MAX = 32; /* threads along either edge of a block */
constexpr unsigned EACH_MAX = 3;  /* elements of C of a thread, along either edge */

/* Loads the tile of op(X) from its element (row, col) on and stages it in shared memory, EACH×EACH elements a
 * thread, and zeros past an edge. As in `tiled`, threads load elements as they are stored, so the loads are
 * coalesced, and turn a transposed X as they stage it. That has the conflict of `tiled`: at 32 and its
 * multiples all words of a warp lie in one bank. */
template <unsigned EACH, bool TRANSPOSE>
__device__ void stage(float *to, unsigned tile, const struct mm_matrix &x, unsigned row, unsigned col) {
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

/* Adds the product of the tiles to the thread's sums, whose rows and columns lie a block's side apart. So the
 * threads of a warp read neighbouring words of b_tile, and one word of a_tile for each row of C that they
 * share: no bank is asked for two words. */
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

/* These sizes are the largest that a launch has. */
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

        /* Threads past the edge of C stay: they load for others, and all threads must meet at the barriers.
         * step cannot wrap: k is below 2³¹. */
        float sums[EACH][EACH] = {};
        for (unsigned step = 0; step < product.k; step += tile) {
            stage<EACH, TRANSPOSE_A>(a_tile, tile, product.a, first_row, step);
            stage<EACH, TRANSPOSE_B>(b_tile, tile, product.b, step, first_col);

            /* Each thread reads what others staged: none may read before all have written. */
            __syncthreads();

            /* Past k both tiles hold 0, so nothing is added there. Zeros past m or n only reach sums that are
             * never stored. */
            multiply(sums, a_tile, b_tile, tile);

            /* The next step overwrites the tiles: none may write before all have read. */
            __syncthreads();
        }

#pragma unroll
        for (unsigned i = 0; i < EACH * EACH; i++) {
            const unsigned row = first_row + threadIdx.y + i / EACH * blockDim.y;
            const unsigned col = first_col + threadIdx.x + i % EACH * blockDim.x;
            mm_store_c_guarded(product, row, col, sums[i / EACH][i % EACH]);
        }
    }
};

template <unsigned EACH> struct mm_layout layout_of(const struct mm_product *product, unsigned tile) {
    struct mm_layout layout = mm_layout_of<tiled_dynamic<EACH>>(product);
    assert(tile % EACH == 0);
    layout.block_rows = layout.block_cols = tile;
    layout.threads_x = layout.threads_y = tile / EACH;
    layout.dynamic_shared_bytes = 2 * sizeof(float) * tile * tile;
    return layout;
}

} // namespace

enum mm_status mm_cuda_tiled_dynamic(const struct mm_product *product, struct mm_plan *plan,
                                     struct mm_error *error) {
    static struct mm_layout (*const layouts[EACH_MAX])(const struct mm_product *,
                                                       unsigned) = {layout_of<1>, layout_of<2>, layout_of<3>};
    const unsigned tile = product->tile != 0 ? product->tile : plan->variant->tile;
    const unsigned each = (tile + SIDE_MAX - 1) / SIDE_MAX;
    (void)error;
    assert(each <= EACH_MAX);
    plan->layout = layouts[each - 1](product, tile);
    return MM_OK;
}
