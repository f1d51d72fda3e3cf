/* Sums of squares that neither overflow nor underflow. Very small and very large numbers are scaled by powers
 * of two, and have separate sums. Only float64 has such numbers. For host and device code; any thread.
 *
 * Source: J. Blue, "A portable Fortran program to find the Euclidean norm of a vector", 1978. The constants
 * are from LAPACK's dnrm2. */
#pragma once

#include "gpu/names.h"

#include <math.h>

#define MM_SIZE_SMALL 0x1p-511
#define MM_SIZE_LARGE 0x1p486
#define MM_SCALE_SMALL 0x1p537
#define MM_SCALE_LARGE 0x1p-538

/* Three sums of squares. Begin with zeros. */
struct mm_squares {
    double middle; /* squares of numbers that are neither small nor large, and NaN */
    double small;  /* squares of small numbers, each times MM_SCALE_SMALL */
    double large;  /* squares of large numbers, each times MM_SCALE_LARGE */
};

MM_HOST_AND_DEVICE void mm_squares_add(struct mm_squares *sums, double number) {
    const double size = fabs(number);
    if (size < MM_SIZE_SMALL)
        sums->small += number * MM_SCALE_SMALL * (number * MM_SCALE_SMALL);
    else if (size > MM_SIZE_LARGE)
        sums->large += number * MM_SCALE_LARGE * (number * MM_SCALE_LARGE);
    else
        sums->middle += number * number;
}

MM_HOST_AND_DEVICE void mm_squares_merge(struct mm_squares *into, const struct mm_squares *other) {
    into->middle += other->middle;
    into->small += other->small;
    into->large += other->large;
}

/* Adds the three sums, and returns the square root times `scale`, which is a power of two. NaN needs a
 * special case, because hypot of infinity and NaN is infinity. */
static inline double mm_squares_root(const struct mm_squares *sums, double scale) {
    const double small = sqrt(sums->small) * (scale / MM_SCALE_SMALL);
    const double large = sqrt(sums->large) * (scale / MM_SCALE_LARGE);
    return isnan(sums->middle) ? sums->middle : hypot(hypot(small, sqrt(sums->middle) * scale), large);
}
