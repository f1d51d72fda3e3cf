/* A benchmark: rows of a variant table, timed against one another on one shape, on matrices that the device
 * makes itself. It goes through the queue as one task a backend (gpu/job.h), one after the other.
 *
 * Each backend's rows are run in turn (A B C A B C), on sets of operands that are rotated so that together
 * they pass three times the device's L2 cache. Before a row's first run all of its result is poisoned; after
 * it, all of it is judged (gpu/projection.h, gpu/sample.h). That run and a few more are warm-ups and not
 * counted. */
#ifndef MM_GPU_BENCHMARK_H
#define MM_GPU_BENCHMARK_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A run on one of the host's cores counts this many times as much work as one on a device. */
enum { MM_BENCHMARK_ROWS_MAX = 64, MM_BENCHMARK_HOST_FACTOR = 1000, MM_BENCHMARK_ELEMENTS_MIN = 65536 };

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
    size_t subject_count;
    struct mm_benchmark_subject subjects[MM_BENCHMARK_ROWS_MAX];
};

struct mm_benchmark_limits {
    const struct mm_limits *matrices; /* memory_bytes_max: of A, B and C and of what judges C together */
    uint64_t repeats_max;
    uint64_t flops_max; /* over all rows and repeats; for a transposition, of elements read and written. One
                           on the host counts MM_BENCHMARK_HOST_FACTOR times, and a product on another
                           device as if its C had MM_BENCHMARK_ELEMENTS_MIN elements at least */
    uint64_t run_flops_max; /* of one run, which nothing can interrupt */
};

/* Judge a request: MM_BAD_REQUEST for what is 0 and must not be, MM_TOO_LARGE naming the limit. The size can
 * be judged before the subjects are known. They allocate nothing. */
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

    /* Of the whole product, ||C − A·B|| / ||A·B||, as a projection estimates it (mm_projection_error);
     * INFINITY where an element is not finite or was not written. 0 of a transposition. */
    double relative_error;

    /* In a sample of the product, the largest fraction of the bound; of a transposition, the part of its
     * elements that is not where it belongs. INFINITY for what is not finite; NAN where the bound is so wide
     * that the sample says nothing (mm_sample_zeros_error). */
    double max_error;

    double of_yardstick; /* its rate over that of `blas` on the same backend, or of a plain copy by the same
                            device; 0 where there was none */
};

struct mm_benchmark;

/* Makes a benchmark of a request that was judged. `memory_bytes_max` bounds what all sets take, together with
 * what judges them, where device memory is the host's (but for one set, which is always taken). NULL where
 * memory is out. */
struct mm_benchmark *mm_benchmark_open(const struct mm_benchmark_request *request, size_t memory_bytes_max);

/* No job of it is the queue's any more. NULL is allowed. */
void mm_benchmark_close(struct mm_benchmark *benchmark);

/* The most of the host's memory that it takes beside its own state, and not before its first task begins:
 * what judges the results and, where a subject's backend is the host's, its sets. */
size_t mm_benchmark_host_bytes(const struct mm_benchmark *benchmark);

/* Makes the job's product, task, backend and variant those of the next backend's rows, in the order in which
 * the subjects name them: false, and nothing is changed, where all have been measured. The benchmark is the
 * queue's as long as the job is. */
bool mm_benchmark_next(struct mm_benchmark *benchmark, struct mm_job *job);

/* The job that was made last came to nothing, be it refused or ended before its rows were: each of those
 * that did not fail by itself has this error. */
void mm_benchmark_refuse(struct mm_benchmark *benchmark, const struct mm_error *error);

/* The following may be asked once mm_benchmark_next has said false, and of a backend's rows as soon as its
 * job is over. Row i is of subject i. */
const struct mm_benchmark_request *mm_benchmark_request(const struct mm_benchmark *benchmark);
const struct mm_benchmark_row *mm_benchmark_rows(const struct mm_benchmark *benchmark);

/* The row of the plain copy with which transpositions are compared, by the device of the backend that was
 * measured last; it is not judged. NULL of a product. */
const struct mm_benchmark_row *mm_benchmark_copy(const struct mm_benchmark *benchmark);

/* Whether a row that ran is certainly wrong: an element of a transposition is out of place, a product is not
 * finite or in its sample past the bound, or its relative error is over 10^-6 and over 10^-7·√k as well,
 * which is four times what float32 adds up to in turn (2.4·10^-8·√k). The latter is not asked of a product of
 * fewer than 16 elements, whose norm may be small by chance. */
bool mm_benchmark_is_wrong(const struct mm_benchmark *benchmark, const struct mm_benchmark_row *row);

/* GFLOP/s of a product's row, GB/s read and written of a transposition's; 0 where no time passed. */
double mm_benchmark_rate(const struct mm_benchmark *benchmark, const struct mm_benchmark_row *row);

/* The elements that a row's kernel loads from global memory (predicted). With T the edge of the square of C
 * whose threads share what is loaded, a product loads A once for every T columns of C and B once for every T
 * rows; T is the tile, or 1. False where it is a library's, and so not ours to tell. */
bool mm_benchmark_loads(const struct mm_benchmark *benchmark, size_t row, uint64_t *elements);

#ifdef __cplusplus
}
#endif
#endif
