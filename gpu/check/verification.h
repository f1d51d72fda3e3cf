/* The result of checking a product (gpu/check/verify.h). Any thread may call these functions. They cannot
 * fail, and take no NULL. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/check/squares.h"
#include "gpu/names.h"

/* One row for each verdict: constant, name in the API. */
#define MM_VERDICT_TABLE(X)                                                                                  \
    X(MM_VERDICT_PASSED, "passed")     /* every checked row is within its bound */                           \
    X(MM_VERDICT_FAILED, "failed")     /* a checked row exceeds its bound */                                 \
    X(MM_VERDICT_UNJUDGED, "unjudged") /* C has rows, but none could be checked */

enum mm_verdict { MM_VERDICT_TABLE(MM_CONSTANT) MM_VERDICT_COUNT };

struct mm_verification {
    bool is_done; /* if not set, no other member is valid */

    /* For floats, `row` is the worst row: its residual is the largest fraction of its bound. For integers,
     * `row` is the first wrong row, `residual` is the number of wrong rows, and `bound` is 0. */
    double residual; /* the largest |C·x - A·(B·x)| of all vectors; INFINITY if C is not finite */
    double bound;
    size_t row; /* index of the worst row; 0 if no row was checked */

    /* rows_checked and rows_unjudged add up to the rows of C. A row is unjudged if its sums may have exceeded
     * the range of their type. */
    size_t rows_checked;
    size_t rows_unjudged;

    /* `error` is the sum of the squares of C·x - A·(B·x), over the checked rows and all vectors. `norm` is
     * the sum of the squares of A·(B·x). The last bits depend on the order of the additions. For integers,
     * `error` is the number of wrong rows, and `norm` is 0. */
    struct mm_squares error;
    struct mm_squares norm;

    uint64_t took_ns; /* time of the check */
    /* Seed of the vectors. For floats, vector v is -1 at column j if bit v of mm_random_bits(seed, j) is set,
     * and otherwise 1. For integers, the element is mm_verify_word(seed, v, j). */
    uint64_t seed;
};

const char *mm_verdict_name(enum mm_verdict verdict);

/* Estimates ||C - A·B|| / ||A·B|| (Frobenius norm) over the checked rows. INFINITY if an integer is wrong,
 * if C is not finite but should be, or if C is not 0 although A·(B·x) is 0. Call this after the check. */
double mm_verification_relative_error(const struct mm_verification *verification);

/* Returns the verdict on all rows. An empty C passes. Call this after the check. */
enum mm_verdict mm_verification_verdict(const struct mm_verification *verification);
