/* A benchmark: variants timed against one another on one shape, with random matrices that the device
 * generates, or with operands of the request. It goes through the queue as one task for each backend
 * (gpu/queue/task.h), one after the other.
 *
 * Each backend's rows run in turn (A B C A B C), on sets of operands that rotate and together exceed three
 * times the L2 cache. A row's first run writes over a poisoned result, and all of that result is checked: of
 * random matrices by gpu/check/projection.h and gpu/check/sample.h, of given ones, which may have any
 * elements, by gpu/check/verify.h. That run and a few more are warm-ups and do not count.
 *
 * The caller owns a benchmark from open to close, and any one thread at a time may use it. While one of its
 * tasks is in the queue, the benchmark belongs to the queue, and the caller calls none of these functions. No
 * pointer may be NULL, unless it says so. */
#pragma once

#include "gpu/device/backend.h"
#include "gpu/lab/traffic/traffic.h"
#include "gpu/queue/task.h"

enum { MM_BENCHMARK_ROWS_MAX = 64 };

/* The time of a row if the request sets none. */
#define MM_BENCHMARK_ROW_NS UINT64_C(2000000000)

struct mm_benchmark_subject {
    const struct mm_backend *backend;
    const struct mm_variant *variant; /* of the request's op; may be `auto` */
    unsigned tile;                    /* one of variant->tiles; 0: the variant's own */
    bool is_model; /* no device can run it: its traffic is predicted, and nothing is measured */
};

/* A product is op(A)·op(B), m×k by k×n. A transposition has an A of m×n, and k is 0. No other number is 0,
 * except where 0 has a meaning. */
struct mm_benchmark_request {
    enum mm_op op;
    size_t m;
    size_t n;
    size_t k;
    enum mm_dtype dtype;
    enum mm_dtype c_dtype; /* of a product: one of mm_dtype_results */
    bool transpose_a;      /* of a product: the operand is stored transposed */
    bool transpose_b;
    uint64_t repeats;
    uint64_t row_ns;        /* a row that has run for so long starts no further run. 0: MM_BENCHMARK_ROW_NS */
    uint64_t kernel_ms_max; /* a row fails if its run would take longer by its device's rates; 0: any time */

    /* Given operands. MM_SOURCE_HOST: none is given, and the matrices are random. A product has both or
     * neither; a transposition has no B. The caller holds stored values until close. */
    struct mm_source sources[MM_OPERANDS_MAX];
    size_t subject_count;
    struct mm_benchmark_subject subjects[MM_BENCHMARK_ROWS_MAX];
};

struct mm_benchmark_limits {
    const struct mm_limits *matrices; /* memory_bytes_max: of A, B, C and of the memory that checks C,
                                            with a copy of A and B if they are given */
    uint64_t repeats_max;
    uint64_t flops_max;     /* of all runs together; a transposition counts elements read and written */
    uint64_t run_flops_max; /* of one run */
};

/* Checks the matrices of a request against the limits: MM_TOO_LARGE names the limit. The subjects need not be
 * set. error may be NULL. */
enum mm_status mm_benchmark_check_size(const struct mm_benchmark_request *request,
                                       const struct mm_benchmark_limits *limits, struct mm_error *error);

/* Checks the operations of all runs of a request against the limits: MM_TOO_LARGE names the limit. Models run
 * nothing. error may be NULL. */
enum mm_status mm_benchmark_check_work(const struct mm_benchmark_request *request,
                                       const struct mm_benchmark_limits *limits, struct mm_error *error);

/* The figures of one subject. */
struct mm_benchmark_row {
    struct mm_error error;          /* MM_OK, or why there are no figures */
    const struct mm_variant *ran;   /* never `auto`; NULL if nothing ran */
    const struct mm_device *device; /* NULL if no device took the task */
    size_t set_count;               /* the sets that its runs rotated over */
    unsigned repeats;               /* runs that count: at least 1, at most the request's */
    double min_ns;                  /* of their kernel times */
    double median_ns;
    double max_ns;

    /* Of a whole product, ||C − A·B|| / ||A·B||, estimated by a projection. INFINITY if an element is not
     * finite or was not written. 0 of a transposition. Of given operands, mm_verification_relative_error; NAN
     * if no row could be checked. */
    double relative_error;

    /* In a sample of a product, the largest error as a fraction of its bound (gpu/check/bounds.h). INFINITY
     * if an element is not finite, or a whole number is wrong; NAN if the bound is so wide that the sample
     * says nothing. Of given operands, the largest residual of a row as a fraction of its bound
     * (gpu/check/verify.h), or NAN if no row could be checked. Of a transposition, the fraction of elements
     * that are out of place. */
    double max_error;

    double of_yardstick; /* its rate as a fraction of the rate of `blas` on the same backend, or of a plain
                            copy by the same device; 0 if there was none */
};

struct mm_benchmark;

/* Makes a benchmark of a request that was checked. On a backend of the host its sets, its times and the
 * memory that checks them take at most memory_bytes_max, but there is always one set. NULL if memory runs
 * out. */
struct mm_benchmark *mm_benchmark_open(const struct mm_benchmark_request *request, size_t memory_bytes_max);

/* Frees it. NULL is allowed. */
void mm_benchmark_close(struct mm_benchmark *benchmark);

/* The most host memory that it fills: its times, what the checks need, given operands, and the sets of
 * host backends. */
size_t mm_benchmark_host_bytes(const struct mm_benchmark *benchmark);

/* Makes the task that measures the next backend, in the order of the subjects: sets all members but those
 * that the owner sets otherwise (deadline_ns, done, owner). False if all have been measured that are no
 * models; the task is untouched then. */
bool mm_benchmark_next(struct mm_benchmark *benchmark, struct mm_task *task);

/* The last task was refused or ended early: its rows without an error of their own get this one. */
void mm_benchmark_refuse(struct mm_benchmark *benchmark, const struct mm_error *error);

/* What was asked, and the rows. Valid until close. Row i belongs to subject i, and is complete once the task
 * of its backend is over. Behind the rows of a transposition is one of the plain copy, which is not checked,
 * by the device that was measured last. */
const struct mm_benchmark_request *mm_benchmark_request(const struct mm_benchmark *benchmark);
const struct mm_benchmark_row *mm_benchmark_rows(const struct mm_benchmark *benchmark);

/* GFLOP/s of a product's row, GB/s read and written of a transposition's; 0 if no time passed. */
double mm_benchmark_rate(const struct mm_benchmark *benchmark, const struct mm_benchmark_row *row);

/* How a row was computed. It must have run; the plan is the benchmark's. */
const struct mm_plan *mm_benchmark_plan(const struct mm_benchmark *benchmark, size_t row);

/* The memory traffic of one run of a row, predicted by the model of the variant that ran, or would. A variant
 * of the host has no model, and only its loads are known: a product loads A once for every T columns of C and
 * B once for every T rows, where T is the tile, or 1. Nothing is known of other variants without a model, of
 * libraries, or of a row with an error. */
struct mm_traffic mm_benchmark_traffic(const struct mm_benchmark *benchmark, size_t row);

/* Operations a byte of global memory that is asked for; 0 of a transposition, or if that is not known. */
double mm_benchmark_intensity(const struct mm_benchmark *benchmark, const struct mm_traffic *traffic);
