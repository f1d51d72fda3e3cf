/* The counters of the process, in several copies to keep threads off each other's cache lines. Knows no text
 * format and no names (scrape.c). Counting needs no lock and no memory. Gauges are not here. Any thread may
 * call these functions. */
#pragma once

#include "api/problem.h"
#include "gpu/lab/benchmark.h"
#include "server/observe/record.h"
#include "server/http/routes.h"

enum { MM_BUCKET_COUNT = 25 };

/* The upper bounds of all histograms, ascending: 1 µs to 100 s, three a decade. */
extern const uint64_t mm_bucket_bounds_ns[MM_BUCKET_COUNT];

struct mm_histogram {
    uint64_t buckets[MM_BUCKET_COUNT + 1]; /* not cumulative; the last has no bound */
    uint64_t sum_ns;
};

/* Why the server closed a connection: it was idle while descriptors were short, its address had too many, or
 * its client was too slow. */
enum mm_closed { MM_CLOSED_EVICTED, MM_CLOSED_ADDRESS, MM_CLOSED_SLOW_READER, MM_CLOSED_COUNT };

/* What SIGHUP reloads. */
enum mm_reload { MM_RELOAD_KEYS, MM_RELOAD_TLS, MM_RELOAD_COUNT };

/* How a request to the store ended: well, with one of the store's own statuses, or with any other. */
enum mm_store_result {
    MM_STORE_OK,
    MM_STORE_MISSED,
    MM_STORE_CONDITION,
    MM_STORE_NO_ROOM,
    MM_STORE_FAILED,
    MM_STORE_RESULTS
};

enum { MM_VARIANTS_MAX = 128 }; /* of all backends */

/* All counters have 64 bits, so they can be added up as one array. */
struct mm_counts {
    uint64_t begun; /* requests */
    uint64_t requests[MM_ROUTE_LABELS][MM_HTTP_COUNT];
    struct mm_histogram durations[MM_ROUTE_LABELS];
    struct mm_histogram stages[MM_STAGE_COUNT];
    uint64_t rejected[MM_STATUS_COUNT];
    uint64_t cancelled[MM_STAGE_COUNT];
    uint64_t uploaded_bytes;
    uint64_t downloaded_bytes;
    uint64_t device_errors[MM_DEVICES_MAX][MM_STATUS_COUNT]; /* by the device's number */
    uint64_t closed[MM_CLOSED_COUNT];                        /* connections */
    uint64_t products[MM_DTYPE_COUNT];                       /* by the operands' type */
    uint64_t paths[MM_PATH_COUNT];
    uint64_t verdicts[MM_VERDICT_COUNT];
    uint64_t reload_failures[MM_RELOAD_COUNT];
    uint64_t store[MM_STORE_OPS][MM_STORE_RESULTS];
    struct mm_histogram kernels[MM_VARIANTS_MAX];
    double flops[MM_VARIANTS_MAX]; /* exact up to 2⁵³ */
};

/* Counts a request whose head was received. */
void mm_metrics_begin(void);

/* Counts a request that is over. */
void mm_metrics_end(const struct mm_record *record);

/* Counts a slow reader that was disconnected after its request was over, when the system had all of the
 * reply. */
void mm_metrics_drop(void);

/* Counts a job that is over, even if its client has left. */
void mm_metrics_work(struct mm_work *work);

/* Counts the rows of a finished benchmark that failed on a device. */
void mm_metrics_rows(const struct mm_benchmark *benchmark);

/* Counts a connection that the server closed. */
void mm_metrics_closed(enum mm_closed reason);

/* Counts a reload that failed, so what was in force stays. */
void mm_metrics_reload_failed(enum mm_reload what);

/* Adds up all copies into *counts. Counts that change meanwhile may be partial, but a request that has ended
 * is always among those begun. */
void mm_metrics_sum(struct mm_counts *counts);

/* How many requests have begun and not ended. */
uint64_t mm_counts_in_flight(const struct mm_counts *counts);

/* The index of a variant, which is number `row` in the backend's table. */
size_t mm_variant_slot(const struct mm_backend *backend, size_t row);
