/* How long a job will take on a device, by what jobs before it took there. */
#ifndef MM_GPU_FORECAST_H
#define MM_GPU_FORECAST_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MM_FORECAST_VARIANTS_MAX = 64 };

/* The best times that were seen, so that a forecast is rather too short: what small or unlucky jobs took says
 * little of large ones. All 0: nothing was seen yet, and nothing is foretold. Whoever holds it guards it. */
struct mm_forecast {
    double kernel_ns[MM_FORECAST_VARIANTS_MAX]; /* for an operation or a byte of a matrix, by the variant's
                                                   row */
    double copy_ns;                             /* for a byte, there or back */
    double check_ns;                            /* for a byte of the three matrices, where they are checked */
};

/* Learns from a job that is over, and well: a first rate from one that took 50 µs at least, with a million
 * operations and bytes; a better one from any. */
void mm_forecast_learn(struct mm_forecast *forecast, const struct mm_job *job);

/* Nanoseconds that a job will take by this variant (not `auto`); job->product and job->queued_bytes are set.
 */
double mm_forecast_ns(const struct mm_forecast *forecast, const struct mm_job *job,
                      const struct mm_variant *ran);

#ifdef __cplusplus
}
#endif
#endif
