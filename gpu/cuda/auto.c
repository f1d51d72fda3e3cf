/* How `auto` chooses: by crossovers measured on an H200, of our own kernels alone unless the caller allows
 * the vendor's library. Products over 33 shapes from 4×4×4 to 4096×4096×4096, long, skinny and flat ones
 * among them, transpositions over 22 from 384×384 to 4097×4096 (median kernel times of `kernels --time`,
 * microseconds below). It launches nothing. */
#include "gpu/backend.h"
#include "gpu/cuda/variants.h"

/* The least that warp_tiled leaves of its lead where its squares of 128 stand half empty or leave
 * multiprocessors idle: 67 against 79 µs at 640³, 387 against 534 at 128×4096×4096; 55 against 40 at 512³. */
enum { ELEMENTS_PER_MULTIPROCESSOR_MIN = 2500 };

static size_t blocks_of(size_t length, size_t tile) {
    return (length + tile - 1) / tile;
}

static size_t narrow_of(const struct mm_product *product) {
    return product->m < product->n ? product->m : product->n;
}

/* Among tiles, tiled_16 where not much else can be said: its blocks are four times as many as those of 32.
 * Once there are about as many blocks of 32 as the chip holds at one time, two a multiprocessor, their fewer
 * global reads win (40 against 48 at 512³); as tiled_padded's they are not slowed by an operand that is
 * stored transposed (41 against 55 there). With one a multiprocessor at most, none hides another's waits for
 * memory, and asynchronous copies pay (14.5 against 16.3 at 256³, 2,150 against 2,730 at 64×65536×64), but
 * they turn no operand well. */
static unsigned choose_tiles(const struct mm_device *device, const struct mm_product *product) {
    const size_t blocks_of_32 = blocks_of(product->m, 32) * blocks_of(product->n, 32);
    const bool is_turned = product->transpose_a || product->transpose_b;
    if (narrow_of(product) < 32)
        return MM_CUDA_ROW_tiled_16;
    if (10 * blocks_of_32 >= 18 * (size_t)device->multiprocessors)
        return MM_CUDA_ROW_tiled_padded;
    if (blocks_of_32 <= device->multiprocessors && product->k >= 128 && !is_turned &&
        mm_cuda_async_missing(device) == NULL)
        return MM_CUDA_ROW_tiled_async;
    return MM_CUDA_ROW_tiled_16;
}

/* Whether cuBLAS computes a product whose caller allows it: where warp_tiled would. There it has smaller
 * blocks for what does not fill the chip (63 against 101 µs at 1024³), and keeps a lead where all of it is
 * busy (2,690 against 2,930 at 4096³). */
static bool is_for_vendor(const struct mm_device *device, const struct mm_product *product, bool is_large) {
    return product->allow_vendor && is_large && mm_cuda_blas_missing(device) == NULL;
}

/* warp_tiled computes about five times as fast as a tile, so that it wins though three quarters of its
 * squares are outside a C of 32 rows; not with 16 (164 against 96 at 1000000×16×16). */
const struct mm_variant *mm_cuda_choose(const struct mm_device *device, const struct mm_product *product) {
    const size_t least = (size_t)ELEMENTS_PER_MULTIPROCESSOR_MIN * device->multiprocessors;
    const bool is_large = narrow_of(product) >= 32 && product->m * product->n >= least;
    if (is_for_vendor(device, product, is_large))
        return &mm_cuda_variants[MM_CUDA_ROW_blas];
    return &mm_cuda_variants[is_large ? MM_CUDA_ROW_warp_tiled : choose_tiles(device, product)];
}

/* Rows that begin at multiples of 16 bytes. */
static bool is_wide(const struct mm_matrix *x) {
    return x->ld * mm_dtype_bytes(x->dtype) % 16 == 0;
}

/* padded was the fastest or within 1% of it (of 8-byte elements at 4095×4097 once 7%), but for elements of 4
 * bytes in large matrices whose rows can be accessed by 16 bytes: there vectorized has more bytes under way
 * at a time (15.8 against 16.4 at 2048×2048, 523 against 576 at 16384×16384; but 14.4 against 12.7 at
 * 1537×1537). */
const struct mm_variant *mm_cuda_choose_transpose(const struct mm_device *device,
                                                  const struct mm_product *product) {
    const size_t tiles_of_64 = blocks_of(product->m, 64) * blocks_of(product->n, 64);
    const bool is_large = narrow_of(product) >= 32 && tiles_of_64 >= 4 * (size_t)device->multiprocessors;
    const bool suits = mm_dtype_bytes(product->a.dtype) == 4 && is_wide(&product->a) && is_wide(&product->c);
    return &mm_cuda_variants[is_large && suits ? MM_CUDA_ROW_transpose_vectorized
                                               : MM_CUDA_ROW_transpose_padded];
}
