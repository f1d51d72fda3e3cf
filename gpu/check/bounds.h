/* Bounds for the error of one element of a product, by the types of the operands and of C. Correct results of
 * all variants are within the bounds. For the host; any thread. */
#pragma once

#include "gpu/product/product.h"

#include <math.h>

/* An element of C is correct if its error is at most e + unit·(|R| + e) + step. R is the exact value of the
 * element, and e = relative·(|A|·|B|) + absolute. All members are 0 for integers. If there is an epilogue but
 * no activation, e becomes |alpha|·e + 4·u·(|alpha|·(|A|·|B|) + |beta·C| + |bias|) + t, with the unit
 * roundoff u and the least number t of the sums (docs/accuracy.md has the derivation). */
struct mm_bounds {
    double relative;
    double absolute;
    double unit;    /* relative error of rounding a sum to C's type; 0 if C has the sums' type */
    double step;    /* half of the smallest positive number of C's type; 0 if C has the sums' type */
    double largest; /* if |R| is larger, the sum or C may be infinite */
};

/* MM_ROUNDED: each addition rounds the sum to nearest.
 *
 * MM_CUT_OFF: tensor cores truncate the addends instead of rounding them. For 16-bit floats this doubles the
 * relative error. For 8-bit floats the relative error is at least 2^-6. Each instruction adds 33 addends, and
 * truncates each at 2^-13 of the largest addend. After four instructions, the sum becomes float32.
 *
 * MM_OF_TF32: tensor cores first round float32 operands to tf32. Rounding changes a factor by at most 2^-11
 * of its value, unless the factor is subnormal. */
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
