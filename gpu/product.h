/* One product C = op(A)·op(B), as a kernel sees it: shapes, views and flags, nothing of where it
 * came from. op(X) is X, or its transpose where the flag is set. */
#ifndef MM_GPU_PRODUCT_H
#define MM_GPU_PRODUCT_H

#include "gpu/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

/* op(A) is m×k, op(B) is k×n, C is m×n. a and b are as stored (a is k×m where transpose_a is set).
 * All views are on one device, of one element type, and C overlaps neither operand. Elements of C's
 * storage that lie outside its m×n are never written. Passed by value to kernels: plain data only. */
struct mm_product {
    size_t m;
    size_t n;
    size_t k;
    struct mm_matrix a;
    struct mm_matrix b;
    struct mm_matrix c;
    bool transpose_a;
    bool transpose_b;
};

/* Sets m, n and k from a, b and the flags. MM_BAD_SHAPE, naming both shapes, where the inner
 * dimensions differ; the product is untouched then. */
enum mm_status mm_product_conform(struct mm_product *product, struct mm_error *error);

/* 2·m·n·k, the floating-point operations of the product (a multiplication and an addition each). A
 * double, since it can pass 2⁶⁴. */
double mm_product_flops(const struct mm_product *product);

#ifdef __cplusplus
}
#endif
#endif
