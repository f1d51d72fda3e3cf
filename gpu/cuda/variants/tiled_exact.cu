/* tiled_exact_16, tiled_exact_32: `tiled` (tiled.cu) without bounds checks, which is the kernel of most
 * textbooks. m, n and k must be multiples of the tile. Source: the matrix product in NVIDIA's samples. */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

template <unsigned TILE> struct tiled_exact : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[TILE][TILE];
        __shared__ float b_tile[TILE][TILE];
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;

        /* tiled.cu explains which elements a thread copies. */
        const unsigned a_row = TRANSPOSE_A ? x : y;
        const unsigned a_k = TRANSPOSE_A ? y : x;
        const unsigned b_k = TRANSPOSE_B ? x : y;
        const unsigned b_col = TRANSPOSE_B ? y : x;
        const float *a = mm_element<TRANSPOSE_A>(product.a, first_row + a_row, a_k);
        const float *b = mm_element<TRANSPOSE_B>(product.b, b_k, first_col + b_col);
        const size_t a_stride = TRANSPOSE_A ? TILE * product.a.ld : TILE;
        const size_t b_stride = TRANSPOSE_B ? TILE : TILE * product.b.ld;

        float sum = 0.0f;
        for (unsigned first_k = 0; first_k < product.k; first_k += TILE) {
            a_tile[a_row][a_k] = *a;
            b_tile[b_k][b_col] = *b;
            a += a_stride;
            b += b_stride;

            /* Wait until both tiles are complete, because threads read what other threads wrote. */
            __syncthreads();
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = fmaf(a_tile[y][i], b_tile[i][x], sum);

            /* Wait until all threads have read the tiles, because the next step overwrites them. */
            __syncthreads();
        }
        mm_store_c(product, first_row + y, first_col + x, sum);
    }
};

} // namespace

MM_CUDA_PLAN(mm_cuda_tiled_exact_16, mm_cuda_plan_by<tiled_exact<16>>)
MM_CUDA_PLAN(mm_cuda_tiled_exact_32, mm_cuda_plan_by<tiled_exact<32>>)
