/* What benchmark.c (requests and figures), benchmark_run.c (the measuring) and benchmark_check.c (whether
 * results are right) share. No other file includes it.
 *
 * Once a benchmark's task is in the queue, only the thread of its device's worker calls these functions, and
 * only it uses the state. No pointer may be NULL. If a function returns a status, it fills the error in, and
 * the caller ends the row or the task. */
#pragma once

#include "gpu/lab/benchmark.h"
#include "gpu/check/projection.h"
#include "gpu/check/sample.h"
#include "gpu/check/verify.h"

/* The library's variant, with which products are compared. */
#define MM_BENCHMARK_YARDSTICK "blas"

/* The seed of the random stream that fills every set of matrices. */
#define MM_BENCHMARK_SEED UINT64_C(0x6d61746d756c64)

/* The part of C that one step overwrites or checks: well under a millisecond, and longer than the latency of
 * its copy. Of given operands, the whole rows of it, and at least one row. */
enum { MM_BENCHMARK_PART_BYTES = 1 << 18 };

/* The phases of a row. Its first turn goes through all of them, except that the plain copy is not checked.
 * Every other turn is one more run. */
enum mm_benchmark_phase {
    MM_BENCHMARK_CHOOSE, /* plans what is run */
    MM_BENCHMARK_POISON, /* overwrites C of the first set, one part in each step */
    MM_BENCHMARK_PROVE,  /* runs on the first set */
    MM_BENCHMARK_READ,   /* reads that result back and checks it, one part in each step */
    MM_BENCHMARK_REPEAT, /* runs on all sets in turn */
};

/* How far a row has come. */
struct mm_benchmark_course {
    struct mm_plan plan;         /* made by MM_BENCHMARK_CHOOSE */
    double *times_ns;            /* of the runs that count; there is room for all repeats */
    uint64_t spent_ns;           /* on all runs */
    struct mm_progress progress; /* of the current run; all 0 between two runs */
    unsigned warm_ups_left;
    enum mm_benchmark_phase phase;
    bool is_over; /* also if the row belongs to another backend */
};

struct mm_benchmark {
    struct mm_benchmark_request request;

    /* A set: A begins at 0, B and C at their offsets. Each set begins set_bytes behind the one before. */
    struct mm_product product; /* the data of given operands are `given`; else it has none */
    size_t b_offset;
    size_t c_offset;
    size_t set_bytes;
    size_t host_set_count; /* on a backend of the host */

    /* By subject. The plain copy of a transposition's benchmark is behind them. */
    struct mm_benchmark_row rows[MM_BENCHMARK_ROWS_MAX + 1];
    struct mm_benchmark_course courses[MM_BENCHMARK_ROWS_MAX + 1];
    size_t row_count;

    /* What was given, in host memory, as it begins a set. NULL: nothing, the matrices are random. */
    char *given;
    size_t given_count; /* elements of A, and then of B, that are there */

    /* Every row of every backend is checked on the first set: a product of random matrices by sample and
     * projection, one of given operands by verification, a transposition by none of them. */
    struct mm_random_product operands;
    struct mm_sample sample;
    unsigned expected; /* spans of the sample that are computed */
    struct mm_projection projection;
    struct mm_verification verification; /* of the result that is read back */
    uint64_t seed;                       /* of all verifications */
    size_t prepared;                     /* stored rows, for mm_verify_prepare */
    size_t checking_bytes;               /* `given`, the memory of projection or verification, and the part */
    void *check;                         /* that memory */
    char *part;                          /* of C */
    size_t part_bytes;
    size_t c_bytes_done; /* bytes of C that are overwritten or read back so far; 0 once all are */

    /* Of the current backend. */
    const struct mm_backend *backend;
    char *memory; /* of all sets, the device's; NULL: not acquired */
    size_t set_count;
    size_t filled;                         /* elements of mm_benchmark_filling; of what is given, bytes */
    size_t at;                             /* the row that has its turn */
    size_t turn;                           /* the runs so far, which rotate the sets */
    bool was_asked[MM_BENCHMARK_ROWS_MAX]; /* subjects of this backend and of those before */

    double times_ns[]; /* of all rows; the memory for checks is behind it */
};

/* The type of the elements that the matrices are filled with. Transpositions move float32s, whatever their
 * own type: hardly two of those are equal. */
static inline enum mm_dtype mm_benchmark_filling(const struct mm_benchmark *benchmark) {
    return benchmark->request.op == MM_MATMUL ? benchmark->request.dtype : MM_FLOAT32;
}

/* The task's `run` (gpu/queue/task.h). */
enum mm_task_state mm_benchmark_run(struct mm_task *task, struct mm_device *device, bool cancelled);

/* --- benchmark_check.c */

/* Computes a part of what the result must be; false if all is known. The operands that are given are there.
 */
bool mm_benchmark_expect(struct mm_benchmark *benchmark);

/* Overwrites the next part of C, of the product on the first set, with what no result is. It was the last
 * part if benchmark->c_bytes_done is 0 then. */
enum mm_status mm_benchmark_poison(struct mm_benchmark *benchmark, struct mm_device *device,
                                   const struct mm_product *product, struct mm_error *error);

/* Reads the next part of C back. If benchmark->c_bytes_done is 0 then, it was the last, and the row has its
 * errors. */
enum mm_status mm_benchmark_read(struct mm_benchmark *benchmark, struct mm_device *device,
                                 const struct mm_product *product, struct mm_benchmark_row *row);
