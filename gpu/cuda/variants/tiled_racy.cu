/* tiled_racy: `tiled_32` (tiled.cu) without its first barrier. Its products are WRONG ON PURPOSE, to show
 * what a barrier is for. It runs only if a request names it.
 *
 * In each step a block copies a tile of A and a tile of B to shared memory, an element a thread, and then
 * each thread multiplies a row of the first by a column of the second. The 32 warps of a block do not run in
 * step: their loads from global memory arrive at different times. Nothing makes a warp wait for the others,
 * so it multiplies what it finds.
 *
 *        warp 0     load ── store row 0 ─ multiply by rows 0 … 31 of b_tile ──────── barrier
 *        warp 31    load ─────────────────────────── store row 31 ─ multiply … ───── barrier
 *                                         ↑
 *                       warp 0 reads row 31 before warp 31 has stored it: it finds the row of the step before
 *
 * This is a data race. Which warps lose it depends on the chip, the load and chance, so two runs may give
 * different products. A product of 1×1 by 1×1 is right, since one thread loads all that it uses: a test
 * of that size finds nothing. Nor is `compute-sanitizer --tool memcheck` of use, since
 * all accesses are within bounds; `--tool racecheck` reports it.
 *
 * The second barrier, which this kernel has, prevents the other race: a fast warp overwrites a tile while a
 * slow one still reads it. That race is lost less often, because the fast warp first has to wait for its next
 * loads. Such a defect is harder to find.
 *
 * Loads, edges, launch: as in `tiled_32`. Every access is within bounds, and a block stores only its own
 * square of C, so no other product is damaged, not even one that shares the launch.
 *
 * Cost: one barrier a step less than `tiled_32`. Measured on an H100: 0.243 ms at 1024³ and 14.8 ms at 4096³;
 * `tiled_32` takes 0.249 and 15.1 ms. So the barrier costs 2%. For 228×240 · 240×112, where a multiprocessor
 * has at most one block, it costs 11%: 0.0132 and 0.0148 ms.
 *
 * What to see: with `verify` a request is told that its product is wrong, and a benchmark shows the errors.
 * Its time beside that of `tiled_32` shows what the barrier costs.
 *
 * Source: the classic mistake. */
#include "gpu/cuda/variants/kernel.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned TILE = 32;

/* How much of k is left in a stored matrix from (row, col) on, as in `tiled`. */
template <bool K_DOWN> __device__ unsigned k_left(const struct mm_matrix &x, unsigned row, unsigned col) {
    const unsigned line = K_DOWN ? col : row;
    const unsigned lines = static_cast<unsigned>(K_DOWN ? x.cols : x.rows);
    const unsigned depth = K_DOWN ? row : col;
    const unsigned k = static_cast<unsigned>(K_DOWN ? x.rows : x.cols);
    return line < lines && depth < k ? k - depth : 0;
}

struct tiled_racy : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[TILE][TILE];
        __shared__ float b_tile[TILE][TILE];
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;

        /* This thread's element of the first tile of A and of B, and the way to the next tile, as in
         * `tiled`. */
        const unsigned a_row = TRANSPOSE_A ? y : first_row + y;
        const unsigned a_col = TRANSPOSE_A ? first_row + x : x;
        const float *a = static_cast<const float *>(product.a.data) + (a_row * product.a.ld + a_col);
        const size_t a_stride = TRANSPOSE_A ? TILE * product.a.ld : TILE;
        const unsigned a_left = k_left<TRANSPOSE_A>(product.a, a_row, a_col);

        const unsigned b_row = TRANSPOSE_B ? first_col + y : y;
        const unsigned b_col = TRANSPOSE_B ? x : first_col + x;
        const float *b = static_cast<const float *>(product.b.data) + (b_row * product.b.ld + b_col);
        const size_t b_stride = TRANSPOSE_B ? TILE : TILE * product.b.ld;
        const unsigned b_left = k_left<!TRANSPOSE_B>(product.b, b_row, b_col);

        /* In the first step a warp that is too early finds zeros. Without them it would find what an earlier
         * block left in shared memory, perhaps another client's elements, and C would reveal them. The
         * barrier keeps these zeros from overwriting what the loop stores. */
        a_tile[y][x] = 0.0f;
        b_tile[y][x] = 0.0f;
        __syncthreads();

        float sum = 0.0f;
        for (unsigned first_k = 0; first_k < product.k; first_k += TILE) {
            float &a_slot = TRANSPOSE_A ? a_tile[x][y] : a_tile[y][x];
            a_slot = a_left > first_k ? *a : 0.0f;
            a += a_stride;
            float &b_slot = TRANSPOSE_B ? b_tile[x][y] : b_tile[y][x];
            b_slot = b_left > first_k ? *b : 0.0f;
            b += b_stride;

            /* MISSING: __syncthreads(). Each thread reads what others wrote, and none may read before all
             * have written. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = fmaf(a_tile[y][i], b_tile[i][x], sum);

            /* The next step overwrites the tiles: none may write before all have read. */
            __syncthreads();
        }

        mm_store_c_guarded(product, first_row + y, first_col + x, sum);
    }
};

} // namespace

enum mm_status mm_cuda_tiled_racy(const struct mm_product *product, struct mm_plan *plan,
                                  struct mm_error *error) {
    return mm_cuda_plan_by<tiled_racy>(product, plan, error);
}
