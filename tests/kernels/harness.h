/* The kernel harness: one generic test and one generic benchmark for every row of every backend's
 * table. This header is what its parts share. The harness knows the backend's seam and the bounds of
 * the element types, and nothing of any kernel. */
#pragma once

#include "gpu/lab/benchmark.h"

#include <stdatomic.h>
#include <stdio.h>

/* Exit statuses beside those of the C library. Skipped: the backend asked for has no device here. */
enum { EXIT_USAGE = 2, EXIT_SKIPPED = 77 };

/* --- shapes.c: named lists of shapes ------------------------------------------------------------ */

/* op(A) is m×k, op(B) is k×n. Of a transposition op(A) is m×n, and k says nothing. */
struct shape {
    size_t m;
    size_t n;
    size_t k;
};

struct shape_list {
    struct shape *shapes; /* owned; freed by shapes_free */
    size_t count;
};

/* Fills the op's list for "tiny", "small" or "large"; false for another name. */
bool shapes_named(enum mm_op op, const char *name, uint64_t seed, struct shape_list *list);
void shapes_add(struct shape_list *list, size_t m, size_t n, size_t k);
void shapes_free(struct shape_list *list);

/* --- data.c: deterministic data ------------------------------------------------------------------ */

/* A pseudo-random sequence (that of gpu/matrix/random.h): the same seed, the same data. */
struct random {
    uint64_t state;
};
uint64_t random_next(struct random *random);
size_t random_below(struct random *random, size_t bound); /* in [0, bound); bound is not 0 */
uint64_t random_mix(uint64_t a, uint64_t b);              /* a seed from two numbers */

/* What an element is worth: of a type with a point `real`, else `whole`, modulo 2^64. */
union number {
    double real;
    uint64_t whole;
};

/* A family fills an operand line by line: the lines of A are its rows, those of B its columns, and
 * each holds `depth` numbers. Number (line, d) is x[line·line_step + d·depth_step]. What it writes is then
 * rounded to the type. */
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
    const char *key;  /* as options name it: [a-z_]+ */
    const char *name; /* for people */
    void (*fill)(struct random *random, const struct lines *lines);
};

/* The first are of every type with a point, then comes one of the small ones, and the rest is of whole
 * numbers. */
enum { FAMILY_ENCODINGS = 19, FAMILY_WORDS, FAMILY_COUNT = FAMILY_WORDS + 3 };
extern const struct family families[FAMILY_COUNT];

/* NULL where there is no such key. */
const struct family *family_find(const char *key);
bool family_is_of(const struct family *family, enum mm_dtype dtype);

/* op(A) and op(B) of a product, dense: m×k and k×n elements, and what they are worth. Owned. */
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

/* One element of C. */
struct expected {
    size_t row;
    size_t col;
    double sum;       /* R: NaN and Inf as IEEE says. Of whole numbers as C holds it, for people */
    double low;       /* what R has beyond `sum`, of float64 alone */
    double magnitude; /* the same of |A|·|B| */
    double scale;     /* the three above are R's times this, which is 1 unless they would overflow */
    uint64_t whole;   /* R modulo 2^64, of whole numbers */
};

/* Every element, or a sample with the edges where all would cost too much. */
struct reference {
    struct shape shape;
    enum mm_dtype dtype;       /* of the operands */
    struct expected *expected; /* owned */
    size_t count;
};
void reference_make(struct reference *reference, const struct operands *operands, uint64_t seed);
/* Every element, by so many threads, at most SHARE_THREADS_MAX. */
void reference_make_whole(struct reference *reference, const struct operands *operands, unsigned threads);
void reference_free(struct reference *reference);

/* What is right for elements that are summed over k, of a type with a point: how far the sums may be off,
 * which is e = relative·(|A|·|B|) + absolute, and where they overflow; and how far rounding them to a
 * narrower type may be off, which is unit·(|R| + e) + step, and where that overflows. */
struct arithmetic {
    double sum_unit; /* of the sums' own type */
    double sum_normal;
    double relative;
    double absolute;
    double sum_largest;
    double unit; /* 0 where C has the type of the sums, as has `step` */
    double step;
    double past; /* from here on a sum becomes infinite in C */
};

/* By what computed the product (gpu/check/bounds.h has the reasons). */
struct arithmetic arithmetic_of(enum mm_dtype dtype, enum mm_dtype c_dtype, size_t k, enum mm_arithmetic by);

/* Whether `value` is right. *fraction is the error over its bound, at most 1 where it is right; 0 where Inf
 * or NaN was right. */
bool reference_check(const struct expected *expected, const struct arithmetic *arithmetic, double value,
                     double *fraction);

/* What a C is off by, over the elements of the reference. */
struct exactness {
    double difference_squares; /* (C−R)², summed up */
    double sum_squares;        /* R² */
    double
        unit_max; /* the largest |C−R| / (|A|·|B|), in the sums' u, of elements where that says something */
    double fraction_max; /* the largest error over the bound of its element */
    size_t wrong;        /* elements past the bound, or Inf or NaN where they must not be */
    size_t first_wrong;  /* the first of them, of the reference's */
};
struct image;
void reference_compare(const struct reference *reference, const struct image *c, enum mm_arithmetic by,
                       struct exactness *exactness);

/* --- image.c: matrices in guarded memory ---------------------------------------------------------- */

/* How a case lies in memory: the operands' transposes, and which leading dimensions are wider than the
 * rows. */
struct layout {
    bool transpose_a;
    bool transpose_b;
    size_t a_extra; /* ld − cols, elements */
    size_t b_extra;
    size_t c_extra;
    size_t a_shift; /* elements between an aligned address and the matrix */
    size_t b_shift;
    size_t c_shift;
};

/* 32 layouts of a product: 2 transposes × 2 transposes × 2³ leading dimensions. `seed` decides how wide, and
 * for one matrix in four that it does not begin at an aligned address. */
enum { LAYOUT_COUNT = 32 };
struct layout layout_make(unsigned index, uint64_t seed);

/* A product or a transposition, and what is right; owns nothing. */
struct one_case {
    const char *data; /* what it is made of, for people */
    struct shape shape;
    enum mm_dtype dtype;
    enum mm_dtype c_dtype;
    void *a; /* op(A), dense; of a transposition it is also what C must be, bit by bit */
    void *b; /* op(B), dense; NULL: it is a transposition */
    const struct reference *reference; /* of a product */
    struct layout layout;
};

/* With a layout of zeros: dense. */
struct one_case operands_case(const struct operands *operands, const struct family *family,
                              const struct reference *reference);

/* A matrix's storage between two guards, on the host and, where it was brought there, on a device. Of zeros:
 * none, as B of a transposition. */
struct image {
    unsigned char *host; /* owned: guard, storage, guard */
    size_t bytes;
    size_t before;         /* of them, the guard in front of the storage */
    struct mm_matrix view; /* into `host` */
    struct mm_device *device;
    void *memory; /* the same bytes on the device; NULL: none */
};

/* What C is filled with before a run: a NaN that no computation makes, and a finite number; or whole ones. */
enum { POISON_COUNT = 2 };

/* Images of op(A) and op(B) as the layout stores them, with NaN or -1 in guards and between rows, so
 * that whatever is used from there shows in C; and of C, not filled yet. */
void image_make_operands(struct image *a, struct image *b, const struct one_case *one);
void image_make_result(struct image *c, const struct one_case *one);
void image_free(struct image *image);

void image_poison(const struct image *c, unsigned poison);

/* Whether all outside C's m×n still holds the poison; else *byte is the first that does not, counted
 * from C's first element (negative: in the guard before it). */
bool image_surroundings_intact(const struct image *c, unsigned poison, ptrdiff_t *byte);

/* The product of three views. The views' data is the device's memory where on_device, else `host`, and NULL
 * where there are no elements. */
struct mm_product image_product(const struct image *a, const struct image *b, const struct image *c,
                                const struct one_case *one, bool on_device);

/* Takes memory there; image_upload fills it, too. */
enum mm_status image_to_device(struct image *image, struct mm_device *device, struct mm_error *error);
enum mm_status image_upload(const struct image *image, struct mm_error *error);

/* Whether the device's bytes are still those of the host; `scratch` has room for them. */
bool image_unchanged(const struct image *image, unsigned char *scratch);

/* --- check.c and jobs.c: running a case ----------------------------------------------------------- */

/* A variant under test, by one of its tiles where it leaves them open, and what came of it. */
struct subject {
    struct mm_device *device;
    const struct mm_variant *variant;
    unsigned tile; /* of every product; 0: the variant's own */
    char name[64]; /* the variant's, and behind a slash the tile */
    size_t cases;
    size_t unsupported;
    size_t failures;
    double fraction_max; /* of the bound */
};

/* What computes its products: arithmetic_of has the bound. */
enum mm_arithmetic subject_arithmetic(const struct subject *subject, enum mm_dtype dtype);

struct plan {
    struct shape_list shapes;
    enum mm_dtype dtype; /* of the operands of products */
    unsigned dtypes;     /* of transpositions, as bits */
    uint64_t seed;
    unsigned repeat;      /* runs of a case, all of which must give the same bits; at least 2 */
    unsigned thin;        /* one case in so many, and of every shape at least one */
    atomic_size_t *taken; /* pieces of the work that were taken; shared by the threads that share the plan */
    bool has_jobs;        /* whole jobs, too: small ones, whatever the shapes */
};

/* The next piece of the work that nobody has taken: of products a family's data for a shape, of
 * transpositions an element type of a shape, in the order in which one thread would come to them. */
static inline size_t plan_take(const struct plan *plan) {
    return atomic_fetch_add_explicit(plan->taken, 1, memory_order_relaxed);
}

/* Counts a failure of the subject and tells of it. subject_fail adds what the case was. */
void subject_tell(struct subject *subject, const char *text);
void subject_fail(struct subject *subject, const struct plan *plan, const struct one_case *one,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Whether the variant's row says that it does not take the case: by its `multiples` or, on a GPU, by
 * `converts`. It must then have been refused: that is counted, and anything else a failure. */
bool subject_refuses(struct subject *subject, const struct plan *plan, const struct one_case *one,
                     enum mm_status status, const struct mm_error *error);

/* Judges C, as it lies in the image, and adds to the subject's figures. */
void subject_check(struct subject *subject, const struct plan *plan, const struct one_case *one,
                   const struct image *c);

/* Run the case on every subject, all of one device: check_case in the device's memory, jobs_case as whole
 * jobs on the host's, through begin and end and every lane. */
void check_case(struct subject *subjects, size_t count, const struct plan *plan, const struct one_case *one);
void jobs_case(struct subject *subjects, size_t count, const struct plan *plan, const struct one_case *one);

/* A job that begin may be called with, of a product on the host; and, after end, whether it told all it must
 * tell. */
void job_prepare(struct mm_job *job, const struct subject *subject, const struct mm_product *product);
bool job_told(const struct mm_job *job);

/* --- products.c, transposes.c, batches.c and stacks.c: which cases ----------------------------------- */

/* The plan's cases; and whole jobs, small ones, whatever the plan's shapes, of which batches_run has those in
 * locked pages that go together, and stacks_run stacks. */
typedef void cases_function(struct subject *subjects, size_t count, const struct plan *plan);
cases_function products_check, products_run_jobs;
cases_function transposes_check, transposes_run_jobs;
cases_function batches_run, stacks_run;

/* --- share.c: the cases by several threads -------------------------------------------------------- */

enum { SHARE_THREADS_MAX = 16 };

/* Calls `check` on so many threads, each with subjects and a device of its own (all of the same GPU, or the
 * host), the caller's among them, and adds up what they found. False, with a line on stdout, where one of
 * the devices does not open. */
bool share_check(cases_function *check, unsigned threads, struct subject *subjects, size_t count,
                 const struct plan *plan);

/* --- bench.c: how long it takes ------------------------------------------------------------------------ */

struct timing {
    enum mm_op op;
    enum mm_dtype dtype;
    unsigned repeats; /* of each row; at least 1 */
    unsigned seconds; /* a row that has used so many is not run again, though once at least; not 0 */
    bool transpose_a; /* the operand is stored transposed, and the product says so */
    bool transpose_b;
};

/* Allocates or ends the program: a harness without memory has nothing to say. */
void *harness_allocate(size_t bytes);
