/* transpose shared and padded: through a tile in shared memory. A block loads a 32×32 square of A row by row,
 * and stores it row by row of C. So both matrices are accessed along their rows, 128 bytes of a warp at a
 * time (32, 64 or 256 bytes if elements have 1, 2 or 8). The access across the rows happens in shared memory,
 * which has no lines to waste: that is the gain over `naive`.
 *
 * Loads: a block has 32×8 threads and moves 8 rows of the tile at a time, so each thread moves four elements.
 * They share the cost of its indices and its wait at the barrier. In each round thread (x, y) loads row y,
 * column x of the square of A, and stores row y, column x of the square of C.
 *
 * Banks: word w of shared memory lies in bank w mod 32, and a bank serves one word at a time. In `shared` the
 * rows of the tile have 32 words, so a column lies in one bank, and a warp that reads down a column gets its
 * words one after the other (32-way; 8-way or 16-way if elements have 1 or 2 bytes, twice 16-way if 8). In
 * `padded` they have 33: a column's 32 words lie in 32 banks, and a warp reads them at once. (Elements of 8
 * bytes go by half warps: with rows of 66 words, 16 elements fill the 32 banks. Of elements of 1 or 2 bytes,
 * two words of a column may share a bank.) That is the only difference.
 *
 * Edges: a thread neither loads nor stores outside its matrix. The square of C has the elements of the square
 * of A, so no word of the tile is read that was not written. For C of 100×50, 2×4 blocks cover 128×64.
 *
 * Launch: ⌈n/32⌉×⌈m/32⌉ blocks for a C of m×n.
 *
 * Cost: a barrier and 4 KiB of shared memory for float32, with 128 bytes of padding in it. Measured on
 * an H200, of the speed of a copy at 16384² float32: `naive` 12%, `shared` 42%, `padded` 88%.
 *
 * Source: the second and third step of NVIDIA's "An Efficient Matrix Transpose in CUDA C/C++". */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

constexpr unsigned TILE = 32;
constexpr unsigned STEP = 8; /* rows of threads, so rows of the tile that are moved at a time */

template <unsigned PADDING> struct by_tile {
    static constexpr unsigned ROWS = TILE;
    static constexpr unsigned COLS = TILE;
    static constexpr unsigned THREADS_X = TILE;
    static constexpr unsigned THREADS_Y = STEP;

    template <typename ELEMENT> static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ ELEMENT tile[TILE][TILE + PADDING]; /* as A is stored */
        const ELEMENT *a = static_cast<const ELEMENT *>(product.a.data);
        ELEMENT *c = static_cast<ELEMENT *>(product.c.data);
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;
        const unsigned x = threadIdx.x;

        /* Neighbouring threads load along a row of A, which is a column of C. */
#pragma unroll
        for (unsigned step = 0; step < TILE; step += STEP) {
            const unsigned y = step + threadIdx.y;
            if (first_col + y < product.n && first_row + x < product.m)
                tile[y][x] = a[(first_col + y) * product.a.ld + first_row + x];
        }

        /* Each thread reads what others staged: none may read before all have written. */
        __syncthreads();

        /* Neighbouring threads store along a row of C, so they read down a column of the tile: words that lie
         * 32 and the padding apart. */
#pragma unroll
        for (unsigned step = 0; step < TILE; step += STEP) {
            const unsigned y = step + threadIdx.y;
            if (first_row + y < product.m && first_col + x < product.n)
                c[(first_row + y) * product.c.ld + first_col + x] = tile[x][y];
        }
    }
};

} // namespace

enum mm_status mm_cuda_transpose_shared(const struct mm_product *product, struct mm_plan *plan,
                                        struct mm_error *error) {
    return mm_cuda_plan_transpose_by<by_tile<0>>(product, plan, error);
}

enum mm_status mm_cuda_transpose_padded(const struct mm_product *product, struct mm_plan *plan,
                                        struct mm_error *error) {
    return mm_cuda_plan_transpose_by<by_tile<1>>(product, plan, error);
}
