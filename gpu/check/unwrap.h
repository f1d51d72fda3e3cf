/* Integer sums wrap around. An element of C with w bits is correct if it equals the exact sum modulo 2^w.
 * For the host; any thread. */
#pragma once

#include <math.h>

#include "gpu/matrix/dtype.h"

/* Returns 2^w for an integer type of w bits, and 0 for a float. */
static inline double mm_unwrap_modulus(enum mm_dtype dtype) {
    return mm_dtype_is_float(dtype) ? 0.0 : ldexp(1.0, 8 * (int)mm_dtype_bytes(dtype));
}

/* Returns the number nearest to `near` that equals the element modulo `modulus`. This is the exact sum if the
 * element is correct and `near` differs from the exact sum by less than half of `modulus`. If `modulus` is 0,
 * returns the element. */
static inline double mm_unwrap(double element, double modulus, double near) {
    return modulus > 0.0 ? element + modulus * rint((near - element) / modulus) : element;
}
