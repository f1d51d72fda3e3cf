/* The kernel test program. The same tests and benchmarks run every variant of every backend, through the
 * interface of the backends. */
#pragma once

#include "gpu/lab/benchmark.h"

#include <stdatomic.h>
#include <stdio.h>

/* Exit statuses besides EXIT_SUCCESS and EXIT_FAILURE. 77 means that the requested backend has no device. */
enum { EXIT_USAGE = 2, EXIT_SKIPPED = 77 };

/* --- shapes.c: named lists of shapes ------------------------------------------------------------ */

/* Dimensions of an operation. A product multiplies op(A) of m×k by op(B) of k×n. A transposition has op(A) of
 * m×n and ignores k. */
struct shape {
    size_t m;
    size_t n;
    size_t k;
};

struct shape_list {
    struct shape *shapes; /* owned; freed by shapes_free */
    size_t count;
};

/* Appends the shapes of the list "tiny", "small" or "large" to `list`. Returns false if `name` is unknown. */
bool shapes_named(enum mm_op op, const char *name, uint64_t seed, struct shape_list *list);
void shapes_add(struct shape_list *list, size_t m, size_t n, size_t k);
void shapes_free(struct shape_list *list);

/* --- data.c: deterministic data ------------------------------------------------------------------ */

/* A pseudo-random sequence. Equal seeds give equal sequences. */
struct random {
    uint64_t state;
};
uint64_t random_next(struct random *random);
size_t random_below(struct random *random, size_t bound); /* uniform in [0, bound); bound must not be 0 */
uint64_t random_mix(uint64_t a, uint64_t b);              /* combines two numbers into a seed */

/* The value of an element. Floating-point types use `real`. Integer types use `whole`, modulo 2^64. */
union number {
    double real;
    uint64_t whole;
};

/* A line is a row of A or a column of B. A family of data fills all lines. Number d of line i is
 * x[i·line_step + d·depth_step]. Later the caller rounds the numbers to the element type. */
struct lines {
    bool is_a;
    enum mm_dtype dtype;
    union number *x;
    size_t count;
    size_t depth;
    size_t line_step;
    size_t depth_step;
};

struct family {
    const char *key;  /* name in options: [a-z_]+ */
    const char *name; /* name in reports */
    void (*fill)(struct random *random, const struct lines *lines);
};

/* Indices of `families`. Families before FAMILY_ENCODINGS suit every floating-point type. FAMILY_ENCODINGS
 * suits only small floating-point types. Families from FAMILY_WORDS on are for integers. */
enum { FAMILY_ENCODINGS = 19, FAMILY_WORDS, FAMILY_COUNT = FAMILY_WORDS + 3 };
extern const struct family families[FAMILY_COUNT];

/* Returns NULL if the key is unknown. */
const struct family *family_find(const char *key);
bool family_is_of(const struct family *family, enum mm_dtype dtype);

/* A dense, row-major operand. `elements` have the element type, and `numbers` are their values. */
struct operand {
    void *elements;
    union number *numbers;
};

struct operands {
    struct shape shape;
    enum mm_dtype dtype;
    struct operand a;
    struct operand b;
};
void operands_make(struct operands *operands, enum mm_dtype dtype, struct shape shape,
                   const struct family *family, uint64_t seed);
void operands_free(struct operands *operands);

/* Fills an operand of `dtype` with one family of data. lines->x is unused. */
void operand_make(struct operand *operand, const struct family *family, struct random *random,
                  struct lines *lines);
void operand_free(struct operand *operand);

/* --- reference.c: expected results and allowed errors ---------------------------------------------- */

/* The expected value of one element of C. R is the exact sum of its products. */
struct expected {
    size_t row;
    size_t col;
    double sum;       /* R rounded to float64; for integers, R in C's type */
    double low;       /* R − sum for float64, else 0 */
    double magnitude; /* sum of the absolute values of the products */
    double scale;     /* a factor in sum, low and magnitude; below 1 if they would overflow without it */
    uint64_t whole;   /* R modulo 2^64, only for integers */
    /* An epilogue turns the allowed error e of a sum into growth·e + extra. Without an epilogue, growth is 1
     * and extra is 0. */
    double growth;
    double extra;
};

/* Expected elements of C. If C is large, they are a sample that includes C's corners and edges. */
struct reference {
    struct shape shape;
    enum mm_dtype dtype;       /* type of the operands */
    struct expected *expected; /* owned */
    size_t count;
};
void reference_make(struct reference *reference, const struct operands *operands, uint64_t seed);
/* Computes every element of C, on at most SHARE_THREADS_MAX threads. The caller calls reference_free. */
void reference_make_whole(struct reference *reference, const struct operands *operands, unsigned threads);
void reference_free(struct reference *reference);

/* Describes the allowed error of a floating-point element. A sum may differ from R by e = relative·(|A|·|B|)
 * + absolute. If C is narrower than the sums, rounding may add another unit·(|R| + e) + step. */
struct arithmetic {
    double sum_unit; /* unit roundoff of the type of the sums */
    double sum_normal;
    double relative;
    double absolute;
    double sum_largest;
    double unit; /* unit roundoff of C's type; 0 if C has the type of the sums */
    double step;
    double past; /* smallest magnitude that rounds to infinity in C */
};

/* Returns the allowed error for products of this arithmetic, from gpu/check/bounds.h. */
struct arithmetic arithmetic_of(enum mm_dtype dtype, enum mm_dtype c_dtype, size_t k, enum mm_arithmetic by);

/* Returns whether the error of `value` is allowed. Sets *fraction to the error divided by the allowed error,
 * or to 0 for a correct Inf or NaN. */
bool reference_check(const struct expected *expected, const struct arithmetic *arithmetic, double value,
                     double *fraction);

/* Errors of a result, compared with a reference. */
struct exactness {
    double difference_squares; /* sum of (C−R)² */
    double sum_squares;        /* sum of R² */
    double unit_max;           /* largest |C−R| / (|A|·|B|), in units of sum_unit */
    double fraction_max;       /* largest error divided by its allowed error */
    size_t wrong;
    size_t first_wrong; /* index of the first wrong element in the reference */
};
struct image;
struct one_case;

/* Returns the expected value of element `index` of the reference, with the epilogue of the case. */
double reference_value(const struct one_case *one, size_t index);

/* Computes the errors of `c`, the result of a product. If the case has an epilogue, first applies the
 * epilogue to the expected elements. */
void reference_compare(const struct one_case *one, const struct image *c, enum mm_arithmetic by,
                       struct exactness *exactness);

/* --- image.c: matrices in guarded memory ---------------------------------------------------------- */

struct layout {
    bool transpose_a;
    bool transpose_b;
    size_t a_extra; /* leading dimension minus columns, in elements */
    size_t b_extra;
    size_t c_extra;
    size_t a_shift; /* distance of the matrix from an aligned address, in elements */
    size_t b_shift;
    size_t c_shift;
    bool transpose_addend;
    size_t addend_extra;
    size_t addend_shift;
    size_t bias_shift;
};

/* The 32 layouts combine both transpose flags with dense or padded rows of A, B and C. `seed` chooses the
 * padding, and moves about one matrix in four to an unaligned address. */
enum { LAYOUT_COUNT = 32 };
struct layout layout_make(unsigned index, uint64_t seed);

/* A product or a transposition to run, with its expected result. Owns none of its pointers. */
struct one_case {
    const char *data; /* name of the data in reports */
    struct shape shape;
    enum mm_dtype dtype;
    enum mm_dtype c_dtype;
    void *a;                           /* op(A), dense; also the expected C of a transposition */
    void *b;                           /* op(B), dense; NULL for a transposition */
    const struct reference *reference; /* expected C of a product; NULL for a transposition */
    struct layout layout;
    const char *terms; /* name of the epilogue in reports; NULL: the product has none */
    struct mm_epilogue epilogue;
    struct operand addend; /* m×n elements of C's type; all 0: there is no addend */
    struct operand bias;   /* n elements of C's type; all 0: there is no bias */
    bool changes_nothing;  /* the epilogue must leave the bits of the sums, rounded to C, unchanged */
};

/* Returns a case with a dense and aligned layout. Pointers of the case point into the arguments. */
struct one_case operands_case(const struct operands *operands, const struct family *family,
                              const struct reference *reference);

/* A matrix in host memory between two guard regions, with an optional copy on a device. For an operand that
 * the case lacks, such as B of a transposition, all members are 0. */
struct image {
    unsigned char *host; /* owned; holds a guard, the matrix and another guard */
    size_t bytes;
    size_t before;         /* bytes of the guard in front of the matrix */
    struct mm_matrix view; /* the matrix in `host` */
    struct mm_device *device;
    void *memory; /* copy on `device`, owned; NULL if there is none */
};

/* Before a run, C is filled with one of these poison patterns. An element that the kernel does not write
 * keeps the pattern. */
enum { POISON_COUNT = 2 };

/* Allocate and fill images of all operands. Guards and the gaps between rows hold NaN or -1, so a kernel
 * that reads them computes a wrong C. */
void image_make_operands(struct image operands[MM_OPERANDS_MAX], const struct one_case *one);
void image_make_result(struct image *c, const struct one_case *one);
void image_free(struct image *image);

void image_poison(const struct image *c, unsigned poison);

/* Returns whether all bytes outside the elements of C still hold the poison. If not, sets *byte to the offset
 * of the first changed byte, counted from C's first element. */
bool image_surroundings_intact(const struct image *c, unsigned poison, ptrdiff_t *byte);

/* Returns the product of these images, in device memory if on_device, else in host memory. */
struct mm_product image_product(const struct image operands[MM_OPERANDS_MAX], const struct image *c,
                                const struct one_case *one, bool on_device);

/* Allocates device memory for the image, which image_free frees. image_upload copies the image there. */
enum mm_status image_to_device(struct image *image, struct mm_device *device, struct mm_error *error);
enum mm_status image_upload(const struct image *image, struct mm_error *error);

/* Returns whether the device's copy equals the host's. `scratch` needs image->bytes bytes. */
bool image_unchanged(const struct image *image, unsigned char *scratch);

/* --- check.c and jobs.c: run one case ------------------------------------------------------------- */

/* A variant to test, with its results so far. */
struct subject {
    struct mm_device *device;
    const struct mm_variant *variant;
    unsigned tile; /* tile of every product; 0 if the variant chooses */
    char name[64]; /* name of the variant, then /TILE if `tile` is not 0 */
    size_t cases;
    size_t unsupported;
    size_t failures;
    double fraction_max; /* largest error divided by its allowed error */
};

enum mm_arithmetic subject_arithmetic(const struct subject *subject, enum mm_dtype dtype);

/* Returns whether the variant gives each element the same bits, however the product is divided into parts. */
bool subject_has_one_order(const struct subject *subject, enum mm_dtype dtype);

struct plan {
    struct shape_list shapes;
    enum mm_dtype dtype; /* type of the operands of products */
    unsigned dtypes;     /* set of MM_DTYPE_BIT: the types to transpose */
    uint64_t seed;
    unsigned repeat;          /* runs of each case, at least 2; all runs must give equal bits */
    unsigned thin;            /* run one in `thin` cases, at least one for each shape */
    atomic_size_t *next_unit; /* next unit of work; all threads share it */
    bool has_jobs;            /* also run small cases as whole jobs */
    bool has_epilogues;       /* products have the epilogues of epilogues.c */
};

/* Takes the next unit of work for the calling thread. A unit of products is a shape with one family of data.
 * A unit of transpositions is a shape with one element type. */
static inline size_t plan_next_unit(const struct plan *plan) {
    return atomic_fetch_add_explicit(plan->next_unit, 1, memory_order_relaxed);
}

/* subject_print and subject_fail count a failure and print it. subject_fail also prints the case. */
void subject_print(struct subject *subject, const char *text);
void subject_fail(struct subject *subject, const struct plan *plan, const struct one_case *one,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns whether the variant does not support the case. If so, the run must have failed with MM_UNSUPPORTED.
 * Counts this as a refusal, and any other status as a failure. */
bool subject_refuses(struct subject *subject, const struct plan *plan, const struct one_case *one,
                     enum mm_status status, const struct mm_error *error);

/* Compares C with the expected result, and adds to the subject's results. */
void subject_check(struct subject *subject, const struct plan *plan, const struct one_case *one,
                   const struct image *c);

/* These functions run one case on all subjects, which must have the same device. check_case uses device
 * memory. jobs_case uses whole jobs in host memory, on every lane. */
void check_case(struct subject *subjects, size_t count, const struct plan *plan, const struct one_case *one);
void jobs_case(struct subject *subjects, size_t count, const struct plan *plan, const struct one_case *one);

/* job_prepare fills in a job for a product in host memory. job_reports_all returns whether a finished job has
 * set all members that it must report. */
void job_prepare(struct mm_job *job, const struct subject *subject, const struct mm_product *product);
bool job_reports_all(const struct mm_job *job);

/* --- epilogues.c: the epilogues to test ------------------------------------------------------------ */

enum { EPILOGUE_COUNT = 16 };

/* Gives the product of the case an epilogue. The addend and the bias of the epilogue have elements of the
 * family. `index` chooses the terms. Returns false if the type has no such epilogue. epilogue_free frees what
 * the case got. */
bool epilogue_make(struct one_case *one, unsigned index, const struct family *family, uint64_t seed);
void epilogue_free(struct one_case *one);

/* Returns whether a family of data suits products with epilogues: sums do not overflow. */
bool epilogue_suits(const struct family *family);

/* --- products.c, transposes.c, batches.c and stacks.c: run many cases ------------------------------ */

/* Each function runs many cases on all subjects. *_check runs the cases of the plan, *_run_jobs runs small
 * whole jobs. batches_run runs jobs that share a launch. stacks_run runs stacks of matrices. */
typedef void cases_function(struct subject *subjects, size_t count, const struct plan *plan);
cases_function products_check, products_run_jobs;
cases_function transposes_check, transposes_run_jobs;
cases_function batches_run, stacks_run;

/* --- share.c: run the cases on several threads ---------------------------------------------------- */

enum { SHARE_THREADS_MAX = 16 };

/* Calls `check` on `threads` threads, and adds up the results. Each thread has its own device and subjects,
 * because only one thread may use a device. If a device cannot be opened, prints a line and returns false. */
bool share_check(cases_function *check, unsigned threads, struct subject *subjects, size_t count,
                 const struct plan *plan);

/* --- bench.c: timing ------------------------------------------------------------------------------ */

struct timing {
    enum mm_op op;
    enum mm_dtype dtype;
    unsigned repeats; /* runs of each row, at least 1 */
    unsigned seconds; /* time limit for all runs of a row; not 0 */
    bool transpose_a; /* A is stored transposed */
    bool transpose_b;
};

/* Returns memory that the caller frees. Ends the program if memory runs out. */
void *harness_allocate(size_t bytes);
