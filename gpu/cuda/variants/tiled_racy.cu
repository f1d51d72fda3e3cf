/* tiled_racy: `tiled_32` (tiled.cu) without its first barrier. Its products are WRONG ON PURPOSE, to show
 * what a barrier is for. It runs only if a request names it.
 *
 * The 32 warps of a block do not run in step: their loads from global memory arrive at different times.
 * Nothing makes a warp wait for the others, so it multiplies what it finds:
 *
 *        warp 0     load ── store row 0 ─ multiply by rows 0 … 31 of b_tile ──────── barrier
 *        warp 31    load ─────────────────────────── store row 31 ─ multiply … ───── barrier
 *                                         ↑
 *                       warp 0 reads row 31 before warp 31 has stored it: it finds the row of the step before
 *
 * Which warps lose this data race depends on the chip, the load and chance, so two runs may give different
 * products. A product of 1×1 by 1×1 is right, because one thread loads all that it uses. `compute-sanitizer
 * --tool memcheck` finds nothing, because all accesses are within bounds; `--tool racecheck` reports the
 * race.
 *
 * The second barrier prevents the other race: a fast warp overwrites a tile while a slow one still reads it.
 * A block stores only its own square of C, so no other product is damaged, not even one that shares the
 * launch.
 *
 * Measured on an H100: 0.243 ms at 1024³ and 14.8 ms at 4096³; `tiled_32` takes 0.249 and 15.1 ms. So the
 * barrier costs 2%. For 228×240 · 240×112, where a multiprocessor has at most one block, it costs 11%: 0.0132
 * and 0.0148 ms.
 *
 * What to see: with `verify` a request is told that its product is wrong, and a benchmark shows the errors.
 *
 * Source: the classic mistake. */
#include "gpu/cuda/variants/walk.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned TILE = 32;

struct tiled_racy : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[TILE][TILE];
        __shared__ float b_tile[TILE][TILE];
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        auto a = mm_walk_a<TILE, TRANSPOSE_A>(product);
        auto b = mm_walk_b<TILE, TRANSPOSE_B>(product);

        /* In the first step a warp that is too early finds zeros. Without them it would find what an earlier
         * block left in shared memory, perhaps another client's elements, and C would reveal them. The
         * barrier keeps these zeros from overwriting what the loop stores. */
        a_tile[y][x] = 0.0f;
        b_tile[y][x] = 0.0f;
        __syncthreads();

        float sum = 0.0f;
        for (unsigned first_k = 0; first_k < product.k; first_k += TILE) {
            a.copy(mm_slot<TRANSPOSE_A>(a_tile), first_k);
            b.copy(mm_slot<TRANSPOSE_B>(b_tile), first_k);

            /* MISSING: __syncthreads(). Each thread reads what others wrote, and none may read before all
             * have written. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = fmaf(a_tile[y][i], b_tile[i][x], sum);

            /* The next step overwrites the tiles: none may write before all have read. */
            __syncthreads();
        }
        mm_store_c_guarded(product, blockIdx.y * TILE + y, blockIdx.x * TILE + x, sum);
    }
};

} // namespace

enum mm_status mm_cuda_tiled_racy(const struct mm_product *product, struct mm_plan *plan,
                                  struct mm_error *error) {
    return mm_cuda_plan_by<tiled_racy>(product, plan, error);
}
