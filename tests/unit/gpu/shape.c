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
        const enum mm_status status = mm_shape_conform(MM_MATMUL, &a, &b, &product, &stack, &error);
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
        const enum mm_status status = mm_shape_conform(MM_TRANSPOSE, &a, &none, &product, &stack, NULL);
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
        assert_int_equal(mm_shape_conform(MM_MATMUL, &a, &b, &product, &stack, NULL), MM_OK);
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

RUN_TESTS(test_sizes, test_products, test_transpositions, test_merging)
