/* Chooses a variant if the client asks for `auto`. The choice depends on measured crossovers, which are sizes
 * at which another variant becomes faster. Some crossovers are in crossovers.h. cuBLAS is chosen only if the
 * client allows it. */
#include "gpu/device/backend.h"
#include "gpu/cuda/crossovers.h"
#include "gpu/cuda/variants.h"

/* Crossovers, measured on an H100. A crossover is the edge of a cube. A product of m×n×k counts as the cube
 * with the edge ∛(m·n·k), because both do the same work. */
enum {
    /* From this edge on, `tensor` is faster than the tiled kernels. */
    MM_CUDA_TENSOR_EDGE = 128,

    /* From this edge on, `tensor` is faster for float64 products that could share a launch. `tensor` of
     * float64 cannot share launches. With 32 connections, tiled kernels served four times as many products of
     * up to 192³. */
    MM_CUDA_TENSOR_BATCH_EDGE = 256,

    /* From this edge on, `tensor` is faster even if it must first copy an operand. It copies an operand if
     * the rows do not begin at multiples of 16 bytes, and operands of int32. */
    MM_CUDA_TENSOR_COPY_EDGE = 320,

    /* The smallest k of int32 for `tensor`, because the copies have at least so many elements along k. */
    MM_CUDA_TENSOR_INT32_DEPTH = 32,

    MM_CUDA_TF32_EDGE = 512,

    /* From this edge on, fp64_tensor is faster than `tensor` and cuBLAS, measured on an H200: 1.27 times at
     * 4096³. fp64_tensor loses less time than that if it must leave the product to `tensor`, because the data
     * fail its check. */
    MM_CUDA_MODULI_EDGE = 4096,

    /* The largest k for tiled kernels. In a tiled kernel, one block adds up all k products of an element.
     * This is slow if k is large. */
    MM_CUDA_TILES_DEPTH_MAX = 512
};

static size_t narrow_of(const struct mm_product *product) {
    return mm_size_min(product->m, product->n);
}

/* Returns how many edge×edge tiles cover C. For a stack, returns the sum over all products. */
static size_t blocks_of(const struct mm_product *product, size_t edge) {
    return mm_size_divide_up(product->m, edge) * mm_size_divide_up(product->n, edge) *
           mm_product_count(product);
}

/* Returns the index of the smallest edge that is at least `length`. Returns `count` if no edge is that large.
 * The edges are in ascending order. */
static size_t find_edge(const unsigned *edges, size_t count, size_t length) {
    size_t index = 0;
    while (index < count && length > edges[index])
        index++;
    return index;
}

#define EDGE_OF(edges, length) find_edge(edges, sizeof(edges) / sizeof *(edges), length)

static bool is_for_tensor_cores(const struct mm_device *device, const struct mm_product *product) {
    const size_t row = EDGE_OF(mm_cuda_narrow_edges, narrow_of(product));
    const unsigned wide = mm_cuda_crossovers[row][EDGE_OF(mm_cuda_depth_edges, product->k)];
    return mm_cuda_fp32_tensor_missing(device) == NULL && wide != 0 &&
           mm_size_max(product->m, product->n) >= wide;
}

/* Whether the product is so small that tiled kernels are about as fast as simt. Then tiled kernels are
 * better, because they can share launches. */
static bool is_for_tiles(const struct mm_product *product) {
    const double edge = MM_CUDA_SIMT_EDGE;
    return product->k <= MM_CUDA_TILES_DEPTH_MAX &&
           (double)product->m * (double)product->n * (double)product->k < edge * edge * edge;
}

/* Chooses tiled_async or tiled_16. If C has at most one 32×32 tile for each multiprocessor, a multiprocessor
 * is idle while its only block waits for memory. Then tiled_async is faster, because it overlaps copies with
 * arithmetic. For transposed operands, a short k, or a narrow or larger C, tiled_16 is faster. */
static unsigned choose_tiles(const struct mm_device *device, const struct mm_product *product) {
    const size_t blocks_of_32 = blocks_of(product, 32);
    const bool is_turned = product->transpose_a || product->transpose_b;
    if (narrow_of(product) >= 32 && blocks_of_32 <= device->multiprocessors && product->k >= 128 &&
        !is_turned && mm_cuda_async_missing(device) == NULL)
        return MM_CUDA_ROW_tiled_async;
    return MM_CUDA_ROW_tiled_16;
}

/* Whether cuBLAS is allowed, and the product keeps the whole chip busy for long. For such products, cuBLAS is
 * up to 5% faster than simt. */
static bool is_for_vendor(const struct mm_device *device, const struct mm_product *product) {
    enum { ELEMENTS_PER_MULTIPROCESSOR_MIN = 16384, EDGE_MIN = 512 };
    const size_t least = (size_t)ELEMENTS_PER_MULTIPROCESSOR_MIN * device->multiprocessors;
    return product->allow_vendor && narrow_of(product) >= EDGE_MIN && product->k >= EDGE_MIN &&
           product->m * product->n * mm_product_count(product) >= least &&
           mm_cuda_blas_supports(device, product);
}

/* Whether the row stride is a multiple of 16 bytes, so 16 bytes can be loaded at once. */
static bool is_wide(const struct mm_matrix *x) {
    return x->ld * mm_dtype_bytes(x->dtype) % 16 == 0;
}

/* Whether the variant mm_cuda_variants[row] supports the element type on this device, and the product is
 * large enough. C must have at least `narrow` rows and `narrow` columns. The work of the whole stack must be
 * at least the work of one product of edge×edge×edge. */
static bool is_worth(const struct mm_device *device, const struct mm_product *product, unsigned row,
                     double edge, size_t narrow) {
    const struct mm_variant *variant = &mm_cuda_variants[row];
    const double work = (double)product->m * (double)product->n * (double)product->k;
    return mm_variant_has_dtype(variant, product->a.dtype) &&
           mm_variant_missing(variant, device, product->a.dtype) == NULL && narrow_of(product) >= narrow &&
           work * (double)mm_product_count(product) >= edge * edge * edge;
}

/* Whether a tiled kernel could compute this product in a shared launch (see mm_cuda_batch_key). Ignores the
 * addend and the bias, because `auto` chooses as without an epilogue. */
static bool fits_batch(const struct mm_product *product) {
    return product->stack == NULL &&
           mm_matrix_bytes(&product->a) + mm_matrix_bytes(&product->b) + mm_matrix_bytes(&product->c) <=
               MM_CUDA_BATCH_BYTES_MAX;
}

static bool is_for_own_cores(const struct mm_device *device, const struct mm_product *product) {
    const enum mm_dtype dtype = product->a.dtype;
    const bool is_small = mm_cuda_tensor_is_small(product);
    const bool is_copied =
        dtype == MM_INT32 || (dtype != MM_FLOAT64 && !(is_wide(&product->a) && is_wide(&product->b)));
    double edge = MM_CUDA_TENSOR_EDGE;
    if (dtype == MM_INT32 && product->k < MM_CUDA_TENSOR_INT32_DEPTH)
        return false;
    if (product->k > MM_CUDA_TILES_DEPTH_MAX)
        edge = 0;
    else if (is_copied && !is_small)
        edge = MM_CUDA_TENSOR_COPY_EDGE;
    else if (fits_batch(product) && !is_small && product->k <= MM_CUDA_TENSOR_BATCH_EDGE)
        edge = MM_CUDA_TENSOR_BATCH_EDGE;
    return is_worth(device, product, MM_CUDA_ROW_tensor, edge, product->stack == NULL ? 1 : 32);
}

static bool is_for_tf32(const struct mm_device *device, const struct mm_product *product) {
    return product->allow_tf32 && is_worth(device, product, MM_CUDA_ROW_tf32, MM_CUDA_TF32_EDGE, 128);
}

/* fp64_tensor's passes over A, B and C take a time in proportion to mk + kn + mn, and its product to mnk. The
 * ratio is 1/m + 1/n + 1/k. So a product counts as the cube with the same ratio. */
static bool is_for_moduli(const struct mm_device *device, const struct mm_product *product) {
    const double ratio = 1.0 / (double)product->m + 1.0 / (double)product->n + 1.0 / (double)product->k;
    return is_worth(device, product, MM_CUDA_ROW_fp64_tensor, 0, 1) && MM_CUDA_MODULI_EDGE * ratio <= 3.0;
}

/* Chooses a variant for products in which A or C is not float32. In tests on an H100 with ten types and nine
 * shapes, the function always chose the faster of tiled_16 and tiled_32. */
static unsigned choose_of_other_types(const struct mm_device *device, const struct mm_product *product) {
    if (is_for_moduli(device, product))
        return MM_CUDA_ROW_fp64_tensor;
    if (product->allow_vendor && mm_cuda_blas_supports(device, product))
        return MM_CUDA_ROW_blas;
    if (is_for_own_cores(device, product))
        return MM_CUDA_ROW_tensor;
    return narrow_of(product) < 32 || blocks_of(product, 32) <= device->multiprocessors
               ? MM_CUDA_ROW_tiled_16
               : MM_CUDA_ROW_tiled_32;
}

const struct mm_variant *mm_cuda_choose(const struct mm_device *device, const struct mm_product *product) {
    unsigned row = MM_CUDA_ROW_simt;
    if (is_for_tf32(device, product))
        row = MM_CUDA_ROW_tf32;
    else if (product->a.dtype != MM_FLOAT32 || product->c.dtype != MM_FLOAT32)
        row = choose_of_other_types(device, product);
    else if (is_for_tensor_cores(device, product))
        row = MM_CUDA_ROW_fp32_tensor;
    else if (is_for_vendor(device, product))
        row = MM_CUDA_ROW_blas;
    else if (is_for_tiles(product))
        row = choose_tiles(device, product);
    return &mm_cuda_variants[row];
}

/* `vectorized` is faster for large matrices with small elements, because it has more bytes in flight. For
 * elements of 4 bytes, `vectorized` requires that row strides are multiples of 16 bytes. */
const struct mm_variant *mm_cuda_choose_transpose(const struct mm_device *device,
                                                  const struct mm_product *product) {
    const size_t bytes = mm_dtype_bytes(product->a.dtype);
    const bool is_large =
        narrow_of(product) >= 32 && blocks_of(product, 64) >= 4 * (size_t)device->multiprocessors;
    const bool suits = bytes < 4 || (bytes == 4 && is_wide(&product->a) && is_wide(&product->c));
    return &mm_cuda_variants[is_large && suits ? MM_CUDA_ROW_transpose_vectorized
                                               : MM_CUDA_ROW_transpose_padded];
}
