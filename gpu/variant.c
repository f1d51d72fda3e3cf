/* Rows of the variant tables: what they resolve to, and whether a device can run them. */
#include "gpu/variant.h"

#include <assert.h>

const char *mm_op_name(enum mm_op op) {
    switch (op) {
    case MM_MATMUL:
        return "matmul";
    }
    return "";
}

bool mm_variant_takes(const struct mm_variant *variant, const struct mm_product *product) {
    const size_t edge = variant->multiple_of;
    return edge == 0 || (product->m % edge == 0 && product->n % edge == 0 && product->k % edge == 0);
}

const struct mm_variant *mm_variant_resolve(const struct mm_variant *variant, const struct mm_device *device,
                                            const struct mm_product *product) {
    if (variant->choose == NULL)
        return variant;
    const struct mm_variant *chosen = variant->choose(device, product);
    assert(chosen != NULL);
    assert(chosen->choose == NULL);
    return chosen;
}

const char *mm_variant_missing(const struct mm_variant *variant, const struct mm_device *device) {
    return variant->missing == NULL ? NULL : variant->missing(device);
}
