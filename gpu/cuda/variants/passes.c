/* Helper passes before a product: copies of operands. */
#include "gpu/cuda/variants/passes.h"

#include "gpu/cuda/device.h"
#include "gpu/cuda/variants.h"

#include <assert.h>

bool mm_cuda_is_aligned(const struct mm_matrix *matrix) {
    return (uintptr_t)matrix->data % 16 == 0 && matrix->ld * mm_dtype_bytes(matrix->dtype) % 16 == 0;
}

enum mm_status mm_cuda_launch_whole(const struct mm_plan *plan, const struct mm_product *product,
                                    size_t first, size_t count, struct mm_lane *lane,
                                    struct mm_error *error) {
    assert(first == 0 && count == product->stack->count);
    return plan->launch(plan, product, lane, error);
}

static enum mm_status pad(mm_plan_step *run, const struct mm_device *device, const struct mm_matrix *from,
                          const struct mm_matrix *to, struct mm_lane *lane, struct mm_error *error) {
    const struct mm_product product = {.m = from->rows, .n = from->cols, .a = *from, .c = *to};
    const struct mm_plan plan = {.device = device,
                                 .variant = &mm_cuda_variants[MM_CUDA_ROW_transpose_auto],
                                 .launch = mm_cuda_launch,
                                 .layout = mm_cuda_pad_layout(from->dtype)};
    return run(&plan, &product, lane, error);
}

enum mm_status mm_cuda_copy_operand(mm_plan_step *run, const struct mm_device *device,
                                    const struct mm_matrix *from, size_t matrices, bool is_turned,
                                    const struct mm_matrix *to, struct mm_lane *lane,
                                    struct mm_error *error) {
    const struct mm_stack stack = {.count = matrices,
                                   .a_count = matrices,
                                   .b_count = matrices,
                                   .rank = 1,
                                   .dims = {matrices},
                                   .a_steps = {1},
                                   .b_steps = {1}};
    struct mm_product product = {.a = *from, .c = *to, .transpose_a = is_turned};
    struct mm_plan plan;
    if (!is_turned && mm_cuda_is_aligned(to))
        return pad(run, device, from, to, lane, error);
    (void)mm_product_conform(MM_TRANSPOSE, &product, NULL);
    if (is_turned && matrices > 1) {
        product.m = to->rows / matrices;
        product.n = to->cols;
        product.stack = &stack;
    }
    const enum mm_status status =
        mm_plan_make(device, &mm_cuda_variants[MM_CUDA_ROW_transpose_auto], &product, &plan, error);
    return status == MM_OK ? run(&plan, &product, lane, error) : status;
}
