/* tiled_padded, tiled_conflicted: what the banks of shared memory cost. Word w of shared memory lies in bank
 * w mod 32, and a bank serves one word at a time. The two variants differ in one number, the length of
 * b_tile's rows:
 *
 *                   rows of 32 words (tiled_conflicted)     rows of 33 words (tiled_padded)
 *        row 0      bank  0  1  2 ... 31                    bank  0  1  2 ... 31  0
 *        row 1      bank  0  1  2 ... 31                    bank  1  2  3 ...  0  1
 *        row 2      bank  0  1  2 ... 31                    bank  2  3  4 ...  1  2
 *
 * Both tiles stay as their matrices are stored. If B is transposed, the 32 threads of a warp read a column of
 * b_tile. With rows of 32 words the column lies in one bank, and its words come one after the other, at each
 * of 32 reads a step. With rows of 33 they lie in 32 banks and come at once. If B is not transposed, the warp
 * reads along a row, and both variants are equally fast. a_tile needs no padding: all threads of a warp read
 * one word of it, however it is stored.
 *
 * Cost: as `tiled_32` (tiled.cu), two barriers a step and 8 KiB of shared memory; the padding takes 128 bytes
 * more. Measured on an H200 at 4096³ with B transposed: tiled_padded 15.4 ms, tiled_conflicted 271 ms, and
 * `tiled_32` 22.8 ms. `tiled_32` turns B on the way in, and meets the conflict at one write a step. With B as
 * it is all three take 15.5 ms.
 *
 * Source: padding a tile is the remedy of NVIDIA's CUDA C++ Best Practices Guide. */
#include "gpu/cuda/variants/walk.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned TILE = 32;

template <unsigned PADDING> struct tiled_as_stored : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ float a_tile[TILE][TILE];
        __shared__ float b_tile[TILE][TILE + PADDING];
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        auto a = mm_walk_a<TILE, TRANSPOSE_A>(product);
        auto b = mm_walk_b<TILE, TRANSPOSE_B>(product);

        float sum = 0.0f;
        for (unsigned first_k = 0; first_k < product.k; first_k += TILE) {
            /* A warp writes along a row: no bank gets two words, with padding or without. */
            a.copy(&a_tile[y][x], first_k);
            b.copy(&b_tile[y][x], first_k);

            /* Each thread reads what others wrote: none may read before all have written. */
            __syncthreads();

            /* The threads of a warp share y, and x is 0 to 31: b_tile[x][i] is a column. It is volatile
             * because the compiler would read four words at once from rows without padding, which makes an
             * 8-way conflict of the 32-way one. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++) {
                const float a_word = TRANSPOSE_A ? a_tile[i][y] : a_tile[y][i];
                const volatile float &b_word = TRANSPOSE_B ? b_tile[x][i] : b_tile[i][x];
                sum = fmaf(a_word, b_word, sum);
            }

            /* The next step overwrites the tiles: none may write before all have read. */
            __syncthreads();
        }
        mm_store_c_guarded(product, blockIdx.y * TILE + y, blockIdx.x * TILE + x, sum);
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
