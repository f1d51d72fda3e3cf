/* Rounds sums of a product to nearest even, and stores them as elements of C. There is one function for each
 * type of sums (mm_dtype_sum). For host and device code; any thread. */
#pragma once

#include "gpu/matrix/dtype.h"

MM_HOST_AND_DEVICE void mm_store_float(enum mm_dtype dtype, void *elements, size_t index, float sum) {
    switch (dtype) {
    case MM_FLOAT32:
        ((float *)elements)[index] = sum;
        break;
    case MM_FLOAT16:
        ((mm_float16 *)elements)[index] = mm_float16_of(sum);
        break;
    case MM_BFLOAT16:
        ((mm_bfloat16 *)elements)[index] = mm_bfloat16_of(sum);
        break;
    default: /* mm_dtype_results allows no other type */
        break;
    }
}

MM_HOST_AND_DEVICE void mm_store_double(enum mm_dtype dtype, void *elements, size_t index, double sum) {
    if (dtype == MM_FLOAT64)
        ((double *)elements)[index] = sum;
    else
        ((float *)elements)[index] = (float)sum;
}

MM_HOST_AND_DEVICE void mm_store_uint32_t(enum mm_dtype dtype, void *elements, size_t index, uint32_t sum) {
    (void)dtype; /* always MM_INT32 */
    ((uint32_t *)elements)[index] = sum;
}

MM_HOST_AND_DEVICE void mm_store_uint64_t(enum mm_dtype dtype, void *elements, size_t index, uint64_t sum) {
    (void)dtype; /* always MM_INT64 */
    ((uint64_t *)elements)[index] = sum;
}
