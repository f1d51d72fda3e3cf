/* tiled_padded, tiled_conflicted: what bank conflicts in shared memory cost. The variants differ only in the
 * length of b_tile's rows, 33 or 32 words. If B is transposed, a warp reads down a column of b_tile. With
 * rows of 33 words the column lies in 32 banks, and with rows of 32 words in one bank. a_tile needs no
 * padding, because a warp reads one word of it at a time. docs/lessons/5-banks.md explains banks, and
 * docs/kernels.md has measured times.
 * Source: padding a tile is the remedy of NVIDIA's CUDA C++ Best Practices Guide. */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

constexpr unsigned TILE = 32;

template <unsigned PADDING> struct tiled_as_stored : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[TILE][TILE];
        __shared__ float b_tile[TILE][TILE + PADDING];
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;
        const unsigned k = static_cast<unsigned>(product.k);

        /* tiled.cu explains which elements a thread copies. Here tiles keep the stored orientation. */
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
        for (unsigned first_k = 0; first_k < k; first_k += TILE) {
            /* A warp writes a row of the tile, so there are no bank conflicts, with or without padding. */
            a_tile[y][x] = first_k < a_end ? *a : 0;
            b_tile[y][x] = first_k < b_end ? *b : 0;
            a += a_stride;
            b += b_stride;

            /* Wait until both tiles are complete, because threads read what other threads wrote. */
            __syncthreads();

            /* If B is transposed, the threads of a warp read a column of b_tile, because they have equal y.
             * The read is volatile. Otherwise the compiler would read four words of a row at once if rows
             * have no padding, and the conflict would be 8-way instead of 32-way. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++) {
                const float a_word = TRANSPOSE_A ? a_tile[i][y] : a_tile[y][i];
                const volatile float &b_word = TRANSPOSE_B ? b_tile[x][i] : b_tile[i][x];
                sum = fmaf(a_word, b_word, sum);
            }

            /* Wait until all threads have read the tiles, because the next step overwrites them. */
            __syncthreads();
        }
        mm_store_c_guarded(product, first_row + y, first_col + x, sum);
    }
};

} // namespace

MM_CUDA_PLAN(mm_cuda_tiled_padded, mm_cuda_plan_by<tiled_as_stored<1>>)
MM_CUDA_PLAN(mm_cuda_tiled_conflicted, mm_cuda_plan_by<tiled_as_stored<0>>)
