/* Whether a product that was computed is right, told without computing it again: C·x is compared with
 * A·(B·x) in float64, which takes three products of a matrix and a few vectors (R. Freivalds, "Probabilistic
 * machines can use less running time", IFIP 1977). A and B stand for op(A) and op(B). For C and for CUDA; it
 * knows no device and no variant.
 *
 * The vectors have elements of ±1, so that each column counts as much as any other, and a single element that
 * is wrong by more than twice the bound shows: the rest of its row takes away no more than the bound. Errors
 * of one row may cancel each other, at worst two of them (columns that are swapped) for half of all vectors.
 * So there are four, of which all miss such errors once in 16 times: they are multiplied with an element as
 * it is read, and reading is what takes the time. Each check has others, so that who asks again is told of
 * something else.
 *
 * How far C·x may be from A·(B·x) in a row follows from what is right (README.md, Limits): each of the row's
 * n elements may be off by 2·(k+8)·u·(|A|·|B|) + k·2^-149, u = 2^-24. The norm of these is at most
 *
 *     e = 2·(k+8)·u·s + n^1/2·k·2^-149,   s the row's sum of |A|·b, b the norms of the rows of B,
 *
 * since a row of |A|·|B| is a sum of rows of |B|. With random signs, which know nothing of the errors, their
 * sum comes to 9·e or more once in 2·10^17 times (W. Hoeffding, "Probability inequalities for sums of bounded
 * random variables", 1963: 2·exp(-9²/2)), and to more than n^1/2·e never. The bound is the lesser of the two.
 * It grows as the root of n where the sum of what elements may be off by grows as n, so that it finds what
 * that would hide.
 *
 * float64 adds its own. A sum of products in any order, each a few roundings of w = 2^-53 deep, is off by at
 * most g = N·w/(1 - N·w) of the sum of absolute values, N = n + k + 2. A row's sum of |A|·|B| is at most
 * n^1/2·s, and that of |C| n^1/2·(s + e) where C is right. So A·(B·x) is off by g·n^1/2·s, C·x by g·n^1/2·(s
 * + e), and s, e and the difference by as little. 4·(n+k+16)·w·n^1/2·(s + e) is more than all of it, and
 * beside 9·e it is next to nothing: with n = k = 10,000 by a part in 10^7.
 *
 * A row is judged where s is finite: where neither its row of A nor anything in B is NaN or infinite. If C
 * has such an element all the same, the row is wrong where s + e is within float32's range, as all of |A|·|B|
 * is then, by an infinite residual; and else it is not judged: float32 may have overflowed on the way. */
#ifndef MM_GPU_VERIFY_H
#define MM_GPU_VERIFY_H

#include "gpu/product.h"
#include "gpu/random.h"
#include "gpu/verification.h"

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

/* --- what the host and the device share --- */

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

/* Adds the rows of one verification to another's. In whatever order rows are added, the same comes of it. */
MM_RANDOM_FUNCTION void mm_verify_merge(struct mm_verification *into, const struct mm_verification *rows) {
    if (rows->rows_judged > 0)
        mm_verify_take(into, rows->row, rows->residual, rows->bound);
    into->rows_judged += rows->rows_judged;
    into->rows_unjudged += rows->rows_unjudged;
}

/* Judges a row by its residual, the largest of all vectors, and by s, and adds it. */
MM_RANDOM_FUNCTION void mm_verify_row(struct mm_verification *verification,
                                      const struct mm_verify_bounds *bounds, size_t row, double residual,
                                      double s) {
    const double e = bounds->relative * s + bounds->absolute;
    const bool is_within_range = s + e <= (double)FLT_MAX;
    if (s <= DBL_MAX && (residual <= DBL_MAX || is_within_range)) {
        mm_verify_take(verification, row, residual, bounds->spread * e + bounds->of_float64 * (s + e));
        verification->rows_judged++;
    } else {
        verification->rows_unjudged++;
    }
}

#ifdef __cplusplus
}
#endif
#endif
