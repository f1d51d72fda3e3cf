/* Makes and launches plans. */
#include "gpu/plan/plan.h"

#include "gpu/device/backend.h"

#include <assert.h>

enum mm_status mm_plan_make(const struct mm_device *device, const struct mm_variant *variant,
                            const struct mm_product *product, struct mm_plan *plan, struct mm_error *error) {
    const struct mm_backend *backend = device->backend;
    assert(product->m > 0 && product->n > 0);
    *plan = (struct mm_plan){.device = device, .variant = mm_variant_resolve(variant, device, product)};
    if (mm_variant_check_shape(plan->variant, product, error) != MM_OK)
        return MM_UNSUPPORTED;
    return backend->plan == NULL ? MM_OK : backend->plan(product, plan, error);
}

/* Sets transpose_a for a transposition, which would otherwise be a plain copy without a kernel. */
static struct mm_product smallest_of(const struct mm_variant *variant, enum mm_dtype dtype, unsigned tile) {
    const struct mm_multiples of = mm_variant_multiples(variant, dtype);
    struct mm_product product = {.a = mm_matrix_dense(dtype, of.m, of.k, NULL),
                                 .b = mm_matrix_dense(dtype, of.k, of.n, NULL),
                                 .tile = tile,
                                 .transpose_a = variant->op == MM_TRANSPOSE};
    (void)mm_product_conform(variant->op, &product, NULL);
    product.c = mm_product_result(variant->op, &product);
    return product;
}

enum mm_status mm_plan_smallest(const struct mm_device *device, const struct mm_variant *variant,
                                unsigned tile, struct mm_plan *plan, enum mm_dtype *dtype,
                                struct mm_error *error) {
    enum mm_status status = mm_fail(error, MM_UNSUPPORTED, "%s chooses another variant", variant->name);
    for (*dtype = 0; *dtype < MM_DTYPE_COUNT; ++*dtype) {
        if (mm_variant_is_auto(variant) || !mm_variant_has_dtype(variant, *dtype))
            continue;
        const struct mm_product smallest = smallest_of(variant, *dtype, tile);
        status = mm_plan_make(device, variant, &smallest, plan, error);
        if (status == MM_OK)
            return MM_OK;
    }
    return status;
}

enum mm_status mm_plan_launch_range(const struct mm_plan *plan, const struct mm_product *product,
                                    size_t first, size_t count, struct mm_lane *lane,
                                    struct mm_error *error) {
    enum mm_status status = MM_OK;
    if (product->stack != NULL && plan->launch_stack != NULL)
        return plan->launch_stack(plan, product, first, count, lane, error);
    for (size_t index = first; index < first + count && status == MM_OK; index++) {
        const struct mm_product item = mm_product_item(product, index);
        status = plan->launch != NULL ? plan->launch(plan, &item, lane, error)
                                      : plan->variant->launch[product->a.dtype](&item, lane, error);
    }
    return status;
}

enum mm_status mm_plan_launch(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    return mm_plan_launch_range(plan, product, 0, mm_product_count(product), lane, error);
}
