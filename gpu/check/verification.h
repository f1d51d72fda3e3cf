/* The result of checking a product (gpu/check/verify.h). It does not know how the check is done.
 *
 * Plain data in the job that it belongs to. The functions keep no state: any thread. They cannot fail, and
 * take no NULL. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/check/squares.h"
#include "gpu/names.h"

/* One row a verdict: constant, wire name. */
#define MM_VERDICT_TABLE(X)                                                                                  \
    X(MM_VERDICT_PASSED, "passed")     /* every judged row is within its bound */                            \
    X(MM_VERDICT_FAILED, "failed")     /* a row is not */                                                    \
    X(MM_VERDICT_UNJUDGED, "unjudged") /* there are rows, but none could be judged */

enum mm_verdict { MM_VERDICT_TABLE(MM_CONSTANT) MM_VERDICT_COUNT };

struct mm_verification {
    bool is_done; /* false: nothing below has a meaning */

    /* The worst row: its residual is the largest fraction of its bound. If several are, the first. Of whole
     * numbers the first wrong row, the residual is the number of wrong rows, and the bound is 0. */
    double residual; /* |C·x - A·(B·x)|, the largest over the vectors; INFINITY if C is not finite */
    double bound;    /* of the residual; else 0 only if k is 0, or no row was judged */
    size_t row;      /* 0 if no row was judged */

    size_t rows_judged;   /* rows_judged + rows_unjudged = the rows of C; both are 0 of an empty product */
    size_t rows_unjudged; /* their sums exceed the type's range, or may have done so on the way */

    /* Over the judged rows and all vectors: the sums of the squares of C·x - A·(B·x) and of A·(B·x). Their
     * last bits depend on the order of the additions. Of whole numbers the number of wrong rows, and 0. */
    struct mm_squares error;
    struct mm_squares norm;

    uint64_t took_ns; /* the time that the device (a CPU too) took for the check */
    uint64_t seed;    /* of the vectors: vector v is -1 at column j if bit v of mm_random_bits(seed, j) is
                         set, else 1; of whole numbers it is mm_verify_word(seed, v, j) */
};

/* "passed", "failed", "unjudged". A static string. */
const char *mm_verdict_name(enum mm_verdict verdict);

/* An estimate of ||C - A·B|| / ||A·B|| (Frobenius) over the judged rows, once the check is done. INFINITY if
 * C is not finite and should be, or is not 0 although A·(B·x) is, or whole numbers are wrong. */
double mm_verification_relative_error(const struct mm_verification *verification);

/* The verdict, once the check is done. */
enum mm_verdict mm_verification_verdict(const struct mm_verification *verification);
