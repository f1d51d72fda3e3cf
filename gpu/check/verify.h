/* Checks a computed product without computing it again: compares C·x with A·(B·x) in float64 (R. Freivalds,
 * "Probabilistic machines can use less running time", IFIP 1977). A and B stand for op(A) and op(B). For C
 * and for CUDA; it knows no device and no variant.
 *
 * Each check has four new vectors x of random ±1. They show a single element that is wrong by more than twice
 * the bound. Errors that cancel within a row are missed once in 16 checks at worst.
 *
 * The bound of a row. Let u = 2^-24, b the norms of the rows of B, and s the row's sum of |A|·b. Each of the
 * n elements may be off by 2·(k+8)·u·(|A|·|B|) + k·2^-149. So their norm is at most e = 2·(k+8)·u·s +
 * n^1/2·k·2^-149. Their sum with random signs is always below n^1/2·e, and exceeds 9·e once in 2·10^17 checks
 * (W. Hoeffding, 1963). The bound is the smaller of the two. float64's own rounding adds less than
 * 4·(n+k+16)·2^-53·n^1/2·(s+e).
 *
 * A row is judged if s is finite. If its C is not finite, its residual is infinite; but if s + e exceeds
 * float32's range, the row is not judged, since float32 may have overflowed on the way. The squares of the
 * residuals and of A·(B·x), summed over all rows, estimate the relative error of the result
 * (gpu/check/verification.h).
 *
 * The functions cannot fail, and take no NULL. On the host any thread may call them, on different memory; on
 * a device they run in the threads of verify.cu's kernels. */
#pragma once

#include "gpu/product.h"
#include "gpu/random.h"
#include "gpu/check/verification.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* The vectors, and the sums of each row of a matrix that they multiply. There is one sum for each vector. The
 * last sum leads to s: the squares of a row of B, or |A|·b of a row of A. */
enum { MM_VERIFY_VECTORS = 4, MM_VERIFY_SUMS = MM_VERIFY_VECTORS + 1 };

/* The seed of the next check in this process. */
uint64_t mm_verify_seed(void);

/* The bytes of memory that mm_verify needs for a product that is not empty. */
size_t mm_verify_bytes(const struct mm_product *product);

/* Judges the product in a, b and c, in the host's memory (float32, conforming, m and n not 0). `memory` has
 * mm_verify_bytes, aligned for a double; the call overwrites it. All memory is the caller's. *verification is
 * set as a whole. */
void mm_verify(const struct mm_product *product, uint64_t seed, void *memory,
               struct mm_verification *verification);

/* --- what the host and the device share ---------------------------------------------------------- */

/* The factors of e, of the bound, and of float64's rounding. */
struct mm_verify_bounds {
    double relative; /* e = relative·s + absolute */
    double absolute;
    double spread;     /* the bound is spread·e, and float64's rounding adds */
    double of_float64; /* of_float64·(s + e) */
};

static inline struct mm_verify_bounds mm_verify_bounds_of(const struct mm_product *product) {
    const double n = (double)product->n;
    const double k = (double)product->k;
    const double root = sqrt(n);
    assert(product->a.dtype == MM_FLOAT32);
    const struct mm_verify_bounds bounds = {2.0 * (k + 8.0) * 0x1p-24, root * k * 0x1p-149,
                                            root < 9.0 ? root : 9.0, 4.0 * (n + k + 16.0) * 0x1p-53 * root};
    return bounds;
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
MM_HOST_AND_DEVICE void mm_verify_take(struct mm_verification *verification, size_t row, double residual,
                                       double bound) {
    const double part = mm_verify_part(residual, bound);
    const double held = mm_verify_part(verification->residual, verification->bound);
    if (verification->rows_judged > 0 && (part < held || (part == held && row > verification->row)))
        return;
    verification->residual = residual;
    verification->bound = bound;
    verification->row = row;
}

/* Adds the rows of one verification to another. The order of such additions shows only in the last bits of
 * the sums of squares. */
MM_HOST_AND_DEVICE void mm_verify_merge(struct mm_verification *into, const struct mm_verification *rows) {
    if (rows->rows_judged > 0)
        mm_verify_take(into, rows->row, rows->residual, rows->bound);
    into->rows_judged += rows->rows_judged;
    into->rows_unjudged += rows->rows_unjudged;
    into->error_squares += rows->error_squares;
    into->norm_squares += rows->norm_squares;
}

/* The sums of a row over its vectors; all 0 before the first. */
struct mm_verify_sums {
    double residual; /* the largest difference */
    double error_squares;
    double norm_squares;
};

/* Adds a vector: its product with the row of C, and with the row of A·B. */
MM_HOST_AND_DEVICE void mm_verify_add(struct mm_verify_sums *sums, double of_c, double of_product) {
    const double difference = of_c - of_product;
    sums->residual = mm_verify_larger(sums->residual, difference);
    sums->error_squares += difference * difference;
    sums->norm_squares += of_product * of_product;
}

/* Judges a row by the sums over all vectors and by s, and adds it to the verification. */
MM_HOST_AND_DEVICE void mm_verify_row(struct mm_verification *verification,
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

__END_DECLS
