/* Sums of squares that neither overflow nor underflow. For C and for CUDA. Any thread.
 *
 * The squares of some float64 numbers overflow or underflow. Such numbers are scaled by powers of two, and
 * have sums of their own. All other types have only 0 and numbers of a middle size. Source: J. Blue, "A
 * portable Fortran program to find the Euclidean norm of a vector", 1978. The constants come from LAPACK's
 * dnrm2. */
#pragma once

#include "gpu/names.h"

#include <math.h>

#define MM_SIZE_SMALL 0x1p-511
#define MM_SIZE_LARGE 0x1p486
#define MM_SCALE_SMALL 0x1p537
#define MM_SCALE_LARGE 0x1p-538

/* Three sums of squares, by the size of the numbers. Begin with zeros. */
struct mm_squares {
    double middle; /* squares of numbers of a middle size, and of NaN */
    double small;  /* squares of small numbers, each scaled by MM_SCALE_SMALL */
    double large;  /* squares of large numbers, each scaled by MM_SCALE_LARGE */
};

/* Adds the square of a number to one of the sums. */
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

/* Returns the square root of the whole sum, times `scale`, which is a power of two. hypot neither
 * overflows nor underflows, but returns infinity for infinity and NaN. */
static inline double mm_squares_root(const struct mm_squares *sums, double scale) {
    const double small = sqrt(sums->small) * (scale / MM_SCALE_SMALL);
    const double large = sqrt(sums->large) * (scale / MM_SCALE_LARGE);
    return isnan(sums->middle) ? sums->middle : hypot(hypot(small, sqrt(sums->middle) * scale), large);
}
