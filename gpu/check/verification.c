/* Computes the verdict of a check and the estimated error. */
#include "gpu/check/verification.h"

#include "gpu/names.h"

#include <math.h>

MM_DEFINE_NAMES(mm_verdict_name, mm_verdict, MM_VERDICT_COUNT, MM_VERDICT_TABLE)

double mm_verification_relative_error(const struct mm_verification *verification) {
    const struct mm_squares *error = &verification->error, *norm = &verification->norm;
    const double scale = norm->large > 0.0 ? 0x1p-64 : 1.0; /* prevents an overflow of the norm's root */
    if (error->middle == 0.0 && error->small == 0.0 && error->large == 0.0)
        return 0.0;
    const double relative = mm_squares_root(error, scale) / mm_squares_root(norm, scale);
    return isfinite(relative) ? relative : (double)INFINITY;
}

enum mm_verdict mm_verification_verdict(const struct mm_verification *verification) {
    if (verification->residual > verification->bound)
        return MM_VERDICT_FAILED;
    if (verification->rows_checked == 0 && verification->rows_unjudged > 0)
        return MM_VERDICT_UNJUDGED;
    return MM_VERDICT_PASSED;
}
