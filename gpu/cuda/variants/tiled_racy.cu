/* tiled_racy: `tiled_32` (tiled.cu) without its first barrier. The products are WRONG ON PURPOSE, to show
 * what a barrier is for, so it runs only if requested by name. docs/lessons/3-barriers.md explains the race.
 * Other products stay right, because a block stores only its own square of C. Source: a classic mistake. */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

constexpr unsigned TILE = 32;

struct tiled_racy : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[TILE][TILE];
        __shared__ float b_tile[TILE][TILE];
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

        /* Fill the tiles with zeros. Otherwise a warp that reads too early could read another client's
         * elements, left in shared memory by an earlier block. After the barrier, no zero can overwrite an
         * element of the first step. */
        a_tile[y][x] = 0.0f;
        b_tile[y][x] = 0.0f;
        __syncthreads();

        float sum = 0.0f;
        for (unsigned first_k = 0; first_k < k; first_k += TILE) {
            a_tile[a_row][a_k] = first_k < a_end ? *a : 0;
            b_tile[b_k][b_col] = first_k < b_end ? *b : 0;
            a += a_stride;
            b += b_stride;

            /* MISSING: __syncthreads(), which would wait until both tiles are complete. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = fmaf(a_tile[y][i], b_tile[i][x], sum);

            /* Wait until all threads have read the tiles, because the next step overwrites them. */
            __syncthreads();
        }
        mm_store_c_guarded(product, first_row + y, first_col + x, sum);
    }
};

} // namespace

MM_CUDA_PLAN(mm_cuda_tiled_racy, mm_cuda_plan_by<tiled_racy>)
