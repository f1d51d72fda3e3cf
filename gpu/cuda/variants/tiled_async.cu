/* tiled_async: `tiled_32` with two stages. In `tiled` a step first waits for its loads and then multiplies,
 * and only other blocks can fill that wait. Here shared memory holds every tile twice, as stage 0 and stage
 * 1. While the block multiplies one stage, asynchronous copies (cp.async) load the next tiles into the other.
 * They write to shared memory directly, without a register in between.
 *
 *        copy      tiles 0 -> stage 0 | 1 -> stage 1 | 2 -> stage 0 | 3 -> stage 1 | ...
 *        multiply                     | 0, stage 0   | 1, stage 1   | 2, stage 0   | ...
 *                                     ^ a barrier, the only one of each step
 *
 * Loads: as in `tiled`, each thread copies row y, column x of each tile, as stored: 4 bytes a copy. So any
 * shape, stride and alignment will do, and a copy can turn the tile of a transposed operand, with the bank
 * conflict of `tiled_32`.
 *
 * Edges: as in `tiled`. A copy of 0 bytes loads nothing and fills its word with zeros.
 *
 * Launch: ⌈n/32⌉×⌈m/32⌉ blocks of 32×32 threads, on compute capability 8.0 or higher.
 *
 * Cost: one barrier a step instead of two, and 16 KiB of shared memory a block instead of 8. It is faster if
 * nothing else fills the wait: on an H200 by a sixth (0.0122 and 0.0147 ms) for 228×240 · 240×112, a product
 * of so few blocks that a multiprocessor has at most one. With two blocks, one computes while the other
 * waits, and it is no faster: 15.5 ms at 4096³, as `tiled_32`. Both read shared memory equally often, and
 * these reads set the pace.
 *
 * Source: the PTX ISA describes the instruction, the CUDA C++ Programming Guide its use for tiles. */
#include "gpu/device/backend.h"
#include "gpu/cuda/variants/async.cuh"
#include "gpu/cuda/variants/walk.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned TILE = 32;

struct tiled_async : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[2][TILE][TILE];
        __shared__ float b_tile[2][TILE][TILE];
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        auto a = mm_walk_a<TILE, TRANSPOSE_A>(product);
        auto b = mm_walk_b<TILE, TRANSPOSE_B>(product);

        /* Begins to copy the next tile of A and of B, whose first k is `step`. */
        const auto copy = [&](unsigned stage, unsigned step) {
            mm_copy_async<1>(mm_slot<TRANSPOSE_A>(a_tile[stage]), a.element, step < a.k_left ? 1 : 0);
            a.element += a.stride;
            mm_copy_async<1>(mm_slot<TRANSPOSE_B>(b_tile[stage]), b.element, step < b.k_left ? 1 : 0);
            b.element += b.stride;
        };

        if (product.k > 0)
            copy(0, 0);
        float sum = 0.0f;
        unsigned stage = 0; /* the one that is multiplied */
        for (unsigned step = 0; step < product.k; step += TILE, stage ^= 1) {
            /* One barrier for two reasons. Each thread has waited for its own copies, so past the barrier the
             * tiles of this step are complete. And all threads have read the tiles of the step before, so the
             * copies below may overwrite them. */
            mm_wait_copies();
            __syncthreads();
            if (step + TILE < product.k)
                copy(stage ^ 1, step + TILE);

                /* Past k both tiles hold 0, so nothing is added there. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = fmaf(a_tile[stage][y][i], b_tile[stage][i][x], sum);
        }

        mm_store_c_guarded(product, blockIdx.y * TILE + y, blockIdx.x * TILE + x, sum);
    }
};

} // namespace

const char *mm_cuda_async_missing(const struct mm_device *device) {
    return device->compute_capability >= 80 ? NULL
                                            : "asynchronous copies need compute capability 8.0 or higher";
}

enum mm_status mm_cuda_tiled_async(const struct mm_product *product, struct mm_plan *plan,
                                   struct mm_error *error) {
    return mm_cuda_plan_by<tiled_async>(product, plan, error);
}
