/* tiled_padded, tiled_conflicted: what the banks of shared memory cost. Word w of shared memory lies in bank
 * w mod 32, and a bank serves one word at a time. These two differ in one number, the length of b_tile's
 * rows:
 *
 *                   rows of 32 words (tiled_conflicted)     rows of 33 words (tiled_padded)
 *        row 0      bank  0  1  2 ... 31                    bank  0  1  2 ... 31  0
 *        row 1      bank  0  1  2 ... 31                    bank  1  2  3 ...  0  1
 *        row 2      bank  0  1  2 ... 31                    bank  2  3  4 ...  1  2
 *
 * Loads: as in `tiled`, but both tiles stay as their matrices are stored. The 32 threads of a warp read 32
 * neighbouring columns of op(B). If B is transposed, these are one column of b_tile. With rows of 32 words
 * the column lies in one bank, and its words come one after the other, at each of 32 reads a step. With rows
 * of 33 they lie in 32 banks and come at once. If B is not transposed, the warp reads along a row, and both
 * variants are equally fast. a_tile needs no padding: all threads of a warp read the same word of it, however
 * it is stored.
 *
 * Edges and launch: as in `tiled`, with ⌈n/32⌉×⌈m/32⌉ blocks of 32×32 threads.
 *
 * Cost: as `tiled_32`, two barriers a step and 8 KiB of shared memory; the padding takes 128 bytes more.
 * Measured on an H200 at 4096³ with B transposed: tiled_padded 15.4 ms, tiled_conflicted 271 ms, and
 * `tiled_32` 22.8 ms. That one turns B on the way in, and meets the conflict at one write a step. With B as
 * it is all three take 15.5 ms.
 *
 * Source: padding a tile is the remedy of NVIDIA's CUDA C++ Best Practices Guide. */
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

template <unsigned PADDING> struct tiled_as_stored : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[TILE][TILE];
        __shared__ float b_tile[TILE][TILE + PADDING];
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

        float sum = 0.0f;
        for (unsigned step = 0; step < product.k; step += TILE) {
            /* A warp writes along a row: no bank gets two words, with padding or without. */
            a_tile[y][x] = a_left > step ? *a : 0.0f;
            a += a_stride;
            b_tile[y][x] = b_left > step ? *b : 0.0f;
            b += b_stride;

            /* Each thread reads what others staged: none may read before all have written. */
            __syncthreads();

            /* The threads of a warp share y, and x is 0 to 31: b_tile[x][i] is a column. It is volatile
             * because the compiler would read four words at once from rows without padding, which makes an
             * 8-way conflict of the 32-way one. Past k both tiles hold 0, so nothing is added there. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++) {
                const float a_word = TRANSPOSE_A ? a_tile[i][y] : a_tile[y][i];
                const volatile float &b_word = TRANSPOSE_B ? b_tile[x][i] : b_tile[i][x];
                sum = fmaf(a_word, b_word, sum);
            }

            /* The next step overwrites the tiles: none may write before all have read. */
            __syncthreads();
        }

        mm_store_c_guarded(product, first_row + y, first_col + x, sum);
    }
};

} // namespace

enum mm_status mm_cuda_tiled_padded(const struct mm_product *product, struct mm_plan *plan,
                                    struct mm_error *error) {
    return mm_cuda_plan_by<tiled_as_stored<1>>(product, plan, error);
}

enum mm_status mm_cuda_tiled_conflicted(const struct mm_product *product, struct mm_plan *plan,
                                        struct mm_error *error) {
    return mm_cuda_plan_by<tiled_as_stored<0>>(product, plan, error);
}
