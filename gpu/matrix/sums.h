/* Stores the sums of a product as elements of C, rounded once to nearest even. Also loads elements of C's
 * type as sums. There is one function for each type of sums (gpu/matrix/dtype.h). For C and for CUDA; any
 * thread. */
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

/* Reads element `index`. On the host the elements may begin at any address, because they may lie in a body
 * behind elements of another size. */
#ifdef __CUDACC__
#define MM_READ(TYPE, elements, index) (((const TYPE *)(elements))[index])
#else
#define MM_UNALIGNED(TYPE)                                                                                   \
    struct mm_unaligned_##TYPE {                                                                             \
        TYPE element;                                                                                        \
    } __attribute__((packed, may_alias));
#define X(constant, name, type, ...) MM_UNALIGNED(type)
MM_DTYPE_TABLE(X)
#undef X
MM_UNALIGNED(uint32_t)
MM_UNALIGNED(uint64_t)

#define MM_READ(TYPE, elements, index) (((const struct mm_unaligned_##TYPE *)(elements))[index].element)
#endif

MM_HOST_AND_DEVICE float mm_load_float(enum mm_dtype dtype, const void *elements, size_t index) {
    switch (dtype) {
    case MM_FLOAT16:
        return mm_float16_value(MM_READ(mm_float16, elements, index));
    case MM_BFLOAT16:
        return mm_bfloat16_value(MM_READ(mm_bfloat16, elements, index));
    default: /* MM_FLOAT32 */
        return MM_READ(float, elements, index);
    }
}

MM_HOST_AND_DEVICE double mm_load_double(enum mm_dtype dtype, const void *elements, size_t index) {
    return dtype == MM_FLOAT64 ? MM_READ(double, elements, index) : (double)MM_READ(float, elements, index);
}

MM_HOST_AND_DEVICE uint32_t mm_load_uint32_t(enum mm_dtype dtype, const void *elements, size_t index) {
    (void)dtype; /* always MM_INT32 */
    return MM_READ(uint32_t, elements, index);
}

MM_HOST_AND_DEVICE uint64_t mm_load_uint64_t(enum mm_dtype dtype, const void *elements, size_t index) {
    (void)dtype; /* always MM_INT64 */
    return MM_READ(uint64_t, elements, index);
}
