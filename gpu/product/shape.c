/* Checks shapes that clients gave, and computes the shape and the stack of a product. */
#include "gpu/product/shape.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct mm_shape mm_shape_of_matrix(size_t rows, size_t cols) {
    return (struct mm_shape){.rank = 2, .dims = {rows, cols}};
}

/* Returns the number of dimensions before the last two. */
static unsigned stack_rank(const struct mm_shape *shape) {
    return shape->rank > 2 ? shape->rank - 2 : 0;
}

size_t mm_shape_matrices(const struct mm_shape *shape) {
    size_t count = 1;
    for (unsigned dim = 0; dim < stack_rank(shape); dim++)
        count *= shape->dims[dim];
    return count;
}

size_t mm_shape_rows(const struct mm_shape *shape, bool is_column) {
    if (shape->rank < 2)
        return shape->rank == 1 && is_column ? shape->dims[0] : 1;
    return shape->dims[shape->rank - 2];
}

size_t mm_shape_cols(const struct mm_shape *shape, bool is_column) {
    return shape->rank == 0 || (shape->rank == 1 && is_column) ? 1 : shape->dims[shape->rank - 1];
}

void mm_shape_text(const struct mm_shape *shape, char text[MM_SHAPE_TEXT_MAX]) {
    size_t length = 0;
    text[0] = '\0';
    for (unsigned dim = 0; dim < shape->rank; dim++)
        length += (size_t)snprintf(text + length, MM_SHAPE_TEXT_MAX - length, "%s%zu", dim > 0 ? "×" : "",
                                   shape->dims[dim]);
}

static enum mm_status fail_dimension(const char *field, const struct mm_shape *shape, unsigned dim,
                                     size_t limit, struct mm_error *error) {
    const size_t value = shape->dims[dim];
    if (shape->rank == 2)
        mm_fail_limit(error, field, limit, "the number of %s of %s is %zu, but the limit is %zu (%s)",
                      dim == 0 ? "rows" : "columns", field, value, limit, "--max-dimension");
    else
        mm_fail_limit(error, field, limit, "dimension %u of %s is %zu, but the limit is %zu (%s)", dim, field,
                      value, limit, "--max-dimension");
    mm_fail_got(error, "%zu", value);
    return MM_TOO_LARGE;
}

/* If the limit is SIZE_MAX, the error names the limits of host and of device memory, because the matrix may
 * be in either. */
static enum mm_status fail_bytes(const char *field, const char *got, size_t limit, struct mm_error *error) {
    if (limit == SIZE_MAX)
        mm_fail_field(error, MM_TOO_LARGE, field,
                      "the size in bytes of %s is %s, but the limit is --memory-budget on the CPU, and "
                      "--max-device-memory on a GPU",
                      field, got);
    else
        mm_fail_limit(error, field, limit,
                      "the size in bytes of %s is %s, but the limit is %zu (--memory-budget)", field, got,
                      limit);
    mm_fail_got(error, "%s", got);
    return MM_TOO_LARGE;
}

enum mm_status mm_shape_size(const char *field, const struct mm_shape *shape, enum mm_dtype dtype,
                             const struct mm_limits *limits, size_t *bytes, struct mm_error *error) {
    size_t total = mm_dtype_bytes(dtype);
    bool is_empty = false;
    assert(shape->rank <= MM_RANK_MAX);
    for (unsigned dim = 0; dim < shape->rank; dim++) {
        if (shape->dims[dim] > limits->dimension_max)
            return fail_dimension(field, shape, dim, limits->dimension_max, error);
        is_empty = is_empty || shape->dims[dim] == 0;
        if (shape->dims[dim] > 0 &&
            (__builtin_mul_overflow(total, shape->dims[dim], &total) || total >= (size_t)1 << 63))
            return fail_bytes(field, "2^63 or more", limits->memory_bytes_max, error);
    }
    if (!is_empty && total > limits->memory_bytes_max) {
        char got[32];
        snprintf(got, sizeof got, "%zu", total);
        return fail_bytes(field, got, limits->memory_bytes_max, error);
    }
    *bytes = is_empty ? 0 : total;
    return MM_OK;
}

enum mm_status mm_shape_sizes(const struct mm_product *product, const struct mm_limits *limits,
                              size_t bytes[MM_OPERANDS_MAX + 1], struct mm_error *error) {
    static const char *const names[] = {"a", "b", "c", "bias", "c"};
    const struct mm_matrix *matrices[] = {&product->a, &product->b, &product->addend, &product->bias,
                                          &product->c};
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index <= MM_OPERANDS_MAX && status == MM_OK; index++) {
        const struct mm_shape shape = mm_shape_of_matrix(matrices[index]->rows, matrices[index]->cols);
        status = mm_shape_size(names[index], &shape, matrices[index]->dtype, limits, &bytes[index], error);
    }
    return status;
}

struct mm_matrix mm_shape_view(const struct mm_shape *shape, bool is_column, enum mm_dtype dtype) {
    return mm_matrix_dense(dtype, mm_shape_matrices(shape) * mm_shape_rows(shape, is_column),
                           mm_shape_cols(shape, is_column), NULL);
}

/* Returns dimension `dim` of a stack after broadcasting. If the stack has fewer than `rank` dimensions,
 * dimensions of 1 are added at the front. */
static size_t stack_dim(const struct mm_shape *shape, unsigned rank, unsigned dim) {
    const unsigned missing = rank - stack_rank(shape);
    return dim < missing ? 1 : shape->dims[dim - missing];
}

static void append(struct mm_shape *shape, size_t length) {
    shape->dims[shape->rank++] = length;
}

bool mm_shape_result(enum mm_op op, const struct mm_shape *a, const struct mm_shape *b, bool transpose_a,
                     bool transpose_b, struct mm_shape *c) {
    const struct mm_shape *other = op == MM_MATMUL ? b : a;
    const unsigned rank = stack_rank(a) > stack_rank(other) ? stack_rank(a) : stack_rank(other);
    bool broadcasts = true;
    *c = (struct mm_shape){.rank = 0};
    for (unsigned dim = 0; dim < rank; dim++) {
        const size_t of_a = stack_dim(a, rank, dim), of_b = stack_dim(other, rank, dim);
        broadcasts = broadcasts && (of_a == of_b || of_a == 1 || of_b == 1);
        append(c, of_a == 1 ? of_b : of_a);
    }
    if (!broadcasts)
        c->rank = 0;
    if (a->rank > 1)
        append(c, transpose_a ? mm_shape_cols(a, false) : mm_shape_rows(a, false));
    if (op == MM_TRANSPOSE)
        append(c, transpose_a ? mm_shape_rows(a, false) : mm_shape_cols(a, false));
    else if (b->rank > 1)
        append(c, transpose_b ? mm_shape_rows(b, true) : mm_shape_cols(b, true));
    return broadcasts;
}

/* Adds a dimension at the front of the stack. If one step can run through the new and the first dimension,
 * merges them. */
static void add_dim(struct mm_stack *stack, size_t length, size_t a_step, size_t b_step, size_t addend_step) {
    if (stack->rank > 0 && a_step == stack->a_steps[0] * stack->dims[0] &&
        b_step == stack->b_steps[0] * stack->dims[0] &&
        addend_step == stack->addend_steps[0] * stack->dims[0]) {
        stack->dims[0] *= length;
        return;
    }
    size_t *const lists[] = {stack->dims, stack->a_steps, stack->b_steps, stack->addend_steps};
    const size_t added[] = {length, a_step, b_step, addend_step};
    for (unsigned index = 0; index < 4; index++) {
        memmove(lists[index] + 1, lists[index], stack->rank * sizeof *lists[index]);
        lists[index][0] = added[index];
    }
    stack->rank++;
}

/* Makes the stack of shapes that broadcast. If there is no addend, the stack's addend steps are those of
 * C. */
static void make_stack(const struct mm_shape *a, const struct mm_shape *b, const struct mm_shape *addend,
                       struct mm_stack *stack) {
    const unsigned rank = stack_rank(a) > stack_rank(b) ? stack_rank(a) : stack_rank(b);
    *stack = (struct mm_stack){.count = 1, .a_count = 1, .b_count = 1, .addend_count = 1};
    for (unsigned dim = rank; dim-- > 0;) {
        const size_t of_a = stack_dim(a, rank, dim), of_b = stack_dim(b, rank, dim);
        const size_t length = of_a == 1 ? of_b : of_a;
        const size_t of_addend = addend == NULL ? length : stack_dim(addend, rank, dim);
        if (length != 1)
            add_dim(stack, length, of_a == 1 ? 0 : stack->a_count, of_b == 1 ? 0 : stack->b_count,
                    of_addend == 1 ? 0 : stack->addend_count);
        stack->count *= length;
        stack->a_count *= of_a;
        stack->b_count *= of_b;
        stack->addend_count *= of_addend;
    }
}

static enum mm_status fail_shapes(const struct mm_shape *a, const struct mm_shape *b,
                                  struct mm_error *error) {
    char a_text[MM_SHAPE_TEXT_MAX], b_text[MM_SHAPE_TEXT_MAX];
    mm_shape_text(a, a_text);
    mm_shape_text(b, b_text);
    return mm_fail(
        error, MM_BAD_SHAPE,
        "the stacks of a, %s, and of b, %s, do not broadcast: before the last two dimensions, each "
        "of a must be that of b, or one of them 1",
        a_text, b_text);
}

/* Products accept vectors, but transpositions do not. */
static enum mm_status check_rank(enum mm_op op, const char *name, const struct mm_shape *shape,
                                 struct mm_error *error) {
    const unsigned least = op == MM_MATMUL ? 1 : 2;
    if (shape->rank >= least)
        return MM_OK;
    return mm_fail(error, MM_BAD_SHAPE, "%s is a %s, but %s takes %s", name,
                   shape->rank == 0 ? "number" : "vector", op == MM_MATMUL ? "a product" : "a transposition",
                   op == MM_MATMUL ? "vectors, matrices and stacks" : "matrices and stacks");
}

/* Reports the client's shapes, because "rows by columns" does not describe vectors and stacks. */
static enum mm_status fail_inner(const struct mm_shape *a, const struct mm_shape *b, size_t a_inner,
                                 size_t b_inner, struct mm_error *error) {
    char a_text[MM_SHAPE_TEXT_MAX], b_text[MM_SHAPE_TEXT_MAX];
    mm_shape_text(a, a_text);
    mm_shape_text(b, b_text);
    return mm_fail(
        error, MM_BAD_SHAPE,
        "a is %s and b is %s: after any transpose a's matrices have %zu columns and b's %zu rows, but "
        "the two must be equal; transpose_a and transpose_b swap the last two dimensions",
        a_text, b_text, a_inner, b_inner);
}

/* Checks one matrix of each operand by mm_product_conform, and copies m, n and k to `product`. */
static enum mm_status conform_one(enum mm_op op, const struct mm_shape *a, const struct mm_shape *b,
                                  struct mm_product *product, struct mm_error *error) {
    struct mm_product one = *product;
    one.a.rows = mm_shape_rows(a, false);
    if (op == MM_MATMUL)
        one.b.rows = mm_shape_rows(b, true);
    const size_t a_inner = one.transpose_a ? one.a.rows : one.a.cols;
    const size_t b_inner = one.transpose_b ? one.b.cols : one.b.rows;
    if (op == MM_MATMUL && a_inner != b_inner && (a->rank != 2 || b->rank != 2))
        return fail_inner(a, b, a_inner, b_inner, error);
    const enum mm_status status = mm_product_conform(op, &one, error);
    if (status != MM_OK)
        return status;
    product->m = one.m;
    product->n = one.n;
    product->k = one.k;
    if (op == MM_TRANSPOSE) {
        product->b = one.b;
        product->transpose_b = one.transpose_b;
    }
    return MM_OK;
}

/* Checks the addend against the result. `own` is the number of dimensions of one matrix of the result. These
 * last dimensions must be equal in both shapes. The earlier dimensions of the addend must broadcast to those
 * of the result without enlarging them. */
static enum mm_status check_addend(const struct mm_shape *addend, const struct mm_shape *result, unsigned own,
                                   struct mm_error *error) {
    bool suits = addend->rank >= own && addend->rank <= result->rank;
    for (unsigned back = 1; back <= addend->rank && suits; back++) {
        const size_t length = addend->dims[addend->rank - back];
        suits = length == result->dims[result->rank - back] || (back > own && length == 1);
    }
    if (suits)
        return MM_OK;
    char addend_text[MM_SHAPE_TEXT_MAX], result_text[MM_SHAPE_TEXT_MAX];
    mm_shape_text(addend, addend_text);
    mm_shape_text(result, result_text);
    return mm_fail_field(error, MM_BAD_SHAPE, "c",
                         "c is %s, but the result is %s: the last %s must be equal, and each "
                         "dimension before equal or 1",
                         addend->rank == 0 ? "a number" : addend_text,
                         result->rank == 0 ? "a number" : result_text,
                         own < 2 ? "dimension" : "two dimensions");
}

/* Inserts dimensions of length 1 if A or B is a vector, because the addend then lacks a row or column
 * dimension. */
static struct mm_shape restore_matrix(const struct mm_shape *addend, const struct mm_shape *a,
                                      const struct mm_shape *b) {
    struct mm_shape whole = *addend;
    if (b->rank == 1)
        append(&whole, 1);
    if (a->rank == 1) {
        append(&whole, whole.dims[whole.rank - 1]);
        whole.dims[whole.rank - 2] = 1;
    }
    return whole;
}

static enum mm_status check_bias(const struct mm_shape *bias, bool has_columns, size_t n,
                                 struct mm_error *error) {
    if (has_columns && bias->rank == 1 && bias->dims[0] == n)
        return MM_OK;
    char text[MM_SHAPE_TEXT_MAX];
    mm_shape_text(bias, text);
    if (!has_columns)
        return mm_fail_field(error, MM_BAD_SHAPE, "bias",
                             "bias is %s, but b is a vector, so the result has no columns to add it to",
                             text);
    return mm_fail_field(error, MM_BAD_SHAPE, "bias",
                         "bias is %s, but it must be a vector of %zu elements, one for each column of the "
                         "result",
                         bias->rank == 0 ? "a number" : text, n);
}

enum mm_status mm_shape_conform(enum mm_op op, const struct mm_shape *const shapes[MM_OPERANDS_MAX],
                                struct mm_product *product, struct mm_stack *stack, struct mm_error *error) {
    const enum mm_dtype c_dtype = product->c.dtype;
    const struct mm_shape *a = shapes[MM_OPERAND_A], *addend = shapes[MM_OPERAND_ADDEND];
    const struct mm_shape *b = op == MM_MATMUL ? shapes[MM_OPERAND_B] : a;
    struct mm_shape c, whole;
    enum mm_status status = check_rank(op, "a", a, error);
    if (status == MM_OK && op == MM_MATMUL)
        status = check_rank(op, "b", b, error);
    if (status != MM_OK)
        return status;
    if (a->rank == 1)
        product->transpose_a = false;
    if (b->rank == 1)
        product->transpose_b = false;
    if (!mm_shape_result(op, a, b, product->transpose_a, product->transpose_b, &c))
        return fail_shapes(a, b, error);
    status = conform_one(op, a, b, product, error);
    if (status == MM_OK && addend != NULL)
        status = check_addend(addend, &c, (a->rank > 1) + (b->rank > 1), error);
    if (status == MM_OK && shapes[MM_OPERAND_BIAS] != NULL)
        status = check_bias(shapes[MM_OPERAND_BIAS], b->rank > 1, product->n, error);
    if (status != MM_OK)
        return status;
    if (addend != NULL && (a->rank == 1 || b->rank == 1)) {
        whole = restore_matrix(addend, a, b);
        addend = &whole;
        product->addend =
            mm_matrix_dense(product->addend.dtype, mm_shape_matrices(addend) * mm_shape_rows(addend, false),
                            mm_shape_cols(addend, false), product->addend.data);
    }
    if (product->epilogue.is_set && mm_scale_is(mm_dtype_sum(product->a.dtype), &product->epilogue.beta, 0))
        addend = NULL; /* D does not depend on it */
    make_stack(a, b, addend, stack);
    product->stack = NULL;
    if (stack->count == 0) {
        product->m = 0;
    } else if (op == MM_MATMUL && stack->b_count == 1 && !product->transpose_a &&
               stack->addend_count == stack->count &&
               product->m <= INT32_MAX / stack->count) { /* libraries and GPUs count rows in 31 bits */
        product->m *= stack->count;
    } else if (stack->count > 1) {
        product->stack = stack;
    }
    product->c = mm_matrix_dense(c_dtype, product->m * mm_product_count(product), product->n, NULL);
    if (op == MM_MATMUL)
        mm_product_drop_unread(product);
    return MM_OK;
}
