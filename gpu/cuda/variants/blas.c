/* blas: NVIDIA's cuBLAS and cuBLASLt, a reference for the speed of our kernels. The libraries cannot use
 * every matrix as it is stored:
 *
 * - Operands of 8-bit types must be contiguous along k and aligned. The variant copies other operands to the
 *   workspace, and transposes them if necessary.
 * - Not every type and alignment of C is supported. In these cases the library stores the sums in the
 *   workspace, and a kernel rounds them to C's type.
 *
 * The measured time of a product includes these copies. */
#include "gpu/cuda/variants/blas.h"
#include "gpu/cuda/variants/finish.h"
#include "gpu/cuda/device.h"
#include "gpu/cuda/memory.h"
#include "gpu/cuda/variants.h"

#include <limits.h>

/* The product that the library computes. The workspace contains the copy of each matrix that is replaced. */
struct call {
    struct mm_product product;
    bool replaces_a;
    bool replaces_b;
    bool replaces_c;
    void *workspace; /* the library's part of the workspace */
    size_t bytes;    /* size of the whole workspace */
};

static void *reserve(struct call *call, char *scratch, size_t bytes) {
    void *memory = scratch == NULL ? NULL : scratch + call->bytes;
    call->bytes += mm_cuda_aligned(bytes);
    return memory;
}

static struct mm_matrix reserve_matrix(struct call *call, char *scratch, enum mm_dtype dtype, size_t rows,
                                       size_t cols) {
    struct mm_matrix matrix = mm_matrix_dense(dtype, rows, cols, NULL);
    matrix.data = reserve(call, scratch, mm_matrix_bytes(&matrix));
    return matrix;
}

/* Rows must also end at a multiple of `alignment`, because otherwise cuBLASLt found no algorithm. */
static bool is_aligned(const struct mm_matrix *matrix, unsigned alignment) {
    const size_t bytes = mm_dtype_bytes(matrix->dtype);
    return (uintptr_t)matrix->data % alignment == 0 && matrix->ld * bytes % alignment == 0 &&
           matrix->cols * bytes % alignment == 0;
}

/* Decides which matrices to replace, and places the replacements in `scratch`. If `scratch` is NULL, the
 * replacements have no addresses, but their sizes are valid. */
static struct call call_of(const struct mm_product *product, char *scratch) {
    const enum mm_dtype dtype = product->a.dtype;
    const struct mm_blas_type *type = &mm_blas_types[dtype];
    const unsigned alignment = type->alignment;
    struct call call = {.product = *product};
    if (alignment != 0) {
        call.replaces_a = product->transpose_a || !is_aligned(&product->a, alignment);
        call.replaces_b = !product->transpose_b || !is_aligned(&product->b, alignment);
        call.replaces_c = !is_aligned(&product->c, alignment);
    }
    if ((type->results & MM_DTYPE_BIT(product->c.dtype)) == 0)
        call.replaces_c = true;
    if (call.replaces_a) {
        call.product.a =
            reserve_matrix(&call, scratch, dtype, mm_matrices_of_a(product) * product->m, product->k);
        call.product.transpose_a = false;
    }
    if (call.replaces_b) {
        call.product.b =
            reserve_matrix(&call, scratch, dtype, mm_matrices_of_b(product) * product->n, product->k);
        call.product.transpose_b = true;
    }
    if (call.replaces_c)
        call.product.c = reserve_matrix(&call, scratch, mm_dtype_sum(dtype),
                                        mm_product_count(product) * product->m, product->n);
    call.workspace = reserve(&call, scratch, type->workspace_bytes);
    return call;
}

static enum mm_status copy_operands(mm_plan_step *run, const struct mm_device *device,
                                    const struct mm_product *product, const struct call *call,
                                    struct mm_lane *lane, struct mm_error *error) {
    enum mm_status status = MM_OK;
    if (call->replaces_a)
        status = mm_cuda_copy_operand(run, device, &product->a, mm_matrices_of_a(product),
                                      product->transpose_a, &call->product.a, lane, error);
    if (status == MM_OK && call->replaces_b)
        status = mm_cuda_copy_operand(run, device, &product->b, mm_matrices_of_b(product),
                                      !product->transpose_b, &call->product.b, lane, error);
    return status;
}

static enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error) {
    const struct call call = call_of(product, lane->scratch);
    const struct mm_cuda_sums sums = mm_cuda_sums_of(product, &call.product.c);
    enum mm_status status = copy_operands(mm_plan_launch, plan->device, product, &call, lane, error);
    if (status == MM_OK)
        status = mm_blas_multiply(&call.product, call.workspace, lane, error);
    if (status == MM_OK && call.replaces_c)
        status = mm_cuda_finish(&sums, 1, call.product.c.dtype, lane, error);
    return status;
}

static enum mm_status prepare(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    enum mm_status status = mm_blas_prepare(lane, error);
    if (status != MM_OK)
        return status;
    const struct call call = call_of(product, NULL);
    status = copy_operands(mm_cuda_prepare, plan->device, product, &call, lane, error);
    const struct mm_layout pass = mm_cuda_finish_layout(call.product.c.dtype);
    return status == MM_OK && call.replaces_c ? mm_cuda_load(&pass, lane, error) : status;
}

static bool fits(const struct mm_matrix *matrix) {
    return matrix->rows <= INT_MAX && matrix->ld <= INT_MAX;
}

static bool has_sizes(const struct mm_product *product) {
    const struct mm_product one = mm_product_item(product, 0);
    return fits(&one.a) && fits(&one.b) && fits(&one.c);
}

bool mm_cuda_blas_supports(const struct mm_device *device, const struct mm_product *product) {
    const struct mm_variant *row = &mm_cuda_variants[MM_CUDA_ROW_blas];
    return row->plan[product->a.dtype] != NULL && mm_variant_missing(row, device, product->a.dtype) == NULL &&
           has_sizes(product) && mm_variant_supports_shape(row, product);
}

enum mm_status mm_cuda_blas(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error) {
    const char *missing = mm_variant_missing(plan->variant, plan->device, product->a.dtype);
    if (!has_sizes(product))
        return mm_fail(error, MM_UNSUPPORTED, "cuBLAS supports dimensions and rows up to %d elements",
                       INT_MAX);
    if (missing != NULL)
        return mm_fail(error, MM_UNSUPPORTED, "blas cannot run here: %s", missing);
    if (product->k == 0)
        return mm_cuda_tiled_16(product, plan, error);
    plan->workspace_bytes = call_of(product, NULL).bytes;
    plan->prepare = prepare;
    plan->launch = launch;
    plan->launch_stack = mm_cuda_launch_whole;
    return MM_OK;
}
