/* Checks a computed product without computing it again: compares C·x with A·(B·x) (R. Freivalds,
 * "Probabilistic machines can use less running time", IFIP 1977). A and B stand for op(A) and op(B). For C
 * and for CUDA; it knows no device and no variant.
 *
 * Types with a point. Each check has four new vectors x of random ±1, and adds up in float64; of float64s in
 * twice the precision. The vectors show a single element that is wrong by more than twice the bound. Errors
 * that cancel within a row are missed once in 16 checks at worst.
 *
 * The bound of a row. Let u and t be the unit roundoff and the least number of the type that sums have
 * (float32: 2^-24 and 2^-149), b the norms of the rows of B, and s the row's sum of |A|·b. Each of the n
 * elements may be off by 2·(k+8)·u·(|A|·|B|) + k·t. So their norm is at most e = 2·(k+8)·u·s + n^1/2·k·t.
 * (Where tensor cores may compute 16-bit floats, which cut off instead of rounding, twice the first term; of
 * 8-bit floats it is 2^-6·s at least.) If C is narrower than the sums, rounding to it adds v times the norm
 * of C's row, and half of C's least number for each element, v being C's unit roundoff. The sum of the errors
 * with random signs is always below n^1/2·e, and exceeds 9·e once in 2·10^17 checks (W. Hoeffding, 1963). The
 * bound is the smaller of the two. The rounding of the check itself adds less than
 * 4·(n+k+16)·2^-53·n^1/2·(s+e); of float64s, less than 8·(n+k+16)^2·2^-106·n^1/2·(s+e).
 *
 * For float64 b is not a norm, whose squares overflow, but the root of the row's largest element times its
 * sum of absolute values. That is never less, and of ordinary rows a fifth more.
 *
 * A row is judged if s is finite. If its C is not finite, its residual is infinite; but if s + e exceeds the
 * range of the sums or of C, the row is not judged, because its sums may have overflowed. The squares of the
 * residuals and of A·(B·x), summed over all rows, estimate the relative error of the result
 * (gpu/check/verification.h).
 *
 * Whole numbers. Each check has 32 new vectors of random words, modulo 2^w as the sums. A wrong row shows in
 * each with a probability of at least 1/2, so all of them miss it at most once in 2^32 checks. The bound is
 * 0, and the residual is the number of wrong rows.
 *
 * The products of a stack have the same vectors: each is checked as well as alone. Rows are counted through.
 *
 * The functions cannot fail, and take no NULL. On the host any thread may call them, on different memory; on
 * a device they run in the threads of verify.cu's kernels. */
#pragma once

#include "gpu/matrix/random.h"
#include "gpu/check/bounds.h"
#include "gpu/check/exact.h"
#include "gpu/check/verification.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* The vectors, and the sums of each row of a matrix that they multiply. There is one sum for each vector; of
 * float64s there are two, the second of which has what the first lost. The last sum leads to s: the squares
 * of a row of B, or |A|·b of a row of A. Before it float64s have a row's largest element of B. Sums of whole
 * numbers are of words. */
enum {
    MM_VERIFY_VECTORS = 4,
    MM_VERIFY_SUMS = MM_VERIFY_VECTORS + 1,
    MM_VERIFY_PRECISE_SUMS = 2 * MM_VERIFY_VECTORS + 2,
    MM_VERIFY_WORDS = 32
};

/* Returns a new seed for each check in this process. Any thread. */
uint64_t mm_verify_seed(void);

/* The bytes of memory that mm_verify needs for a product that is not empty. */
size_t mm_verify_bytes(const struct mm_product *product);

/* Checks the product in a, b and c, in host memory (conforming, m and n not 0), and sets *verification.
 * `memory` has mm_verify_bytes, aligned for a double; the call overwrites it. The caller owns all memory.
 * `arithmetic` is what may have computed the product. */
void mm_verify(const struct mm_product *product, enum mm_arithmetic arithmetic, uint64_t seed, void *memory,
               struct mm_verification *verification);

/* Checks a stack in steps: adds `count` products from `first` on to a verification. Before the first step
 * *verification is 0 except for `is_done` and the seed; `memory` is as the step before left it. All steps
 * together do what mm_verify does. */
void mm_verify_some(const struct mm_product *product, enum mm_arithmetic arithmetic, size_t first,
                    size_t count, void *memory, struct mm_verification *verification);

/* Prepares to check one product whose C comes in parts: sums up some more of the stored rows of B and A. *row
 * counts the rows that are done; it begins at 0. Call this until it returns false: nothing was left to do. m,
 * n and k are not 0. */
bool mm_verify_prepare(const struct mm_product *product, uint64_t seed, void *memory, size_t *row);

/* After mm_verify_prepare, checks the rows of `c`, which are those of C from `first` on, and adds them to a
 * verification. The parts of C may come in any order. Before the first part *verification is 0 except for
 * `is_done` and the seed. Any number of results may be checked after one preparation. */
void mm_verify_rows(const struct mm_product *product, enum mm_arithmetic arithmetic,
                    const struct mm_matrix *c, size_t first, void *memory,
                    struct mm_verification *verification);

/* --- what the host and the device share ---------------------------------------------------------- */

/* The factors of e, of the bound, and of the check's own rounding; all 0 for whole numbers. */
struct mm_verify_bounds {
    double relative; /* e = relative·s + absolute */
    double absolute;
    double unit; /* and rounding to C adds unit·(the norm of C's row) + step */
    double step;
    double spread;     /* the bound is spread·e, and the check's rounding adds */
    double of_float64; /* of_float64·(s + e) */
    double largest;    /* where s + e is larger, C may be infinite */
};

static inline struct mm_verify_bounds mm_verify_bounds_of(const struct mm_product *product,
                                                          enum mm_arithmetic arithmetic) {
    struct mm_verify_bounds bounds = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    if (!mm_dtype_is_float(product->a.dtype))
        return bounds;
    const struct mm_bounds element = mm_bounds_of(product, arithmetic);
    const double lines = (double)product->n + (double)product->k + 16.0;
    const double root = sqrt((double)product->n);
    bounds.relative = element.relative;
    bounds.absolute = root * element.absolute;
    bounds.unit = element.unit;
    bounds.step = root * element.step;
    bounds.spread = root < 9.0 ? root : 9.0;
    bounds.of_float64 = 4.0 * lines * 0x1p-53 * root;
    bounds.largest = element.largest;
    if (mm_dtype_sum(product->a.dtype) == MM_FLOAT64) {
        bounds.of_float64 *= 2.0 * lines * 0x1p-53;
        bounds.largest /= 2.0 * root; /* past this, the sums of the check may overflow */
    }
    return bounds;
}

/* Word v of the random vectors of whole numbers, at column `col`. */
MM_HOST_AND_DEVICE uint64_t mm_verify_word(uint64_t seed, unsigned v, size_t col) {
    return mm_random_bits(seed, col * MM_VERIFY_WORDS + v);
}

/* The larger of a residual and another vector's difference; INFINITY if that is not finite. */
MM_HOST_AND_DEVICE double mm_verify_larger(double residual, double difference) {
    const double size = fabs(difference);
    if (size <= residual)
        return residual;
    return size <= DBL_MAX ? size : (double)INFINITY;
}

/* A residual as a fraction of its bound. */
MM_HOST_AND_DEVICE double mm_verify_part(double residual, double bound) {
    return residual == 0.0 ? 0.0 : residual / bound;
}

/* Makes a row the worst one, unless the verification has a worse one. */
MM_HOST_AND_DEVICE void mm_verify_keep_worst(struct mm_verification *verification, size_t row,
                                             double residual, double bound) {
    const double part = mm_verify_part(residual, bound);
    const double held = mm_verify_part(verification->residual, verification->bound);
    if (verification->rows_judged > 0 && (part < held || (part == held && row > verification->row)))
        return;
    verification->residual = residual;
    verification->bound = bound;
    verification->row = row;
}

/* Adds the rows of one verification of floats to another. The order of such additions changes only the last
 * bits of the sums of squares. */
MM_HOST_AND_DEVICE void mm_verify_merge(struct mm_verification *into, const struct mm_verification *rows) {
    if (rows->rows_judged > 0)
        mm_verify_keep_worst(into, rows->row, rows->residual, rows->bound);
    into->rows_judged += rows->rows_judged;
    into->rows_unjudged += rows->rows_unjudged;
    mm_squares_merge(&into->error, &rows->error);
    mm_squares_merge(&into->norm, &rows->norm);
}

/* Adds the rows of one verification of whole numbers to another. */
MM_HOST_AND_DEVICE void mm_verify_merge_words(struct mm_verification *into,
                                              const struct mm_verification *rows) {
    if (rows->residual > 0.0 && (into->residual == 0.0 || rows->row < into->row))
        into->row = rows->row;
    into->residual += rows->residual;
    into->rows_judged += rows->rows_judged;
    mm_squares_merge(&into->error, &rows->error);
}

/* Adds a row of whole numbers. */
MM_HOST_AND_DEVICE void mm_verify_words_row(struct mm_verification *verification, size_t row, bool is_wrong) {
    struct mm_verification one = {};
    one.row = row;
    one.rows_judged = 1;
    one.residual = one.error.middle = is_wrong ? 1.0 : 0.0;
    mm_verify_merge_words(verification, &one);
}

/* The sums of a row over its vectors; all 0 before the first. */
struct mm_verify_sums {
    double residual; /* the largest difference */
    struct mm_squares error;
    struct mm_squares norm;
};

/* Adds a vector: its product with the row of A·B, and how far its product with the row of C differs from
 * that. */
MM_HOST_AND_DEVICE void mm_verify_add(struct mm_verify_sums *sums, double difference, double of_product) {
    sums->residual = mm_verify_larger(sums->residual, difference);
    mm_squares_add(&sums->error, difference);
    mm_squares_add(&sums->norm, of_product);
}

/* Checks a row by the sums over all vectors, by s, and, if C is narrower than the sums, by the squares of C's
 * row. Adds the row to the verification. */
MM_HOST_AND_DEVICE void mm_verify_row(struct mm_verification *verification,
                                      const struct mm_verify_bounds *bounds, size_t row,
                                      const struct mm_verify_sums *sums, double s, double c_squares) {
    double e = bounds->relative * s + bounds->absolute;
    const bool is_within_range = s + e <= bounds->largest;
    if (!(s <= DBL_MAX && (sums->residual <= DBL_MAX || is_within_range))) {
        verification->rows_unjudged++;
        return;
    }
    if (bounds->unit > 0.0 && c_squares <= DBL_MAX)
        e += bounds->unit * sqrt(c_squares) + bounds->step;
    mm_verify_keep_worst(verification, row, sums->residual,
                         bounds->spread * e + bounds->of_float64 * (s + e));
    verification->rows_judged++;
    mm_squares_merge(&verification->error, &sums->error);
    mm_squares_merge(&verification->norm, &sums->norm);
}

__END_DECLS
