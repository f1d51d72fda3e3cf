/* tiled_async: `tiled_32` (tiled.cu) with asynchronous copies (cp.async). Shared memory has two stages, each
 * with a tile of A and a tile of B. While the block multiplies the tiles of one stage, the next tiles are
 * copied to the other stage. So a step needs only one barrier. docs/lessons/8-asynchronous.md shows when this
 * is faster, and docs/kernels.md has measured times. Source: the PTX ISA describes the instruction, and the
 * CUDA C++ Programming Guide its use for tiles. */
#include "gpu/device/backend.h"
#include "gpu/cuda/variants/async.cuh"
#include "gpu/cuda/variants/kernel.cuh"

namespace {

constexpr unsigned TILE = 32;

struct tiled_async : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[2][TILE][TILE];
        __shared__ float b_tile[2][TILE][TILE];
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

        /* Starts to copy the tiles that begin at first_k. A copy of 0 elements stores a zero. */
        const auto copy = [&](unsigned stage, unsigned first_k) {
            mm_copy_async<1>(&a_tile[stage][a_row][a_k], a, first_k < a_end ? 1 : 0);
            a += a_stride;
            mm_copy_async<1>(&b_tile[stage][b_k][b_col], b, first_k < b_end ? 1 : 0);
            b += b_stride;
        };

        if (product.k > 0)
            copy(0, 0);
        float sum = 0.0f;
        unsigned stage = 0; /* the stage to multiply */
        for (unsigned first_k = 0; first_k < product.k; first_k += TILE, stage ^= 1) {
            /* After this barrier the tiles of this stage are complete, because each thread has waited for its
             * own copies. All threads have read the other stage, so the copies below may overwrite it. */
            mm_wait_copies();
            __syncthreads();
            if (first_k + TILE < product.k)
                copy(stage ^ 1, first_k + TILE);
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = fmaf(a_tile[stage][y][i], b_tile[stage][i][x], sum);
        }

        mm_store_c_guarded(product, first_row + y, first_col + x, sum);
    }
};

} // namespace

const char *mm_cuda_async_missing(const struct mm_device *device) {
    return device->compute_capability >= 80 ? NULL
                                            : "asynchronous copies need compute capability 8.0 or higher";
}

MM_CUDA_PLAN(mm_cuda_tiled_async, mm_cuda_plan_by<tiled_async>)
