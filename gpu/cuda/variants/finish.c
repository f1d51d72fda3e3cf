/* Plans and launches the epilogue as a pass after the product. */
#include "gpu/cuda/variants/finish.h"

#include "gpu/cuda/lane.h"
#include "gpu/cuda/memory.h"

/* Returns the product without its epilogue. This product stores its sums in C, or in `workspace` if C has
 * another type. */
static struct mm_product plain_of(const struct mm_product *product, void *workspace) {
    struct mm_product plain = *product;
    const enum mm_dtype sum = mm_dtype_sum(product->a.dtype);
    plain.epilogue.is_set = false;
    plain.addend.rows = plain.bias.rows = 0;
    if (product->c.dtype != sum)
        plain.c = mm_matrix_dense(sum, product->c.rows, product->c.cols, workspace);
    return plain;
}

enum mm_status mm_cuda_finish(mm_cuda_step *run, const struct mm_plan *plan, const struct mm_product *product,
                              const struct mm_matrix *sums, struct mm_lane *lane, struct mm_error *error) {
    const struct mm_plan pass = {.device = plan->device,
                                 .variant = plan->variant,
                                 .launch = mm_cuda_launch,
                                 .layout = mm_cuda_finish_layout(sums->dtype)};
    struct mm_product finished = *product;
    finished.m = product->c.rows;
    finished.a = *sums;
    finished.transpose_a = false;
    finished.stack = NULL;
    return run(&pass, &finished, lane, error);
}

static void *sums_at(const struct mm_plan *plan, const struct mm_lane *lane) {
    return (char *)lane->scratch + plan->sums_offset;
}

static enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error) {
    const struct mm_product plain = plain_of(product, sums_at(plan, lane));
    const enum mm_status status = plan->before_finish.launch(plan, &plain, lane, error);
    return status == MM_OK ? mm_cuda_finish(mm_plan_launch, plan, product, &plain.c, lane, error) : status;
}

static enum mm_status prepare(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    const struct mm_product plain = plain_of(product, NULL);
    const enum mm_status status = plan->before_finish.prepare != NULL
                                      ? plan->before_finish.prepare(plan, &plain, lane, error)
                                      : mm_cuda_load(&plan->layout, lane, error);
    return status == MM_OK ? mm_cuda_finish(mm_cuda_prepare, plan, product, &plain.c, lane, error) : status;
}

enum mm_status mm_cuda_plan_finish(mm_variant_plan *plan_product, const struct mm_product *product,
                                   struct mm_plan *plan, struct mm_error *error) {
    const struct mm_stack *stack = product->stack;
    const bool share_addends =
        stack != NULL && product->addend.rows > 0 && stack->addend_count != stack->count;
    /* One pass covers a stack, unless products share an addend. Then each product has launches of its own. */
    const struct mm_product first = mm_product_item(product, 0);
    const struct mm_product plain = plain_of(share_addends ? &first : product, NULL);
    const enum mm_status status = plan_product(&plain, plan, error);
    if (status != MM_OK)
        return status;
    plan->before_finish.launch = plan->launch;
    plan->before_finish.prepare = plan->prepare;
    plan->launch = launch;
    plan->prepare = prepare;
    if (share_addends)
        plan->launch_stack = NULL;
    plan->layout.batch_kernel = NULL;
    plan->sums_offset = mm_cuda_aligned(plan->workspace_bytes);
    if (product->c.dtype != plain.c.dtype)
        plan->workspace_bytes = plan->sums_offset + mm_matrix_bytes(&plain.c);
    return MM_OK;
}
