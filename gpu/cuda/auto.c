/* How `auto` chooses: by crossovers measured on an H200 over the shapes from 4×4×4 to 4096×4096×4096,
 * long, skinny and flat ones among them (median kernel time of `kernels --time`), of our own kernels
 * alone; for transpositions see below. It launches nothing. */
#include "gpu/backend.h"
#include "gpu/cuda/variants.h"

static size_t blocks_of(size_t length, size_t tile) {
    return (length + tile - 1) / tile;
}

/* tiled_16 was the fastest or within 3% of it everywhere but at the two ends. Where C fits into one tile
 * of 8, fewer threads have less to wait for (4.7 against 5.0 µs). And once there are about as many
 * blocks of 32 as the chip holds at one time, two a multiprocessor, their fewer global reads win: 41.7
 * against 48.3 µs at 512³ with 256 blocks, 32 against 25 µs at 384³ with 144. */
const struct mm_variant *mm_cuda_choose(const struct mm_device *device, const struct mm_product *product) {
    const size_t blocks_of_32 = blocks_of(product->m, 32) * blocks_of(product->n, 32);
    const size_t narrow = product->m < product->n ? product->m : product->n;
    if (product->m <= 8 && product->n <= 8)
        return &mm_cuda_variants[MM_CUDA_ROW_tiled_8];
    if (narrow >= 32 && 10 * blocks_of_32 >= 18 * (size_t)device->multiprocessors)
        return &mm_cuda_variants[MM_CUDA_ROW_tiled_32];
    return &mm_cuda_variants[MM_CUDA_ROW_tiled_16];
}

/* Not by figures, but by what the blocks have to do. vectorized has the most bytes under way at a time, once
 * there are tiles for all multiprocessors; with fewer of its 64×64 ones, padded's 32×32 put up to four times
 * as many to work. And of a matrix that is narrower than a tile of 32, vectorized's accesses of 16 bytes get
 * nothing: there its threads take sixteen steps an element each, most past an edge, and padded's four. */
const struct mm_variant *mm_cuda_choose_transpose(const struct mm_device *device,
                                                  const struct mm_product *product) {
    const size_t tiles_of_64 = blocks_of(product->m, 64) * blocks_of(product->n, 64);
    const size_t narrow = product->m < product->n ? product->m : product->n;
    if (narrow < 32 || tiles_of_64 < device->multiprocessors)
        return &mm_cuda_variants[MM_CUDA_ROW_transpose_padded];
    return &mm_cuda_variants[MM_CUDA_ROW_transpose_vectorized];
}
