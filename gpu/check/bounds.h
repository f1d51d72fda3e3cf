/* How far a right product may be off in an element, by the types of its operands and of the result. It knows
 * no variant. For the host; any thread. */
#pragma once

#include "gpu/product/product.h"

#include <math.h>

/* An element of C is right if it is off by at most e + unit·(|R| + e) + step, where R is exact and
 * e = relative·(|A|·|B|) + absolute. All are 0 for whole numbers. */
struct mm_bounds {
    double relative;
    double absolute;
    double unit; /* of rounding to C, if that is narrower than the sums; else 0, and step too */
    double step;
    double largest; /* above this, the sums or C may be infinite */
};

/* What may have computed a product.
 * MM_ROUNDED: arithmetic that rounds.
 * MM_CUT_OFF: tensor cores. They cut off what they add to 16-bit floats, which doubles the relative part; of
 * 8-bit floats it is 2^-6 at least (33 addends are cut at 2^-13 of the largest, in each of the four
 * instructions between two promotions to float32).
 * MM_OF_TF32: tensor cores, with float32 operands rounded to tf32: each factor is off by v = 2^-11, unless it
 * is subnormal. */
enum mm_arithmetic { MM_ROUNDED, MM_CUT_OFF, MM_OF_TF32 };

static inline struct mm_bounds mm_bounds_of(const struct mm_product *product, enum mm_arithmetic arithmetic) {
    const enum mm_dtype dtype = product->a.dtype, sum_dtype = mm_dtype_sum(dtype), c_dtype = product->c.dtype;
    const struct mm_precision sum = mm_dtype_precision(sum_dtype), c = mm_dtype_precision(c_dtype);
    const double k = (double)product->k;
    const double v = arithmetic == MM_OF_TF32 && dtype == MM_FLOAT32 ? 0x1p-11 : 0.0;
    const bool cuts_off = v > 0.0 || (arithmetic != MM_ROUNDED && mm_dtype_bytes(dtype) <= 2);
    struct mm_bounds bounds = {0.0, 0.0, 0.0, 0.0, sum.largest};
    bounds.relative = (cuts_off ? 4.0 : 2.0) * (k + 8.0) * sum.unit + 2.0 * v + v * v;
    if (cuts_off && mm_dtype_is_float(dtype) && mm_dtype_bytes(dtype) == 1)
        bounds.relative = fmax(bounds.relative, 0x1p-6);
    bounds.absolute = k * sum.least;
    if (c_dtype != sum_dtype) {
        bounds.unit = c.unit;
        bounds.step = 0.5 * c.least;
        bounds.largest = fmin(bounds.largest, c.largest);
    }
    return bounds;
}
