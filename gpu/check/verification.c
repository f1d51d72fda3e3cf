/* The verdict of a check, and its estimate of the error. */
#include "gpu/check/verification.h"

#include "gpu/names.h"

#include <math.h>

MM_DEFINE_NAMES(mm_verdict_name, mm_verdict, MM_VERDICT_COUNT, MM_VERDICT_TABLE)

double mm_verification_relative_error(const struct mm_verification *verification) {
    if (verification->error_squares == 0.0)
        return 0.0;
    const double error = sqrt(verification->error_squares / verification->norm_squares);
    return isfinite(error) ? error : (double)INFINITY;
}

enum mm_verdict mm_verification_verdict(const struct mm_verification *verification) {
    if (verification->residual > verification->bound)
        return MM_VERDICT_FAILED;
    if (verification->rows_judged == 0 && verification->rows_unjudged > 0)
        return MM_VERDICT_UNJUDGED;
    return MM_VERDICT_PASSED;
}
