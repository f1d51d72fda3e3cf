/* The state that benchmark.c, benchmark_run.c and benchmark_check.c share. No other file includes this
 * header.
 *
 * While a task is in the queue, only the worker thread of the device uses the state and calls these
 * functions. No pointer may be NULL. A function that fails sets the error, and the caller then ends the row
 * or the task. */
#pragma once

#include "gpu/lab/benchmark.h"
#include "gpu/check/sample.h"
#include "gpu/check/verify.h"

/* The library with which products are compared. */
#define MM_BENCHMARK_YARDSTICK "blas"

/* The seed of the stream that fills the sets. */
#define MM_BENCHMARK_SEED UINT64_C(0x6d61746d756c64)

/* Bytes of C in a part, which one step overwrites or checks. Such a step takes well under a millisecond, but
 * longer than the latency of a copy. A part of a product consists of whole rows. */
enum { MM_BENCHMARK_PART_BYTES = 1 << 18 };

/* The phases of a row. A row completes the phases before MM_BENCHMARK_REPEAT without a break. After that, the
 * rows run alternately, once each. The plain copy skips the checks. */
enum mm_benchmark_phase {
    MM_BENCHMARK_CHOOSE,    /* plans the runs */
    MM_BENCHMARK_POISON,    /* overwrites C of the first set, a part in each step */
    MM_BENCHMARK_FIRST_RUN, /* runs on the first set */
    MM_BENCHMARK_READ,      /* reads C back and checks it, a part in each step */
    MM_BENCHMARK_REPEAT,    /* each run uses the next set */
};

struct mm_benchmark_row_state {
    struct mm_plan plan;         /* made in the phase MM_BENCHMARK_CHOOSE */
    double *times_ns;            /* kernel times without warm-ups; has space for all repeats */
    uint64_t spent_ns;           /* time of all runs so far */
    struct mm_progress progress; /* progress of the current run; zeros between runs */
    unsigned warm_ups_left;
    enum mm_benchmark_phase phase;
    bool is_over; /* the row is complete, or belongs to another backend */
};

struct mm_benchmark {
    struct mm_benchmark_request request;

    /* The layout of a set: each operand and then C begins at its offset. Sets are set_bytes apart. */
    struct mm_product product; /* points to `given`, or has no data */
    size_t offsets[MM_PRODUCT_MATRICES];
    size_t set_bytes;
    size_t host_set_count; /* number of sets on a host backend */

    /* One row for each subject. A transposition has one more row, for the plain copy. */
    struct mm_benchmark_row rows[MM_BENCHMARK_ROWS_MAX + 1];
    struct mm_benchmark_row_state row_states[MM_BENCHMARK_ROWS_MAX + 1];
    size_t row_count;

    /* The operands that have sources in host memory, laid out as in a set. NULL if the matrices are
     * random. */
    char *given;
    size_t given_count; /* elements of all operands that are complete */

    /* For the check. A product has a verification, unless there is an activation. The elements of random
     * matrices and of products with an activation are also sampled. */
    uint64_t streams[2]; /* the seeds of random A and B */
    struct mm_sample sample;
    unsigned expected_spans; /* number of spans whose exact elements are known */
    struct mm_verification verification;
    uint64_t seed;        /* seed of all verifications */
    size_t prepared_rows; /* rows that mm_verify_prepare has summed */
    size_t check_bytes;   /* bytes of `given`, check_memory and `part` together */
    void *check_memory;   /* memory of the verification */
    char *part;           /* buffer for a part of C */
    size_t part_bytes;
    size_t c_bytes_done; /* bytes of C overwritten or read so far; 0 after the last part */

    /* The state of the current backend. */
    const struct mm_backend *backend;
    char *memory; /* device memory of all sets; NULL before it is acquired */
    size_t set_count;
    size_t filled;                         /* elements that were filled; with `given`, bytes */
    size_t current_row;                    /* index of the row that runs next */
    size_t run_count;                      /* runs so far; selects the set */
    bool was_asked[MM_BENCHMARK_ROWS_MAX]; /* whether the subject's backend has got its task */

    double times_ns[]; /* times of all rows; the memory of the check follows (divide_memory) */
};

/* Returns the type that fills the matrices. All transpositions use float32, because random float32 numbers
 * are seldom equal, so a misplaced element shows. */
static inline enum mm_dtype mm_benchmark_fill_dtype(const struct mm_benchmark *benchmark) {
    return benchmark->request.op == MM_MATMUL ? benchmark->request.dtype : MM_FLOAT32;
}

static inline bool mm_benchmark_has_activation(const struct mm_benchmark_request *request) {
    return request->epilogue.is_set && request->epilogue.activation != MM_ACTIVATION_NONE;
}

enum mm_task_state mm_benchmark_run(struct mm_task *task, struct mm_device *device, bool cancelled);

/* --- defined in benchmark_check.c */

/* Computes a part of the expected result. Returns false if nothing remained to compute. The caller has
 * already copied the client's operands to host memory. */
bool mm_benchmark_compute_expected(struct mm_benchmark *benchmark);

/* Overwrites the next part of C in the first set with wrong values. Sets benchmark->c_bytes_done to 0 after
 * the last part. */
enum mm_status mm_benchmark_poison(struct mm_benchmark *benchmark, struct mm_device *device,
                                   const struct mm_product *product, struct mm_error *error);

/* Reads back and checks the next part of C. After the last part, sets benchmark->c_bytes_done to 0 and the
 * errors of the row. */
enum mm_status mm_benchmark_read(struct mm_benchmark *benchmark, struct mm_device *device,
                                 const struct mm_product *product, struct mm_benchmark_row *row);
