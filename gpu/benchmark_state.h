/* What benchmark.c (requests and figures) and benchmark_run.c (the measuring) share, and nobody else sees. */
#ifndef MM_GPU_BENCHMARK_STATE_H
#define MM_GPU_BENCHMARK_STATE_H

#include "gpu/benchmark.h"
#include "gpu/sample.h"

/* The variant that products are compared with, which is a library's. */
#define MM_BENCHMARK_YARDSTICK "blas"

/* How far a row has come. */
struct mm_benchmark_course {
    double *times_ns; /* the request's repeats of them, `repeats` of the row are there */
    uint64_t spent_ns;
    unsigned warm_ups_left;
    bool has_run;
    bool is_over; /* also where it is not of the backend at hand */
};

/* What a backend's task does, in this order. */
enum mm_benchmark_stage {
    MM_BENCHMARK_TAKE,    /* the memory of all sets */
    MM_BENCHMARK_FILL,    /* it with numbers, a piece a step */
    MM_BENCHMARK_EXPECT,  /* to know what results must be, a span of the sample a step */
    MM_BENCHMARK_MEASURE, /* the rows in turn, a run a step */
};

struct mm_benchmark {
    struct mm_task task;
    struct mm_benchmark_request request;
    size_t memory_bytes_max;

    /* The first set: the views' data are offsets into the memory, and every other set lies set_bytes behind
     * the one before. All of a set is made of random numbers, C's too, that begin with those of A. */
    struct mm_product product;
    size_t set_bytes;
    size_t b_offset;
    size_t c_offset;

    /* By subject; behind them the plain copy, of transpositions' benchmarks. */
    struct mm_benchmark_row rows[MM_BENCHMARK_ROWS_MAX + 1];
    struct mm_benchmark_course courses[MM_BENCHMARK_ROWS_MAX + 1];
    size_t row_count;

    /* Of the first set, on which every row is judged; the same for all backends. */
    struct mm_sample sample;
    unsigned expected; /* spans of the sample */

    /* Of the backend at hand. */
    const struct mm_backend *backend;
    enum mm_benchmark_stage stage;
    char *memory; /* the device's; NULL: none */
    size_t set_count;
    size_t filled;                         /* numbers */
    size_t at;                             /* the row whose turn it is */
    size_t turn;                           /* the runs so far, which rotate the sets */
    bool was_asked[MM_BENCHMARK_ROWS_MAX]; /* subjects whose backend has had its turn */

    double times_ns[]; /* the courses' */
};

/* Does a slice of the task, of the benchmark that it stands in. */
enum mm_task_state mm_benchmark_run(struct mm_task *task, struct mm_device *device, bool cancelled,
                                    struct mm_error *error);

/* How many sets are used where the backend is the host's: two, or one where two would take too much. */
size_t mm_benchmark_host_sets(const struct mm_benchmark *benchmark);

#endif
