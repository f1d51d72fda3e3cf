/* tiled_8, tiled_16, tiled_32: shared memory. Neighbouring elements of C need the same rows of A and
 * columns of B, and in `naive` each thread fetches them for itself. Here the TILE×TILE threads of a
 * block, which compute a TILE×TILE square of C, walk along k together: they fetch a tile of op(A) and a
 * tile of op(B), one element of each a thread, keep both on the chip, and use every fetched element
 * TILE times. Global reads fall to 1/TILE, and all are coalesced, of transposed operands too.
 *
 * It costs 2·TILE²·4 bytes of shared memory a block (512 bytes, 2 KiB, 8 KiB), two barriers for every
 * TILE of k, and for each multiplication a shared read of B and, the compiler fetching four at a time,
 * a quarter of one of A: no longer global memory but those reads set the pace. At 32 a block has 1024
 * threads; a multiprocessor holds one or two such blocks, and at a barrier much of it waits. At 8 it is
 * slower than `naive` on an H200 at 1024³ (0.44 against 0.36 ms): there a block of `naive`, as tall and four
 * times as wide, finds most of what it asks for in the L1 cache, and asks the L2 for less (16.7 million
 * sectors against 26.2 million).
 *
 * The idea is the shared memory example of NVIDIA's CUDA C++ Programming Guide. */
#include "gpu/cuda/kernel.cuh"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/walk.cuh"

namespace {

/* Puts a thread's element into the tile of op(X), which a transposed X is turned for. That one write then
 * goes down a column of the tile, TILE words from thread to thread: at 32 a warp's words all lie in one bank
 * and are written one after the other (at 16 each bank in use has eight of them, at 8 two). A tile of B that
 * was kept as stored would meet that conflict at each of TILE reads a step instead of at one write. A's would
 * not, but one rule for both leaves one inner loop for all. */
template <unsigned TILE, bool TRANSPOSE> __device__ void put(float (&tile)[TILE][TILE], float element) {
    if (TRANSPOSE)
        tile[threadIdx.x][threadIdx.y] = element;
    else
        tile[threadIdx.y][threadIdx.x] = element;
}

template <unsigned TILE> struct tiled : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[TILE][TILE];
        __shared__ float b_tile[TILE][TILE];
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;

        mm_walk<TILE, !TRANSPOSE_A> a(product.a, first_row);
        mm_walk<TILE, TRANSPOSE_B> b(product.b, first_col);

        /* Threads past the edge of C stay: they fetch for the others, and all must meet at the barriers.
         * step cannot wrap: k is below 2³¹. */
        float sum = 0.0f;
        for (unsigned step = 0; step < product.k; step += TILE) {
            put<TILE, TRANSPOSE_A>(a_tile, a.take(step));
            put<TILE, TRANSPOSE_B>(b_tile, b.take(step));

            /* Each thread reads what others wrote: no one starts before all have written. */
            __syncthreads();

            /* A warp's threads share a row of C (two rows at 16, four at 8), so that they read one word
             * of a_tile together and neighbouring words of b_tile: no bank is asked for two words. Past k
             * both tiles hold 0, so nothing is added there, whatever NaN or Inf stands elsewhere; past m
             * or n the zeros only meet sums that are never stored. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = fmaf(a_tile[threadIdx.y][i], b_tile[i][threadIdx.x], sum);

            /* The next step overwrites the tiles: no one goes on before all have read. */
            __syncthreads();
        }

        const unsigned row = first_row + threadIdx.y;
        const unsigned col = first_col + threadIdx.x;
        if (row < product.m && col < product.n)
            static_cast<float *>(product.c.data)[row * product.c.ld + col] = sum;
    }
};

} // namespace

enum mm_status mm_cuda_tiled_8(const struct mm_product *product, struct mm_lane *lane,
                               struct mm_error *error) {
    return mm_cuda_launch_by<tiled<8>>(product, lane, error);
}

enum mm_status mm_cuda_tiled_16(const struct mm_product *product, struct mm_lane *lane,
                                struct mm_error *error) {
    return mm_cuda_launch_by<tiled<16>>(product, lane, error);
}

enum mm_status mm_cuda_tiled_32(const struct mm_product *product, struct mm_lane *lane,
                                struct mm_error *error) {
    return mm_cuda_launch_by<tiled<32>>(product, lane, error);
}
