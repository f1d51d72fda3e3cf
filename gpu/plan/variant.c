/* Which shapes and types a variant supports, and whether a device can run it. */
#include "gpu/plan/variant.h"

#include <stdio.h>

bool mm_variant_has_dtype(const struct mm_variant *variant, enum mm_dtype dtype) {
    return variant->launch[dtype] != NULL || variant->plan[dtype] != NULL || variant->choose[dtype] != NULL;
}

unsigned mm_variant_dtypes(const struct mm_variant *variant) {
    unsigned dtypes = 0;
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        if (mm_variant_has_dtype(variant, (enum mm_dtype)dtype))
            dtypes |= MM_DTYPE_BIT(dtype);
    return dtypes;
}

bool mm_variant_is_auto(const struct mm_variant *variant) {
    bool chooses = false;
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        chooses = chooses || variant->choose[dtype] != NULL;
    return chooses;
}

static unsigned multiple(unsigned own, unsigned usual) {
    if (own > 0)
        return own;
    return usual > 0 ? usual : 1;
}

struct mm_multiples mm_variant_multiples(const struct mm_variant *variant, enum mm_dtype dtype) {
    const struct mm_multiples *own = &variant->multiples[dtype];
    return (struct mm_multiples){.m = multiple(own->m, variant->multiple_of),
                                 .n = multiple(own->n, variant->multiple_of),
                                 .k = multiple(own->k, variant->multiple_of)};
}

enum mm_status mm_variant_check_tile(const struct mm_variant *variant, unsigned tile,
                                     struct mm_error *error) {
    char list[64] = "";
    size_t length = 0;
    if (tile == 0)
        return MM_OK;
    if (variant->tiles == NULL)
        return mm_fail_field(error, MM_BAD_REQUEST, "tile",
                             "tile is %u, but variant %s has no tiles; leave tile out", tile, variant->name);
    for (const unsigned *known = variant->tiles; *known != 0; known++) {
        if (*known == tile)
            return MM_OK;
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s%u", length > 0 ? ", " : "", *known);
    }
    return mm_fail_field(error, MM_BAD_REQUEST, "tile",
                         "tile is %u, but for variant %s it must be one of: %s", tile, variant->name, list);
}

bool mm_variant_supports_shape(const struct mm_variant *variant, const struct mm_product *product) {
    return mm_variant_check_shape(variant, product, NULL) == MM_OK;
}

enum mm_status mm_variant_check_shape(const struct mm_variant *variant, const struct mm_product *product,
                                      struct mm_error *error) {
    const enum mm_dtype dtype = product->a.dtype;
    const struct mm_multiples of = mm_variant_multiples(variant, dtype);
    const struct {
        const char *name;
        size_t length;
        unsigned multiple_of;
    } dimensions[] = {{"m", product->m, of.m}, {"n", product->n, of.n}, {"k", product->k, of.k}};
    unsigned index = 0;
    while (index < 3 && dimensions[index].length % dimensions[index].multiple_of == 0)
        index++;
    if (index == 3)
        return MM_OK;
    return mm_fail_field(error, MM_UNSUPPORTED, "variant",
                         "%s is %zu, but must be a multiple of %u if %s is to multiply %s; choose another "
                         "variant",
                         dimensions[index].name, dimensions[index].length, dimensions[index].multiple_of,
                         variant->name, mm_dtype_name(dtype));
}

const struct mm_variant *mm_variant_resolve(const struct mm_variant *variant, const struct mm_device *device,
                                            const struct mm_product *product) {
    const enum mm_dtype dtype = product->a.dtype;
    if (variant->choose[dtype] == NULL)
        return variant;
    const struct mm_variant *chosen = variant->choose[dtype](device, product);
    assert(chosen->choose[dtype] == NULL && mm_variant_has_dtype(chosen, dtype));
    return chosen;
}

const char *mm_variant_missing(const struct mm_variant *variant, const struct mm_device *device,
                               enum mm_dtype dtype) {
    const char *reason = variant->missing == NULL ? NULL : variant->missing(device);
    if (reason == NULL && variant->dtype_missing[dtype] != NULL)
        reason = variant->dtype_missing[dtype](device);
    return reason;
}

unsigned mm_variant_dtypes_on(const struct mm_variant *variant, const struct mm_device *device) {
    unsigned dtypes = mm_variant_dtypes(variant);
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        if (mm_variant_missing(variant, device, dtype) != NULL)
            dtypes &= ~MM_DTYPE_BIT(dtype);
    return dtypes;
}

enum mm_arithmetic mm_variant_arithmetic(const struct mm_variant *variant, bool is_host) {
    const enum mm_arithmetic of_device = is_host ? MM_ROUNDED : MM_CUT_OFF;
    return variant->rounds_to_tf32 ? MM_OF_TF32 : of_device;
}
