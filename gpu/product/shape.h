/* Shapes as clients write them, of rank 0 to 8. As in NumPy's matmul, the last two dimensions are a matrix.
 * The dimensions before the last two say how many matrices a stack has. Elements are in row-major order. The
 * matrices of a stack are therefore one below another in memory, and one view contains all matrices. Any
 * thread may call these functions. */
#pragma once

#include "gpu/product/product.h"

enum { MM_RANK_MAX = 8, MM_SHAPE_TEXT_MAX = 24 * MM_RANK_MAX };

/* Rank 0 is a number, and rank 1 is a vector. */
struct mm_shape {
    unsigned rank;
    size_t dims[MM_RANK_MAX];
};

struct mm_shape mm_shape_of_matrix(size_t rows, size_t cols);

/* Return the number of matrices, and the rows and columns of each. A vector counts as one matrix: as a
 * column if `is_column` is set, else as a row. A number counts as a 1×1 matrix. */
size_t mm_shape_matrices(const struct mm_shape *shape);
size_t mm_shape_rows(const struct mm_shape *shape, bool is_column);
size_t mm_shape_cols(const struct mm_shape *shape, bool is_column);

/* Writes the dimensions as "2×3×4". A vector is "5", and a number is "". */
void mm_shape_text(const struct mm_shape *shape, char text[MM_SHAPE_TEXT_MAX]);

/* Checks a shape that a client gave, and sets *bytes to the size of its elements. Returns MM_TOO_LARGE with
 * `field` if a dimension or the size exceeds its limit. An empty shape also fails if its other dimensions
 * alone would need 2⁶³ bytes or more. On failure *bytes is unchanged. */
enum mm_status mm_shape_size(const char *field, const struct mm_shape *shape, enum mm_dtype dtype,
                             const struct mm_limits *limits, size_t *bytes, struct mm_error *error);

/* Checks a, b and c of a product by mm_shape_size, and sets the bytes of each. The views must be dense. */
enum mm_status mm_shape_sizes(const struct mm_product *product, const struct mm_limits *limits,
                              size_t bytes[MM_OPERANDS_MAX + 1], struct mm_error *error);

/* Returns a dense view of all matrices of a shape, one below another, without data. The caller has checked
 * the shape. */
struct mm_matrix mm_shape_view(const struct mm_shape *shape, bool is_column, enum mm_dtype dtype);

/* Sets *c to the shape of the result: broadcasts the stacks, and drops the dimension of a vector. Does not
 * compare the inner dimensions. If the stacks do not broadcast, returns false and sets *c to the shape of one
 * matrix. For a transposition, ignores b. */
bool mm_shape_result(enum mm_op op, const struct mm_shape *a, const struct mm_shape *b, bool transpose_a,
                     bool transpose_b, struct mm_shape *c);

/* Completes a product whose operands have these shapes, by their index (NULL: there is no such operand). The
 * product has their views (mm_shape_view) and the epilogue's factors. If A or B is a vector, the addend's
 * view becomes that of all its matrices, which have one row or one column.
 * Sets m, n and k of each product of the stack. Sets product->stack to `stack` if there are several products.
 * Clears the transpose flag of a vector. product->c keeps its element type and becomes the dense view of all
 * results, without data. If B is one matrix, A is not transposed, and no two products share an addend, the
 * whole stack becomes one product. MM_BAD_SHAPE names both shapes: the inner dimensions differ, the stacks do
 * not broadcast, an operand has too few dimensions, or the addend or the bias does not suit the result. */
enum mm_status mm_shape_conform(enum mm_op op, const struct mm_shape *const shapes[MM_OPERANDS_MAX],
                                struct mm_product *product, struct mm_stack *stack, struct mm_error *error);
