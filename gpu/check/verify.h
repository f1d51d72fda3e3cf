/* Checks a product without computing it again: compares C·x with A·(B·x). Source: R. Freivalds,
 * "Probabilistic machines can use less running time", IFIP 1977. A and B mean op(A) and op(B). With an
 * epilogue, C is D, and the check compares C·x with alpha·A·(B·x) + beta·(addend·x) + bias·x. The epilogue
 * has no activation, because an activation is not linear. For C and for CUDA.
 *
 * Floats. Each check has four new vectors x of random ±1, and adds in float64. For float64 operands, sums
 * have twice the precision of float64. A row with a single error of more than twice the bound always fails.
 * Errors that cancel within a row are missed with a probability of at most 1/16.
 *
 * The bound of a row. Let u and t be the unit roundoff and the least number of the type of the sums (float32:
 * 2^-24 and 2^-149). Let b be the norms of the rows of B, and let s be the sum of |A|·b in the row. Each of
 * the n elements has an error of at most 2·(k+8)·u·(|A|·|B|) + k·t. The norm of all errors in the row is
 * therefore at most e = 2·(k+8)·u·s + n^1/2·k·t. Two cases change e:
 *
 * - Tensor cores truncate instead of rounding. For 16-bit floats this doubles the first term of e. For 8-bit
 *   floats the first term becomes at least 2^-6·s.
 * - If C is narrower than the sums, rounding adds C's unit roundoff times the norm of C's row, and n^1/2
 *   times half of C's least number.
 *
 * An epilogue multiplies e by |alpha|, and rounds three times: the product with alpha, and the sums with the
 * addend and the bias. With p = |alpha|·s + |beta|·(the addend's norm in the row) + (the norm of the bias),
 * this adds at most 4·u·p + n^1/2·t to e (docs/accuracy.md). In all that follows p replaces s.
 *
 * With random signs, the sum of the errors is at most n^1/2·e, and exceeds 9·e once in 2·10^17 checks (W.
 * Hoeffding, 1963). The bound is the smaller of n^1/2·e and 9·e. The rounding of the check itself adds less
 * than 4·(n+k+16)·2^-53·n^1/2·(s+e), or for float64 less than 8·(n+k+16)^2·2^-106·n^1/2·(s+e).
 *
 * In float64 the squares in a norm can overflow. For float64, b² is therefore a row's largest absolute value
 * times the row's sum of absolute values. This b is never less than the norm, and usually larger by a fifth.
 *
 * A row is not checked if s or p is not finite. If a row of C is not finite, its residual is infinite. But if
 * s + e or p + e exceeds the range of the sums or of C, the sums may have overflowed, so the row is not
 * checked.
 *
 * Integers. Each check has 32 new vectors of random words, and computes modulo 2^w, where w is the number of
 * bits of the sums. Each vector finds a wrong row with a probability of at least 1/2, so all vectors miss it
 * with a probability of at most 2^-32.
 *
 * All products of a stack use the same vectors, which does not weaken the check. Row numbers continue from
 * one product to the next.
 *
 * The functions cannot fail, and take no NULL. On the host any thread may call them on its own memory. */
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

/* The numbers of vectors and of sums of a row. Each vector has one sum, or for float64 two: a high and a low
 * part (gpu/check/exact.h). The last sum of a row is for the bound: it is s in a row of A, and gives the norm
 * of a row of B or C. For float64, the sum before the last is the largest element of a row of B. Integers
 * have MM_VERIFY_WORDS vectors. */
enum {
    MM_VERIFY_VECTORS = 4,
    MM_VERIFY_SUMS = MM_VERIFY_VECTORS + 1,
    MM_VERIFY_PRECISE_SUMS = 2 * MM_VERIFY_VECTORS + 2,
    MM_VERIFY_WORDS = 32
};

/* Returns a new seed. Use each seed for only one check. */
uint64_t mm_verify_seed(void);

/* Bytes of memory that the check of a product needs. The product is not empty. */
size_t mm_verify_bytes(const struct mm_product *product);

/* Checks a product whose matrices are in host memory, and sets *verification. m and n are not 0. `memory` has
 * mm_verify_bytes and is aligned for a double. `arithmetic` is mm_variant_arithmetic of the variant. */
void mm_verify(const struct mm_product *product, enum mm_arithmetic arithmetic, uint64_t seed, void *memory,
               struct mm_verification *verification);

/* Checks `count` products of a stack, beginning with product `first`, and adds them to a verification. If the
 * calls cover all products in order, the result is that of mm_verify. Before the first call, the caller sets
 * is_done and the seed, and all other members to 0. The caller does not change `memory` between calls. */
void mm_verify_range(const struct mm_product *product, enum mm_arithmetic arithmetic, size_t first,
                     size_t count, void *memory, struct mm_verification *verification);

/* Prepares the check of one product whose C comes in parts. Each call sums some more rows of B, of A, of the
 * addend, or the bias. *row counts the rows, and begins at 0. Returns false if nothing remained to do. m and
 * n are not 0. k can be 0 only if alpha is 0. If `streams` is not NULL, A and B are dense random streams with
 * the seeds streams[0] and streams[1]. The check then generates A and B, and does not read their data, which
 * a wrong kernel could have overwritten. */
bool mm_verify_prepare(const struct mm_product *product, const uint64_t *streams, uint64_t seed, void *memory,
                       size_t *row);

/* Checks the rows of `c`, which are the rows of C from row `first` on, and adds them to a verification. Call
 * this only after mm_verify_prepare returned false. The caller first sets is_done and the seed, and all other
 * members to 0. The parts of C may come in any order. Several results may use one preparation. */
void mm_verify_rows(const struct mm_product *product, enum mm_arithmetic arithmetic,
                    const struct mm_matrix *c, size_t first, void *memory,
                    struct mm_verification *verification);

/* --- for the host and the device --------------------------------------------------------------- */

/* Factors for the bound of a row, and the factors of the product's epilogue. The comment at the top of
 * this file defines s, e and p. For integers only whole_alpha and whole_beta are set. */
struct mm_verify_bounds {
    double relative; /* e = relative·s + absolute */
    double absolute;
    double unit; /* rounding to C adds unit·(norm of C's row) + step to e */
    double step;
    double spread; /* the bound is spread·e + of_float64·(p + e) */
    double of_float64;
    double largest; /* if s + e is larger, C may be infinite */
    double alpha;   /* 1 without an epilogue */
    double beta;    /* 0 without an addend */
    double terms;   /* e becomes |alpha|·e + terms·p + terms_step; both are 0 without an epilogue */
    double terms_step;
    uint64_t whole_alpha, whole_beta; /* alpha and beta of integers */
};

static inline struct mm_verify_bounds mm_verify_bounds_of(const struct mm_product *product,
                                                          enum mm_arithmetic arithmetic) {
    const enum mm_dtype sum = mm_dtype_sum(product->a.dtype);
    const struct mm_epilogue *epilogue = &product->epilogue;
    const bool has_addend = product->addend.rows > 0;
    struct mm_verify_bounds bounds = {};
    assert(!epilogue->is_set || epilogue->activation == MM_ACTIVATION_NONE);
    if (!mm_dtype_is_float(product->a.dtype)) {
        bounds.whole_alpha = epilogue->is_set ? mm_scale_whole(sum, &epilogue->alpha) : 1;
        bounds.whole_beta = has_addend ? mm_scale_whole(sum, &epilogue->beta) : 0;
        return bounds;
    }
    const struct mm_precision precision = mm_dtype_precision(sum);
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
    bounds.alpha = epilogue->is_set ? mm_scale_real(sum, &epilogue->alpha) : 1.0;
    bounds.beta = has_addend ? mm_scale_real(sum, &epilogue->beta) : 0.0;
    bounds.terms = epilogue->is_set ? 4.0 * precision.unit : 0.0;
    bounds.terms_step = epilogue->is_set ? root * precision.least : 0.0;
    if (sum == MM_FLOAT64) {
        bounds.of_float64 *= 2.0 * lines * 0x1p-53;
        bounds.largest /= 2.0 * root; /* if s + e is larger, the sums of the check may overflow */
    }
    return bounds;
}

/* Returns the element at column `col` of vector v for integers. */
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

MM_HOST_AND_DEVICE double mm_verify_part(double residual, double bound) {
    return residual == 0.0 ? 0.0 : residual / bound;
}

/* Makes `row` the worst row if it is worse than the worst row so far, or equally bad and earlier. */
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

/* Adds the rows of one verification of floats to another. The order of merging changes only the last bits of
 * `error` and `norm`. */
MM_HOST_AND_DEVICE void mm_verify_merge(struct mm_verification *into, const struct mm_verification *rows) {
    if (rows->rows_checked > 0)
        mm_verify_update_worst(into, rows->row, rows->residual, rows->bound);
    into->rows_checked += rows->rows_checked;
    into->rows_unjudged += rows->rows_unjudged;
    mm_squares_merge(&into->error, &rows->error);
    mm_squares_merge(&into->norm, &rows->norm);
}

/* Adds the rows of one verification of integers to another. */
MM_HOST_AND_DEVICE void mm_verify_merge_words(struct mm_verification *into,
                                              const struct mm_verification *rows) {
    if (rows->residual > 0.0 && (into->residual == 0.0 || rows->row < into->row))
        into->row = rows->row;
    into->residual += rows->residual;
    into->rows_checked += rows->rows_checked;
    mm_squares_merge(&into->error, &rows->error);
}

MM_HOST_AND_DEVICE void mm_verify_words_row(struct mm_verification *verification, size_t row, bool is_wrong) {
    struct mm_verification one = {};
    one.row = row;
    one.rows_checked = 1;
    one.residual = one.error.middle = is_wrong ? 1.0 : 0.0;
    mm_verify_merge_words(verification, &one);
}

/* The sums of one row over all vectors. Begin with zeros. */
struct mm_verify_sums {
    double residual; /* the largest |C·x - A·(B·x)| */
    struct mm_squares error;
    struct mm_squares norm;
};

/* Adds one vector. of_product is A·(B·x) of the row, and `difference` is C·x - A·(B·x). */
MM_HOST_AND_DEVICE void mm_verify_add(struct mm_verify_sums *sums, double difference, double of_product) {
    sums->residual = mm_verify_larger(sums->residual, difference);
    mm_squares_add(&sums->error, difference);
    mm_squares_add(&sums->norm, of_product);
}

/* Applies the epilogue to the sums of a row of A·(B·x): MM_VERIFY_VECTORS sums, and their low parts if
 * `is_precise`. `addend` and `bias` are the sums of the addend's row and of the bias, or zeros. */
MM_HOST_AND_DEVICE void mm_verify_apply(const struct mm_verify_bounds *bounds, double *sums,
                                        const double *addend, const double *bias, bool is_precise) {
    for (unsigned v = 0; v < MM_VERIFY_VECTORS; v++) {
        const unsigned of_low = v + MM_VERIFY_VECTORS;
        double high = 0.0, low = 0.0;
        if (!is_precise) {
            sums[v] = bounds->alpha * sums[v] + bounds->beta * addend[v] + bias[v];
            continue;
        }
        mm_exact_add_product(&high, &low, bounds->alpha, sums[v], sums[of_low]);
        mm_exact_add_product(&high, &low, bounds->beta, addend[v], addend[of_low]);
        mm_exact_add_product(&high, &low, 1.0, bias[v], bias[of_low]);
        sums[v] = high;
        sums[of_low] = low;
    }
}

/* Checks one row, and adds it to the verification. `s` is the sum of |A|·b of the row. `norms` is the norm of
 * the addend's row times |beta|, plus the norm of the bias. c_squares is the sum of the squares of C's row,
 * and is only used if C is narrower than the sums. */
MM_HOST_AND_DEVICE void mm_verify_row(struct mm_verification *verification,
                                      const struct mm_verify_bounds *bounds, size_t row,
                                      const struct mm_verify_sums *sums, double s, double norms,
                                      double c_squares) {
    const double alpha = fabs(bounds->alpha), of_sums = bounds->relative * s + bounds->absolute;
    const double p = alpha * s + norms;
    double e = alpha * of_sums + bounds->terms * p + bounds->terms_step;
    const bool is_within_range = s + of_sums <= bounds->largest && p + e <= bounds->largest;
    if (!(s <= DBL_MAX && p <= DBL_MAX && (sums->residual <= DBL_MAX || is_within_range))) {
        verification->rows_unjudged++;
        return;
    }
    if (bounds->unit > 0.0 && c_squares <= DBL_MAX)
        e += bounds->unit * sqrt(c_squares) + bounds->step;
    mm_verify_update_worst(verification, row, sums->residual,
                           bounds->spread * e + bounds->of_float64 * (p + e));
    verification->rows_checked++;
    mm_squares_merge(&verification->error, &sums->error);
    mm_squares_merge(&verification->norm, &sums->norm);
}

__END_DECLS
