/* A product C = op(A)·op(B) or a transposition C = op(A), as a kernel sees it: shapes, views and flags.
 * op(X) is X, or the transpose of X if X's flag is set. Any thread may call these functions. */
#pragma once

#include "gpu/product/epilogue.h"

/* One row for each operation: constant, name in the API. */
#define MM_OP_TABLE(X)                                                                                       \
    X(MM_MATMUL, "matmul")                                                                                   \
    X(MM_TRANSPOSE, "transpose")

enum mm_op { MM_OP_TABLE(MM_CONSTANT) MM_OP_COUNT };

const char *mm_op_name(enum mm_op op);

/* Describes which matrices each product of a stack uses. The view of A contains a_count matrices, one below
 * another. The view of B contains b_count matrices, the view of the addend addend_count, and the view of C
 * `count`. Product i writes matrix i of C. Each dimension of the stack has a step for A, for B and for the
 * addend. The step is the number of matrices from a product's operand to the operand of the next product
 * along the dimension. If it is 0, all products along the dimension share the operand. */
enum { MM_STACK_RANK_MAX = 6 };

struct mm_stack {
    size_t count; /* number of products, at least 2 */
    size_t a_count;
    size_t b_count;
    size_t addend_count;
    unsigned rank; /* at least 1 */
    size_t dims[MM_STACK_RANK_MAX];
    size_t a_steps[MM_STACK_RANK_MAX];
    size_t b_steps[MM_STACK_RANK_MAX];
    size_t addend_steps[MM_STACK_RANK_MAX];
};

/* Indices into each list of a product's operands. */
enum mm_operand_index { MM_OPERAND_A, MM_OPERAND_B, MM_OPERAND_ADDEND, MM_OPERAND_BIAS, MM_OPERANDS_MAX };

enum { MM_PRODUCT_MATRICES = MM_OPERANDS_MAX + 1 };

/* Where a share of C lies: at (row, col) of a product of m×n. A share is computed as in the whole product:
 * its kernel, tile and split of k are those of m×n, so no bit of C depends on the shares. */
struct mm_whole {
    size_t m; /* 0 if the product is no share */
    size_t n;
    size_t row;
    size_t col;
};

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
    struct mm_matrix addend; /* m×n, or n×m if transpose_addend is set; no rows if there is no addend */
    struct mm_matrix bias;   /* 1×n; no rows if there is no bias */
    struct mm_epilogue epilogue;
    bool transpose_a;
    bool transpose_b;
    bool transpose_addend;
    bool allow_vendor; /* on a GPU, `auto` may choose a library of the device's vendor */
    bool allow_tf32;   /* on a GPU, `auto` may choose `tf32` for float32 operands */
    unsigned tile;     /* tile size that the caller chose, or 0 for the variant's default */
    /* NULL if there is one product. With a stack, m, n and k are the sizes of each product, and the dense
     * views contain the matrices of all products. The caller owns the stack, which must stay valid as long as
     * the product. */
    const struct mm_stack *stack;
    struct mm_whole whole; /* set by gpu/queue/share.c; a share has no stack */
};

/* Returns the product with the m and n of the whole product. The matrices remain those of the share. */
static inline struct mm_product mm_product_whole(const struct mm_product *product) {
    struct mm_product whole = *product;
    whole.m = product->whole.m > 0 ? product->whole.m : product->m;
    whole.n = product->whole.m > 0 ? product->whole.n : product->n;
    return whole;
}

static inline const struct mm_matrix *mm_product_operand(const struct mm_product *product,
                                                         enum mm_operand_index index) {
    const struct mm_matrix *const operands[] = {&product->a, &product->b, &product->addend, &product->bias};
    return operands[index];
}

static inline void mm_product_place_operand(struct mm_product *product, enum mm_operand_index index,
                                            void *data) {
    struct mm_matrix *const operands[] = {&product->a, &product->b, &product->addend, &product->bias};
    operands[index]->data = data;
}

/* Returns the terms of the elements of D (product->c). */
MM_HOST_AND_DEVICE struct mm_terms mm_product_terms(const struct mm_product *product) {
    const struct mm_matrix *addend = &product->addend;
    struct mm_terms terms;
    terms.epilogue = product->epilogue;
    terms.dtype = product->c.dtype;
    terms.addend = addend->rows == 0 ? NULL : addend->data;
    terms.addend_row_step = product->transpose_addend ? 1 : addend->ld;
    terms.addend_col_step = product->transpose_addend ? addend->ld : 1;
    terms.bias = product->bias.rows == 0 ? NULL : product->bias.data;
    return terms;
}

/* Computes element (row, col) of D (product->c) from its sum, and stores it. */
#define MM_STORE_C(SUM)                                                                                      \
    MM_HOST_AND_DEVICE void mm_store_c_##SUM(const struct mm_product *product, size_t row, size_t col,       \
                                             SUM sum) {                                                      \
        const struct mm_matrix *c = &product->c;                                                             \
        if (product->epilogue.is_set) {                                                                      \
            const struct mm_terms terms = mm_product_terms(product);                                         \
            sum = mm_finish_##SUM(&terms, row, col, sum);                                                    \
        }                                                                                                    \
        mm_store_##SUM(c->dtype, c->data, row * c->ld + col, sum);                                           \
    }

MM_STORE_C(float)
MM_STORE_C(double)
MM_STORE_C(uint32_t)
MM_STORE_C(uint64_t)

static inline size_t mm_product_count(const struct mm_product *product) {
    return product->stack == NULL ? 1 : product->stack->count;
}

__BEGIN_DECLS
struct mm_product mm_product_item(const struct mm_product *product, size_t index);
__END_DECLS

/* Returns a product that computes a block of C: `rows` rows from `row` on, and `cols` columns from `col` on.
 * The matrices of the result point into the matrices of `product`. */
struct mm_product mm_product_part(const struct mm_product *product, enum mm_op op, size_t row, size_t rows,
                                  size_t col, size_t cols);

/* Returns the index in an operand of the first element that mm_product_part gives to a block of C. The block
 * begins at row `row` and column `col`. */
size_t mm_product_part_first(const struct mm_product *product, enum mm_operand_index index, size_t row,
                             size_t col);

/* Sets m, n and k from a, b and the flags. For a transposition, also empties b. If the inner dimensions of a
 * and b differ, returns MM_BAD_SHAPE with both shapes, and leaves the product untouched. */
enum mm_status mm_product_conform(enum mm_op op, struct mm_product *product, struct mm_error *error);

/* Returns the dense view of C, without data. The element type is mm_dtype_result of A's type; for a
 * transposition it is A's type. The inner dimensions of a and b may differ. */
struct mm_matrix mm_product_result(enum mm_op op, const struct mm_product *product);

/* Drops the operands that D does not depend on. If beta is 0, drops the addend. If alpha is 0, drops A and B
 * by setting k to 0. Then clears epilogue.is_set if D is the sums. Does nothing to a product without an
 * epilogue. */
void mm_product_drop_unread(struct mm_product *product);

/* Returns the bytes of all matrices together. The caller has checked that their sizes do not
 * overflow. */
size_t mm_product_bytes(const struct mm_product *product);

/* Returns a copy of the product whose views are dense and have no data. */
struct mm_product mm_product_dense(const struct mm_product *product);

/* Returns the number of floating-point operations of all products, 2·m·n·k for each. The type is double,
 * because the number can exceed 2⁶⁴. */
double mm_product_flops(const struct mm_product *product);
