/* A benchmark: variants timed against one another on one shape, on matrices that the device makes itself. It
 * goes through the queue as one task a backend (gpu/job.h), one after the other.
 *
 * Each backend's rows run in turn (A B C A B C), on sets of operands that rotate and together pass three
 * times the L2 cache. A row's first run writes over a poisoned result, all of which is then judged
 * (gpu/check/projection.h, gpu/check/sample.h). That run and a few more are warm-ups and do not count. */
#ifndef MM_GPU_LAB_BENCHMARK_H
#define MM_GPU_LAB_BENCHMARK_H

#include "gpu/backend.h"

enum { MM_BENCHMARK_ROWS_MAX = 64 };

/* What a row may take where the request does not say. */
#define MM_BENCHMARK_ROW_NS UINT64_C(2000000000)

#define MM_BENCHMARK_REPEATS_CUT (UINT64_C(1) << 53)

struct mm_benchmark_subject {
    const struct mm_backend *backend;
    const struct mm_variant *variant; /* of the request's op; may be `auto` */
    unsigned tile;                    /* one of variant->tiles; 0: its own */
};

/* m, n and k are of the product, op(A) being m×k and op(B) k×n; of a transposition A is m×n, and k is 0. */
struct mm_benchmark_request {
    enum mm_op op;
    size_t m;
    size_t n;
    size_t k;
    enum mm_dtype dtype;
    bool transpose_a; /* of a product alone: the operand is stored transposed */
    bool transpose_b;
    uint64_t repeats; /* MM_BENCHMARK_REPEATS_CUT stands for all that are more */
    uint64_t row_ns;  /* a row that has run for so long is repeated no more, each being run at least once; 0:
                         MM_BENCHMARK_ROW_NS */
    uint64_t kernel_ms_max; /* a row whose run would take longer by its device's rates is not measured, and
                               has that error; 0: any time */
    size_t subject_count;
    struct mm_benchmark_subject subjects[MM_BENCHMARK_ROWS_MAX];
};

struct mm_benchmark_limits {
    const struct mm_limits *matrices; /* memory_bytes_max: of A, B and C and of what judges C together */
    uint64_t repeats_max;
    uint64_t flops_max;     /* over all rows and repeats; for a transposition, of elements read and written */
    uint64_t run_flops_max; /* of one run */
};

/* Judge a request: MM_BAD_REQUEST for a 0 that must not be, MM_TOO_LARGE naming the limit. The size can be
 * judged before the subjects are known. They allocate nothing. */
enum mm_status mm_benchmark_judge_size(const struct mm_benchmark_request *request,
                                       const struct mm_benchmark_limits *limits, struct mm_error *error);
enum mm_status mm_benchmark_judge_work(const struct mm_benchmark_request *request,
                                       const struct mm_benchmark_limits *limits, struct mm_error *error);

/* What came of one subject. */
struct mm_benchmark_row {
    struct mm_error error;          /* MM_OK, or why there are no figures */
    const struct mm_variant *ran;   /* never `auto`; NULL where nothing was chosen */
    const struct mm_device *device; /* NULL where none took it up */
    size_t set_count;               /* over which its runs were rotated */
    unsigned repeats;               /* runs that count: at most the request's, at least 1 */
    double min_ns;                  /* of their kernel times */
    double median_ns;
    double max_ns;

    /* Of the whole product, ||C − A·B|| / ||A·B||, estimated by a projection; INFINITY if an element is
     * not finite or was not written. 0 of a transposition. */
    double relative_error;

    /* In a sample of the product, the largest fraction of the bound; of a transposition, the part of its
     * elements that is out of place. INFINITY if not finite; NAN if the bound is so wide that the sample
     * says nothing. */
    double max_error;

    double of_yardstick; /* its rate over that of `blas` on the same backend, or of a plain copy by the same
                            device; 0 where there was none */
};

struct mm_benchmark;

/* Makes a benchmark of a judged request. `memory_bytes_max` bounds its sets and what judges them on a host
 * backend (one set is always taken). NULL if memory runs out. */
struct mm_benchmark *mm_benchmark_open(const struct mm_benchmark_request *request, size_t memory_bytes_max);

/* No job of it is the queue's any more. NULL is allowed. */
void mm_benchmark_close(struct mm_benchmark *benchmark);

/* The most host memory that it takes beside its own state, once its first task begins: what judges the
 * results, and the sets of host backends. */
size_t mm_benchmark_host_bytes(const struct mm_benchmark *benchmark);

/* Sets the job's product, task, backend and variant to those of the next backend, in the order of the
 * subjects: false, and nothing changes, if all have been measured. The benchmark is the queue's as long as
 * the job is. */
bool mm_benchmark_next(struct mm_benchmark *benchmark, struct mm_job *job);

/* The last job was refused or ended early: its rows without an error of their own get this one. */
void mm_benchmark_refuse(struct mm_benchmark *benchmark, const struct mm_error *error);

/* The following may be asked once mm_benchmark_next has said false, and of a backend's rows as soon as its
 * job is over. Row i is of subject i; behind a transposition's rows stands that of the plain copy with which
 * they are compared, by the device of the backend that was measured last. It is not judged. */
const struct mm_benchmark_request *mm_benchmark_request(const struct mm_benchmark *benchmark);
const struct mm_benchmark_row *mm_benchmark_rows(const struct mm_benchmark *benchmark);

/* GFLOP/s of a product's row, GB/s read and written of a transposition's; 0 where no time passed. */
double mm_benchmark_rate(const struct mm_benchmark *benchmark, const struct mm_benchmark_row *row);

/* The elements that a row's kernel loads from global memory (predicted): a product loads A once for every
 * T columns of C and B once for every T rows; T is the tile, or 1. False for a library. */
bool mm_benchmark_loads(const struct mm_benchmark *benchmark, size_t row, uint64_t *elements);

#endif
