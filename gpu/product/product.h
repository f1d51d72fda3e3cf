/* One product C = op(A)·op(B), or one transposition C = op(A), as a kernel sees it: shapes, views and flags,
 * nothing of where it came from. op(X) is X, or its transpose where the flag is set. Any thread may call
 * these functions. */
#pragma once

#include "gpu/matrix/matrix.h"

/* One row an operation: constant, wire name. */
#define MM_OP_TABLE(X)                                                                                       \
    X(MM_MATMUL, "matmul")                                                                                   \
    X(MM_TRANSPOSE, "transpose")

enum mm_op { MM_OP_TABLE(MM_CONSTANT) MM_OP_COUNT };

const char *mm_op_name(enum mm_op op);

/* How the products of a stack find their operands. A has a_count matrices, one below another in one view, B
 * and C likewise; product i has matrix i of C. A dimension's step is by how many matrices of A, or of B, the
 * next product along it lies further on; 0: all along it share one. */
enum { MM_STACK_RANK_MAX = 6 };

struct mm_stack {
    size_t count; /* products; at least 2 */
    size_t a_count;
    size_t b_count;
    unsigned rank; /* at least 1 */
    size_t dims[MM_STACK_RANK_MAX];
    size_t a_steps[MM_STACK_RANK_MAX];
    size_t b_steps[MM_STACK_RANK_MAX];
};

/* The operands of a product, in the order of every list of them. */
enum mm_operand_index { MM_OPERAND_A, MM_OPERAND_B, MM_OPERANDS_MAX };

/* op(A) is m×k, op(B) is k×n, C is m×n. a and b are as stored (a is k×m where transpose_a is set).
 * Of a transposition C and op(A) are m×n, b is empty and k is 0; transpose_a is set, but where A is stored
 * column by column, so that its transpose lies there already and is only copied.
 * All views are on one device, A and B are of one element type, C is of one of mm_dtype_results of it (of a
 * transposition the same), and C overlaps neither operand. Elements of C's
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
    bool allow_vendor;            /* the row `auto` of a GPU may choose a library of the device's vendor */
    bool allow_tf32;              /* it may choose `tf32` for float32 operands */
    unsigned tile;                /* that the caller chose, for a variant which leaves it open; 0: its own */
    const struct mm_stack *stack; /* m, n and k are those of each of its products, the views cover all of
                                     them and are dense; the caller's, for as long as the product; NULL: there
                                     is one product */
};

/* The view of an operand. */
static inline const struct mm_matrix *mm_product_operand(const struct mm_product *product,
                                                         enum mm_operand_index index) {
    return index == MM_OPERAND_A ? &product->a : &product->b;
}

/* Sets the address of an operand's elements. */
static inline void mm_product_place_operand(struct mm_product *product, enum mm_operand_index index,
                                            void *data) {
    *(index == MM_OPERAND_A ? &product->a.data : &product->b.data) = data;
}

/* How many products it is: at least 1. */
static inline size_t mm_product_count(const struct mm_product *product) {
    return product->stack == NULL ? 1 : product->stack->count;
}

__BEGIN_DECLS
/* Product `index` of a stack alone. */
struct mm_product mm_product_item(const struct mm_product *product, size_t index);
__END_DECLS

/* Sets m, n and k from a, b and the flags; of a transposition b becomes empty. MM_BAD_SHAPE, naming both
 * shapes, if the inner dimensions of a and b differ; the product is untouched then. */
enum mm_status mm_product_conform(enum mm_op op, struct mm_product *product, struct mm_error *error);

/* The dense view of C, without data, whose shape and element type (mm_dtype_result) follow from a, b and the
 * flags. The inner dimensions of a and b may differ. */
struct mm_matrix mm_product_result(enum mm_op op, const struct mm_product *product);

/* Bytes of all three matrices together, whose sizes were judged before. */
size_t mm_product_bytes(const struct mm_product *product);

/* The same product on dense matrices that are not placed yet: data is NULL. */
struct mm_product mm_product_dense(const struct mm_product *product);

/* 2·m·n·k of all products, the floating-point operations (a multiplication and an addition each). A
 * double, since it can pass 2⁶⁴. */
double mm_product_flops(const struct mm_product *product);
