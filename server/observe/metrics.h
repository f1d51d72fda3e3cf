/* The counters of the process, in several copies to keep threads off each other's cache lines. Knows no text
 * format and no names (scrape.c). Counting takes no lock and no memory. Gauges are not here. */
#pragma once

#include "api/problem.h"
#include "gpu/lab/benchmark.h"
#include "server/observe/record.h"
#include "server/http/routes.h"

enum { MM_BUCKET_COUNT = 25 };

/* The upper bounds of all histograms: 1 µs to 100 s, three a decade. They rise. */
extern const uint64_t mm_bucket_bounds_ns[MM_BUCKET_COUNT];

struct mm_histogram {
    uint64_t buckets[MM_BUCKET_COUNT + 1]; /* not cumulative; the last has no bound */
    uint64_t sum_ns;
};

/* Why the server closed a connection: idle while descriptors were short, too many from its address, client
 * too slow. */
enum mm_closed { MM_CLOSED_EVICTED, MM_CLOSED_ADDRESS, MM_CLOSED_SLOW_READER, MM_CLOSED_COUNT };

/* What SIGHUP reads again. */
enum mm_reload { MM_RELOAD_KEYS, MM_RELOAD_TLS, MM_RELOAD_COUNT };

/* How a request to the store ended: well, or by one of the statuses of its own, or by any other. */
enum mm_store_result {
    MM_STORE_OK,
    MM_STORE_MISSED,
    MM_STORE_CONDITION,
    MM_STORE_NO_ROOM,
    MM_STORE_FAILED,
    MM_STORE_RESULTS
};

enum { MM_VARIANTS_MAX = 128 }; /* of all backends */

/* 64-bit counters throughout: they are added up without a look at which is which. */
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

/* A head was received. Any thread. */
void mm_metrics_begin(void);

/* A request is over. Any thread. */
void mm_metrics_end(const struct mm_record *record);

/* A slow reader was disconnected after its request was over, when the system had all of the reply. Any
 * thread. */
void mm_metrics_drop(void);

/* A job is over, even if its client has left. Any thread. */
void mm_metrics_work(struct mm_work *work);

/* A benchmark is over: counts the rows that failed on a device. Any thread. */
void mm_metrics_rows(const struct mm_benchmark *benchmark);

/* A connection was closed by the server. Any thread. */
void mm_metrics_closed(enum mm_closed reason);

/* A reload failed, and what was in force stays. Any thread. */
void mm_metrics_reload_failed(enum mm_reload what);

/* Adds up all copies into *counts. Counts that change meanwhile may be partial, but a request that has ended
 * is always among those begun. Any thread. */
void mm_metrics_sum(struct mm_counts *counts);

/* Requests begun and not ended. */
uint64_t mm_counts_in_flight(const struct mm_counts *counts);

/* The index of a variant: `row` of the backend's table. */
size_t mm_variant_slot(const struct mm_backend *backend, size_t row);
