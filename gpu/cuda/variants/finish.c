/* Plans and launches the epilogue as a pass after the product. */
#include "gpu/cuda/variants/finish.h"

#include "gpu/cuda/lane.h"
#include "gpu/cuda/memory.h"

struct mm_cuda_sums mm_cuda_sums_of(const struct mm_product *product, const struct mm_matrix *sums) {
    return (struct mm_cuda_sums){.terms = mm_product_terms(product),
                                 .sums = sums->data,
                                 .c = product->c.data,
                                 .sums_ld = sums->ld,
                                 .c_ld = product->c.ld,
                                 .m = product->c.rows,
                                 .n = product->n};
}

enum mm_status mm_cuda_finish(const struct mm_cuda_sums *sums, unsigned count, enum mm_dtype dtype,
                              struct mm_lane *lane, struct mm_error *error) {
    const struct mm_layout layout = mm_cuda_finish_layout(dtype);
    enum mm_status status = MM_OK;
    for (unsigned done = 0; done < count && status == MM_OK; done += MM_CUDA_SUMS_MAX) {
        struct mm_cuda_pass pass;
        void *arguments[] = {&pass};
        dim3 grid = {0, count - done < MM_CUDA_SUMS_MAX ? count - done : MM_CUDA_SUMS_MAX, 1};
        for (unsigned index = 0; index < grid.y; index++) {
            const struct mm_cuda_sums *next = &pass.of[index];
            pass.of[index] = sums[done + index];
            const size_t blocks =
                mm_size_divide_up(next->m, layout.block_rows) * mm_size_divide_up(next->n, layout.block_cols);
            grid.x = blocks > grid.x ? (unsigned)blocks : grid.x;
        }
        status = mm_cuda_enqueue(&layout, grid, arguments, lane, error);
    }
    return status;
}

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

static struct mm_product plain_on(const struct mm_plan *plan, const struct mm_product *product,
                                  const struct mm_lane *lane) {
    return plain_of(product, (char *)lane->scratch + plan->sums_offset);
}

/* Returns how many of `count` products of a stack one element of a pass can cover. It cannot cover products
 * that share an addend, or whose addend is stored column by column. */
static size_t products_together(const struct mm_product *product, size_t count) {
    const struct mm_stack *stack = product->stack;
    const bool is_in_rows =
        product->addend.rows == 0 || (stack != NULL && stack->addend_count == stack->count);
    return is_in_rows && !product->transpose_addend ? count : 1;
}

/* Finishes the sums of `count` products, beginning with product `first`. The sums lie in plain->c. */
static enum mm_status finish(const struct mm_product *product, const struct mm_product *plain, size_t first,
                             size_t count, struct mm_lane *lane, struct mm_error *error) {
    const size_t together = products_together(product, count);
    enum mm_status status = MM_OK;
    for (size_t done = 0; done < count && status == MM_OK;) {
        struct mm_cuda_sums sums[MM_CUDA_SUMS_MAX];
        unsigned filled = 0;
        for (; done < count && filled < MM_CUDA_SUMS_MAX; done += together) {
            struct mm_product item = mm_product_item(product, first + done);
            const struct mm_product plain_item = mm_product_item(plain, first + done);
            item.c.rows *= together;
            sums[filled++] = mm_cuda_sums_of(&item, &plain_item.c);
        }
        status = mm_cuda_finish(sums, filled, plain->c.dtype, lane, error);
    }
    return status;
}

/* Launches a product or a whole stack. */
static enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error) {
    const struct mm_product plain = plain_on(plan, product, lane);
    const enum mm_status status = plan->before_finish.launch(plan, &plain, lane, error);
    return status == MM_OK ? finish(product, &plain, 0, mm_product_count(product), lane, error) : status;
}

/* Launches a part of a stack by the batch kernel. */
static enum mm_status launch_stack(const struct mm_plan *plan, const struct mm_product *product, size_t first,
                                   size_t count, struct mm_lane *lane, struct mm_error *error) {
    const struct mm_product plain = plain_on(plan, product, lane);
    const enum mm_status status = mm_cuda_launch_stack(plan, &plain, first, count, lane, error);
    return status == MM_OK ? finish(product, &plain, first, count, lane, error) : status;
}

static enum mm_status prepare(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    const struct mm_product plain = plain_of(product, NULL);
    const struct mm_layout pass = mm_cuda_finish_layout(plain.c.dtype);
    const enum mm_status status = plan->before_finish.prepare != NULL
                                      ? plan->before_finish.prepare(plan, &plain, lane, error)
                                      : mm_cuda_load(&plan->layout, lane, error);
    return status == MM_OK ? mm_cuda_load(&pass, lane, error) : status;
}

enum mm_status mm_cuda_plan_finish(mm_variant_plan *plan_product, const struct mm_product *product,
                                   struct mm_plan *plan, struct mm_error *error) {
    const struct mm_product plain = plain_of(product, NULL);
    *plan = (struct mm_plan){.device = plan->device, .variant = plan->variant, .launch = mm_cuda_launch};
    const enum mm_status status = plan_product(&plain, plan, error);
    if (status != MM_OK)
        return status;
    plan->before_finish.launch = plan->launch;
    plan->before_finish.prepare = plan->prepare;
    plan->launch = launch;
    plan->prepare = prepare;
    if (plan->launch_stack == NULL && mm_cuda_can_launch_stack(plan, product))
        plan->launch_stack = launch_stack;
    /* Products that are launched one after another use the same memory for their sums. */
    const struct mm_product at_once = plan->launch_stack != NULL ? plain : mm_product_item(&plain, 0);
    plan->sums_offset = mm_cuda_aligned(plan->workspace_bytes);
    plan->kept.bytes[0] = plan->kept.bytes[1] = 0; /* the sums lie behind the whole workspace */
    if (product->c.dtype != plain.c.dtype)
        plan->workspace_bytes = plan->sums_offset + mm_matrix_bytes(&at_once.c);
    return MM_OK;
}
