/* What came of the check of a product (gpu/check/verify.h). It knows nothing of how it is done. */
#ifndef MM_GPU_CHECK_VERIFICATION_H
#define MM_GPU_CHECK_VERIFICATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One row a verdict: constant, wire name. */
#define MM_VERDICT_TABLE(X)                                                                                  \
    X(MM_VERDICT_PASSED, "passed")     /* no row that was judged is off by more than it may */               \
    X(MM_VERDICT_FAILED, "failed")     /* one is */                                                          \
    X(MM_VERDICT_UNJUDGED, "unjudged") /* there are rows, but none could be judged */

enum mm_verdict {
#define X(constant, name) constant,
    MM_VERDICT_TABLE(X)
#undef X
        MM_VERDICT_COUNT
};

/* Of the row whose residual is the largest part of its bound; of several such rows, the first. */
struct mm_verification {
    bool is_done;       /* else all else says nothing */
    double residual;    /* |C·x - A·(B·x)|, by the vector where it is largest; INFINITY: C is not finite */
    double bound;       /* that it may have; 0 only where k is, or where nothing was judged */
    size_t row;         /* 0 where none was judged */
    size_t rows_judged; /* which with the others make m; all are 0 of an empty product */
    size_t rows_unjudged; /* since what they are computed from, or may be, is beyond float32 */

    /* Over the rows that were judged and all vectors: the sums of the squares of C·x - A·(B·x) and of
     * A·(B·x). In which order they are added shows in their last bits. */
    double error_squares;
    double norm_squares;

    uint64_t took_ns; /* the device's time; of one that is done by a device */
    uint64_t seed;    /* of the vectors: number v of them has -1 for column j where bit v of
                         mm_random_bits(seed, j) is set */
};

/* "passed", "failed", "unjudged". Any thread. */
const char *mm_verdict_name(enum mm_verdict verdict);

/* Of a check that is done, an estimate of ||C - A·B|| / ||A·B|| (Frobenius) over the judged rows. INFINITY
 * if C is not finite and should be, or not 0 where A·(B·x) is. Any thread. */
double mm_verification_relative_error(const struct mm_verification *verification);

/* Of one that is done. */
enum mm_verdict mm_verification_verdict(const struct mm_verification *verification);

#ifdef __cplusplus
}
#endif
#endif
