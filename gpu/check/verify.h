/* Checks a computed product without computing it again: compares C·x with A·(B·x). Source: R. Freivalds,
 * "Probabilistic machines can use less running time", IFIP 1977. A and B stand for op(A) and op(B). For C
 * and for CUDA; this file knows no device and no variant.
 *
 * Floats. Each check has four new vectors x of random ±1, and adds up in float64. For float64 operands it
 * adds up in twice that precision. The vectors show every single element whose error is more than twice
 * the bound. A check misses errors that cancel within a row with a probability of at most 1/16.
 *
 * The bound of a row. Let u and t be the unit roundoff and the least number of the type of the sums
 * (float32: 2^-24 and 2^-149). Let b be the norms of the rows of B, and s the row's sum of |A|·b. The
 * error of each of the row's n elements is at most 2·(k+8)·u·(|A|·|B|) + k·t. The norm of these errors is
 * therefore at most e = 2·(k+8)·u·s + n^1/2·k·t. Tensor cores truncate sums of 16-bit floats instead of
 * rounding them, which doubles the first term. For 8-bit floats the first term is then at least 2^-6·s. If
 * C is narrower than the sums, rounding to C adds two terms: C's unit roundoff times the norm of C's row,
 * and half of C's least number for each element. The sum of the errors with random signs is at most
 * n^1/2·e. It exceeds 9·e once in 2·10^17 checks (W. Hoeffding, 1963). The bound is the smaller of the
 * two. The rounding of the check itself adds less than 4·(n+k+16)·2^-53·n^1/2·(s+e), or for float64 less
 * than 8·(n+k+16)^2·2^-106·n^1/2·(s+e).
 *
 * For float64 the squares in a norm can overflow. There b is the square root of a row's largest element
 * times its sum of absolute values. This b is never less than the norm, and usually a fifth more.
 *
 * A row is checked if s is finite. If its C is not finite, its residual is infinite. The row is not
 * checked if also s + e exceeds the range of the sums or of C, because its sums may have overflowed. The
 * squares of the residuals and of A·(B·x), summed over all rows, estimate the relative error of the result
 * (gpu/check/verification.h).
 *
 * Integers. Each check has 32 new vectors of random words, and computes modulo 2^w, where w is the number
 * of bits of the sums. Each vector shows a wrong row with a probability of at least 1/2. All vectors
 * together miss it with a probability of at most 2^-32. The bound is 0, and the residual is the number of
 * wrong rows.
 *
 * The products of a stack share the vectors; that makes their checks no weaker. Row numbers continue from
 * one product to the next.
 *
 * The functions cannot fail, and take no NULL. On the host any thread may call them on memory of its own.
 * On a GPU the threads of verify.cu's kernels call them. */
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

/* How many vectors multiply a matrix, and how many sums each of its rows has. There is one sum for each
 * vector; for float64 there is also its low part (gpu/check/exact.h). One more sum leads to s: the squares
 * of a row of B, or |A|·b for a row of A. For float64 another one is the largest element of a row of B.
 * Integers have one word for each vector. */
enum {
    MM_VERIFY_VECTORS = 4,
    MM_VERIFY_SUMS = MM_VERIFY_VECTORS + 1,
    MM_VERIFY_PRECISE_SUMS = 2 * MM_VERIFY_VECTORS + 2,
    MM_VERIFY_WORDS = 32
};

/* Returns a new seed, for one check. Any thread. */
uint64_t mm_verify_seed(void);

/* Bytes of memory that mm_verify needs for a product that is not empty. */
size_t mm_verify_bytes(const struct mm_product *product);

/* Checks the product in a, b and c, in host memory, and sets *verification. The shapes conform; m and n
 * are not 0. `memory` has mm_verify_bytes and is aligned for a double; its contents are overwritten. The
 * caller owns all memory. `arithmetic` is the arithmetic that may have computed the product. */
void mm_verify(const struct mm_product *product, enum mm_arithmetic arithmetic, uint64_t seed, void *memory,
               struct mm_verification *verification);

/* Checks a stack in steps: adds `count` products, beginning with `first`, to a verification. Before the
 * first step *verification is 0 except for `is_done` and the seed. The caller does not change `memory`
 * between steps. All steps together have the result of mm_verify. */
void mm_verify_range(const struct mm_product *product, enum mm_arithmetic arithmetic, size_t first,
                     size_t count, void *memory, struct mm_verification *verification);

/* Prepares the check of one product whose C comes in parts: sums up some more of the rows of B and A. *row
 * counts the rows that are done, and begins at 0. Call this until it returns false: then nothing was left
 * to do. m, n and k are not 0. */
bool mm_verify_prepare(const struct mm_product *product, uint64_t seed, void *memory, size_t *row);

/* Checks the rows of `c`, which are rows of C beginning with `first`, and adds them to a verification.
 * mm_verify_prepare has returned false before. The parts of C may come in any order. Before the first part
 * *verification is 0 except for `is_done` and the seed. One preparation serves any number of results. */
void mm_verify_rows(const struct mm_product *product, enum mm_arithmetic arithmetic,
                    const struct mm_matrix *c, size_t first, void *memory,
                    struct mm_verification *verification);

/* --- what the host and the device share ---------------------------------------------------------- */

/* The factors of e, of the bound, and of the rounding of the check itself; all 0 for integers. The comment
 * at the top of this file defines s and e. */
struct mm_verify_bounds {
    double relative; /* e = relative·s + absolute */
    double absolute;
    double unit; /* rounding to C adds unit·(the norm of C's row) + step */
    double step;
    double spread;     /* the bound is spread·e + of_float64·(s + e) */
    double of_float64; /* factor of the rounding of the check itself */
    double largest;    /* if s + e is larger, C may be infinite */
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
        bounds.largest /= 2.0 * root; /* above this, the sums of the check may overflow */
    }
    return bounds;
}

/* Returns the element of random vector v for integers at column `col`. */
MM_HOST_AND_DEVICE uint64_t mm_verify_word(uint64_t seed, unsigned v, size_t col) {
    return mm_random_bits(seed, col * MM_VERIFY_WORDS + v);
}

/* Returns the larger of the residual and |difference|. INFINITY if the difference is not finite. */
MM_HOST_AND_DEVICE double mm_verify_larger(double residual, double difference) {
    const double size = fabs(difference);
    if (size <= residual)
        return residual;
    return size <= DBL_MAX ? size : (double)INFINITY;
}

/* Returns the residual as a fraction of its bound. */
MM_HOST_AND_DEVICE double mm_verify_part(double residual, double bound) {
    return residual == 0.0 ? 0.0 : residual / bound;
}

/* Makes a row the worst row of the verification, unless there is a worse one. */
MM_HOST_AND_DEVICE void mm_verify_update_worst(struct mm_verification *verification, size_t row,
                                               double residual, double bound) {
    const double part = mm_verify_part(residual, bound);
    const double held = mm_verify_part(verification->residual, verification->bound);
    if (verification->rows_checked > 0 && (part < held || (part == held && row > verification->row)))
        return;
    verification->residual = residual;
    verification->bound = bound;
    verification->row = row;
}

/* Adds the rows of a verification of floats to another verification. The order of such additions changes
 * only the last bits of the sums of squares. */
MM_HOST_AND_DEVICE void mm_verify_merge(struct mm_verification *into, const struct mm_verification *rows) {
    if (rows->rows_checked > 0)
        mm_verify_update_worst(into, rows->row, rows->residual, rows->bound);
    into->rows_checked += rows->rows_checked;
    into->rows_unjudged += rows->rows_unjudged;
    mm_squares_merge(&into->error, &rows->error);
    mm_squares_merge(&into->norm, &rows->norm);
}

/* Adds the rows of a verification of integers to another verification. */
MM_HOST_AND_DEVICE void mm_verify_merge_words(struct mm_verification *into,
                                              const struct mm_verification *rows) {
    if (rows->residual > 0.0 && (into->residual == 0.0 || rows->row < into->row))
        into->row = rows->row;
    into->residual += rows->residual;
    into->rows_checked += rows->rows_checked;
    mm_squares_merge(&into->error, &rows->error);
}

/* Adds a row of integers. */
MM_HOST_AND_DEVICE void mm_verify_words_row(struct mm_verification *verification, size_t row, bool is_wrong) {
    struct mm_verification one = {};
    one.row = row;
    one.rows_checked = 1;
    one.residual = one.error.middle = is_wrong ? 1.0 : 0.0;
    mm_verify_merge_words(verification, &one);
}

/* Sums over the vectors for one row. Begin with zeros. */
struct mm_verify_sums {
    double residual; /* the largest |C·x - A·(B·x)| */
    struct mm_squares error;
    struct mm_squares norm;
};

/* Adds one vector to the sums of a row. of_product is the row's A·(B·x), and difference is C·x - A·(B·x). */
MM_HOST_AND_DEVICE void mm_verify_add(struct mm_verify_sums *sums, double difference, double of_product) {
    sums->residual = mm_verify_larger(sums->residual, difference);
    mm_squares_add(&sums->error, difference);
    mm_squares_add(&sums->norm, of_product);
}

/* Checks one row, and adds it to the verification. `s` is the row's sum of |A|·b. c_squares is the sum of
 * the squares of C's row, which is needed only if C is narrower than the sums. */
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
    mm_verify_update_worst(verification, row, sums->residual,
                           bounds->spread * e + bounds->of_float64 * (s + e));
    verification->rows_checked++;
    mm_squares_merge(&verification->error, &sums->error);
    mm_squares_merge(&verification->norm, &sums->norm);
}

__END_DECLS
