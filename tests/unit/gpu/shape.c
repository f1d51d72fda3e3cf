/* Tests shapes of matrices and stacks: size limits, results, and broadcasting. */
#include "gpu/product/shape.h"
#include "tests/unit/unit.h"

/* Reads "8,1,5,4" as a shape. "" is a single number. */
static struct mm_shape shape_of(const char *text) {
    struct mm_shape shape = {0};
    for (char *end; *text != '\0'; text = end + (*end == ','))
        shape.dims[shape.rank++] = strtoull(text, &end, 10);
    return shape;
}

static void expect_shape(const struct mm_shape *shape, const char *expected) {
    const struct mm_shape other = shape_of(expected);
    assert_int_equal(shape->rank, other.rank);
    assert_memory_equal(shape->dims, other.dims, shape->rank * sizeof shape->dims[0]);
}

static void test_sizes(void **state) {
    static const struct mm_limits none = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    static const struct mm_limits few = {.dimension_max = 100, .memory_bytes_max = 1000};
    static const struct {
        const char *shape;
        const struct mm_limits *limits;
        enum mm_dtype dtype;
        enum mm_status status;
        size_t bytes;
        const char *detail;
    } sizes[] = {
        {"", &few, MM_FLOAT64, MM_OK, 8},
        {"7", &few, MM_FLOAT32, MM_OK, 28},
        {"2,3", &few, MM_FLOAT16, MM_OK, 12},
        {"2,1,3,5", &few, MM_INT8, MM_OK, 30},
        {"10,100", &few, MM_INT8, MM_OK, 1000},
        {"10,10,0,10", &few, MM_FLOAT64, MM_OK, 0},
        {"100,100,100,0", &few, MM_INT8, MM_OK, 0},
        {"11,91", &few, MM_INT8, MM_TOO_LARGE, 0, "the size in bytes of x is 1001"},
        {"101", &few, MM_INT8, MM_TOO_LARGE, 0, "dimension 0 of x is 101, but the limit is 100"},
        {"101,0", &few, MM_INT8, MM_TOO_LARGE, 0, "the number of rows of x is 101"},
        {"0,101", &few, MM_INT8, MM_TOO_LARGE, 0, "the number of columns of x is 101"},
        {"1,0,101,1", &few, MM_INT8, MM_TOO_LARGE, 0, "dimension 2 of x is 101"},
        {"9223372036854775807", &none, MM_INT8, MM_OK, 9223372036854775807},
        {"9223372036854775808", &none, MM_INT8, MM_TOO_LARGE, 0, "2^63 or more"},
        {"4294967296,2147483648", &none, MM_INT8, MM_TOO_LARGE, 0, "2^63 or more"},
        {"4294967296,2147483647", &none, MM_INT8, MM_OK, 9223372032559808512},
        {"0,4294967296,1073741824", &none, MM_FLOAT16, MM_TOO_LARGE, 0, "2^63 or more"},
        {"0,4294967296,1073741823", &none, MM_FLOAT16, MM_OK, 0},
        {"4294967296,4294967296,0", &none, MM_INT8, MM_TOO_LARGE, 0, "2^63 or more"},
        {"18446744073709551615", &none, MM_INT8, MM_TOO_LARGE, 0, "and --max-device-memory on a GPU"},
        {"2305843009213693952,1,1,4", &none, MM_INT8, MM_TOO_LARGE, 0, "2^63 or more"},
    };
    for (size_t index = 0; index < COUNT(sizes); index++) {
        const struct mm_shape shape = shape_of(sizes[index].shape);
        struct mm_error error = {0};
        size_t bytes = 77;
        const enum mm_status status =
            mm_shape_size("x", &shape, sizes[index].dtype, sizes[index].limits, &bytes, &error);
        if (status != sizes[index].status ||
            (status != MM_OK && strstr(error.detail, sizes[index].detail) == NULL))
            fail_msg("(%s): %s: %s", sizes[index].shape, mm_status_name(status), error.detail);
        assert_true(bytes == (status == MM_OK ? sizes[index].bytes : 77));
        assert_true(error.has_limit == (status != MM_OK && sizes[index].limits != &none));
    }
}

/* Expected shapes c of numpy.matmul(a, b). A transpose flag stands for np.swapaxes(x, -1, -2). */
static const struct {
    const char *a, *b, *c; /* c is NULL if the shapes do not broadcast */
    bool transpose_a, transpose_b;
    size_t m, k, n;
    enum mm_status status; /* not MM_OK if the inner dimensions differ */
} products[] = {
    {"3", "3", "", false, false, 1, 3, 1},
    {"3", "3", "", true, true, 1, 3, 1},
    {"0", "0", "", false, false, 1, 0, 1},
    {"2,3", "3", "2", false, false, 2, 3, 1},
    {"3", "3,4", "4", false, false, 1, 3, 4},
    {"2,3", "3,4", "2,4", false, false, 2, 3, 4},
    {"3,2", "4,3", "2,4", true, true, 2, 3, 4},
    {"5,2,3", "3", "5,2", false, false, 10, 3, 1},
    {"3", "5,3,4", "5,4", false, false, 1, 3, 4},
    {"3", "5,4,3", "5,4", true, true, 1, 3, 4},
    {"5,2,3", "3,4", "5,2,4", false, false, 10, 3, 4},
    {"5,2,3", "1,3,4", "5,2,4", false, false, 10, 3, 4},
    {"5,3,2", "3,4", "5,2,4", true, false, 2, 3, 4},
    {"2,3", "5,3,4", "5,2,4", false, false, 2, 3, 4},
    {"5,2,3", "5,3,4", "5,2,4", false, false, 2, 3, 4},
    {"8,1,5,4", "3,4,6", "8,3,5,6", false, false, 5, 4, 6},
    {"8,1,5,4", "3,6,4", "8,3,5,6", false, true, 5, 4, 6},
    {"1,1,2,3", "3,1", "1,1,2,1", false, false, 2, 3, 1},
    {"2,1,3,1,2,1,1,2", "2,1,3,1,1,2,1", "2,2,3,3,2,1,1,1", false, false, 1, 2, 1},
    {"0,2,3", "3,4", "0,2,4", false, false, 0, 3, 4},
    {"0,2,3", "1,3,4", "0,2,4", false, false, 0, 3, 4},
    {"2,0,3", "3,4", "2,0,4", false, false, 0, 3, 4},
    {"2,2,0", "2,0,4", "2,2,4", false, false, 2, 0, 4},
    {"2,2,3", "3,3,4", NULL},
    {"0,2,3", "2,3,4", NULL},
    {"2,3,2,3", "4,3,4", NULL},
    {"2", "3", "", false, false, 0, 0, 0, MM_BAD_SHAPE},
    {"2,3", "2", "2", false, false, 0, 0, 0, MM_BAD_SHAPE},
    {"2,3", "5,2,3", "5,2,3", false, false, 0, 0, 0, MM_BAD_SHAPE},
    {"", "3", "", false, false, 0, 0, 0, MM_BAD_SHAPE},
    {"3", "", "", false, false, 0, 0, 0, MM_BAD_SHAPE},
};

static const struct {
    const char *a, *c;
    size_t m, n;
    enum mm_status status;
} transpositions[] = {
    {"2,3", "3,2", 3, 2},     {"4,2,3", "4,3,2", 3, 2},      {"1,4,5,2,0", "1,4,5,0,2", 0, 2},
    {"0,2,3", "0,3,2", 0, 2}, {"3", "", 0, 0, MM_BAD_SHAPE}, {"", "", 0, 0, MM_BAD_SHAPE},
};

static size_t index_of(const struct mm_shape *shape, const struct mm_shape *c, unsigned c_stack,
                       size_t index) {
    const unsigned stack = shape->rank > 2 ? shape->rank - 2 : 0;
    size_t step = 1, at = 0;
    for (unsigned dim = c_stack; dim-- > 0; index /= c->dims[dim]) {
        const unsigned back = c_stack - dim;
        if (back > stack)
            continue;
        const size_t length = shape->dims[stack - back];
        if (length > 1)
            at += index % c->dims[dim] * step;
        step *= length;
    }
    return at;
}

/* Checks which matrices each product has. `c_stack` is the number of stack dimensions of c. */
static void expect_items(const struct mm_product *product, const struct mm_shape *a, const struct mm_shape *b,
                         const struct mm_shape *c, unsigned c_stack) {
    const struct mm_product *const p = product;
    for (size_t index = 0; index < mm_product_count(p); index++) {
        const struct mm_product item = mm_product_item(p, index);
        const size_t a_elements = item.a.rows * item.a.cols, b_elements = item.b.rows * item.b.cols;
        assert_null(item.stack);
        assert_true(item.m == p->m && item.n == p->n && item.k == p->k);
        assert_true(item.transpose_a ? item.a.cols == p->m : item.a.rows == p->m);
        if (p->k > 0)
            assert_true(item.transpose_b ? item.b.rows == p->n : item.b.cols == p->n);
        assert_ptr_equal((char *)item.a.data - (char *)p->a.data,
                         index_of(a, c, c_stack, index) * a_elements);
        if (p->b.data != NULL)
            assert_ptr_equal((char *)item.b.data - (char *)p->b.data,
                             index_of(b, c, c_stack, index) * b_elements);
        assert_ptr_equal((char *)item.c.data - (char *)p->c.data, index * p->m * p->n * sizeof(int32_t));
    }
}

static char memory[3][1 << 12];

static struct mm_product make_product(const struct mm_shape *a, const struct mm_shape *b) {
    struct mm_product product = {.a = mm_shape_view(a, false, MM_INT8), .c.dtype = MM_INT32};
    if (b != NULL)
        product.b = mm_shape_view(b, true, MM_INT8);
    product.a.data = memory[0];
    product.b.data = b == NULL ? NULL : memory[1];
    return product;
}

static void test_products(void **state) {
    for (size_t row = 0; row < COUNT(products); row++) {
        const struct mm_shape a = shape_of(products[row].a), b = shape_of(products[row].b);
        const bool transpose_a = products[row].transpose_a, transpose_b = products[row].transpose_b;
        struct mm_product product = make_product(&a, &b);
        struct mm_stack stack;
        struct mm_shape c;
        struct mm_error error = {0};
        product.transpose_a = transpose_a;
        product.transpose_b = transpose_b;
        assert_int_equal(mm_shape_result(MM_MATMUL, &a, &b, transpose_a, transpose_b, &c),
                         products[row].c != NULL);
        if (products[row].c != NULL)
            expect_shape(&c, products[row].c);
        const struct mm_shape *const shapes[MM_OPERANDS_MAX] = {&a, &b};
        const enum mm_status status = mm_shape_conform(MM_MATMUL, shapes, &product, &stack, &error);
        assert_int_equal(status, products[row].c == NULL ? MM_BAD_SHAPE : products[row].status);
        if (status != MM_OK)
            continue;
        if (product.m != products[row].m || product.k != products[row].k || product.n != products[row].n)
            fail_msg("(%s) by (%s) is %zu×%zu×%zu", products[row].a, products[row].b, product.m, product.k,
                     product.n);
        assert_true(product.transpose_a == (transpose_a && a.rank > 1));
        assert_true(product.transpose_b == (transpose_b && b.rank > 1));
        assert_true(product.c.rows == product.m * mm_product_count(&product) && product.c.cols == product.n);
        assert_true(product.stack == NULL || (stack.count > 1 && product.stack == &stack));
        product.c.data = memory[2];
        if (product.stack != NULL)
            expect_items(&product, &a, &b, &c, c.rank - (a.rank > 1) - (b.rank > 1));
    }
}

static void test_transpositions(void **state) {
    for (size_t row = 0; row < COUNT(transpositions); row++) {
        const struct mm_shape a = shape_of(transpositions[row].a), none = {0};
        struct mm_product product = make_product(&a, NULL);
        struct mm_stack stack;
        struct mm_shape c;
        product.transpose_a = true;
        const struct mm_shape *const shapes[MM_OPERANDS_MAX] = {&a};
        const enum mm_status status = mm_shape_conform(MM_TRANSPOSE, shapes, &product, &stack, NULL);
        assert_int_equal(status, transpositions[row].status);
        if (status != MM_OK)
            continue;
        assert_true(mm_shape_result(MM_TRANSPOSE, &a, &none, true, false, &c));
        expect_shape(&c, transpositions[row].c);
        assert_true(product.m == transpositions[row].m && product.n == transpositions[row].n);
        product.c.data = memory[2];
        product.c.dtype = MM_INT32;
        if (product.stack != NULL)
            expect_items(&product, &a, &a, &c, c.rank - 2);
    }
}

/* Adjacent stack dimensions are merged if each operand can step through both with one stride. */
static void test_merging(void **state) {
    static const struct {
        const char *a, *b;
        size_t count, a_count, b_count;
        unsigned rank; /* 0 for a single product */
        size_t dims[4], a_steps[4], b_steps[4];
    } stacks[] = {
        {"2,3,4,5,6", "2,3,4,6,7", 24, 24, 24, 1, {24}, {1}, {1}},
        {"2,1,4,5,6", "2,1,4,6,7", 8, 8, 8, 1, {8}, {1}, {1}},
        {"5,6", "2,3,6,7", 6, 1, 6, 1, {6}, {0}, {1}},
        {"2,3,5,6", "6,7", 6, 6, 1, 0},
        {"2,3,5,6", "3,6,7", 6, 6, 3, 2, {2, 3}, {3, 1}, {0, 1}},
        {"2,1,5,6", "3,6,7", 6, 2, 3, 2, {2, 3}, {1, 0}, {0, 1}},
        {"2,3,1,1,5,6", "4,2,6,7", 48, 6, 8, 2, {6, 8}, {1, 0}, {0, 1}},
        {"2,1,3,1,5,6", "1,4,1,2,6,7", 48, 6, 8, 4, {2, 4, 3, 2}, {3, 0, 1, 0}, {0, 2, 0, 1}},
        {"1,1,5,6", "1,1,6,7", 1, 1, 1, 0},
    };
    for (size_t row = 0; row < COUNT(stacks); row++) {
        const struct mm_shape a = shape_of(stacks[row].a), b = shape_of(stacks[row].b);
        const size_t bytes = stacks[row].rank * sizeof(size_t);
        struct mm_product product = make_product(&a, &b);
        struct mm_stack stack;
        const struct mm_shape *const shapes[MM_OPERANDS_MAX] = {&a, &b};
        assert_int_equal(mm_shape_conform(MM_MATMUL, shapes, &product, &stack, NULL), MM_OK);
        assert_true((product.stack == NULL) == (stacks[row].rank == 0));
        assert_int_equal(stack.count, stacks[row].count);
        assert_true(stack.a_count == stacks[row].a_count && stack.b_count == stacks[row].b_count);
        if (stacks[row].rank == 0)
            continue;
        assert_int_equal(stack.rank, stacks[row].rank);
        assert_memory_equal(stack.dims, stacks[row].dims, bytes);
        assert_memory_equal(stack.a_steps, stacks[row].a_steps, bytes);
        assert_memory_equal(stack.b_steps, stacks[row].b_steps, bytes);
    }
}

/* The addend's matrices equal the result's, and its stack broadcasts. The bias has a number for each
 * column. */
static void test_addend_and_bias(void **state) {
    static const struct {
        const char *a, *b, *addend, *bias; /* NULL: absent */
        const char *detail;                /* of the failure; NULL: the shapes conform */
        unsigned rank;                     /* of the stack; 0 for a single product */
        size_t addend_steps[2];
    } cases[] = {
        {"2,3", "3,4", "2,4", "4"},
        {"3", "3", "", NULL},
        {"2,3", "3", "2", NULL},
        {"3", "3,4", "4", "4"},
        {"5,2,3", "3,4", "5,2,4", "4", NULL, 0},
        {"5,2,3", "3,4", "2,4", NULL, NULL, 1, {0}},
        {"5,2,3", "3,4", "1,2,4", NULL, NULL, 1, {0}},
        {"5,2,3", "5,3,4", "5,2,4", NULL, NULL, 1, {1}},
        {"6,5,2,3", "6,5,3,4", "5,2,4", "4", NULL, 2, {0, 1}},
        {"6,5,2,3", "6,5,3,4", "6,1,2,4", NULL, NULL, 2, {1, 0}},
        {"6,5,2,3", "6,5,3,4", "6,5,2,4", NULL, NULL, 1, {1}},
        {"6,5,2,3", "3", "6,1,2", NULL, NULL, 2, {1, 0}},
        {"6,5,2,3", "3", "6,5,2", NULL, NULL, 0},
        {"6,5,2,3", "3", "2", NULL, NULL, 1, {0}},
        {"3", "6,5,3,4", "6,5,4", "4", NULL, 1, {1}},
        {"3", "6,5,3,4", "5,4", NULL, NULL, 2, {0, 1}},
        {"2,3", "3,4", "4,2", NULL, "c is 4×2, but the result is 2×4"},
        {"2,3", "3,4", "4", NULL, "c is 4, but the result is 2×4"},
        {"5,2,3", "3", "5,1", NULL, "c is 5×1, but the result is 5×2: the last dimension must be equal"},
        {"2,3", "3,4", "", NULL, "c is a number, but the result is 2×4"},
        {"2,3", "3,4", "1,2,4", NULL, "c is 1×2×4, but the result is 2×4"},
        {"5,2,3", "3,4", "6,2,4", NULL, "c is 6×2×4, but the result is 5×2×4"},
        {"1,2,3", "3,4", "5,2,4", NULL, "c is 5×2×4, but the result is 1×2×4"},
        {"3", "3", "1", NULL, "c is 1, but the result is a number"},
        {"2,3", "3,4", NULL, "3", "bias is 3, but it must be a vector of 4 elements"},
        {"2,3", "3,4", NULL, "1,4", "bias is 1×4, but it must be a vector of 4 elements"},
        {"2,3", "3,4", NULL, "", "bias is a number, but it must be a vector of 4 elements"},
        {"2,3", "3", NULL, "1", "bias is 1, but b is a vector"},
    };
    for (size_t row = 0; row < COUNT(cases); row++) {
        const char *const texts[] = {cases[row].a, cases[row].b, cases[row].addend, cases[row].bias};
        struct mm_shape all[MM_OPERANDS_MAX];
        const struct mm_shape *shapes[MM_OPERANDS_MAX] = {NULL};
        for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
            if (texts[index] != NULL) {
                all[index] = shape_of(texts[index]);
                shapes[index] = &all[index];
            }
        struct mm_product product = make_product(shapes[0], shapes[1]);
        struct mm_stack stack;
        struct mm_error error = {0};
        product.epilogue = (struct mm_epilogue){true, .alpha.of_uint32_t = 1, .beta.of_uint32_t = 1};
        if (shapes[MM_OPERAND_ADDEND] != NULL)
            product.addend = mm_shape_view(shapes[MM_OPERAND_ADDEND], all[1].rank == 1, MM_INT32);
        const enum mm_status status = mm_shape_conform(MM_MATMUL, shapes, &product, &stack, &error);
        if ((status == MM_OK) != (cases[row].detail == NULL) ||
            (status != MM_OK && strstr(error.detail, cases[row].detail) == NULL))
            fail_msg("row %zu: %s", row, error.detail);
        if (status != MM_OK)
            continue;
        if ((product.stack == NULL ? 0 : stack.rank) != cases[row].rank)
            fail_msg("row %zu: rank %u", row, stack.rank);
        if (product.addend.rows > 0) {
            const struct mm_product item = mm_product_item(&product, 0);
            assert_true(item.addend.rows == item.m && item.addend.cols == item.n && item.addend.ld == item.n);
        }
        assert_memory_equal(stack.addend_steps, cases[row].addend_steps, cases[row].rank * sizeof(size_t));
    }
}

/* Broadcasting decides which addend a product of a stack has. A part of a product has the matching rows and
 * columns of the addend. */
static void test_items_and_parts_of_the_addend(void **state) {
    struct mm_stack stack = {.count = 6,
                             .a_count = 6,
                             .b_count = 6,
                             .addend_count = 2,
                             .rank = 2,
                             .dims = {2, 3},
                             .a_steps = {3, 1},
                             .b_steps = {3, 1},
                             .addend_steps = {1, 0}};
    struct mm_product product = {.m = 4, .n = 5, .k = 2, .stack = &stack};
    product.a = mm_matrix_dense(MM_INT8, 24, 2, memory[0]);
    product.b = mm_matrix_dense(MM_INT8, 12, 5, memory[1]);
    product.c = mm_matrix_dense(MM_INT32, 24, 5, memory[2]);
    product.addend = mm_matrix_dense(MM_INT32, 8, 5, memory[0]);
    product.bias = mm_matrix_dense(MM_INT32, 1, 5, memory[1]);
    for (size_t index = 0; index < 6; index++) {
        const struct mm_product item = mm_product_item(&product, index);
        assert_int_equal(item.addend.rows, 4);
        assert_ptr_equal(item.addend.data, memory[0] + index / 3 * 20 * sizeof(int32_t));
        assert_ptr_equal(item.bias.data, memory[1]);
    }
    struct mm_product item = mm_product_item(&product, 5);
    struct mm_product part = mm_product_part(&item, MM_MATMUL, 1, 2, 3, 2);
    assert_true(part.addend.rows == 2 && part.addend.cols == 2 && part.addend.ld == 5);
    assert_ptr_equal(part.addend.data, memory[0] + (20 + 5 + 3) * sizeof(int32_t));
    assert_true(part.bias.rows == 1 && part.bias.cols == 2);
    assert_ptr_equal(part.bias.data, memory[1] + 3 * sizeof(int32_t));
    item.transpose_addend = true;
    item.addend = mm_matrix_dense(MM_INT32, 5, 4, memory[0]);
    part = mm_product_part(&item, MM_MATMUL, 1, 2, 3, 2);
    assert_ptr_equal(part.addend.data, memory[0] + (3 * 4 + 1) * sizeof(int32_t));
    item.addend = item.bias = mm_matrix_dense(MM_INT32, 0, 0, NULL);
    part = mm_product_part(&item, MM_MATMUL, 1, 2, 3, 2);
    assert_true(part.addend.rows == 0 && part.bias.rows == 0);
}

/* Operands that do not change the result are dropped. If the epilogue then changes nothing, it is dropped
 * too. */
static void test_dropping(void **state) {
    static const struct {
        enum mm_dtype dtype;
        int alpha, beta;
        bool has_addend, has_bias;
        enum mm_activation activation;
        bool is_set, has_k, keeps_addend;
    } cases[] = {
        {MM_FLOAT32, 1, 0, false, false, MM_ACTIVATION_NONE, false, true, false},
        {MM_FLOAT32, 1, 0, true, false, MM_ACTIVATION_NONE, false, true, false},
        {MM_FLOAT64, 1, 1, true, false, MM_ACTIVATION_NONE, true, true, true},
        {MM_FLOAT64, 1, 0, true, true, MM_ACTIVATION_NONE, true, true, false},
        {MM_FLOAT16, 1, 0, true, false, MM_ACTIVATION_RELU, true, true, false},
        {MM_FLOAT16, 2, 0, false, false, MM_ACTIVATION_NONE, true, true, false},
        {MM_INT8, 0, -1, true, false, MM_ACTIVATION_NONE, true, false, true},
        {MM_INT64, 0, 0, true, false, MM_ACTIVATION_NONE, true, false, false},
        {MM_INT64, 1, 0, true, false, MM_ACTIVATION_NONE, false, true, false},
    };
    for (size_t row = 0; row < COUNT(cases); row++) {
        const enum mm_dtype dtype = cases[row].dtype, sum = mm_dtype_sum(dtype);
        struct mm_product product = {.m = 2, .n = 4, .k = 3};
        product.a = mm_matrix_dense(dtype, 2, 3, memory[0]);
        product.b = mm_matrix_dense(dtype, 3, 4, memory[1]);
        product.c = mm_matrix_dense(mm_dtype_result(dtype), 2, 4, memory[2]);
        product.epilogue =
            (struct mm_epilogue){true, cases[row].activation, mm_scale_of(sum, cases[row].alpha),
                                 mm_scale_of(sum, cases[row].beta)};
        if (cases[row].has_addend)
            product.addend = mm_matrix_dense(product.c.dtype, 2, 4, memory[2]);
        if (cases[row].has_bias)
            product.bias = mm_matrix_dense(product.c.dtype, 1, 4, memory[2]);
        mm_product_drop_unread(&product);
        if (product.epilogue.is_set != cases[row].is_set || (product.k > 0) != cases[row].has_k ||
            (product.addend.rows > 0) != cases[row].keeps_addend ||
            (product.bias.rows > 0) != cases[row].has_bias)
            fail_msg("row %zu", row);
    }
}

RUN_TESTS(test_sizes, test_products, test_transpositions, test_merging, test_addend_and_bias,
          test_items_and_parts_of_the_addend, test_dropping)
