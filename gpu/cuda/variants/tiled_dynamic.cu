/* tiled_dynamic: `tiled` (tiled.cu) with a tile size that each request chooses. The kernel declares an array
 * without a size (extern __shared__), and the launch chooses the size. So one kernel shows what larger tiles
 * gain and cost. docs/kernels.md has measured times. A block has at most 32×32 threads. For larger tiles each
 * thread computes 2×2 or 3×3 elements of C, in rows and columns that lie blockDim apart. Source: NVIDIA's
 * CUDA C++ Programming Guide describes dynamic shared memory. */
#include "gpu/cuda/variants/kernel.cuh"

#include <cassert>

namespace {

constexpr unsigned SIDE_MAX = 32; /* threads along a side of a block */
constexpr unsigned EACH_MAX = 3;  /* a thread computes at most EACH_MAX×EACH_MAX elements of C */

/* Copies the tile of op(X) from element (row, col) on to shared memory, EACH×EACH elements for each thread.
 * Elements outside X become 0. Threads load along the stored rows, and transpose the tile if TRANSPOSE. */
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

/* Adds the product of the tiles to the thread's sums. The threads of a warp read neighbouring words of
 * b_tile, and few different words of a_tile, so there are no bank conflicts. */
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

/* The sizes here are the largest that a launch can have. EACH is a template parameter, because sums are in
 * registers, and registers cannot be indexed at run time. */
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

        /* Threads outside C must not return, because they load for other threads, and the barriers wait for
         * all threads. `step` cannot overflow, because k is below 2³¹. */
        float sums[EACH][EACH] = {};
        for (unsigned step = 0; step < product.k; step += tile) {
            stage<EACH, TRANSPOSE_A>(a_tile, tile, product.a, first_row, step);
            stage<EACH, TRANSPOSE_B>(b_tile, tile, product.b, step, first_col);

            /* Wait until both tiles are complete, because threads read what other threads wrote. */
            __syncthreads();

            /* Elements past k are 0 in both tiles, so they add nothing to the sums. */
            multiply(sums, a_tile, b_tile, tile);

            /* Wait until all threads have read the tiles, because the next step overwrites them. */
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
