/* The kernel harness: one generic test and one generic benchmark for every variant of every backend. It knows
 * the backend's interface and the error bounds, but no kernel. */
#pragma once

#include "gpu/lab/benchmark.h"

#include <stdatomic.h>
#include <stdio.h>

/* Exit statuses beside EXIT_SUCCESS and EXIT_FAILURE. EXIT_SKIPPED: the backend that was asked for has no
 * device here. */
enum { EXIT_USAGE = 2, EXIT_SKIPPED = 77 };

/* --- shapes.c: named lists of shapes ------------------------------------------------------------ */

/* Dimensions of an operation. A product has op(A) of m×k and op(B) of k×n. A transposition has op(A) of m×n,
 * and k is unused. */
struct shape {
    size_t m;
    size_t n;
    size_t k;
};

struct shape_list {
    struct shape *shapes; /* owned; freed by shapes_free */
    size_t count;
};

/* Fills `list` with the operation's shapes of the list "tiny", "small" or "large". Returns false for another
 * name. */
bool shapes_named(enum mm_op op, const char *name, uint64_t seed, struct shape_list *list);
void shapes_add(struct shape_list *list, size_t m, size_t n, size_t k);
void shapes_free(struct shape_list *list);

/* --- data.c: deterministic data ------------------------------------------------------------------ */

/* A pseudo-random sequence, the one of gpu/matrix/random.h. Equal seeds give equal data. */
struct random {
    uint64_t state;
};
uint64_t random_next(struct random *random);
size_t random_below(struct random *random, size_t bound); /* uniform in [0, bound); bound must not be 0 */
uint64_t random_mix(uint64_t a, uint64_t b);              /* combines two numbers into a seed */

/* The value of an element: `real` for floating-point types, `whole` modulo 2^64 for integers. */
union number {
    double real;
    uint64_t whole;
};

/* An operand that a family fills line by line: the rows of A or the columns of B, each of `depth` numbers.
 * Number d of a line is x[line·line_step + d·depth_step]. The caller rounds the numbers to the type
 * afterwards. */
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
    const char *key;  /* the name in options: [a-z_]+ */
    const char *name; /* the name in reports */
    void (*fill)(struct random *random, const struct lines *lines);
};

/* Indices of `families`: first those for every floating-point type, then FAMILY_ENCODINGS for small
 * floating-point types, then those for integers. */
enum { FAMILY_ENCODINGS = 19, FAMILY_WORDS, FAMILY_COUNT = FAMILY_WORDS + 3 };
extern const struct family families[FAMILY_COUNT];

/* Returns NULL if there is no such key. */
const struct family *family_find(const char *key);
bool family_is_of(const struct family *family, enum mm_dtype dtype);

/* An operand, dense and row by row: its elements in the element type, and their values. */
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

/* --- reference.c: what is right ------------------------------------------------------------------- */

/* What one element of C must be. R is the exact sum of its products. */
struct expected {
    size_t row;
    size_t col;
    double sum;       /* R, rounded to float64; for integers the value in C's type */
    double low;       /* R − sum; only for float64 */
    double magnitude; /* the sum of the products' absolute values */
    double scale;     /* sum, low and magnitude are multiplied by this; 1 unless they would overflow */
    uint64_t whole;   /* R modulo 2^64, for integers */
};

/* Expected elements of C: all of them, or a sample with C's edges if all would take too long. */
struct reference {
    struct shape shape;
    enum mm_dtype dtype;       /* the operands' type */
    struct expected *expected; /* owned */
    size_t count;
};
void reference_make(struct reference *reference, const struct operands *operands, uint64_t seed);
/* Fills the reference with every element of C, on `threads` threads, at most SHARE_THREADS_MAX. */
void reference_make_whole(struct reference *reference, const struct operands *operands, unsigned threads);
void reference_free(struct reference *reference);

/* The error that is allowed for an element of a floating-point product. Sums may be off by e =
 * relative·(|A|·|B|) + absolute; rounding to a narrower C adds unit·(|R| + e) + step. */
struct arithmetic {
    double sum_unit; /* unit roundoff of the type in which sums are computed */
    double sum_normal;
    double relative;
    double absolute;
    double sum_largest;
    double unit; /* unit roundoff of C's type; 0, like `step`, if C has the type of the sums */
    double step;
    double past; /* the least magnitude that rounds to infinity in C */
};

/* Returns the allowed error of products that were computed by this kind of arithmetic (gpu/check/bounds.h).
 */
struct arithmetic arithmetic_of(enum mm_dtype dtype, enum mm_dtype c_dtype, size_t k, enum mm_arithmetic by);

/* Returns whether `value` is within the allowed error. Sets *fraction to the error divided by the allowed
 * error, or to 0 for a correct Inf or NaN. */
bool reference_check(const struct expected *expected, const struct arithmetic *arithmetic, double value,
                     double *fraction);

/* Errors of a result, over the elements of a reference. */
struct exactness {
    double difference_squares; /* sum of (C−R)² */
    double sum_squares;        /* sum of R² */
    double unit_max;           /* largest |C−R| / (|A|·|B|), in units of sum_unit */
    double fraction_max;       /* largest error divided by its allowed error */
    size_t wrong;              /* elements past the allowed error, or wrongly Inf or NaN */
    size_t first_wrong;        /* index of the first wrong element in the reference */
};
struct image;
void reference_compare(const struct reference *reference, const struct image *c, enum mm_arithmetic by,
                       struct exactness *exactness);

/* --- image.c: matrices in guarded memory ---------------------------------------------------------- */

/* How the matrices of a case lie in memory. */
struct layout {
    bool transpose_a;
    bool transpose_b;
    size_t a_extra; /* ld − cols, in elements */
    size_t b_extra;
    size_t c_extra;
    size_t a_shift; /* elements from an aligned address to the matrix */
    size_t b_shift;
    size_t c_shift;
};

/* There are LAYOUT_COUNT layouts: each transpose flag, and each of three leading dimensions dense or wider.
 * `seed` chooses the widths, and shifts one matrix in four to an unaligned address. */
enum { LAYOUT_COUNT = 32 };
struct layout layout_make(unsigned index, uint64_t seed);

/* A product or a transposition to run, with its expected result. It owns nothing. */
struct one_case {
    const char *data; /* name of the data, for reports */
    struct shape shape;
    enum mm_dtype dtype;
    enum mm_dtype c_dtype;
    void *a;                           /* op(A), dense; for a transposition also the expected C */
    void *b;                           /* op(B), dense; NULL for a transposition */
    const struct reference *reference; /* expected result of a product; NULL for a transposition */
    struct layout layout;
};

/* Returns a case whose layout is dense and aligned. */
struct one_case operands_case(const struct operands *operands, const struct family *family,
                              const struct reference *reference);

/* A matrix's storage between two guard regions on the host, with an optional copy on a device. All members
 * are 0 if there is no matrix, like B of a transposition. */
struct image {
    unsigned char *host; /* owned: guard, storage, guard */
    size_t bytes;
    size_t before;         /* bytes of the guard in front of the storage */
    struct mm_matrix view; /* the matrix, in `host` */
    struct mm_device *device;
    void *memory; /* owned copy on `device`; NULL if there is none */
};

/* C is filled with one of two poisons before a run, so elements that the kernel does not write are found. */
enum { POISON_COUNT = 2 };

/* Allocate and fill images of both operands. Guards and gaps between rows hold NaN or -1, so a kernel that
 * reads them gives a wrong C. */
void image_make_operands(struct image *a, struct image *b, const struct one_case *one);
void image_make_result(struct image *c, const struct one_case *one);
void image_free(struct image *image);

void image_poison(const struct image *c, unsigned poison);

/* Returns whether all bytes outside C's m×n still hold the poison. If not, sets *byte to the offset of the
 * first changed byte from C's first element. */
bool image_surroundings_intact(const struct image *c, unsigned poison, ptrdiff_t *byte);

/* Returns the product of three images, in device memory if on_device, else in host memory. */
struct mm_product image_product(const struct image *a, const struct image *b, const struct image *c,
                                const struct one_case *one, bool on_device);

/* Allocates device memory for the image without filling it; image_upload fills it. */
enum mm_status image_to_device(struct image *image, struct mm_device *device, struct mm_error *error);
enum mm_status image_upload(const struct image *image, struct mm_error *error);

/* Returns whether the device's bytes still equal the host's. `scratch` must hold image->bytes. */
bool image_unchanged(const struct image *image, unsigned char *scratch);

/* --- check.c and jobs.c: running a case ----------------------------------------------------------- */

/* A variant under test, with one tile, and its results. */
struct subject {
    struct mm_device *device;
    const struct mm_variant *variant;
    unsigned tile; /* the tile of every product; 0: the variant's own choice */
    char name[64]; /* the variant's name, followed by /TILE if `tile` is not 0 */
    size_t cases;
    size_t unsupported;
    size_t failures;
    double fraction_max; /* largest error divided by its allowed error */
};

/* Returns the kind of arithmetic by which the subject computes products of this type. */
enum mm_arithmetic subject_arithmetic(const struct subject *subject, enum mm_dtype dtype);

struct plan {
    struct shape_list shapes;
    enum mm_dtype dtype; /* the operands' type of products */
    unsigned dtypes;     /* bit set of types of transpositions */
    uint64_t seed;
    unsigned repeat;          /* runs of each case, at least 2; all must give equal bits */
    unsigned thin;            /* run one case in this many, at least one for each shape */
    atomic_size_t *next_unit; /* index of the next unit of work; shared by all threads */
    bool has_jobs;            /* also run small cases as whole jobs */
};

/* Returns the index of the next unit of work that no thread has started. A unit is one family's data for a
 * shape, or one element type of a transposition's shape. */
static inline size_t plan_next_unit(const struct plan *plan) {
    return atomic_fetch_add_explicit(plan->next_unit, 1, memory_order_relaxed);
}

/* Both count a failure of the subject and print it. subject_fail also prints the case. */
void subject_print(struct subject *subject, const char *text);
void subject_fail(struct subject *subject, const struct plan *plan, const struct one_case *one,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns whether the variant's table row excludes the case. Counts the refusal if `status` is
 * MM_UNSUPPORTED, else a failure. */
bool subject_refuses(struct subject *subject, const struct plan *plan, const struct one_case *one,
                     enum mm_status status, const struct mm_error *error);

/* Checks the C in the image, and adds to the subject's results. */
void subject_check(struct subject *subject, const struct plan *plan, const struct one_case *one,
                   const struct image *c);

/* Run one case on every subject; all subjects must have one device. check_case runs in device memory.
 * jobs_case runs whole jobs from host memory on every lane. */
void check_case(struct subject *subjects, size_t count, const struct plan *plan, const struct one_case *one);
void jobs_case(struct subject *subjects, size_t count, const struct plan *plan, const struct one_case *one);

/* job_prepare fills a job that can be begun, of a product in host memory. job_reports_all returns whether an
 * ended job reports all that it must. */
void job_prepare(struct mm_job *job, const struct subject *subject, const struct mm_product *product);
bool job_reports_all(const struct mm_job *job);

/* --- products.c, transposes.c, batches.c and stacks.c: which cases ----------------------------------- */

/* Each runs many cases on all subjects. The *_check functions run the plan's cases, the *_run_jobs functions
 * small whole jobs. batches_run runs jobs that share a launch, stacks_run stacks. */
typedef void cases_function(struct subject *subjects, size_t count, const struct plan *plan);
cases_function products_check, products_run_jobs;
cases_function transposes_check, transposes_run_jobs;
cases_function batches_run, stacks_run;

/* --- share.c: the cases by several threads -------------------------------------------------------- */

enum { SHARE_THREADS_MAX = 16 };

/* Calls `check` on `threads` threads, each with its own device and copies of the subjects, and adds up their
 * results. Returns false and prints a line if a device does not open. */
bool share_check(cases_function *check, unsigned threads, struct subject *subjects, size_t count,
                 const struct plan *plan);

/* --- bench.c: how long it takes ------------------------------------------------------------------------ */

struct timing {
    enum mm_op op;
    enum mm_dtype dtype;
    unsigned repeats; /* runs of each row, at least 1 */
    unsigned seconds; /* a row that has run for so long is not repeated; not 0 */
    bool transpose_a; /* A is stored transposed */
    bool transpose_b;
};

/* Returns memory of this size that the caller frees, or ends the program. */
void *harness_allocate(size_t bytes);
