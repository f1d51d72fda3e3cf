/* Tests sums of sizes that overflow, and which matrices can be multiplied. */
#include "gpu/matrix/matrix.h"
#include "gpu/product/product.h"
#include "tests/unit/unit.h"

static void sums_are_checked(void **state) {
    size_t sum = 5;
    assert_true(mm_size_add(SIZE_MAX - 1, 1, &sum));
    assert_int_equal(sum, SIZE_MAX);
    assert_false(mm_size_add(SIZE_MAX, 1, &sum));
    assert_int_equal(sum, SIZE_MAX);
}

static void dimensions_of_products_must_match(void **state) {
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

RUN_TESTS(sums_are_checked, dimensions_of_products_must_match)
