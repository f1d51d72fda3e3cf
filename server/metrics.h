/* What is counted: one struct of counters, in several copies so that threads do not fight for the same
 * cache lines, added up by whoever asks. Knows no text format: that is metrics_text.h's, and which names
 * the counters have is scrape.c's.
 *
 * Counting takes no lock and no memory. Gauges are not here: they are asked of those who know. */
#ifndef MM_SERVER_METRICS_H
#define MM_SERVER_METRICS_H

#include "gpu/benchmark.h"
#include "server/record.h"
#include "server/routes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MM_CODE_COUNT = 18, MM_BUCKET_COUNT = 25 };

/* Every HTTP status that a request can be counted under, and the upper bounds of all histograms' buckets:
 * a microsecond to 100 s, three a decade. Both rise. */
extern const unsigned mm_codes[MM_CODE_COUNT];
extern const uint64_t mm_bucket_bounds_ns[MM_BUCKET_COUNT];

struct mm_histogram {
    uint64_t buckets[MM_BUCKET_COUNT + 1]; /* not cumulative; the last is what passes all bounds */
    uint64_t sum_ns;
};

/* How a device can fail a job, or a row of a benchmark. */
enum mm_device_error { MM_ERROR_DEVICE_FAILED, MM_ERROR_NO_DEVICE_MEMORY, MM_ERROR_INTERNAL, MM_ERROR_COUNT };

enum { MM_VARIANTS_MAX = 128 }; /* over all backends that were built in */

/* 64-bit counters throughout, so that they can be added up without looking at which is which. */
struct mm_counts {
    uint64_t begun; /* requests */
    uint64_t requests[MM_ROUTE_LABELS][MM_CODE_COUNT];
    struct mm_histogram durations[MM_ROUTE_LABELS];
    struct mm_histogram stages[MM_STAGE_COUNT];
    uint64_t rejected[MM_STATUS_COUNT];
    uint64_t cancelled[MM_STAGE_COUNT];
    uint64_t uploaded_bytes;
    uint64_t downloaded_bytes;
    uint64_t device_errors[MM_ERROR_COUNT];
    uint64_t paths[MM_PATH_COUNT];
    uint64_t verdicts[MM_VERDICT_COUNT];
    struct mm_histogram kernels[MM_VARIANTS_MAX];
    double flops[MM_VARIANTS_MAX]; /* exact up to 2⁵³ */
};

struct mm_metrics;

/* All 0. NULL when memory is out. */
struct mm_metrics *mm_metrics_open(void);

/* Nobody counts any more. NULL is allowed. */
void mm_metrics_close(struct mm_metrics *metrics);

/* A request's head is here. Any thread. */
void mm_metrics_begin(struct mm_metrics *metrics);

/* A request is over. Any thread. */
void mm_metrics_end(struct mm_metrics *metrics, const struct mm_record *record);

/* A job is over, whoever still wants it. Any thread. */
void mm_metrics_job(struct mm_metrics *metrics, const struct mm_job *job);

/* A benchmark's task on a backend is over, whoever still wants it: of that backend's rows those that failed
 * on the device are counted. Any thread. */
void mm_metrics_rows(struct mm_metrics *metrics, const struct mm_benchmark *benchmark,
                     const struct mm_backend *backend);

/* Adds all up into *counts, which is overwritten. What is counted meanwhile may be there in part, but
 * requests that have ended are always among those begun. Any thread. */
void mm_metrics_sum(const struct mm_metrics *metrics, struct mm_counts *counts);

/* Requests begun and not ended. */
uint64_t mm_counts_in_flight(const struct mm_counts *counts);

/* Where a variant is counted: `row` of the table of a backend that was built in. */
size_t mm_variant_slot(const struct mm_backend *backend, size_t row);

#ifdef __cplusplus
}
#endif
#endif
