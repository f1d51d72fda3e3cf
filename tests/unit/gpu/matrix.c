/* Sizes from outside: limits, overflow, and that a refusal leaves the result untouched. */
#include "gpu/matrix/matrix.h"
#include "gpu/product/product.h"
#include "tests/unit/unit.h"

static void sizes_are_held_to_their_limits(void **state) {
    static const struct {
        size_t rows, cols, ld, dimension_max, memory_bytes_max;
        size_t bytes;
        const char *words; /* of the refusal; NULL: there is none */
    } cases[] = {
        {0, 0, 0, INT32_MAX, SIZE_MAX, 0},
        {1, 1, 1, 1, 4, 4},
        {3, 5, 5, 5, 60, 60},
        {3, 5, 8, 8, 96, 96},
        {0, 7, 7, 7, 0, 0},
        {7, 0, 0, 7, 0, 0},
        {65536, 65536, 65536, INT32_MAX, SIZE_MAX, (size_t)1 << 34},
        {3, 2, 2, 2, SIZE_MAX, 0, "rows of a is 3, but the limit is 2"},
        {2, 3, 3, 2, SIZE_MAX, 0, "columns of a is 3, but the limit is 2"},
        {2, 2, 3, 2, SIZE_MAX, 0, "leading dimension of a is 3"},
        {(size_t)1 << 31, 1, 1, INT32_MAX, SIZE_MAX, 0, "is 2147483648, but the limit is 2147483647"},
        {10, 10, 10, 10, 399, 0, "size in bytes of a is 400, but the limit is 399"},
        {SIZE_MAX, 2, 2, SIZE_MAX, SIZE_MAX, 0, "more than 2^64"},
        {SIZE_MAX / 4 + 1, 1, 1, SIZE_MAX, SIZE_MAX, 0, "more than 2^64"},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_limits limits = {.dimension_max = cases[index].dimension_max,
                                         .memory_bytes_max = cases[index].memory_bytes_max};
        const bool is_refused = cases[index].words != NULL;
        struct mm_error error = {0};
        size_t bytes = 77;
        const struct mm_matrix matrix = {
            .rows = cases[index].rows, .cols = cases[index].cols, .ld = cases[index].ld};
        assert_int_equal(mm_matrix_size("a", &matrix, &limits, &bytes, &error),
                         is_refused ? MM_TOO_LARGE : MM_OK);
        assert_int_equal(bytes, is_refused ? 77 : cases[index].bytes);
        if (is_refused) {
            assert_non_null(strstr(error.detail, cases[index].words));
            assert_string_equal(error.field, "a");
            assert_true(error.has_limit);
        }
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
        enum mm_status status = mm_product_conform(MM_MATMUL, &product, &error);
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

RUN_TESTS(sizes_are_held_to_their_limits, sums_are_checked, products_conform)
