/* Sizes from outside: limits, overflow, and that a refusal leaves the result untouched. */
#include "gpu/matrix.h"
#include "gpu/variant.h"
#include "tests/unit/unit.h"

static const struct mm_limits wide = {
    .dimension_max = INT32_MAX, .body_bytes_max = SIZE_MAX, .memory_bytes_max = SIZE_MAX};

static void sizes_within_limits(void **state) {
    static const struct {
        size_t rows, cols, ld, bytes;
    } cases[] = {
        {0, 0, 0, 0},
        {1, 1, 1, 4},
        {3, 5, 5, 60},
        {3, 5, 8, 96},
        {0, 7, 7, 0},
        {7, 0, 0, 0},
        {65536, 65536, 65536, (size_t)1 << 34},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        size_t bytes = 1;
        assert_int_equal(mm_matrix_size("a", MM_FLOAT32, cases[index].rows, cases[index].cols,
                                        cases[index].ld, &wide, &bytes, NULL),
                         MM_OK);
        assert_int_equal(bytes, cases[index].bytes);
    }
}

static void sizes_past_limits(void **state) {
    static const struct {
        size_t rows, cols, ld, dimension_max, memory_bytes_max;
        const char *words;
    } cases[] = {
        {3, 2, 2, 2, SIZE_MAX, "rows of a is 3, but the limit is 2"},
        {2, 3, 3, 2, SIZE_MAX, "columns of a is 3, but the limit is 2"},
        {2, 2, 3, 2, SIZE_MAX, "leading dimension of a is 3"},
        {(size_t)1 << 31, 1, 1, INT32_MAX, SIZE_MAX, "is 2147483648, but the limit is 2147483647"},
        {10, 10, 10, 10, 399, "size in bytes of a is 400, but the limit is 399"},
        {SIZE_MAX, 2, 2, SIZE_MAX, SIZE_MAX, "more than 2^64"},
        {SIZE_MAX / 4 + 1, 1, 1, SIZE_MAX, SIZE_MAX, "more than 2^64"},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_limits limits = {.dimension_max = cases[index].dimension_max,
                                         .memory_bytes_max = cases[index].memory_bytes_max};
        struct mm_error error;
        size_t bytes = 77;
        assert_int_equal(mm_matrix_size("a", MM_FLOAT32, cases[index].rows, cases[index].cols,
                                        cases[index].ld, &limits, &bytes, &error),
                         MM_TOO_LARGE);
        assert_int_equal(bytes, 77);
        assert_non_null(strstr(error.detail, cases[index].words));
        assert_string_equal(error.field, "a");
        assert_true(error.has_limit);
    }
}

static void sums_are_checked(void **state) {
    size_t sum = 5;
    assert_true(mm_size_add(SIZE_MAX - 1, 1, &sum));
    assert_int_equal(sum, SIZE_MAX);
    assert_false(mm_size_add(SIZE_MAX, 1, &sum));
    assert_int_equal(sum, SIZE_MAX);
}

static void products_conform(void **state) {
    static const struct {
        size_t a_rows, a_cols, b_rows, b_cols;
        bool transpose_a, transpose_b, conform;
        size_t m, n, k;
    } cases[] = {
        {2, 3, 3, 4, false, false, true, 2, 4, 3},  {3, 2, 3, 4, true, false, true, 2, 4, 3},
        {2, 3, 4, 3, false, true, true, 2, 4, 3},   {3, 2, 4, 3, true, true, true, 2, 4, 3},
        {2, 3, 4, 3, false, false, false, 0, 0, 0}, {2, 0, 0, 4, false, false, true, 2, 4, 0},
        {0, 0, 0, 0, false, false, true, 0, 0, 0},  {2, 0, 1, 4, false, false, false, 0, 0, 0},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_product product = {
            .a = mm_matrix_dense(MM_FLOAT32, cases[index].a_rows, cases[index].a_cols, NULL),
            .b = mm_matrix_dense(MM_FLOAT32, cases[index].b_rows, cases[index].b_cols, NULL),
            .transpose_a = cases[index].transpose_a,
            .transpose_b = cases[index].transpose_b,
        };
        struct mm_error error;
        enum mm_status status = mm_product_conform(&product, &error);
        assert_int_equal(status, cases[index].conform ? MM_OK : MM_BAD_SHAPE);
        if (!cases[index].conform) {
            assert_non_null(strstr(error.detail, "a is "));
            assert_non_null(strstr(error.detail, "b is "));
        }
        assert_int_equal(product.m, cases[index].m);
        assert_int_equal(product.n, cases[index].n);
        assert_int_equal(product.k, cases[index].k);
    }
}

static void dtypes_by_name(void **state) {
    enum mm_dtype dtype;
    struct mm_error error;
    assert_int_equal(mm_dtype_find("float32", MM_DTYPE_BIT(MM_FLOAT32), &dtype, &error), MM_OK);
    assert_int_equal(dtype, MM_FLOAT32);
    assert_int_equal(mm_dtype_find("float31", MM_DTYPE_BIT(MM_FLOAT32), &dtype, &error), MM_UNSUPPORTED);
    assert_non_null(strstr(error.detail, "float31"));
    assert_non_null(strstr(error.detail, "float32"));
    assert_int_equal(mm_dtype_find("int64", mm_op_dtypes(MM_MATMUL), &dtype, &error), MM_UNSUPPORTED);
    assert_int_equal(mm_dtype_find("int64", mm_op_dtypes(MM_TRANSPOSE), &dtype, &error), MM_OK);
    assert_int_equal(dtype, MM_INT64);
    assert_int_equal(mm_dtype_bytes(dtype), 8);
    assert_int_equal(mm_dtype_find("float16", mm_op_dtypes(MM_TRANSPOSE), &dtype, &error), MM_UNSUPPORTED);
    assert_non_null(strstr(error.detail, "float32, float64, int32, int64"));
}

/* A transposition's result has the shape of op(A), and there is no B. */
static void transpositions_conform(void **state) {
    struct mm_product product = {.a = mm_matrix_dense(MM_INT64, 3, 5, NULL), .transpose_a = true};
    mm_product_conform_transposition(&product);
    assert_int_equal(product.m, 5);
    assert_int_equal(product.n, 3);
    assert_int_equal(product.k, 0);
    assert_int_equal(mm_matrix_bytes(&product.b), 0);
    product.transpose_a = false;
    mm_product_conform_transposition(&product);
    assert_int_equal(product.m, 3);
    assert_int_equal(product.n, 5);
}

RUN_TESTS(sizes_within_limits, sizes_past_limits, sums_are_checked, products_conform, dtypes_by_name,
          transpositions_conform)
