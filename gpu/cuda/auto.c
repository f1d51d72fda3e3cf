/* How `auto` chooses: by crossovers measured on an H200, of our own kernels alone unless the caller allows
 * the vendor's library. Those between products by tensor cores, without them and by tiles stand in
 * crossovers.h, which `./dev bench crossovers` writes; the others are in microseconds below (median kernel
 * times of `kernels --time`). Transpositions were over 22 shapes from 384×384 to 4097×4096. It launches
 * nothing. */
#include "gpu/backend.h"
#include "gpu/cuda/crossovers.h"
#include "gpu/cuda/variants.h"

static size_t blocks_of(size_t length, size_t tile) {
    return (length + tile - 1) / tile;
}

static size_t narrow_of(const struct mm_product *product) {
    return product->m < product->n ? product->m : product->n;
}

static size_t wide_of(const struct mm_product *product) {
    return product->m > product->n ? product->m : product->n;
}

/* The entries stand in the order of both their edges. */
static bool is_for_tensor_cores(const struct mm_device *device, const struct mm_product *product) {
    const size_t count = sizeof mm_cuda_crossovers / sizeof mm_cuda_crossovers[0];
    size_t index = 0;
    if (mm_cuda_fp32_tensor_missing(device) != NULL)
        return false;
    while (index < count && (narrow_of(product) > mm_cuda_crossovers[index].narrow ||
                             product->k > mm_cuda_crossovers[index].depth))
        index++;
    return index < count && mm_cuda_crossovers[index].wide != 0 &&
           wide_of(product) >= mm_cuda_crossovers[index].wide;
}

/* simt chooses its blocks by the shape itself. Below, tiles are as fast, and go together with others at less
 * cost; but a block of a tile goes through all of k, of which 240 take it 13 µs (228×240 · 240×112). */
static bool is_for_tiles(const struct mm_product *product) {
    enum { DEPTH_MAX = 512 };
    const double edge = MM_CUDA_SIMT_EDGE;
    return product->k <= DEPTH_MAX &&
           (double)product->m * (double)product->n * (double)product->k < edge * edge * edge;
}

/* Among tiles, tiled_16 where not much else can be said: its blocks are four times as many as those of 32.
 * With one block of 32 a multiprocessor at most, none hides another's waits for memory, and asynchronous
 * copies pay (14.5 against 16.3 at 256³), but they turn no operand well. */
static unsigned choose_tiles(const struct mm_device *device, const struct mm_product *product) {
    const size_t blocks_of_32 = blocks_of(product->m, 32) * blocks_of(product->n, 32);
    const bool is_turned = product->transpose_a || product->transpose_b;
    if (narrow_of(product) >= 32 && blocks_of_32 <= device->multiprocessors && product->k >= 128 &&
        !is_turned && mm_cuda_async_missing(device) == NULL)
        return MM_CUDA_ROW_tiled_async;
    return MM_CUDA_ROW_tiled_16;
}

/* cuBLAS leads on simt by up to 5% where the whole chip is busy for long (2.70 against 2.83 ms at 4096³, but
 * 0.122 against 0.110 at 4096×128 · 128×4096, and 0.151 against 0.071 at 16×8192 · 8192×8192). */
static bool is_for_vendor(const struct mm_device *device, const struct mm_product *product) {
    enum { ELEMENTS_PER_MULTIPROCESSOR_MIN = 16384, EDGE_MIN = 512 };
    const size_t least = (size_t)ELEMENTS_PER_MULTIPROCESSOR_MIN * device->multiprocessors;
    return product->allow_vendor && narrow_of(product) >= EDGE_MIN && product->k >= EDGE_MIN &&
           product->m * product->n >= least && mm_cuda_blas_missing(device) == NULL;
}

const struct mm_variant *mm_cuda_choose(const struct mm_device *device, const struct mm_product *product) {
    unsigned row = MM_CUDA_ROW_simt;
    if (is_for_tensor_cores(device, product))
        row = MM_CUDA_ROW_fp32_tensor;
    else if (is_for_vendor(device, product))
        row = MM_CUDA_ROW_blas;
    else if (is_for_tiles(product))
        row = choose_tiles(device, product);
    return &mm_cuda_variants[row];
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
