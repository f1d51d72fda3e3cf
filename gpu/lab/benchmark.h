/* A benchmark measures variants on one shape, with random matrices that the device generates or with
 * operands of the request. It runs as one task of the queue for each backend (gpu/queue/task.h), one after
 * the other.
 *
 * The rows of a backend run in turn (A B C A B C). They rotate over sets of operands, which together
 * exceed three times the L2 cache. The first run of a row overwrites a poisoned result, and all of that
 * result is checked. Random matrices are checked by gpu/check/projection.h and gpu/check/sample.h, and
 * operands of the request by gpu/check/verify.h. The first run and a few more are warm-ups and do not
 * count.
 *
 * The caller owns a benchmark from open to close, and one thread at a time may use it. While one of its
 * tasks is in the queue, the queue owns the benchmark, and the caller calls none of these functions. A
 * pointer may be NULL only if the function says so. */
#pragma once

#include "gpu/device/backend.h"
#include "gpu/lab/traffic/traffic.h"
#include "gpu/queue/task.h"

enum { MM_BENCHMARK_ROWS_MAX = 64 };

/* The time for one row if the request sets none. */
#define MM_BENCHMARK_ROW_NS UINT64_C(2000000000)

/* A variant to measure. */
struct mm_benchmark_subject {
    const struct mm_backend *backend;
    const struct mm_variant *variant; /* a variant for the request's operation; may be `auto` */
    unsigned tile;                    /* one of variant->tiles; 0: the variant's default */
    bool is_model; /* no device can run the variant: its traffic is predicted, and nothing is measured */
};

/* What to measure. A product is op(A)·op(B), m×k by k×n. For a transposition A is m×n, and k is 0. All
 * other numbers are positive, unless 0 has a meaning. */
struct mm_benchmark_request {
    enum mm_op op;
    size_t m;
    size_t n;
    size_t k;
    enum mm_dtype dtype;
    enum mm_dtype c_dtype;  /* for a product: the type of C, one of mm_dtype_results */
    bool transpose_a;       /* for a product: A is stored transposed */
    bool transpose_b;       /* for a product: B is stored transposed */
    uint64_t repeats;       /* the most runs of a row that count */
    uint64_t row_ns;        /* a row starts no run after so much time; 0: MM_BENCHMARK_ROW_NS */
    uint64_t kernel_ms_max; /* a row fails if one run would take longer by its device's rates; 0: no limit */

    /* Operands of the request. MM_SOURCE_HOST: there is none, and the matrices are random. A product has
     * both operands or none; a transposition has no B. The caller keeps references to stored values until
     * close. */
    struct mm_source sources[MM_OPERANDS_MAX];
    size_t subject_count;
    struct mm_benchmark_subject subjects[MM_BENCHMARK_ROWS_MAX];
};

struct mm_benchmark_limits {
    const struct mm_limits *matrices; /* memory_bytes_max is for A, B and C, a copy of given A and B, and the
                                         memory that checks C */
    uint64_t repeats_max;
    uint64_t flops_max;     /* operations of all runs; for a transposition, elements read and written */
    uint64_t run_flops_max; /* operations of one run */
};

/* Checks the sizes of a request's matrices: MM_TOO_LARGE names the limit that they exceed. The subjects
 * need not be set. error may be NULL. */
enum mm_status mm_benchmark_check_size(const struct mm_benchmark_request *request,
                                       const struct mm_benchmark_limits *limits, struct mm_error *error);

/* Checks the operations of all runs of a request: MM_TOO_LARGE names the limit that they exceed. Models
 * run nothing. error may be NULL. */
enum mm_status mm_benchmark_check_work(const struct mm_benchmark_request *request,
                                       const struct mm_benchmark_limits *limits, struct mm_error *error);

/* The results of one subject. */
struct mm_benchmark_row {
    struct mm_error error;          /* MM_OK, or why there are no results */
    const struct mm_variant *ran;   /* the variant that ran, never `auto`; NULL if nothing ran */
    const struct mm_device *device; /* the device that ran it; NULL if no device started the task */
    size_t set_count;               /* sets of matrices over which its runs rotated */
    unsigned repeats;               /* runs that count, without warm-ups: at least 1, at most the request's */
    double min_ns;                  /* kernel times of the runs that count: minimum, median and maximum */
    double median_ns;
    double max_ns;

    /* Error of the whole result. For random operands, ||C − A·B|| / ||A·B||, estimated by a projection;
     * INFINITY if an element is not finite or was not written. For operands of the request,
     * mm_verification_relative_error; NAN if no row could be checked. 0 for a transposition. */
    double relative_error;

    /* Largest error of an element. For random operands, the largest error in a sample as a fraction of its
     * bound (gpu/check/bounds.h). It is INFINITY if an element is not finite or an integer is wrong. It is
     * NAN if the bound is too wide to show errors. For operands of the request, the largest residual of a
     * row as a fraction of its bound. This is NAN if no row could be checked (gpu/check/verify.h). For a
     * transposition, the fraction of elements that are wrong. */
    double max_error;

    double of_yardstick; /* rate divided by the rate of `blas` on this backend, or for a transposition by the
                            rate of a plain copy on this device; 0 if there is none */
};

struct mm_benchmark;

/* Makes a benchmark of a request that was checked. On a host backend its sets, its times and the memory
 * for checks need at most memory_bytes_max, but there is always one set. NULL if memory runs out. */
struct mm_benchmark *mm_benchmark_open(const struct mm_benchmark_request *request, size_t memory_bytes_max);

/* Frees the benchmark. NULL is allowed. */
void mm_benchmark_close(struct mm_benchmark *benchmark);

/* Returns the most host memory that the benchmark uses: times, checks, operands of the request, and the
 * sets of host backends. */
size_t mm_benchmark_host_bytes(const struct mm_benchmark *benchmark);

/* Makes the task that measures the next backend, in the order of the subjects. Sets all members except
 * deadline_ns, done and owner. Returns false, with the task untouched, if all subjects except models were
 * measured. */
bool mm_benchmark_next_task(struct mm_benchmark *benchmark, struct mm_task *task);

/* Sets the error of the last task, which was rejected or ended early, for all of its rows that have no
 * error. */
void mm_benchmark_fail_rows(struct mm_benchmark *benchmark, const struct mm_error *error);

/* Return the request and the rows, valid until close. Row i belongs to subject i, and is complete when the
 * task of its backend ends. For a transposition there is one more row: the plain copy, which is not
 * checked, by the device that was measured last. */
const struct mm_benchmark_request *mm_benchmark_request(const struct mm_benchmark *benchmark);
const struct mm_benchmark_row *mm_benchmark_rows(const struct mm_benchmark *benchmark);

/* Returns the rate of a row: GFLOP/s for a product, GB/s read and written for a transposition; 0 if no
 * time passed. */
double mm_benchmark_rate(const struct mm_benchmark *benchmark, const struct mm_benchmark_row *row);

/* Returns the plan of a row that ran. The benchmark owns the plan. */
const struct mm_plan *mm_benchmark_plan(const struct mm_benchmark *benchmark, size_t row);

/* Returns the memory traffic of one run of a row, predicted by the variant's model. Variants of the host
 * have no model; only their loads are known. A product loads A once for every T columns of C, and B once
 * for every T rows, where T is the tile, or 1. Nothing is known for other variants without a model, for
 * libraries, and for a row with an error. */
struct mm_traffic mm_benchmark_traffic(const struct mm_benchmark *benchmark, size_t row);

/* Returns operations for each byte of global memory; 0 for a transposition, or if this is not known. */
double mm_benchmark_intensity(const struct mm_benchmark *benchmark, const struct mm_traffic *traffic);
