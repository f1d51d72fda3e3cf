/* The result of checking a product (gpu/check/verify.h). This file does not know how the check works.
 *
 * The functions keep no state, so any thread may call them. They cannot fail, and take no NULL. */
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
    bool is_done; /* false: no other member has a meaning */

    /* The worst row: the first row whose residual is the largest fraction of its bound. For integers it is
     * the first wrong row; the residual is then the number of wrong rows, and the bound is 0. */
    double residual; /* |C·x - A·(B·x)|, maximum over the vectors; INFINITY if C is not finite */
    double bound;    /* bound of the residual; for floats 0 only if k is 0 or no row was checked */
    size_t row;      /* index of the worst row; 0 if no row was checked */

    size_t rows_checked;  /* rows_checked + rows_unjudged is the number of rows of C; both are 0 for an empty
                            product */
    size_t rows_unjudged; /* rows that could not be checked: their sums exceed the type's range, or may have
                             exceeded it */

    /* Sums of squares over the checked rows and all vectors. For floats, `error` is for C·x - A·(B·x), and
     * `norm` is for A·(B·x). Their last bits depend on the order of the additions. For integers `error` is
     * the number of wrong rows, and `norm` is 0. */
    struct mm_squares error;
    struct mm_squares norm;

    uint64_t took_ns; /* the time that the device needed for the check */
    uint64_t seed;    /* seed of the vectors. For floats, vector v is -1 at column j if bit v of
                         mm_random_bits(seed, j) is set, else 1. For integers it is mm_verify_word(seed, v, j) */
};

/* Returns the verdict's name in the API, a static string. */
const char *mm_verdict_name(enum mm_verdict verdict);

/* Estimates ||C - A·B|| / ||A·B|| (Frobenius norm) over the checked rows, after the check. INFINITY if an
 * integer is wrong, if C is not finite but should be, or if C is not 0 although A·(B·x) is 0. */
double mm_verification_relative_error(const struct mm_verification *verification);

/* Returns the verdict, after the check. */
enum mm_verdict mm_verification_verdict(const struct mm_verification *verification);
