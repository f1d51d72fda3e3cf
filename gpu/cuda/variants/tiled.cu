/* tiled_8, tiled_16, tiled_32: tiles of A and B in shared memory.
 *
 * In `naive` (naive.cu) each thread loads a row of A and a column of B from global memory, though its
 * neighbours load the same ones. Here the threads of a block load them together. A block computes a TILE×TILE
 * square of C, one element a thread. It goes along k in steps: first_k is 0, TILE, 2·TILE and so on. At each
 * step it copies one tile of A and one of B to shared memory. Then each thread multiplies a row of the first
 * by a column of the second. Every loaded element is used TILE times, so threads issue 1/TILE of the loads.
 *
 *                                          n
 *                                +-------+-------+-----+
 *                                |       |   ↓   |     |
 *                      first_k → |       +-------+     | B
 *                              k |       |b_tile |     |
 *                                |       +-------+     |
 *                 k              |       |       |     |
 *        +-----------------+     +-------+-------+-----+
 *        |                 |     | (0,0) | (1,0) |(2,0)| C, a block (blockIdx.x, blockIdx.y) for each square
 *        +-----+------+----+     +-------+-------+-----+ ← first row of block (1,1)
 *     m  |  →  |a_tile|    |     | (0,1) | (1,1) |(2,1)|
 *        +-----+------+----+     +-------+-------+-----+
 *      A |     ↑ first_k   |     | (0,2) | (1,2) |(2,2)|
 *        +-----------------+     +-------+-------+-----+
 *                                        ↑ first column of block (1,1)
 *
 * Loads: all matrices are row-major. Thread (x, y) of a block loads row y, column x of each tile as stored.
 * The 32 threads of a warp run together, and at TILE 32 they are one row of the block: x is 0 to 31, y is one
 * number. So a warp loads 32 successive elements of a row (two rows of 16 at TILE 16, four of 8 at TILE 8),
 * which the chip fetches together. walk.cuh finds the element, also if an operand is stored transposed.
 *
 * Edges: for m = n = k = 100 and TILE 32, 4×4 blocks cover 128×128 of C, and the steps at 0, 32, 64 and 96
 * cover 128 of k. A thread whose element lies past an edge loads nothing and stores 0 in the tile. A thread
 * whose element of C lies past an edge does not store it. But it must not return early: it may still load for
 * others, and a barrier waits for all threads that have not ended. If k is 0 there is no step: C becomes 0.
 *
 * Launch: ⌈n/TILE⌉×⌈m/TILE⌉ blocks of TILE×TILE threads. kernel.cuh makes the __global__ functions around
 * `run`, for one product and for a batch.
 *
 * Cost: 2·TILE²·4 bytes of shared memory a block (512 bytes, 2 KiB, 8 KiB; the latter two twice that for sums
 * of 8 bytes) and two barriers a step. Each multiplication reads one word of b_tile and one of a_tile; the
 * compiler joins the reads of a_tile for four successive i into one. Now these reads of shared memory take
 * longest, not the global loads. At TILE 32 a block has 1024 threads. A multiprocessor of an H200 runs 2048,
 * so it has at most two blocks: while the warps of one wait at a barrier, only the other can fill the gap.
 *
 * Measured on an H200 at 1024³: tiled_8 0.439 ms, tiled_16 0.280 ms, tiled_32 0.250 ms, `naive` 0.366 ms.
 * tiled_8 issues fewer loads than `naive` but is slower. The 32×8 threads of a block of `naive` find most of
 * theirs in the L1 cache: 16.7 million sectors of 32 bytes come from the L2 cache, for tiled_8 26.2 million.
 *
 * Source: the shared memory example of NVIDIA's CUDA C++ Programming Guide. */
#include "gpu/cuda/variants/walk.cuh"
#include "gpu/cuda/variants.h"

namespace {

/* For float32 sum_type is float. tiled_16 and tiled_32 take every element type: a thread converts its
 * elements to the type of the sums on their way into shared memory (element.cuh). */
template <unsigned TILE, class ELEMENT> struct tiled : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        using sum_type = typename ELEMENT::sum_type;
        __shared__ sum_type a_tile[TILE][TILE];
        __shared__ sum_type b_tile[TILE][TILE];
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        auto a = mm_walk_a<TILE, TRANSPOSE_A, ELEMENT>(product);
        auto b = mm_walk_b<TILE, TRANSPOSE_B, ELEMENT>(product);

        sum_type sum = 0;
        for (unsigned first_k = 0; first_k < product.k; first_k += TILE) { /* cannot wrap: k is below 2³¹ */
            a.copy(mm_slot<TRANSPOSE_A>(a_tile), first_k);
            b.copy(mm_slot<TRANSPOSE_B>(b_tile), first_k);

            /* Each thread reads what others wrote: none may read before all have written. */
            __syncthreads();

            /* For each i the threads of a row share one word of a_tile and read successive words of b_tile.
             * Past k both tiles hold 0, so 0·0 is added; with a 0 in only one, a NaN or Inf in the other
             * would spoil the sum. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = mm_cuda_multiply_add(a_tile[y][i], b_tile[i][x], sum);

            /* The next step overwrites the tiles: none may write before all have read. */
            __syncthreads();
        }

        /* Converts the sum to C's type and stores it, unless the element lies past an edge of C. */
        mm_store_c_guarded<ELEMENT>(product, blockIdx.y * TILE + y, blockIdx.x * TILE + x, sum);
    }
};

template <class ELEMENT> using tiled_16 = tiled<16, ELEMENT>;
template <class ELEMENT> using tiled_32 = tiled<32, ELEMENT>;

} // namespace

enum mm_status mm_cuda_tiled_8(const struct mm_product *product, struct mm_plan *plan,
                               struct mm_error *error) {
    return mm_cuda_plan_by<tiled<8, mm_cuda_float32>>(product, plan, error);
}

enum mm_status mm_cuda_tiled_16(const struct mm_product *product, struct mm_plan *plan,
                                struct mm_error *error) {
    return mm_cuda_plan_by_dtype<tiled_16>(product, plan, error);
}

enum mm_status mm_cuda_tiled_32(const struct mm_product *product, struct mm_plan *plan,
                                struct mm_error *error) {
    return mm_cuda_plan_by_dtype<tiled_32>(product, plan, error);
}
