/* The names of activations, and factors that are whole numbers. */
#include "gpu/product/epilogue.h"

#include "gpu/names.h"

MM_DEFINE_NAMES(mm_activation_name, mm_activation, MM_ACTIVATION_COUNT, MM_ACTIVATION_TABLE)

union mm_scale mm_scale_of(enum mm_dtype sum, int number) {
    switch (sum) {
    case MM_FLOAT32:
        return (union mm_scale){.of_float = (float)number};
    case MM_FLOAT64:
        return (union mm_scale){.of_double = number};
    case MM_INT32:
        return (union mm_scale){.of_uint32_t = (uint32_t)number};
    default:
        return (union mm_scale){.of_uint64_t = (uint64_t)number};
    }
}

bool mm_scale_is(enum mm_dtype sum, const union mm_scale *scale, int number) {
    const union mm_scale other = mm_scale_of(sum, number);
    return mm_dtype_is_float(sum) ? mm_scale_real(sum, scale) == number
                                  : mm_scale_whole(sum, scale) == mm_scale_whole(sum, &other);
}
