/* transpose shared: through a tile in shared memory. A block reads a 32×32 square of A row by row, and writes
 * it row by row of C, so that both matrices are walked along their rows, a warp's 128 bytes (256, of
 * elements of 8) at a time. What is left of the walk across happens in shared memory, which has no lines to
 * waste. That is where its gain over `naive` comes from.
 *
 * It costs a barrier, 4 or 8 KiB of shared memory, and a conflict: a warp that reads down a column of the
 * tile asks one bank for all of its words, which come one after the other (32-way, 16-way twice of elements
 * of 8 bytes). `padded` mends that. A thread moves four elements, so that the cost of its indices, and its
 * wait at the barrier, are shared by them.
 *
 * It is the second step of NVIDIA's "An Efficient Matrix Transpose in CUDA C/C++". */
#include "gpu/cuda/transpose_tile.cuh"

enum mm_status mm_cuda_transpose_shared(const struct mm_product *product, struct mm_lane *lane,
                                        struct mm_error *error) {
    return mm_cuda_transpose_by<by_tile<0>>(product, lane, error);
}
