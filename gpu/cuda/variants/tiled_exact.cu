/* tiled_exact_16, tiled_exact_32: `tiled` for shapes that are whole tiles. If m, n and k are multiples of the
 * tile, no element lies past an edge. So every guard goes: the two comparisons a step, and the one around the
 * store. What is left is the textbook's kernel.
 *
 * Loads: as in `tiled`, thread (x, y) loads row y, column x of each tile as stored, and steps one pointer
 * into A and one into B from tile to tile.
 *
 * Edges: there are none. A product of 1000³ is refused with a reason, MM_UNSUPPORTED, and never computed
 * wrongly.
 *
 * Launch: n/TILE × m/TILE blocks of TILE×TILE threads.
 *
 * Cost: the other shapes; else as `tiled`, 2 or 8 KiB of shared memory and two barriers a step. It executes
 * fewer instructions a step than `tiled`, yet it is no faster on an H200 (15.6 and 15.5 ms at 4096³ with
 * tiles of 32): `tiled` steps its pointers as well, and its two comparisons a step are nothing beside its
 * reads of shared memory.
 *
 * Source: the matrix product among NVIDIA's CUDA samples. */
#include "gpu/cuda/variants/kernel.cuh"
#include "gpu/cuda/variants.h"

namespace {

template <unsigned TILE> struct tiled_exact : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[TILE][TILE];
        __shared__ float b_tile[TILE][TILE];
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        const size_t first_row = blockIdx.y * TILE;
        const size_t first_col = blockIdx.x * TILE;
        const size_t lda = product.a.ld;
        const size_t ldb = product.b.ld;

        /* This thread's element of the first tile of A and of B, as stored. The next tile lies a stride
         * further: TILE columns to the right, or TILE rows down. */
        const float *a = static_cast<const float *>(product.a.data) +
                         (TRANSPOSE_A ? y * lda + first_row + x : (first_row + y) * lda + x);
        const float *b = static_cast<const float *>(product.b.data) +
                         (TRANSPOSE_B ? (first_col + y) * ldb + x : y * ldb + first_col + x);
        const size_t a_stride = TRANSPOSE_A ? TILE * lda : TILE;
        const size_t b_stride = TRANSPOSE_B ? TILE : TILE * ldb;

        float sum = 0.0f;
        for (unsigned step = 0; step < product.k; step += TILE) {
            /* The tile of a transposed operand is turned on the way in, as in `tiled`. */
            (TRANSPOSE_A ? a_tile[x][y] : a_tile[y][x]) = *a;
            (TRANSPOSE_B ? b_tile[x][y] : b_tile[y][x]) = *b;
            a += a_stride;
            b += b_stride;

            /* Each thread reads what others staged: none may read before all have written. */
            __syncthreads();
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = fmaf(a_tile[y][i], b_tile[i][x], sum);

            /* The next step overwrites the tiles: none may write before all have read. */
            __syncthreads();
        }
        mm_store_c(product, first_row + y, first_col + x, sum);
    }
};

} // namespace

enum mm_status mm_cuda_tiled_exact_16(const struct mm_product *product, struct mm_plan *plan,
                                      struct mm_error *error) {
    return mm_cuda_plan_by<tiled_exact<16>>(product, plan, error);
}

enum mm_status mm_cuda_tiled_exact_32(const struct mm_product *product, struct mm_plan *plan,
                                      struct mm_error *error) {
    return mm_cuda_plan_by<tiled_exact<32>>(product, plan, error);
}
