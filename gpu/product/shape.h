/* Shapes as callers write them, of rank 0 to 8: the last two dimensions are a matrix, those before count
 * matrices, as in NumPy's matmul. Elements lie in row-major order, so all matrices of a stack stand one below
 * another, and one view covers them. Any thread may call these functions. */
#pragma once

#include "gpu/product/product.h"

enum { MM_RANK_MAX = 8, MM_SHAPE_TEXT_MAX = 24 * MM_RANK_MAX };

/* Rank 0 is a number, rank 1 a vector. */
struct mm_shape {
    unsigned rank;
    size_t dims[MM_RANK_MAX];
};

struct mm_shape mm_shape_of_matrix(size_t rows, size_t cols);

/* How many matrices it has, and the rows and columns of each. A vector is one matrix: a column where
 * `is_column` is set, else a row; a number is 1×1. */
size_t mm_shape_matrices(const struct mm_shape *shape);
size_t mm_shape_rows(const struct mm_shape *shape, bool is_column);
size_t mm_shape_cols(const struct mm_shape *shape, bool is_column);

/* "2×3×4"; "5" of a vector, "" of a number. */
void mm_shape_text(const struct mm_shape *shape, char text[MM_SHAPE_TEXT_MAX]);

/* Judges a shape from outside, and gives the bytes of its elements. MM_TOO_LARGE names `field`: a dimension
 * passes limits->dimension_max, or the bytes pass limits->memory_bytes_max, or those of its dimensions that
 * are not 0 reach 2⁶³. *bytes is untouched on failure. */
enum mm_status mm_shape_size(const char *field, const struct mm_shape *shape, enum mm_dtype dtype,
                             const struct mm_limits *limits, size_t *bytes, struct mm_error *error);

/* Judges the sizes of a, b and c of a product, which are dense, by mm_shape_size, and gives the bytes of
 * each. */
enum { MM_PRODUCT_MATRICES = 3 };
enum mm_status mm_shape_sizes(const struct mm_product *product, const struct mm_limits *limits,
                              size_t bytes[MM_PRODUCT_MATRICES], struct mm_error *error);

/* The dense view of all matrices, one below another, without data. The shape was judged before. */
struct mm_matrix mm_shape_view(const struct mm_shape *shape, bool is_column, enum mm_dtype dtype);

/* The shape of the result: the stacks broadcast, and a vector's own dimension gone. The inner dimensions may
 * differ. False, and *c without a stack, where the stacks do not broadcast. Of a transposition b is ignored.
 */
bool mm_shape_result(enum mm_op op, const struct mm_shape *a, const struct mm_shape *b, bool transpose_a,
                     bool transpose_b, struct mm_shape *c);

/* Makes the product of operands of these shapes, whose views (mm_shape_view) are in product->a and b: sets m,
 * n and k of each product of the stack, product->stack to `stack` where there are several, and the flags of a
 * vector to false, which has nothing to transpose. product->c becomes the dense view of all results, without
 * data, in its own element type. Where B is one matrix, and the rows of A follow one another, all is one
 * product. MM_BAD_SHAPE, naming both shapes: the inner dimensions differ, the stacks do not broadcast, or an
 * operand has too few dimensions. */
enum mm_status mm_shape_conform(enum mm_op op, const struct mm_shape *a, const struct mm_shape *b,
                                struct mm_product *product, struct mm_stack *stack, struct mm_error *error);
