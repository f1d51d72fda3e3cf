/* How `auto` chooses. A plain rule for now, of our own kernels only; measured crossovers are to take
 * its place. */
#include "gpu/backend.h"
#include "gpu/cuda/variants.h"

static size_t blocks_of(size_t length, size_t tile) {
    return (length + tile - 1) / tile;
}

/* A larger tile reads global memory less often, but makes fewer and larger blocks: it pays once every
 * multiprocessor has two of them to run by turns. Where C is narrower than the smallest tile, most of
 * a tile would be padding. */
const struct mm_variant *mm_cuda_choose(const struct mm_device *device, const struct mm_product *product) {
    static const unsigned rows[] = {MM_CUDA_ROW_tiled_32, MM_CUDA_ROW_tiled_16};
    const size_t narrow = product->m < product->n ? product->m : product->n;
    if (narrow < mm_cuda_variants[MM_CUDA_ROW_tiled_8].tile)
        return &mm_cuda_variants[MM_CUDA_ROW_naive];
    for (size_t index = 0; index < sizeof rows / sizeof rows[0]; index++) {
        const struct mm_variant *variant = &mm_cuda_variants[rows[index]];
        const size_t blocks = blocks_of(product->m, variant->tile) * blocks_of(product->n, variant->tile);
        if (narrow >= variant->tile && blocks >= 2 * (size_t)device->multiprocessors)
            return variant;
    }
    return &mm_cuda_variants[MM_CUDA_ROW_tiled_8];
}
