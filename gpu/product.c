/* Which matrices conform, and how much work their product is. */
#include "gpu/product.h"

#include <stdio.h>

enum mm_status mm_product_conform(struct mm_product *product, struct mm_error *error) {
    const struct mm_matrix *a = &product->a;
    const struct mm_matrix *b = &product->b;
    size_t m = product->transpose_a ? a->cols : a->rows;
    size_t a_inner = product->transpose_a ? a->rows : a->cols;
    size_t b_inner = product->transpose_b ? b->cols : b->rows;
    size_t n = product->transpose_b ? b->rows : b->cols;
    if (a_inner != b_inner) {
        char hint[48] = "";
        if (a_inner == n)
            snprintf(hint, sizeof hint, "; set transpose_b to %s", product->transpose_b ? "false" : "true");
        else if (b_inner == m)
            snprintf(hint, sizeof hint, "; set transpose_a to %s", product->transpose_a ? "false" : "true");
        return mm_fail(
            error, MM_BAD_SHAPE,
            "%s is %zu×%zu and %s is %zu×%zu, but the first must have as many columns (%zu) as the "
            "second has rows (%zu)%s",
            product->transpose_a ? "transposed a" : "a", m, a_inner,
            product->transpose_b ? "transposed b" : "b", b_inner, n, a_inner, b_inner, hint);
    }
    product->m = m;
    product->n = n;
    product->k = a_inner;
    return MM_OK;
}

void mm_product_conform_transposition(struct mm_product *product) {
    const struct mm_matrix *a = &product->a;
    product->m = product->transpose_a ? a->cols : a->rows;
    product->n = product->transpose_a ? a->rows : a->cols;
    product->k = 0;
    product->b = mm_matrix_dense(a->dtype, 0, 0, NULL);
    product->transpose_b = false;
}

struct mm_product mm_product_dense(const struct mm_product *product) {
    struct mm_product dense = *product;
    dense.a = mm_matrix_dense(product->a.dtype, product->a.rows, product->a.cols, NULL);
    dense.b = mm_matrix_dense(product->b.dtype, product->b.rows, product->b.cols, NULL);
    dense.c = mm_matrix_dense(product->c.dtype, product->c.rows, product->c.cols, NULL);
    return dense;
}

double mm_product_flops(const struct mm_product *product) {
    return 2.0 * (double)product->m * (double)product->n * (double)product->k;
}
