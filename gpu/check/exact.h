/* Sums in twice the precision of float64. A sum is the pair `high` and `low`. The low part collects the
 * rounding errors of the high part. For host and device code; any thread. Source: T. Ogita, S. Rump, S.
 * Oishi, "Accurate sum and dot product", 2005. */
#pragma once

#include <math.h>

#include "gpu/names.h"

MM_HOST_AND_DEVICE void mm_exact_add(double *high, double *low, double number) {
    const double sum = *high + number;
    const double added = sum - *high;
    *low += (*high - (sum - added)) + (number - added);
    *high = sum;
}

/* Adds element·(factor + factor_low) to the sum. */
MM_HOST_AND_DEVICE void mm_exact_add_product(double *high, double *low, double element, double factor,
                                             double factor_low) {
    const double product = element * factor;
    *low += fma(element, factor, -product) + element * factor_low;
    mm_exact_add(high, low, product);
}
