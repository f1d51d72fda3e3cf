/* tiled_wide: `tiled_16` (tiled.cu) with tiles that are longer along k: a step covers 512 of k instead of 16.
 * The variant shows that longer tiles along k save no loads, because each loaded element of A is still used
 * 16 times, once for each column of the block's square of C. A block takes 64 KiB of shared memory. This
 * memory is dynamic, because a kernel may declare only 48 KiB. docs/kernels.md has measured times. Source:
 * NVIDIA's CUDA C++ Best Practices Guide explains how shared memory limits occupancy. */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

constexpr unsigned TILE = 16;
constexpr unsigned TILES = 32;    /* a step has TILES tiles of A and TILES tiles of B */
constexpr unsigned IN_FLIGHT = 4; /* a thread loads elements of IN_FLIGHT tiles at a time */
constexpr unsigned DEPTH = TILES * TILE;

struct tiled_wide : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        extern __shared__ float shared[][TILE][TILE];
        float(*const a_tiles)[TILE][TILE] = shared;
        float(*const b_tiles)[TILE][TILE] = shared + TILES;
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;
        const unsigned k = static_cast<unsigned>(product.k);

        /* tiled.cu explains which elements a thread copies. */
        const unsigned a_row = TRANSPOSE_A ? x : y;
        const unsigned a_k = TRANSPOSE_A ? y : x;
        const unsigned b_k = TRANSPOSE_B ? x : y;
        const unsigned b_col = TRANSPOSE_B ? y : x;
        const float *a = mm_element<TRANSPOSE_A>(product.a, first_row + a_row, a_k);
        const float *b = mm_element<TRANSPOSE_B>(product.b, b_k, first_col + b_col);
        const size_t a_stride = TRANSPOSE_A ? TILE * product.a.ld : TILE;
        const size_t b_stride = TRANSPOSE_B ? TILE : TILE * product.b.ld;
        const unsigned a_end = first_row + a_row < product.m && a_k < k ? k - a_k : 0;
        const unsigned b_end = first_col + b_col < product.n && b_k < k ? k - b_k : 0;

        float sum = 0.0f;
        for (unsigned first_k = 0; first_k < product.k; first_k += DEPTH) {
            const unsigned tiles = (min(k - first_k, DEPTH) + TILE - 1) / TILE;
            for (unsigned tile = 0; tile < tiles; tile += IN_FLIGHT) {
                float from_a[IN_FLIGHT];
                float from_b[IN_FLIGHT];
#pragma unroll
                for (unsigned i = 0; i < IN_FLIGHT; i++, a += a_stride, b += b_stride) {
                    from_a[i] = first_k + (tile + i) * TILE < a_end ? *a : 0;
                    from_b[i] = first_k + (tile + i) * TILE < b_end ? *b : 0;
                }
#pragma unroll
                for (unsigned i = 0; i < IN_FLIGHT; i++) {
                    a_tiles[tile + i][a_row][a_k] = from_a[i];
                    b_tiles[tile + i][b_k][b_col] = from_b[i];
                }
            }

            /* Wait until all tiles are complete, because threads read what other threads wrote. */
            __syncthreads();
            for (unsigned tile = 0; tile < tiles; tile++)
#pragma unroll
                for (unsigned i = 0; i < TILE; i++)
                    sum = fmaf(a_tiles[tile][y][i], b_tiles[tile][i][x], sum);

            /* Wait until all threads have read the tiles, because the next step overwrites them. */
            __syncthreads();
        }
        mm_store_c_guarded(product, first_row + y, first_col + x, sum);
    }
};

} // namespace

enum mm_status mm_cuda_tiled_wide(const struct mm_product *product, struct mm_plan *plan,
                                  struct mm_error *error) {
    const enum mm_status status = mm_cuda_plan_by<tiled_wide>(product, plan, error);
    plan->layout.dynamic_shared_bytes = 2 * TILES * TILE * TILE * sizeof(float);
    return status;
}
