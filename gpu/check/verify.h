/* Checks a computed product without computing it again: compares C·x with A·(B·x) in float64 (R. Freivalds,
 * "Probabilistic machines can use less running time", IFIP 1977). A and B stand for op(A) and op(B). For C
 * and for CUDA; it knows no device and no variant.
 *
 * There are four vectors of random ±1, new ones for each check. They show a single element that is wrong by
 * more than twice the bound, and miss errors that cancel within a row once in 16 times at worst.
 *
 * The bound of a row, u = 2^-24, s its sum of |A|·b, b the norms of the rows of B: each of its n elements may
 * be off by 2·(k+8)·u·(|A|·|B|) + k·2^-149, so their norm is at most e = 2·(k+8)·u·s + n^1/2·k·2^-149. With
 * random signs the sum stays below 9·e but once in 2·10^17 checks (W. Hoeffding, 1963), and always below
 * n^1/2·e: the lesser counts. float64's own rounding adds less than 4·(n+k+16)·2^-53·n^1/2·(s+e).
 *
 * A row is judged if s is finite. If its C is not finite and s + e is within float32's range, its residual
 * is infinite; beyond that range it is not judged, since float32 may have overflowed on the way. The
 * squares of the residuals, and of A·(B·x), summed over all rows, estimate the relative error of the
 * result (gpu/check/verification.h). */
#ifndef MM_GPU_CHECK_VERIFY_H
#define MM_GPU_CHECK_VERIFY_H

#include "gpu/product.h"
#include "gpu/random.h"
#include "gpu/check/verification.h"

#include <float.h>
#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Vectors, and the sums of a line of a matrix that is multiplied with them: one by each vector, and behind
 * them that which s is made of: of a row of B its norm, of a row of A that of |A|·b. */
enum { MM_VERIFY_VECTORS = 4, MM_VERIFY_SUMS = MM_VERIFY_VECTORS + 1 };

/* The seed of the next check in this process. Any thread. */
uint64_t mm_verify_seed(void);

/* The memory that mm_verify takes of a product that is not empty. */
size_t mm_verify_bytes(const struct mm_product *product);

/* Judges the product that a, b and c hold, in the host's memory (float32, conforming, m and n not 0), with
 * `memory` of mm_verify_bytes, aligned for a double, whose contents do not matter. Any thread. */
void mm_verify(const struct mm_product *product, uint64_t seed, void *memory,
               struct mm_verification *verification);

/* --- what the host and the device share ---------------------------------------------------------- */

/* e, the bound and what float64 adds to it, as factors. */
struct mm_verify_bounds {
    double relative; /* e is this part of s, and this much: */
    double absolute;
    double spread;     /* of e, that a sum with random signs may come to */
    double of_float64; /* as a part of s + e */
};

static inline struct mm_verify_bounds mm_verify_bounds_of(const struct mm_product *product) {
    const double n = (double)product->n;
    const double k = (double)product->k;
    const double root = sqrt(n);
    const struct mm_verify_bounds bounds = {2.0 * (k + 8.0) * 0x1p-24, root * k * 0x1p-149,
                                            root < 9.0 ? root : 9.0, 4.0 * (n + k + 16.0) * 0x1p-53 * root};
    return bounds;
}

/* The larger of a residual and what another vector has it differ by; INFINITY where that is not finite. */
MM_RANDOM_FUNCTION double mm_verify_larger(double residual, double difference) {
    const double size = fabs(difference);
    if (size <= residual)
        return residual;
    return size <= DBL_MAX ? size : (double)INFINITY;
}

/* A residual as a part of its bound. */
MM_RANDOM_FUNCTION double mm_verify_part(double residual, double bound) {
    return residual == 0.0 ? 0.0 : residual / bound;
}

/* Takes a row for the worst, unless the one that is held is. */
MM_RANDOM_FUNCTION void mm_verify_take(struct mm_verification *verification, size_t row, double residual,
                                       double bound) {
    const double part = mm_verify_part(residual, bound);
    const double held = mm_verify_part(verification->residual, verification->bound);
    if (verification->rows_judged > 0 && (part < held || (part == held && row > verification->row)))
        return;
    verification->residual = residual;
    verification->bound = bound;
    verification->row = row;
}

/* Adds the rows of one verification to another's. In whatever order rows are added, the same comes of it, but
 * for the last bits of the sums of squares. */
MM_RANDOM_FUNCTION void mm_verify_merge(struct mm_verification *into, const struct mm_verification *rows) {
    if (rows->rows_judged > 0)
        mm_verify_take(into, rows->row, rows->residual, rows->bound);
    into->rows_judged += rows->rows_judged;
    into->rows_unjudged += rows->rows_unjudged;
    into->error_squares += rows->error_squares;
    into->norm_squares += rows->norm_squares;
}

/* What the vectors tell of a row; all 0 before the first. */
struct mm_verify_sums {
    double residual; /* the largest difference */
    double error_squares;
    double norm_squares;
};

/* Adds what a vector tells: its sums of the row of C, and of that of A·B. */
MM_RANDOM_FUNCTION void mm_verify_add(struct mm_verify_sums *sums, double of_c, double of_product) {
    const double difference = of_c - of_product;
    sums->residual = mm_verify_larger(sums->residual, difference);
    sums->error_squares += difference * difference;
    sums->norm_squares += of_product * of_product;
}

/* Judges a row by its sums of all vectors, and by s, and adds it. */
MM_RANDOM_FUNCTION void mm_verify_row(struct mm_verification *verification,
                                      const struct mm_verify_bounds *bounds, size_t row,
                                      const struct mm_verify_sums *sums, double s) {
    const double e = bounds->relative * s + bounds->absolute;
    const bool is_within_range = s + e <= (double)FLT_MAX;
    if (s <= DBL_MAX && (sums->residual <= DBL_MAX || is_within_range)) {
        mm_verify_take(verification, row, sums->residual, bounds->spread * e + bounds->of_float64 * (s + e));
        verification->rows_judged++;
        verification->error_squares += sums->error_squares;
        verification->norm_squares += sums->norm_squares;
    } else {
        verification->rows_unjudged++;
    }
}

#ifdef __cplusplus
}
#endif
#endif
