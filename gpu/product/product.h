/* A product C = op(A)·op(B) or a transposition C = op(A), as a kernel sees it: shapes, views and flags.
 * op(X) is X, or the transpose of X if X's flag is set. Any thread may call these functions. */
#pragma once

#include "gpu/matrix/matrix.h"

/* One row for each operation: constant, name in the API. */
#define MM_OP_TABLE(X)                                                                                       \
    X(MM_MATMUL, "matmul")                                                                                   \
    X(MM_TRANSPOSE, "transpose")

enum mm_op { MM_OP_TABLE(MM_CONSTANT) MM_OP_COUNT };

const char *mm_op_name(enum mm_op op);

/* Describes which operands each product of a stack uses. The view of A contains a_count matrices, one below
 * another. The view of B contains b_count matrices, and the view of C contains `count`. Product i writes
 * matrix i of C. Along dimension d, the next product uses the matrix of A whose index is a_steps[d] larger,
 * and the matrix of B whose index is b_steps[d] larger. If a step is 0, all products along the dimension use
 * the same matrix. */
enum { MM_STACK_RANK_MAX = 6 };

struct mm_stack {
    size_t count; /* number of products, at least 2 */
    size_t a_count;
    size_t b_count;
    unsigned rank; /* at least 1 */
    size_t dims[MM_STACK_RANK_MAX];
    size_t a_steps[MM_STACK_RANK_MAX];
    size_t b_steps[MM_STACK_RANK_MAX];
};

enum mm_operand_index { MM_OPERAND_A, MM_OPERAND_B, MM_OPERANDS_MAX };

enum { MM_PRODUCT_MATRICES = MM_OPERANDS_MAX + 1 }; /* a, b and c */

/* In a product, op(A) is m×k, op(B) is k×n and C is m×n. In a transposition, op(A) and C are m×n, b is empty
 * and k is 0. The views a and b describe the operands as stored, so a is k×m if transpose_a is set. A
 * transposition usually has transpose_a set. If transpose_a is not set, A is stored column by column, and a
 * copy of A's memory is the result.
 *
 * All views are on one device. A and B have one element type. C's type is one of mm_dtype_results, or A's
 * type in a transposition. C does not overlap A or B. Kernels get this struct by value, and write no element
 * outside C's m×n. */
struct mm_product {
    size_t m;
    size_t n;
    size_t k;
    struct mm_matrix a;
    struct mm_matrix b;
    struct mm_matrix c;
    bool transpose_a;
    bool transpose_b;
    bool allow_vendor; /* on a GPU, `auto` may choose a library of the device's vendor */
    bool allow_tf32;   /* on a GPU, `auto` may choose `tf32` for float32 operands */
    unsigned tile;     /* tile that the caller chose; 0: the variant's default */
    /* NULL if there is one product. With a stack, each product is m×n×k, and the dense views contain all
     * products. The caller owns the stack, and keeps it as long as the product. */
    const struct mm_stack *stack;
};

static inline const struct mm_matrix *mm_product_operand(const struct mm_product *product,
                                                         enum mm_operand_index index) {
    return index == MM_OPERAND_A ? &product->a : &product->b;
}

static inline void mm_product_place_operand(struct mm_product *product, enum mm_operand_index index,
                                            void *data) {
    *(index == MM_OPERAND_A ? &product->a.data : &product->b.data) = data;
}

static inline size_t mm_product_count(const struct mm_product *product) {
    return product->stack == NULL ? 1 : product->stack->count;
}

__BEGIN_DECLS
/* Returns the product of a stack with this index. */
struct mm_product mm_product_item(const struct mm_product *product, size_t index);
__END_DECLS

/* Sets m, n and k from a, b and the flags. For a transposition, also empties b. If the inner dimensions of a
 * and b differ, returns MM_BAD_SHAPE with both shapes, and leaves the product untouched. */
enum mm_status mm_product_conform(enum mm_op op, struct mm_product *product, struct mm_error *error);

/* Returns the dense view of C, without data. The element type is mm_dtype_result of A's type; for a
 * transposition it is A's type. The inner dimensions of a and b may differ. */
struct mm_matrix mm_product_result(enum mm_op op, const struct mm_product *product);

/* Returns the bytes of all three matrices together. The caller has checked that the sum does not overflow. */
size_t mm_product_bytes(const struct mm_product *product);

/* Returns a copy of the product whose views are dense and have no data. */
struct mm_product mm_product_dense(const struct mm_product *product);

/* Returns the floating-point operations of all products, 2·m·n·k for each. A double, because the number can
 * exceed 2⁶⁴. */
double mm_product_flops(const struct mm_product *product);
