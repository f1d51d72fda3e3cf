/* tiled_wide: `tiled_16` (tiled.cu) with 32 tiles of A and of B at a time, so a step covers 512 of k instead
 * of 16. It shows that a larger tile pays only in the directions in which elements are used again.
 *
 *                                       n                  a step of tiled_16:    □
 *                              +-----+-----+----+          a step of tiled_wide:  32 of them
 *                              |     |  □  |    |
 *                           k  |     |  □  |    | B        An element of A is used once for each column of
 *                              |     |  ⋮  |    |          the square of C: 16 times. An element of B is used
 *               k              |     |  □  |    |          once for each of its rows: 16 times. How long the
 *        +-------------+       +-----+-----+----+          tiles are along k does not matter.
 *        |             |       |     |     |    |
 *     m  | □ □ □ … □   | A     |     |16×16|    | C
 *        +-------------+       +-----+-----+----+
 *
 * Cost: 64 KiB of shared memory a block. That is more than the 48 KiB that a kernel may declare statically,
 * so it is dynamic. A multiprocessor of an H100 or H200 has 228 KiB, and each block takes 1 KiB more for the
 * system: 3 blocks take 195 KiB, so it runs 24 warps; of `tiled_16` it holds 8 blocks, 64 warps.
 *
 * Measured on an H100: 0.268 ms at 1024³ and 16.8 ms at 4096³; `tiled_16` takes 0.280 and 16.8 ms. The
 * missing warps cost nothing, because both kernels wait for their reads of shared memory. For 228×240 ·
 * 240×112 it takes 0.0084 ms, and `tiled_16` 0.0131. C has only 105 blocks there, so a multiprocessor has no
 * second block that could compute while the first waits. All of k is one step, with two barriers instead of
 * 30, and a thread has the loads of four tiles under way at a time.
 *
 * What to see: a benchmark predicts the global loads of `tiled_16`, 1/16 of those of `naive`. `GET
 * /v1/variants` shows 65,536 bytes of dynamic shared memory, and the blocks that remain.
 *
 * Source: NVIDIA's CUDA C++ Best Practices Guide explains the occupancy arithmetic. */
#include "gpu/cuda/variants/walk.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned TILE = 16;
constexpr unsigned TILES = 32; /* of A, and of B, in a step */
constexpr unsigned DEPTH = TILES * TILE;

struct tiled_wide : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        extern __shared__ float shared[][TILE][TILE];
        float(*const a_tiles)[TILE][TILE] = shared;
        float(*const b_tiles)[TILE][TILE] = shared + TILES;
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        auto a = mm_walk_a<TILE, TRANSPOSE_A>(product);
        auto b = mm_walk_b<TILE, TRANSPOSE_B>(product);

        float sum = 0.0f;
        for (unsigned first_k = 0; first_k < product.k; first_k += DEPTH) { /* cannot wrap: k is below 2³¹ */
            const unsigned k_of_step = min(static_cast<unsigned>(product.k) - first_k, DEPTH);
            const unsigned tiles = (k_of_step + TILE - 1) / TILE;
            for (unsigned tile = 0; tile < tiles; tile++) {
                a.copy(mm_slot<TRANSPOSE_A>(a_tiles[tile]), first_k + tile * TILE);
                b.copy(mm_slot<TRANSPOSE_B>(b_tiles[tile]), first_k + tile * TILE);
            }

            /* Each thread reads what others wrote: none may read before all have written. */
            __syncthreads();
            for (unsigned tile = 0; tile < tiles; tile++)
#pragma unroll
                for (unsigned i = 0; i < TILE; i++)
                    sum = fmaf(a_tiles[tile][y][i], b_tiles[tile][i][x], sum);

            /* The next step overwrites the tiles: none may write before all have read. */
            __syncthreads();
        }
        mm_store_c_guarded(product, blockIdx.y * TILE + y, blockIdx.x * TILE + x, sum);
    }
};

} // namespace

enum mm_status mm_cuda_tiled_wide(const struct mm_product *product, struct mm_plan *plan,
                                  struct mm_error *error) {
    const enum mm_status status = mm_cuda_plan_by<tiled_wide>(product, plan, error);
    plan->layout.dynamic_shared_bytes = 2 * TILES * TILE * TILE * sizeof(float);
    return status;
}
