/* Checks that operands conform. Computes the view of C, and counts bytes and operations. */
#include "gpu/product/product.h"

#include "gpu/names.h"

#include <assert.h>
#include <stdio.h>

MM_DEFINE_NAMES(mm_op_name, mm_op, MM_OP_COUNT, MM_OP_TABLE)

struct mm_matrix mm_product_result(enum mm_op op, const struct mm_product *product) {
    const struct mm_matrix *a = &product->a;
    const struct mm_matrix *b = &product->b;
    const size_t rows = product->transpose_a ? a->cols : a->rows;
    size_t cols = product->transpose_b ? b->rows : b->cols;
    if (op == MM_TRANSPOSE)
        cols = product->transpose_a ? a->rows : a->cols;
    return mm_matrix_dense(op == MM_MATMUL ? mm_dtype_result(a->dtype) : a->dtype, rows, cols, NULL);
}

enum mm_status mm_product_conform(enum mm_op op, struct mm_product *product, struct mm_error *error) {
    const struct mm_matrix *a = &product->a;
    const struct mm_matrix *b = &product->b;
    const struct mm_matrix c = mm_product_result(op, product);
    const size_t m = c.rows;
    const size_t n = c.cols;
    const size_t a_inner = product->transpose_a ? a->rows : a->cols;
    const size_t b_inner = product->transpose_b ? b->cols : b->rows;
    if (op == MM_MATMUL && a_inner != b_inner) {
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
    product->k = op == MM_MATMUL ? a_inner : 0;
    if (op == MM_TRANSPOSE) {
        product->b = mm_matrix_dense(a->dtype, 0, 0, NULL);
        product->transpose_b = false;
    }
    return MM_OK;
}

size_t mm_product_bytes(const struct mm_product *product) {
    size_t bytes = mm_matrix_bytes(&product->c);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        bytes += mm_matrix_bytes(mm_product_operand(product, index));
    return bytes;
}

struct mm_product mm_product_dense(const struct mm_product *product) {
    struct mm_product dense = *product;
    struct mm_matrix *const matrices[] = {&dense.a, &dense.b, &dense.c, &dense.addend, &dense.bias};
    for (unsigned index = 0; index < MM_PRODUCT_MATRICES; index++)
        *matrices[index] =
            mm_matrix_dense(matrices[index]->dtype, matrices[index]->rows, matrices[index]->cols, NULL);
    return dense;
}

/* Narrows a view of `count` matrices, which are one below another, to matrix `index`. */
static void pick(struct mm_matrix *matrix, size_t count, size_t index) {
    matrix->rows /= count;
    if (matrix->data != NULL)
        matrix->data =
            (char *)matrix->data + index * matrix->rows * matrix->ld * mm_dtype_bytes(matrix->dtype);
}

struct mm_product mm_product_item(const struct mm_product *product, size_t index) {
    const struct mm_stack *stack = product->stack;
    struct mm_product item = *product;
    size_t left = index, a = 0, b = 0, addend = 0;
    if (stack == NULL)
        return item;
    for (unsigned dim = stack->rank; dim-- > 0; left /= stack->dims[dim]) {
        a += left % stack->dims[dim] * stack->a_steps[dim];
        b += left % stack->dims[dim] * stack->b_steps[dim];
        addend += left % stack->dims[dim] * stack->addend_steps[dim];
    }
    item.stack = NULL;
    pick(&item.a, stack->a_count, a);
    pick(&item.b, stack->b_count, b);
    if (item.addend.rows > 0)
        pick(&item.addend, stack->addend_count, addend);
    pick(&item.c, stack->count, index);
    return item;
}

/* Restricts a matrix X to `count` rows of op(X), from row `first` on. If of_cols, restricts X to columns of
 * op(X) instead. */
static void cut(struct mm_matrix *matrix, bool transposed, bool of_cols, size_t first, size_t count) {
    const bool along = of_cols != transposed; /* whether to restrict columns of X */
    const size_t elements = along ? first : first * matrix->ld;
    *(along ? &matrix->cols : &matrix->rows) = count;
    if (matrix->data != NULL)
        matrix->data = (char *)matrix->data + elements * mm_dtype_bytes(matrix->dtype);
}

struct mm_product mm_product_part(const struct mm_product *product, enum mm_op op, size_t row, size_t rows,
                                  size_t col, size_t cols) {
    struct mm_product part = *product;
    assert(row + rows <= product->m && col + cols <= product->n);
    part.m = rows;
    part.n = cols;
    cut(&part.c, false, false, row, rows);
    cut(&part.c, false, true, col, cols);
    if (product->addend.rows > 0) {
        cut(&part.addend, product->transpose_addend, false, row, rows);
        cut(&part.addend, product->transpose_addend, true, col, cols);
    }
    if (product->bias.rows > 0)
        cut(&part.bias, false, true, col, cols);
    cut(&part.a, product->transpose_a, false, row, rows);
    if (op == MM_TRANSPOSE)
        cut(&part.a, product->transpose_a, true, col, cols);
    else if (cols < product->n)
        cut(&part.b, product->transpose_b, true, col, cols);
    return part;
}

size_t mm_product_part_first(const struct mm_product *product, enum mm_operand_index index, size_t row,
                             size_t col) {
    const size_t ld = mm_product_operand(product, index)->ld;
    switch (index) {
    case MM_OPERAND_A:
        return product->transpose_a ? row : row * ld;
    case MM_OPERAND_B:
        return product->transpose_b ? col * ld : col;
    case MM_OPERAND_ADDEND:
        return product->transpose_addend ? col * ld + row : row * ld + col;
    default:
        return col;
    }
}

void mm_product_drop_unread(struct mm_product *product) {
    struct mm_epilogue *epilogue = &product->epilogue;
    if (!epilogue->is_set)
        return;
    const enum mm_dtype sum = mm_dtype_sum(product->a.dtype);
    if (mm_scale_is(sum, &epilogue->alpha, 0))
        product->k = 0;
    if (mm_scale_is(sum, &epilogue->beta, 0))
        product->addend = mm_matrix_dense(product->c.dtype, 0, 0, NULL);
    epilogue->is_set = !mm_scale_is(sum, &epilogue->alpha, 1) || product->addend.rows > 0 ||
                       product->bias.rows > 0 || epilogue->activation != MM_ACTIVATION_NONE;
}

double mm_product_flops(const struct mm_product *product) {
    return 2.0 * (double)product->m * (double)product->n * (double)product->k *
           (double)mm_product_count(product);
}
