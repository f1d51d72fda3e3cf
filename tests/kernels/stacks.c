/* Tests products of stacks of matrices. Each product must be right, and only C may be written. Elements are
 * so small that all sums are exact in every type. */
#include "gpu/product/shape.h"
#include "tests/kernels/harness.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 256, GUARD = 0xa5 };
enum { ALPHA = -3, BETA = 2 }; /* factors of products with an epilogue */

/* Dimensions of the stacks. They include broadcasting of one or both operands, dimensions that cannot be
 * merged, and more products than the z dimension of a CUDA grid allows. */
static const struct {
    struct mm_shape a;
    struct mm_shape b;
    size_t count;
    struct mm_shape addend; /* of products with an epilogue */
} stacks[] = {
    {{1, {5}}, {1, {5}}, 5, {1, {5}}},
    {{1, {4}}, {0, {0}}, 4, {1, {1}}},
    {{0, {0}}, {1, {3}}, 3, {1, {3}}},
    {{2, {3, 1}}, {1, {4}}, 12, {2, {3, 1}}},
    {{3, {2, 1, 3}}, {3, {2, 4, 1}}, 24, {2, {4, 3}}},
    {{6, {2, 1, 2, 1, 2, 1}}, {6, {1, 2, 1, 2, 1, 2}}, 64, {6, {2, 2, 1, 1, 2, 1}}},
    {{2, {2, 33000}}, {2, {2, 1}}, 66000, {2, {1, 33000}}},
    {{1, {7}}, {0, {0}}, 7, {1, {7}}},
    {{1, {6}}, {1, {6}}, 6, {0, {0}}},
};
enum { STACKS = sizeof stacks / sizeof stacks[0] };

static const struct shape shapes[] = {{1, 1, 1},   {2, 3, 4},   {17, 15, 33}, {32, 32, 32}, {64, 64, 64},
                                      {33, 5, 70}, {1, 64, 40}, {130, 70, 9}, {5, 7, 0},    {64, 96, 32}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* Returns whether to run the test. Leaves out slow combinations. Types other than float32 share most code
 * with float32, so each of these types runs only one test in SHARE. */
static bool is_wanted(bool is_host, enum mm_dtype dtype, size_t stack, const struct shape *shape,
                      size_t number) {
    enum { COST_MAX = 1 << 20, HOST_COST_MAX = 1 << 18, SHARE = 4, HOST_COUNT_MAX = 1000 };
    if (is_host && stacks[stack].count > HOST_COUNT_MAX)
        return false;
    const size_t cost = stacks[stack].count * shape->m * shape->n * (shape->k + 1);
    return cost <= (is_host ? HOST_COST_MAX : COST_MAX) &&
           (dtype == MM_FLOAT32 || number % SHARE == dtype % SHARE);
}

static void append(struct mm_shape *shape, size_t rows, size_t cols) {
    shape->dims[shape->rank++] = rows;
    shape->dims[shape->rank++] = cols;
}

/* Returns a stack of small integers that all types can represent. A stack to transpose gets random bits. */
static struct mm_matrix make(const struct mm_shape *shape, enum mm_dtype dtype, enum mm_op op,
                             struct random *random) {
    struct mm_matrix matrix = mm_shape_view(shape, false, dtype);
    const bool has_sign = dtype != MM_UINT8 && dtype != MM_BOOL;
    const size_t elements = matrix.rows * matrix.cols;
    matrix.data = harness_allocate(mm_matrix_bytes(&matrix) + sizeof(uint64_t));
    for (size_t index = 0; index < elements; index++) {
        const uint64_t bits = random_next(random);
        if (op == MM_TRANSPOSE)
            memcpy((char *)matrix.data + index * mm_dtype_bytes(dtype), &bits, mm_dtype_bytes(dtype));
        else
            mm_dtype_put(dtype, matrix.data, index,
                         has_sign ? (double)((bits >> 32) % 3) - 1.0 : (double)(bits >> 63));
    }
    return matrix;
}

static bool is_element_right(const struct mm_product *item, enum mm_op op, size_t row, size_t col) {
    const size_t bytes = mm_dtype_bytes(item->c.dtype);
    double sum = 0.0;
    if (op == MM_TRANSPOSE)
        return memcmp((char *)item->c.data + (row * item->c.ld + col) * bytes,
                      (char *)item->a.data + (col * item->a.ld + row) * bytes, bytes) == 0;
    for (size_t depth = 0; depth < item->k; depth++) {
        const size_t a = item->transpose_a ? depth * item->a.ld + row : row * item->a.ld + depth;
        const size_t b = item->transpose_b ? col * item->b.ld + depth : depth * item->b.ld + col;
        sum += mm_dtype_get(item->a.dtype, item->a.data, a) * mm_dtype_get(item->b.dtype, item->b.data, b);
    }
    if (item->epilogue.is_set) {
        const size_t at = row * item->addend.ld + col;
        sum = ALPHA * sum + BETA * mm_dtype_get(item->c.dtype, item->addend.data, at) +
              mm_dtype_get(item->c.dtype, item->bias.data, col);
        if (item->epilogue.activation == MM_ACTIVATION_RELU)
            sum = sum > 0.0 ? sum : 0.0;
    }
    return mm_dtype_get(item->c.dtype, item->c.data, row * item->c.ld + col) == sum;
}

/* Finds which matrix of the operand belongs to product `index`. The method differs from that of
 * mm_product_item, which this test checks. */
static size_t matrix_of(const struct mm_shape *shape, const struct mm_shape *c, size_t index) {
    const unsigned rank = c->rank - 2, own = shape->rank - 2;
    size_t matrix = 0, weight = 1;
    for (unsigned dim = 0; dim < own; dim++) {
        const size_t length = shape->dims[own - 1 - dim], at = index % c->dims[rank - 1 - dim];
        index /= c->dims[rank - 1 - dim];
        matrix += (length == 1 ? 0 : at) * weight;
        weight *= length;
    }
    return matrix;
}

static void *matrix_at(const struct mm_matrix *all, size_t rows, size_t matrix) {
    return (char *)all->data + matrix * rows * all->ld * mm_dtype_bytes(all->dtype);
}

static bool is_right(const struct mm_job *job, const struct mm_shape *const operands[MM_OPERANDS_MAX],
                     const struct mm_shape *c) {
    const struct mm_shape *a = operands[MM_OPERAND_A], *b = operands[MM_OPERAND_B];
    const struct mm_shape *addend = operands[MM_OPERAND_ADDEND];
    const struct mm_product *all = &job->product;
    const enum mm_op op = job->variant->op;
    struct mm_product item = *all;
    item.m = c->dims[c->rank - 2];
    for (size_t index = 0; index < mm_shape_matrices(c); index++) {
        item.a.data = matrix_at(&all->a, mm_shape_rows(a, false), matrix_of(a, c, index));
        if (op == MM_MATMUL)
            item.b.data = matrix_at(&all->b, mm_shape_rows(b, false), matrix_of(b, c, index));
        if (addend != NULL)
            item.addend.data = matrix_at(&all->addend, item.m, matrix_of(addend, c, index));
        item.c.data = matrix_at(&all->c, item.m, index);
        for (size_t row = 0; row < item.m; row++)
            for (size_t col = 0; col < item.n; col++)
                if (!is_element_right(&item, op, row, col))
                    return false;
    }
    return true;
}

static bool is_surrounded(const unsigned char *memory, size_t bytes) {
    for (size_t index = 0; index < GUARD_BYTES; index++)
        if (memory[index] != GUARD || memory[GUARD_BYTES + bytes + index] != GUARD)
            return false;
    return true;
}

static void set_epilogue(struct mm_product *product, const struct mm_shape *addend,
                         const struct mm_shape *bias, struct random *random) {
    const enum mm_dtype sum = mm_dtype_sum(product->a.dtype);
    product->epilogue =
        (struct mm_epilogue){.is_set = true,
                             .activation = (enum mm_activation)random_below(random, MM_ACTIVATION_RELU + 1),
                             .alpha = mm_scale_of(sum, ALPHA),
                             .beta = mm_scale_of(sum, BETA)};
    product->addend = make(addend, product->c.dtype, MM_MATMUL, random);
    product->bias = make(bias, product->c.dtype, MM_MATMUL, random);
}

static void run(struct subject *subject, const struct plan *plan,
                const struct mm_shape *const operands[MM_OPERANDS_MAX], struct mm_product *product,
                struct random *random) {
    const struct mm_shape *a = operands[MM_OPERAND_A], *b = operands[MM_OPERAND_B];
    const enum mm_op op = subject->variant->op;
    const enum mm_dtype dtype = plan->dtype;
    struct mm_stack stack;
    struct mm_shape c;
    struct mm_job job;
    product->a = make(a, dtype, op, random);
    if (op == MM_MATMUL)
        product->b = make(b, dtype, op, random);
    product->c.dtype = op == MM_MATMUL ? mm_dtype_result(dtype) : dtype;
    (void)mm_shape_result(op, a, b, product->transpose_a, product->transpose_b, &c);
    if (plan->has_epilogues)
        set_epilogue(product, operands[MM_OPERAND_ADDEND], operands[MM_OPERAND_BIAS], random);
    if (mm_shape_conform(op, operands, product, &stack, NULL) != MM_OK)
        subject_print(subject, "FAIL: a stack does not conform");
    const size_t bytes = mm_matrix_bytes(&product->c);
    unsigned char *memory = harness_allocate(bytes + 2 * GUARD_BYTES);
    memset(memory, GUARD, bytes + 2 * GUARD_BYTES);
    product->c.data = memory + GUARD_BYTES;
    job_prepare(&job, subject, product);
    const bool is_taken = mm_variant_supports_shape(job.outcome.ran, product);
    const struct one_case one = {
        .data = "a stack",
        .shape = {product->m, product->n, product->k},
        .dtype = dtype,
        .c_dtype = product->c.dtype,
        .layout = {.transpose_a = product->transpose_a, .transpose_b = product->transpose_b}};
    if (is_taken) {
        const enum mm_status status = mm_device_run(subject->device, &job);
        subject->cases++;
        if (status != MM_OK)
            subject_fail(subject, plan, &one, "%zu products: %s", mm_shape_matrices(&c),
                         job.work.error.detail);
        else if (!is_surrounded(memory, bytes) || !is_right(&job, operands, &c))
            subject_fail(subject, plan, &one, "wrong, or written outside C, of %zu products",
                         mm_shape_matrices(&c));
    }
    free(memory);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        free(mm_product_operand(product, index)->data);
}

void stacks_run(struct subject *subjects, size_t count, const struct plan *plan) {
    for (size_t index = 0; index < count; index++) {
        struct subject *subject = &subjects[index];
        const enum mm_op op = subject->variant->op;
        struct random random = {random_mix(plan->seed, 0x57ac + index)};
        for (size_t number = 0; number < STACKS * SHAPES; number++) {
            const struct shape *shape = &shapes[number % SHAPES];
            struct mm_shape a = stacks[number / SHAPES].a, b = stacks[number / SHAPES].b;
            const unsigned flags = (unsigned)random_next(&random) & 3;
            struct mm_product product = {.transpose_a = op == MM_TRANSPOSE || (flags & 1) != 0,
                                         .transpose_b = op == MM_MATMUL && (flags & 2) != 0,
                                         .tile = subject->tile};
            if (!is_wanted(subject->device->backend->is_host, plan->dtype, number / SHAPES, shape, number))
                continue;
            if (op == MM_TRANSPOSE)
                append(&a, shape->n, shape->m);
            else
                append(&a, product.transpose_a ? shape->k : shape->m,
                       product.transpose_a ? shape->m : shape->k);
            append(&b, product.transpose_b ? shape->n : shape->k, product.transpose_b ? shape->k : shape->n);
            struct mm_shape addend = stacks[number / SHAPES].addend;
            const struct mm_shape bias = {1, {shape->n}};
            append(&addend, shape->m, shape->n);
            const struct mm_shape *const operands[MM_OPERANDS_MAX] = {
                &a, &b, plan->has_epilogues ? &addend : NULL, plan->has_epilogues ? &bias : NULL};
            run(subject, plan, operands, &product, &random);
        }
    }
}
