/* The counters of the process. There are several copies, so threads do not slow each other down by writing to
 * one cache line. Counting needs no lock and no memory. scrape.c has the text format, the names and the
 * gauges. Any thread may call these functions. */
#pragma once

#include "api/problem.h"
#include "gpu/lab/benchmark.h"
#include "server/observe/record.h"
#include "server/http/routes.h"

enum { MM_BUCKET_COUNT = 25 };

/* Upper bounds of the buckets of all histograms: three for each power of ten, from 1 µs to 100 s. */
extern const uint64_t mm_bucket_bounds_ns[MM_BUCKET_COUNT];

struct mm_histogram {
    uint64_t buckets[MM_BUCKET_COUNT + 1]; /* not cumulative; the last bucket has no upper bound */
    uint64_t sum_ns;
};

/* Why the server closed a connection: the connection was idle while descriptors were short, its address had
 * too many connections, or its client read too slowly. */
enum mm_closed { MM_CLOSED_EVICTED, MM_CLOSED_ADDRESS, MM_CLOSED_SLOW_READER, MM_CLOSED_COUNT };

enum mm_reload { MM_RELOAD_KEYS, MM_RELOAD_TLS, MM_RELOAD_COUNT };

enum { MM_VARIANTS_MAX = 128 }; /* variants of all backends together */

/* Each counter has 64 bits, so mm_metrics_sum can treat the struct as one array. */
struct mm_counts {
    uint64_t begun;
    uint64_t requests[MM_ROUTE_LABELS][MM_HTTP_COUNT];
    struct mm_histogram durations[MM_ROUTE_LABELS];
    struct mm_histogram stages[MM_STAGE_COUNT];
    uint64_t rejected[MM_STATUS_COUNT];
    uint64_t busy[MM_BUSY_COUNT];
    uint64_t cancelled[MM_STAGE_COUNT];
    uint64_t uploaded_bytes;
    uint64_t downloaded_bytes;
    uint64_t device_errors[MM_DEVICES_MAX][MM_STATUS_COUNT]; /* indexed by the device's number */
    uint64_t closed[MM_CLOSED_COUNT];
    uint64_t products[MM_DTYPE_COUNT];
    uint64_t paths[MM_PATH_COUNT];
    uint64_t verdicts[MM_VERDICT_COUNT];
    uint64_t reload_failures[MM_RELOAD_COUNT];
    uint64_t store[MM_STORE_OPS][MM_STATUS_COUNT]; /* MM_INTERNAL also counts clients that left */
    struct mm_histogram kernels[MM_VARIANTS_MAX];
    double flops[MM_VARIANTS_MAX]; /* exact up to 2⁵³ operations */
};

/* Counts a request whose head has arrived. */
void mm_metrics_begin(void);

void mm_metrics_end(const struct mm_record *record);

/* Counts a client that was disconnected because it read a reply too slowly after the request had ended. */
void mm_metrics_drop(void);

/* Counts a job that has ended, even if its client has left. `account` is the client's, or NULL. */
void mm_metrics_work(struct mm_work *work, struct mm_account *account);

void mm_metrics_rows(const struct mm_benchmark *benchmark);

void mm_metrics_closed(enum mm_closed reason);

/* Counts a failed reload. The old keys or the old certificate stay valid. */
void mm_metrics_reload_failed(enum mm_reload what);

/* Adds up all copies into *counts. While other threads count, the sums may miss some counts. But a request
 * that counts as ended always counts as begun. */
void mm_metrics_sum(struct mm_counts *counts);

uint64_t mm_counts_in_flight(const struct mm_counts *counts);

/* Returns the index of a variant in `kernels` and `flops`. `row` is its index in the backend's table. */
size_t mm_variant_slot(const struct mm_backend *backend, size_t row);
