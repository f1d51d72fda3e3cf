/* What a check comes to. */
#include "gpu/verification.h"

#include <assert.h>

static const char *const verdicts[MM_VERDICT_COUNT] = {
#define X(constant, name) [constant] = name,
    MM_VERDICT_TABLE(X)
#undef X
};

const char *mm_verdict_name(enum mm_verdict verdict) {
    assert(verdict < MM_VERDICT_COUNT);
    return verdicts[verdict];
}

enum mm_verdict mm_verification_verdict(const struct mm_verification *verification) {
    if (verification->residual > verification->bound)
        return MM_VERDICT_FAILED;
    if (verification->rows_judged == 0 && verification->rows_unjudged > 0)
        return MM_VERDICT_UNJUDGED;
    return MM_VERDICT_PASSED;
}
