/* api/call: every parameter's form, as text and as JSON value, and the sizes that are judged from them. */
#include "api/call.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct mm_limits limits = {
    .dimension_max = 2147483647, .body_bytes_max = 1 << 20, .memory_bytes_max = 1 << 20};

static enum mm_status set_text(struct mm_call *call, const char *name, const char *value,
                               struct mm_error *error) {
    *error = (struct mm_error){0};
    return mm_call_set_text(call, name, strlen(name), value, strlen(value), &limits, error);
}

static const struct {
    const char *name;
    const char *value;
    enum mm_status status;
    uint64_t number;
} texts[] = {
    {"m", "0", MM_OK, 0},
    {"m", "1", MM_OK, 1},
    {"k", "2147483647", MM_OK, 2147483647},
    {"n", "0000000000000000000000005", MM_OK, 5},
    {"lda", "0000000000000000000000000000000000000000", MM_OK, 0},
    {"m", "2147483648", MM_TOO_LARGE, 0},
    {"m", "4294967296", MM_TOO_LARGE, 0},
    {"m", "9223372036854775807", MM_TOO_LARGE, 0},
    {"m", "9223372036854775808", MM_TOO_LARGE, 0},
    {"m", "18446744073709551615", MM_TOO_LARGE, 0},
    {"m", "18446744073709551616", MM_TOO_LARGE, 0},
    {"ldb", "9999999999999999999999999999999999999999", MM_TOO_LARGE, 0},
    {"m", "", MM_BAD_REQUEST, 0},
    {"m", "-0", MM_BAD_REQUEST, 0},
    {"m", "-1", MM_BAD_REQUEST, 0},
    {"m", "+1", MM_BAD_REQUEST, 0},
    {"m", "1.5", MM_BAD_REQUEST, 0},
    {"m", "1e3", MM_BAD_REQUEST, 0},
    {"m", "\"2\"", MM_BAD_REQUEST, 0},
    {"m", " 1", MM_BAD_REQUEST, 0},
    {"m", "1 ", MM_BAD_REQUEST, 0},
    {"m", "0x10", MM_BAD_REQUEST, 0},
    {"m", "null", MM_BAD_REQUEST, 0},
    {"m", "\xd9\xa3", MM_BAD_REQUEST, 0}, /* an Arabic three */
    {"m", "9999999999999999999999999999999999999999x", MM_BAD_REQUEST, 0},
    {"timeout_ms", "1", MM_OK, 1},
    {"timeout_ms", "4294967295", MM_OK, 4294967295},
    {"timeout_ms", "4294967296", MM_OK, 4294967296},
    {"timeout_ms", "9007199254740991", MM_OK, 9007199254740991},
    {"timeout_ms", "9007199254740993", MM_OK, 9007199254740992},
    {"timeout_ms", "9999999999999999999999999999999999999999", MM_OK, 9007199254740992},
    {"timeout_ms", "0", MM_BAD_REQUEST, 0},
    {"timeout_ms", "-5", MM_BAD_REQUEST, 0},
    {"timeout_ms", "1.5", MM_BAD_REQUEST, 0},
    {"timeout_ms", "", MM_BAD_REQUEST, 0},
    {"transpose_a", "true", MM_OK, 1},
    {"transpose_a", "1", MM_OK, 1},
    {"transpose_b", "false", MM_OK, 0},
    {"transpose_b", "0", MM_OK, 0},
    {"transpose_a", "yes", MM_BAD_REQUEST, 0},
    {"transpose_a", "True", MM_BAD_REQUEST, 0},
    {"transpose_a", "", MM_BAD_REQUEST, 0},
    {"transpose_a", "01", MM_BAD_REQUEST, 0},
    {"verify", "1", MM_OK, 1},
    {"verify", "false", MM_OK, 0},
    {"verify", "on", MM_BAD_REQUEST, 0},
    {"vendor", "allow", MM_OK, 1},
    {"vendor", "never", MM_OK, 0},
    {"vendor", "Allow", MM_BAD_REQUEST, 0},
    {"vendor", "allowed", MM_BAD_REQUEST, 0},
    {"vendor", "true", MM_BAD_REQUEST, 0},
    {"vendor", "1", MM_BAD_REQUEST, 0},
    {"vendor", "", MM_BAD_REQUEST, 0},
    {"tile", "16", MM_OK, 16},
    {"tile", "4294967295", MM_OK, UINT32_MAX},
    {"tile", "4294967296", MM_BAD_REQUEST, 0},
    {"tile", "9999999999999999999999999999999999999999", MM_BAD_REQUEST, 0},
    {"tile", "0", MM_BAD_REQUEST, 0},
    {"tile", "-4", MM_BAD_REQUEST, 0},
    {"tiles", "16", MM_BAD_REQUEST, 0},
    {"a", "1", MM_BAD_REQUEST, 0},
    {"M", "1", MM_BAD_REQUEST, 0},
    {"", "1", MM_BAD_REQUEST, 0},
    {"transpose", "1", MM_BAD_REQUEST, 0},
};

static enum mm_parameter parameter_named(const char *name) {
#define X(constant, wire_name, kind, ops)                                                                    \
    if (strcmp(name, wire_name) == 0)                                                                        \
        return constant;
    MM_PARAMETER_TABLE(X)
#undef X
    return MM_PARAMETER_COUNT;
}

static void test_text(void **state) {
    (void)state;
    for (size_t index = 0; index < sizeof texts / sizeof texts[0]; index++) {
        struct mm_call call;
        struct mm_error error;
        mm_call_init(&call, MM_MATMUL);
        enum mm_status status = set_text(&call, texts[index].name, texts[index].value, &error);
        if (status != texts[index].status)
            fail_msg("%s=%s gives %s: %s", texts[index].name, texts[index].value, mm_status_name(status),
                     error.detail);
        enum mm_parameter parameter = parameter_named(texts[index].name);
        if (status != MM_OK) {
            assert_string_equal(error.field, texts[index].name);
            assert_non_null(strstr(error.detail, texts[index].name));
            assert_int_equal(call.given, 0);
            assert_true(error.has_limit == (status == MM_TOO_LARGE));
        } else {
            assert_true(mm_call_has(&call, parameter));
            assert_int_equal(call.given, 1u << parameter);
            assert_true(call.numbers[parameter] == texts[index].number);
        }
    }
}

/* No number of digits is too many for the limit to be told, and no limit is so high that they pass it. */
static void test_dimension_without_limit(void **state) {
    (void)state;
    const struct mm_limits none = {.dimension_max = SIZE_MAX};
    struct mm_call call;
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(mm_call_set_text(&call, "m", 1, "18446744073709551614", 20, &none, NULL), MM_OK);
    assert_true(call.numbers[MM_PARAMETER_M] == UINT64_MAX - 1);
    assert_int_equal(mm_call_set_text(&call, "k", 1, "18446744073709551616", 20, &none, NULL), MM_TOO_LARGE);
}

static void test_names(void **state) {
    (void)state;
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_MATMUL);
    assert_string_equal(call.names[MM_PARAMETER_VARIANT], "auto");
    assert_string_equal(call.names[MM_PARAMETER_BACKEND], "auto");
    assert_string_equal(call.names[MM_PARAMETER_DTYPE], "float32");
    assert_int_equal(set_text(&call, "variant", "tiled_16", &error), MM_OK);
    assert_string_equal(call.names[MM_PARAMETER_VARIANT], "tiled_16");
    char longest[200];
    memset(longest, 'x', sizeof longest);
    assert_int_equal(mm_call_set_text(&call, "backend", 7, longest, sizeof longest, &limits, &error), MM_OK);
    assert_int_equal(strlen(call.names[MM_PARAMETER_BACKEND]), MM_CALL_NAME_MAX);
    assert_int_equal(mm_call_set_text(&call, "dtype", 5, "float32\0x", 9, &limits, &error), MM_BAD_REQUEST);
    assert_string_equal(error.field, "dtype");
    assert_int_equal(mm_call_set_text(&call, "m\0", 2, "1", 1, &limits, &error), MM_BAD_REQUEST);
    assert_int_equal(mm_call_set_text(&call, longest, sizeof longest, "1", 1, &limits, &error),
                     MM_BAD_REQUEST);
    assert_int_equal(mm_call_set_text(&call, "m", 1, NULL, 0, &limits, &error), MM_BAD_REQUEST);
}

static const struct {
    const char *name;
    const char *first;
    const char *second;
    enum mm_status status;
} twice[] = {
    {"variant", "naive", "naive", MM_OK},
    {"variant", "naive", "tiled_16", MM_BAD_REQUEST},
    {"variant", "auto", "naive", MM_BAD_REQUEST},
    {"transpose_a", "1", "true", MM_OK},
    {"transpose_a", "0", "false", MM_OK},
    {"transpose_a", "0", "true", MM_BAD_REQUEST},
    {"vendor", "allow", "allow", MM_OK},
    {"vendor", "never", "allow", MM_BAD_REQUEST},
    {"m", "5", "0005", MM_OK},
    {"m", "5", "6", MM_BAD_REQUEST},
    {"m", "0", "1", MM_BAD_REQUEST},
    {"timeout_ms", "10", "010", MM_OK},
    {"timeout_ms", "10", "11", MM_BAD_REQUEST},
    {"timeout_ms", "5000000000", "6000000000", MM_BAD_REQUEST},
    {"dtype", "float32", "float64", MM_BAD_REQUEST},
};

static void test_twice(void **state) {
    (void)state;
    for (size_t index = 0; index < sizeof twice / sizeof twice[0]; index++) {
        struct mm_call call;
        struct mm_error error;
        mm_call_init(&call, MM_MATMUL);
        assert_int_equal(set_text(&call, twice[index].name, twice[index].first, &error), MM_OK);
        enum mm_status status = set_text(&call, twice[index].name, twice[index].second, &error);
        assert_int_equal(status, twice[index].status);
        if (status != MM_OK)
            assert_string_equal(error.field, twice[index].name);
    }
}

/* The query says one thing, the JSON body the same or another. */
static void test_query_and_body(void **state) {
    (void)state;
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(set_text(&call, "transpose_a", "1", &error), MM_OK);
    assert_int_equal(mm_call_set_value(&call, "transpose_a", MM_VALUE_BOOLEAN, NULL, 0, 1, &error), MM_OK);
    assert_int_equal(mm_call_set_value(&call, "transpose_a", MM_VALUE_BOOLEAN, NULL, 0, 0, &error),
                     MM_BAD_REQUEST);
    assert_int_equal(set_text(&call, "timeout_ms", "0250", &error), MM_OK);
    assert_int_equal(mm_call_set_value(&call, "timeout_ms", MM_VALUE_NUMBER, NULL, 0, 250, &error), MM_OK);
    assert_int_equal(set_text(&call, "variant", "blas", &error), MM_OK);
    assert_int_equal(mm_call_set_value(&call, "variant", MM_VALUE_TEXT, "naive", 5, 0, &error),
                     MM_BAD_REQUEST);
    assert_string_equal(error.field, "variant");
}

static const struct {
    const char *name;
    enum mm_value_kind kind;
    const char *text;
    double number;
    enum mm_status status;
    uint64_t expected;
} values[] = {
    {"variant", MM_VALUE_TEXT, "naive", 0, MM_OK, 0},
    {"variant", MM_VALUE_NUMBER, "", 1, MM_BAD_REQUEST, 0},
    {"variant", MM_VALUE_BOOLEAN, "", 1, MM_BAD_REQUEST, 0},
    {"variant", MM_VALUE_OTHER, "", 0, MM_BAD_REQUEST, 0},
    {"transpose_a", MM_VALUE_BOOLEAN, "", 1, MM_OK, 1},
    {"transpose_b", MM_VALUE_BOOLEAN, "", 0, MM_OK, 0},
    {"transpose_a", MM_VALUE_TEXT, "true", 0, MM_BAD_REQUEST, 0},
    {"transpose_a", MM_VALUE_NUMBER, "", 1, MM_BAD_REQUEST, 0},
    {"transpose_a", MM_VALUE_OTHER, "", 0, MM_BAD_REQUEST, 0},
    {"vendor", MM_VALUE_TEXT, "allow", 0, MM_OK, 1},
    {"vendor", MM_VALUE_TEXT, "never", 0, MM_OK, 0},
    {"vendor", MM_VALUE_TEXT, "sometimes", 0, MM_BAD_REQUEST, 0},
    {"vendor", MM_VALUE_BOOLEAN, "", 1, MM_BAD_REQUEST, 0},
    {"vendor", MM_VALUE_NUMBER, "", 1, MM_BAD_REQUEST, 0},
    {"vendor", MM_VALUE_OTHER, "", 0, MM_BAD_REQUEST, 0},
    {"timeout_ms", MM_VALUE_NUMBER, "", 1, MM_OK, 1},
    {"timeout_ms", MM_VALUE_NUMBER, "", 4294967295, MM_OK, 4294967295},
    {"timeout_ms", MM_VALUE_NUMBER, "", 4294967296, MM_OK, 4294967296},
    {"timeout_ms", MM_VALUE_NUMBER, "", 1e300, MM_OK, 9007199254740992},
    {"tile", MM_VALUE_NUMBER, "", 4294967295, MM_OK, 4294967295},
    {"tile", MM_VALUE_NUMBER, "", 4294967296, MM_BAD_REQUEST, 0},
    {"tile", MM_VALUE_NUMBER, "", 1e300, MM_BAD_REQUEST, 0},
    {"timeout_ms", MM_VALUE_NUMBER, "", 1.7976931348623157e308, MM_BAD_REQUEST, 0},
    {"timeout_ms", MM_VALUE_NUMBER, "", 0, MM_BAD_REQUEST, 0},
    {"timeout_ms", MM_VALUE_NUMBER, "", -0.0, MM_BAD_REQUEST, 0},
    {"timeout_ms", MM_VALUE_NUMBER, "", -1, MM_BAD_REQUEST, 0},
    {"timeout_ms", MM_VALUE_NUMBER, "", 1.5, MM_BAD_REQUEST, 0},
    {"timeout_ms", MM_VALUE_TEXT, "5", 0, MM_BAD_REQUEST, 0},
    {"timeout_ms", MM_VALUE_BOOLEAN, "", 1, MM_BAD_REQUEST, 0},
    {"timeout_ms", MM_VALUE_OTHER, "", 0, MM_BAD_REQUEST, 0},
    {"m", MM_VALUE_NUMBER, "", 2, MM_BAD_REQUEST, 0},
    {"lda", MM_VALUE_NUMBER, "", 2, MM_BAD_REQUEST, 0},
    {"colour", MM_VALUE_TEXT, "red", 0, MM_BAD_REQUEST, 0},
};

static void test_values(void **state) {
    (void)state;
    for (size_t index = 0; index < sizeof values / sizeof values[0]; index++) {
        struct mm_call call;
        struct mm_error error;
        mm_call_init(&call, MM_MATMUL);
        enum mm_status status =
            mm_call_set_value(&call, values[index].name, values[index].kind, values[index].text,
                              strlen(values[index].text), values[index].number, &error);
        if (status != values[index].status)
            fail_msg("row %zu gives %s", index, mm_status_name(status));
        if (status == MM_OK)
            assert_true(call.numbers[parameter_named(values[index].name)] == values[index].expected);
        else
            assert_string_equal(error.field, values[index].name);
    }
}

/* However large, it is told as it came, and where it was cut the error says that there was more. */
static void test_large_numbers_are_told(void **state) {
    (void)state;
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(set_text(&call, "tile", "4294967304", &error), MM_BAD_REQUEST);
    assert_string_equal(error.detail,
                        "tile must be a whole decimal number from 1 to 4294967295, but is '4294967304'");
    assert_int_equal(mm_call_set_value(&call, "tile", MM_VALUE_NUMBER, NULL, 0, 4294967304, &error),
                     MM_BAD_REQUEST);
    assert_string_equal(error.detail,
                        "tile must be a whole number from 1 to 4294967295, but is the number 4294967304");
    assert_int_equal(mm_call_set_value(&call, "timeout_ms", MM_VALUE_NUMBER, NULL, 0, DBL_MAX, &error),
                     MM_BAD_REQUEST);
    assert_non_null(strstr(error.detail, "but is the number beyond 1.79769313e+308"));
    assert_int_equal(set_text(&call, "timeout_ms", "5000000000", &error), MM_OK);
    assert_int_equal(set_text(&call, "timeout_ms", "99999999999999999999", &error), MM_BAD_REQUEST);
    assert_string_equal(error.detail,
                        "timeout_ms is given twice, as 5000000000 and as 9007199254740992 or more");
}

static void test_refuse_dimensions(void **state) {
    (void)state;
    static const char *const dimensions[] = {"m", "k", "n", "lda", "ldb"};
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(set_text(&call, "variant", "naive", &error), MM_OK);
    assert_int_equal(mm_call_refuse_dimensions(&call, &error), MM_OK);
    for (size_t index = 0; index < sizeof dimensions / sizeof dimensions[0]; index++) {
        mm_call_init(&call, MM_MATMUL);
        assert_int_equal(set_text(&call, dimensions[index], "0", &error), MM_OK);
        assert_int_equal(mm_call_refuse_dimensions(&call, &error), MM_BAD_REQUEST);
        assert_string_equal(error.field, dimensions[index]);
    }
}

static void test_resolve(void **state) {
    (void)state;
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(mm_call_resolve(&call, &error), MM_OK);
    assert_int_equal(call.dtype, MM_FLOAT32);
    assert_int_equal(set_text(&call, "dtype", "float64", &error), MM_OK);
    assert_int_equal(mm_call_resolve(&call, &error), MM_UNSUPPORTED);
    assert_string_equal(error.field, "dtype");
}

/* What each operation has, and the shape that it makes of its matrices. */
static void test_operations(void **state) {
    (void)state;
    struct mm_call call;
    struct mm_error error;
    size_t rows, cols;
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(mm_call_operands(&call), 2);
    assert_true(mm_call_takes(&call, MM_PARAMETER_K) && mm_call_takes(&call, MM_PARAMETER_LDB));
    call.a = mm_matrix_dense(MM_FLOAT32, 2, 3, NULL);
    call.b = mm_matrix_dense(MM_FLOAT32, 4, 5, NULL);
    mm_call_result_shape(&call, &rows, &cols);
    assert_true(rows == 2 && cols == 5);
    call.numbers[MM_PARAMETER_TRANSPOSE_A] = call.numbers[MM_PARAMETER_TRANSPOSE_B] = 1;
    mm_call_result_shape(&call, &rows, &cols);
    assert_true(rows == 3 && cols == 4);

    mm_call_init(&call, MM_TRANSPOSE);
    assert_int_equal(mm_call_operands(&call), 1);
    assert_true(mm_call_takes(&call, MM_PARAMETER_M) && !mm_call_takes(&call, MM_PARAMETER_K));
    call.a = mm_matrix_dense(MM_INT64, 2, 3, NULL);
    mm_call_result_shape(&call, &rows, &cols);
    assert_true(rows == 3 && cols == 2);
    assert_int_equal(set_text(&call, "dtype", "int64", &error), MM_OK);
    assert_int_equal(mm_call_resolve(&call, &error), MM_OK);
    assert_int_equal(call.dtype, MM_INT64);
    assert_int_equal(mm_call_set_value(&call, "k", MM_VALUE_NUMBER, NULL, 0, 1, &error), MM_BAD_REQUEST);
    assert_int_equal(set_text(&call, "k", "1", &error), MM_BAD_REQUEST);
    assert_string_equal(error.field, "k");
}

static const struct {
    size_t a_rows, a_cols, a_ld, b_rows, b_cols, b_ld;
    bool transpose_a, transpose_b;
    size_t dimension_max, memory_bytes_max;
    enum mm_status status;
    const char *field;
} sizes[] = {
    {2, 3, 3, 3, 4, 4, false, false, 4, (6 + 12 + 8) * 4, MM_OK, ""},
    {2, 3, 3, 3, 4, 4, false, false, 4, (6 + 12 + 8) * 4 - 1, MM_TOO_LARGE, ""},
    {2, 3, 3, 3, 4, 4, false, false, 3, 1000, MM_TOO_LARGE, "b"},
    {2, 3, 5, 3, 4, 4, false, false, 4, 1000, MM_TOO_LARGE, "a"},
    {0, 0, 0, 0, 0, 0, false, false, 0, 0, MM_OK, ""},
    {0, 0, 9, 0, 0, 0, false, false, 9, 0, MM_OK, ""},
    {9, 0, 0, 0, 9, 9, false, false, 9, 323, MM_TOO_LARGE, "c"},
    {9, 0, 0, 0, 9, 9, false, false, 9, 324, MM_OK, ""},
    {0, 9, 9, 9, 0, 0, true, true, 9, 323, MM_TOO_LARGE, "c"},
    {0, 9, 9, 9, 0, 0, true, true, 9, 324, MM_OK, ""},
    {0, 9, 9, 9, 0, 0, false, false, 9, 0, MM_OK, ""},
    {SIZE_MAX, SIZE_MAX, SIZE_MAX, 1, 1, 1, false, false, SIZE_MAX, SIZE_MAX, MM_TOO_LARGE, "a"},
    {4294967296, 4294967296, 4294967296, 1, 1, 1, false, false, SIZE_MAX, SIZE_MAX, MM_TOO_LARGE, "a"},
    {1, 1, 1, 2147483648, 2147483648, 2147483648, false, false, SIZE_MAX, SIZE_MAX, MM_TOO_LARGE, "b"},
    {4294967296, 0, 0, 0, 4294967296, 4294967296, false, false, SIZE_MAX, SIZE_MAX, MM_TOO_LARGE, "c"},
    {2147483648, 2147483647, 2147483647, 2147483647, 2147483648, 2147483648, false, false, SIZE_MAX, SIZE_MAX,
     MM_TOO_LARGE, "c"},
    {1073741824, 2147483648, 2147483648, 2147483648, 1073741824, 1073741824, false, false, SIZE_MAX, SIZE_MAX,
     MM_TOO_LARGE, ""},
};

static void test_sizes(void **state) {
    (void)state;
    for (size_t index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
        const struct mm_limits row_limits = {.dimension_max = sizes[index].dimension_max,
                                             .memory_bytes_max = sizes[index].memory_bytes_max};
        struct mm_call call;
        struct mm_error error = {0};
        mm_call_init(&call, MM_MATMUL);
        call.a = (struct mm_matrix){
            .rows = sizes[index].a_rows, .cols = sizes[index].a_cols, .ld = sizes[index].a_ld};
        call.b = (struct mm_matrix){
            .rows = sizes[index].b_rows, .cols = sizes[index].b_cols, .ld = sizes[index].b_ld};
        call.numbers[MM_PARAMETER_TRANSPOSE_A] = sizes[index].transpose_a;
        call.numbers[MM_PARAMETER_TRANSPOSE_B] = sizes[index].transpose_b;
        size_t a_bytes = 77, b_bytes = 77;
        enum mm_status status = mm_call_sizes(&call, &row_limits, &a_bytes, &b_bytes, &error);
        if (status != sizes[index].status || strcmp(error.field, sizes[index].field) != 0)
            fail_msg("row %zu gives %s, field '%s': %s", index, mm_status_name(status), error.field,
                     error.detail);
        bool ok = status == MM_OK;
        assert_true(a_bytes == (ok ? mm_matrix_bytes(&call.a) : 77));
        assert_true(b_bytes == (ok ? mm_matrix_bytes(&call.b) : 77));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_dimension_without_limit),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_query_and_body),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_large_numbers_are_told),
        cmocka_unit_test(test_refuse_dimensions),
        cmocka_unit_test(test_resolve),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
