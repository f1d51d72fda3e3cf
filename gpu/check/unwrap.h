/* Sums of whole numbers wrap around: an element of C is right if it equals the true sum modulo 2^w, w being
 * its bits. For the host; any thread. */
#pragma once

#include <math.h>

#include "gpu/matrix/dtype.h"

/* 2^w; 0 of types with a point. */
static inline double mm_unwrap_modulus(enum mm_dtype dtype) {
    return mm_dtype_is_float(dtype) ? 0.0 : ldexp(1.0, 8 * (int)mm_dtype_bytes(dtype));
}

/* The number that equals the element modulo `modulus` and is nearest to `near`. If that is off the true sum
 * by less than half the modulus, the true sum of a right element. */
static inline double mm_unwrap(double element, double modulus, double near) {
    return modulus > 0.0 ? element + modulus * rint((near - element) / modulus) : element;
}
