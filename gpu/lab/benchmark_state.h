/* What benchmark.c (requests and figures), benchmark_run.c (the measuring) and benchmark_judge.c (right and
 * wrong) share, and nobody else sees. */
#ifndef MM_GPU_LAB_BENCHMARK_STATE_H
#define MM_GPU_LAB_BENCHMARK_STATE_H

#include "gpu/lab/benchmark.h"
#include "gpu/check/projection.h"
#include "gpu/check/sample.h"

/* The variant that products are compared with, which is a library's. */
#define MM_BENCHMARK_YARDSTICK "blas"

/* The stream of which every set is made, from its beginning on. */
#define MM_BENCHMARK_SEED UINT64_C(0x6d61746d756c64)

/* The phases of a row. Its first turn goes through all of them (the plain copy is not judged); every other
 * turn is one more run. */
enum mm_benchmark_phase {
    MM_BENCHMARK_CHOOSE, /* what is run */
    MM_BENCHMARK_POISON, /* C of the first set is overwritten, a piece a step */
    MM_BENCHMARK_PROVE,  /* a run on the first set */
    MM_BENCHMARK_READ,   /* its result is read back and judged, a piece a step */
    MM_BENCHMARK_REPEAT,
};

/* How far a row has come. */
struct mm_benchmark_course {
    struct mm_plan plan; /* made by MM_BENCHMARK_CHOOSE */
    double *times_ns;    /* the request's repeats of them, `repeats` of the row are there */
    uint64_t spent_ns;
    uint64_t proof_ns;       /* the kernel's time in the run that is judged */
    struct mm_pieces pieces; /* of the run at hand */
    unsigned warm_ups_left;
    enum mm_benchmark_phase phase;
    bool is_over; /* also where it is not of the backend at hand */
};

/* What a backend's task does, in this order. */
enum mm_benchmark_stage {
    MM_BENCHMARK_TAKE,    /* the memory of all sets */
    MM_BENCHMARK_FILL,    /* it with numbers, a piece a step */
    MM_BENCHMARK_EXPECT,  /* to know what results must be, a span of the sample or a piece a step */
    MM_BENCHMARK_MEASURE, /* the rows in turn, a run or a piece a step */
};

struct mm_benchmark {
    struct mm_task task;
    struct mm_benchmark_request request;
    size_t memory_bytes_max;

    /* The first set: the views' data are offsets into the memory, and each set lies set_bytes behind the
     * one before. All of a set, C too, is made of the random stream that begins with A. */
    struct mm_product product;
    size_t set_bytes;
    size_t b_offset;
    size_t c_offset;

    /* By subject; behind them the plain copy, of transpositions' benchmarks. */
    struct mm_benchmark_row rows[MM_BENCHMARK_ROWS_MAX + 1];
    struct mm_benchmark_course courses[MM_BENCHMARK_ROWS_MAX + 1];
    size_t row_count;

    /* Of the first set, on which every row is judged, by all backends alike: products by sample and
     * projection, transpositions by neither. */
    struct mm_random_product operands;
    struct mm_sample sample;
    unsigned expected; /* spans of the sample */
    struct mm_projection projection;
    size_t judging_bytes;
    void *judging;    /* the projection's memory, and behind it a piece of C's; NULL: not taken yet */
    char *piece;      /* the latter */
    size_t judged;    /* bytes of C that were overwritten, or read back */
    size_t misplaced; /* elements of those, of a transposition */

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

/* benchmark_judge.c: */

/* The host's memory that judging takes; false where it passes SIZE_MAX. */
bool mm_benchmark_judging_bytes(enum mm_op op, const struct mm_product *product, size_t *bytes);

/* Takes that memory, where it was not taken yet. */
enum mm_status mm_benchmark_judge_open(struct mm_benchmark *benchmark, struct mm_error *error);

/* A step towards knowing what the result must be; false where it is known. */
bool mm_benchmark_expect(struct mm_benchmark *benchmark);

/* Has the next row's result judged, from the beginning on. */
void mm_benchmark_judge_begin(struct mm_benchmark *benchmark);

/* A step of overwriting C, of the product on the first set, by what no result is; *is_over once all of it
 * was. */
enum mm_status mm_benchmark_poison(struct mm_benchmark *benchmark, struct mm_device *device,
                                   const struct mm_product *product, bool *is_over, struct mm_error *error);

/* A step of reading C back; *is_over once all of it was, and then the row's errors are set. */
enum mm_status mm_benchmark_read(struct mm_benchmark *benchmark, struct mm_device *device,
                                 const struct mm_product *product, bool *is_over,
                                 struct mm_benchmark_row *row);

#endif
