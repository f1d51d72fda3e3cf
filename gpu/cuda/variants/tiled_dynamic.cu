/* tiled_dynamic: `tiled` (tiled.cu) with a tile edge that each request chooses. The kernel declares an
 * array without a size (extern __shared__), and the launch says how many bytes each block gets. So one
 * kernel shows what a larger tile brings and what it costs; docs/kernels.md has the figures. A block has at
 * most 1024 threads, 32×32: past tile 32 each thread computes 2×2 or 3×3 elements of C, which lie a block's
 * side apart. Source: NVIDIA's CUDA C++ Programming Guide describes dynamic shared memory. */
#include "gpu/cuda/variants/kernel.cuh"
#include "gpu/cuda/variants.h"

#include <cassert>

namespace {

constexpr unsigned SIDE_MAX = 32; /* threads along either edge of a block */
constexpr unsigned EACH_MAX = 3;  /* elements of C that a thread computes, along either edge. A constant,
                                     because sums are in registers, and registers cannot be indexed */

/* Loads the tile of op(X) from element (row, col) on and stages it in shared memory, EACH×EACH elements for
 * each thread. Elements past an edge become 0. Threads load along the stored rows, and transpose the tile as
 * they stage it if X is transposed. */
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

/* Adds the product of the tiles to the thread's sums, whose rows and columns lie a block's side apart.
 * Threads of a warp read neighbouring words of b_tile, and one word of a_tile for each row of C, so there are
 * no bank conflicts. */
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

/* The sizes in this struct are the largest that a launch can have. */
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

        /* Threads past the edge of C must not return, because they load for other threads, and the barriers
         * wait for all threads. `step` cannot overflow, because k is below 2³¹. */
        float sums[EACH][EACH] = {};
        for (unsigned step = 0; step < product.k; step += tile) {
            stage<EACH, TRANSPOSE_A>(a_tile, tile, product.a, first_row, step);
            stage<EACH, TRANSPOSE_B>(b_tile, tile, product.b, step, first_col);

            /* Threads read what other threads staged, so all must have written before any thread reads. */
            __syncthreads();

            /* Past k both tiles hold 0, so nothing is added. Zeros past m or n reach only sums that are not
             * stored. */
            multiply(sums, a_tile, b_tile, tile);

            /* The next step overwrites the tiles, so all threads must have read before any thread writes. */
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
