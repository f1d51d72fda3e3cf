/* transpose padded: `shared` with rows of the tile padded by one element, to 32×33. Word w of shared memory
 * lies in bank w mod 32, and a bank serves one word at a time. With rows of 32 words a column of the tile
 * lies in one bank; with rows of 33 its 32 words lie in 32 banks, and a warp has them at once. (Elements of 8
 * bytes go by half warps: with rows of 66 words, 16 of them fill the 32 banks.) That is the whole difference:
 * what `shared` waits for its reads of the tile is gone. The padding costs 128 or 256 bytes a block.
 *
 * It is the third step of NVIDIA's "An Efficient Matrix Transpose in CUDA C/C++". */
#include "gpu/cuda/transpose_tile.cuh"

enum mm_status mm_cuda_transpose_padded(const struct mm_product *product, struct mm_lane *lane,
                                        struct mm_error *error) {
    return mm_cuda_transpose_by<by_tile<1>>(product, lane, error);
}
