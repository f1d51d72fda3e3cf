/* Rows of the variant tables: what they resolve to, and whether a device can run them. */
#include "gpu/variant.h"

#include <assert.h>

static const struct {
    const char *name;
    unsigned dtypes;
} ops[MM_OP_COUNT] = {
#define X(constant, name, dtypes) [constant] = {name, dtypes},
    MM_OP_TABLE(X)
#undef X
};

const char *mm_op_name(enum mm_op op) {
    assert(op < MM_OP_COUNT);
    return ops[op].name;
}

unsigned mm_op_dtypes(enum mm_op op) {
    assert(op < MM_OP_COUNT);
    return ops[op].dtypes;
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
