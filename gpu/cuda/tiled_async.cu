/* tiled_async: the next tiles arrive while these are used. In `tiled_32` a step first waits for global
 * memory and then computes, and only other blocks fill the wait. Here each tile exists twice: while the
 * block multiplies one pair, asynchronous copies (cp.async) bring the next pair into the other, and pass
 * by the registers on their way.
 *
 * It is faster where the wait for global memory is what is left to hide: on an H200 by a sixth for products
 * of so few blocks that a multiprocessor has one at most (228×240 · 240×112). With two, of which one computes
 * while the other waits, it is no faster (15.5 ms at 4096³, as `tiled_32`), though it has one barrier a step
 * in place of two: the reads of shared memory are the same, and set the pace. It costs twice the shared
 * memory (16 KiB a block) and compute capability 8.0. The copies are of 4 bytes each, one element of each
 * operand a thread, so that any shape, stride and alignment will do, and a transposed operand can be turned
 * on its way, with the bank conflict of `tiled_32`.
 *
 * The instruction is described in the PTX ISA, its use for tiles in the CUDA C++ Programming Guide. */
#include "gpu/backend.h"
#include "gpu/cuda/async.cuh"
#include "gpu/cuda/kernel.cuh"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/walk.cuh"

namespace {

constexpr unsigned TILE = 32;

/* Begins to copy the tile of op(X) that begins at `step`, and goes on to the next. What lies past an edge of
 * op(X) becomes 0: nothing is read for it. */
template <bool TRANSPOSE, bool ALONG>
__device__ void fetch(float (&tile)[TILE][TILE], mm_walk<TILE, ALONG> &x, unsigned step) {
    mm_copy_async<1>(TRANSPOSE ? &tile[threadIdx.x][threadIdx.y] : &tile[threadIdx.y][threadIdx.x], x.next,
                     step < x.end ? 1 : 0);
    x.next += x.stride;
}

struct tiled_async : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[2][TILE][TILE];
        __shared__ float b_tile[2][TILE][TILE];
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;

        mm_walk<TILE, !TRANSPOSE_A> a(product.a, first_row);
        mm_walk<TILE, TRANSPOSE_B> b(product.b, first_col);

        if (product.k > 0) {
            fetch<TRANSPOSE_A>(a_tile[0], a, 0);
            fetch<TRANSPOSE_B>(b_tile[0], b, 0);
        }
        float sum = 0.0f;
        unsigned now = 0;
        for (unsigned step = 0; step < product.k; step += TILE, now ^= 1) {
            /* One barrier for two reasons. Each thread has waited for its own copies, so past it all of this
             * step's tiles are there. And all have left the step before, so its tiles may be overwritten. */
            mm_wait_copies();
            __syncthreads();
            if (step + TILE < product.k) {
                fetch<TRANSPOSE_A>(a_tile[now ^ 1], a, step + TILE);
                fetch<TRANSPOSE_B>(b_tile[now ^ 1], b, step + TILE);
            }

            /* Past k both tiles hold 0, and nothing is added there. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = fmaf(a_tile[now][threadIdx.y][i], b_tile[now][i][threadIdx.x], sum);
        }

        const unsigned row = first_row + threadIdx.y;
        const unsigned col = first_col + threadIdx.x;
        if (row < product.m && col < product.n)
            static_cast<float *>(product.c.data)[row * product.c.ld + col] = sum;
    }
};

} // namespace

const char *mm_cuda_async_missing(const struct mm_device *device) {
    return device->compute_capability >= 80 ? NULL
                                            : "asynchronous copies need compute capability 8.0 or higher";
}

enum mm_status mm_cuda_tiled_async(const struct mm_product *product, struct mm_lane *lane,
                                   struct mm_error *error) {
    return mm_cuda_launch_by<tiled_async>(product, lane, error);
}
