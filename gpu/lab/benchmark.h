/* A benchmark times variants on one shape, with random matrices or with operands of the request. Each backend
 * runs its variants as one task of the queue (gpu/queue/task.h). One task ends before the next begins.
 *
 * A row has the results of one variant. The rows of a backend run alternately (A B C A B C). Each run uses
 * the next set of matrices. On a GPU, all sets together are larger than three times the L2 cache. Before the
 * first run of a row, C is filled with wrong values, and after this run all of C is checked. The first run
 * and a few more are warm-ups, and do not count.
 *
 * The caller owns a benchmark from open to close, and one thread at a time may use it. While a task is in the
 * queue, the queue owns the benchmark, and the caller calls none of these functions. Pointers are not NULL
 * unless the function says so. */
#pragma once

#include "gpu/device/backend.h"
#include "gpu/lab/traffic/traffic.h"
#include "gpu/queue/task.h"

enum { MM_BENCHMARK_ROWS_MAX = 64 };

#define MM_BENCHMARK_ROW_NS UINT64_C(2000000000)

struct mm_benchmark_subject {
    const struct mm_backend *backend;
    const struct mm_variant *variant; /* for the request's operation; may be `auto` */
    unsigned tile;                    /* one of variant->tiles; 0: the variant's default */
    bool is_model;                    /* no device can run the variant, so only its traffic is predicted */
};

/* What to measure. A product is op(A)·op(B), m×k by k×n, with an epilogue if `epilogue.is_set`. For a
 * transposition A is m×n and k is 0. */
struct mm_benchmark_request {
    enum mm_op op;
    size_t m;
    size_t n;
    size_t k;
    enum mm_dtype dtype;
    enum mm_dtype c_dtype; /* for a product: one of mm_dtype_results */
    bool transpose_a;
    bool transpose_b;
    struct mm_epilogue epilogue;
    uint64_t repeats; /* most runs of a row, without warm-ups */
    uint64_t row_ns;  /* a row starts no run after this time; 0: MM_BENCHMARK_ROW_NS */
    /* If a run is forecast to take longer (gpu/plan/forecast.h), the row fails. 0 if there is no limit. */
    uint64_t kernel_ms_max;

    /* Sources of the operands. If A's kind is MM_SOURCE_HOST, all kinds are MM_SOURCE_HOST, and the matrices
     * are random. Otherwise A has a source, and so has B of a product. With an epilogue, A and B always have
     * sources. The addend and the bias exist if their kind is not MM_SOURCE_HOST. The caller keeps references
     * to stored matrices until close. */
    struct mm_source sources[MM_OPERANDS_MAX];
    size_t subject_count;
    struct mm_benchmark_subject subjects[MM_BENCHMARK_ROWS_MAX];
};

struct mm_benchmark_limits {
    /* matrices->memory_bytes_max limits the sum of all matrices, the copies of operands that have sources,
     * and the memory of the check. */
    const struct mm_limits *matrices;
    uint64_t repeats_max;
    /* Operations of all runs. In a transposition, each element that is read or written counts as an
     * operation. */
    uint64_t flops_max;
    uint64_t run_flops_max; /* operations of one run */
};

/* Returns MM_TOO_LARGE if matrices or repeats exceed a limit. Ignores the subjects. error may be NULL. */
enum mm_status mm_benchmark_check_size(const struct mm_benchmark_request *request,
                                       const struct mm_benchmark_limits *limits, struct mm_error *error);

/* Returns MM_TOO_LARGE if the operations of one run or of all runs exceed a limit. Models have no runs. error
 * may be NULL. */
enum mm_status mm_benchmark_check_work(const struct mm_benchmark_request *request,
                                       const struct mm_benchmark_limits *limits, struct mm_error *error);

/* The results of a subject. */
struct mm_benchmark_row {
    struct mm_error error;          /* MM_OK, or why there are no results */
    const struct mm_variant *ran;   /* never `auto`; NULL if nothing ran */
    const struct mm_device *device; /* NULL if no device started the task */
    size_t set_count;               /* number of sets among which the runs rotated */
    unsigned repeats;               /* number of runs that count */
    double min_ns;                  /* kernel time of the runs that count */
    double median_ns;
    double max_ns;

    /* Estimated error of the whole result: ||C − A·B|| / ||A·B||. 0 for a transposition. INFINITY if an
     * element is not finite or was not written. NAN if no row of the request's operands can be checked, or if
     * there is an activation. */
    double relative_error;

    /* Largest error as a fraction of its bound, or INFINITY. For random operands, and if there is an
     * activation, this is the error of an element in the sample (gpu/check/sample.h). For other operands it
     * is the residual of a row (gpu/check/verify.h). NAN if the bound is too wide to show errors, or if no
     * row could be checked. For a transposition this is the fraction of wrong elements. */
    double max_error;

    /* The rate relative to a yardstick on this backend: `blas` for a product, a plain copy for a
     * transposition. 0 if the yardstick has no rate. */
    double of_yardstick;
};

struct mm_benchmark;

/* Makes a benchmark. The caller has checked the request. The benchmark uses at most memory_bytes_max of host
 * memory, unless one set of matrices needs more. Returns NULL if memory runs out. */
struct mm_benchmark *mm_benchmark_open(const struct mm_benchmark_request *request, size_t memory_bytes_max);

/* Frees the benchmark, which may be NULL. */
void mm_benchmark_close(struct mm_benchmark *benchmark);

/* Returns the most host memory that the benchmark will use. This includes the sets of host backends. */
size_t mm_benchmark_host_bytes(const struct mm_benchmark *benchmark);

/* Makes the task that measures the next backend. Sets all members except deadline_ns, done and owner.
 * Returns false, with the task untouched, if all backends were measured. */
bool mm_benchmark_next_task(struct mm_benchmark *benchmark, struct mm_task *task);

/* Sets the error of each row of the last task, unless the row already has an error. Call this if the task was
 * rejected or ended early. */
void mm_benchmark_fail_rows(struct mm_benchmark *benchmark, const struct mm_error *error);

/* Return the request and the rows, valid until close. Row i belongs to subject i, and is complete when the
 * task of the subject's backend ends. A transposition has one more row, for an unchecked plain copy on the
 * last device. */
const struct mm_benchmark_request *mm_benchmark_request(const struct mm_benchmark *benchmark);
const struct mm_benchmark_row *mm_benchmark_rows(const struct mm_benchmark *benchmark);

/* Returns GFLOP/s for a product, and GB/s read and written for a transposition; 0 if nothing was measured. */
double mm_benchmark_rate(const struct mm_benchmark *benchmark, const struct mm_benchmark_row *row);

/* Returns the plan of a row that ran. The benchmark owns the plan. */
const struct mm_plan *mm_benchmark_plan(const struct mm_benchmark *benchmark, size_t row);

/* Returns the predicted memory traffic of one run of a row. For variants of the host only the loads are
 * known, because the models have the warps and the banks of a GPU. No figure is known for a variant without a
 * model, and for a row with an error. */
struct mm_traffic mm_benchmark_traffic(const struct mm_benchmark *benchmark, size_t row);

/* Returns operations for each byte of global memory; 0 for a transposition, or if the bytes are not known. */
double mm_benchmark_intensity(const struct mm_benchmark *benchmark, const struct mm_traffic *traffic);
