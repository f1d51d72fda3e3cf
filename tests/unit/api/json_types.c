/* api/json, of transpositions: what each element type takes and refuses. Random elements, and how they are
 * written, are json_exact.c's. */
#include "api/formats.h"
#include "api/json_tree.h"

#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* All tests are of each: the codec's decode, and that of the tree alone. */
static enum mm_status (*decoder)(struct mm_call *, const struct mm_body *, const struct mm_limits *,
                                 struct mm_buffers *, struct mm_error *);

static const struct mm_limits limits = {
    .dimension_max = 4096, .body_bytes_max = 1 << 20, .memory_bytes_max = 1 << 20};

static enum mm_status decode(struct mm_call *call, const char *text, const struct mm_limits *within,
                             struct mm_buffers *buffers, struct mm_error *error) {
    size_t bytes = strlen(text);
    char *copy = malloc(bytes + (bytes == 0)); /* of just that size, so that a read past its end shows */
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    const struct mm_body body = {.data = copy, .bytes = bytes};
    *error = (struct mm_error){0};
    mm_call_init(call, MM_TRANSPOSE);
    enum mm_status status = decoder(call, &body, within, buffers, error);
    assert_int_equal(fegetround(), FE_TONEAREST);
    assert_int_equal(error->status, status);
    free(copy);
    return status;
}

/* One row of elements of a type, with or without the member that names it. */
static enum mm_status decode_row(struct mm_call *call, const char *dtype, const char *elements,
                                 struct mm_buffers *buffers, struct mm_error *error) {
    char text[512];
    int bytes = snprintf(text, sizeof text, "{\"a\": [[%s]], \"dtype\": \"%s\"}", elements, dtype);
    assert_true(bytes > 0 && (size_t)bytes < sizeof text);
    return decode(call, text, &limits, buffers, error);
}

static const struct {
    const char *elements;
    size_t count;
    double expected[6];
} floats[] = {
    {"1, -2.5, 0, 1e2", 4, {1, -2.5, 0, 100}},
    {"0.1, 0.30000000000000004, 1e23, 5e-324", 4, {0.1, 0.1 + 0.2, 1e23, 5e-324}},
    {"-0, -0.0, -1e-400, 1e-400", 4, {-0.0, -0.0, -0.0, 0}},
    {"\"NaN\", \"Infinity\", \"-Infinity\"", 3, {NAN, INFINITY, -INFINITY}},
    {"1e39, 123456789012345678901234567890", 2, {1e39, 123456789012345678901234567890.0}},
    /* Ties of float64, on which both neighbours have the same distance, and what is just beside them. */
    {"9007199254740993, 9007199254740995, 9007199254740993.0000000000000000000001",
     3,
     {9007199254740992.0, 9007199254740996.0, 9007199254740994.0}},
    {"2.4703282292062327e-324, 2.4703282292062328e-324", 2, {0, 5e-324}},
    /* Beyond the largest, but nearer to it than to the next that there would be. */
    {"1.7976931348623158e308, -1.7976931348623158e308", 2, {1.7976931348623157e308, -1.7976931348623157e308}},
    {"-1.7976931348623158e308, 1, \"NaN\"", 3, {-1.7976931348623157e308, 1, NAN}},
};

static void test_float64(void **state) {
    (void)state;
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    for (size_t index = 0; index < sizeof floats / sizeof floats[0]; index++) {
        struct mm_call call;
        struct mm_error error;
        if (decode_row(&call, "float64", floats[index].elements, buffers, &error) != MM_OK)
            fail_msg("%s: %s", floats[index].elements, error.detail);
        assert_true(call.a.dtype == MM_FLOAT64 && call.a.rows == 1 && call.a.cols == floats[index].count);
        assert_int_equal(mm_matrix_bytes(&call.b), 0);
        for (size_t col = 0; col < floats[index].count; col++) {
            const double *got = (const double *)call.a.data + col;
            if (isnan(floats[index].expected[col]))
                assert_true(isnan(*got));
            else if (memcmp(got, &floats[index].expected[col], sizeof *got) != 0)
                fail_msg("%s: %zu is %.17g", floats[index].elements, col, *got);
        }
        mm_call_release(&call, buffers);
        assert_int_equal(mm_buffers_used(buffers), 0);
    }
    mm_buffers_close(buffers);
}

static const struct {
    const char *dtype;
    const char *elements;
    size_t count;
    int64_t expected[4];
} wholes[] = {
    {"int32", "0, -0, 2147483647, -2147483648", 4, {0, 0, INT32_MAX, INT32_MIN}},
    {"int32", "1e2, 1.0, -5E+1, 2147483647.0", 4, {100, 1, -50, INT32_MAX}},
    {"int32", "-0.0, 0e999, 1000e-3", 3, {0, 0, 1}},
    {"int64", "9223372036854775807, -9223372036854775808", 2, {INT64_MAX, INT64_MIN}},
    {"int64",
     "9007199254740993, -9007199254740993, 9223372036854775806",
     3,
     {9007199254740993, -9007199254740993, INT64_MAX - 1}},
    {"int64",
     "1e18, -9223372036854775808.0, 9223372036854774784.0, 1e0",
     4,
     {1000000000000000000, INT64_MIN, INT64_MAX - 1023, 1}},
};

static int64_t whole_at(const struct mm_matrix *matrix, size_t index) {
    return matrix->dtype == MM_INT32 ? ((const int32_t *)matrix->data)[index]
                                     : ((const int64_t *)matrix->data)[index];
}

static void test_wholes(void **state) {
    (void)state;
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    for (size_t index = 0; index < sizeof wholes / sizeof wholes[0]; index++) {
        struct mm_call call;
        struct mm_error error;
        if (decode_row(&call, wholes[index].dtype, wholes[index].elements, buffers, &error) != MM_OK)
            fail_msg("%s: %s", wholes[index].elements, error.detail);
        assert_string_equal(mm_dtype_name(call.a.dtype), wholes[index].dtype);
        assert_int_equal(call.a.cols, wholes[index].count);
        for (size_t col = 0; col < wholes[index].count; col++)
            if (whole_at(&call.a, col) != wholes[index].expected[col])
                fail_msg("%s: %zu is %" PRId64, wholes[index].elements, col, whole_at(&call.a, col));
        mm_call_release(&call, buffers);
    }
    mm_buffers_close(buffers);
}

#define INT32_TAKES "int32 takes whole numbers from -2147483648 to 2147483647"
#define INT64_TAKES "int64 takes whole numbers from -9223372036854775808 to 9223372036854775807"

static const struct {
    const char *body;
    enum mm_status status;
    const char *field;
    bool placed; /* by line and column */
    const char *detail;
} refused[] = {
    {"{\"a\": [[1, 2.5]], \"dtype\": \"int32\"}", MM_BAD_REQUEST, "a", false,
     "a[0][1] is 2.5, but " INT32_TAKES},
    {"{\"dtype\": \"int32\", \"a\": [[1], [0.1]]}", MM_BAD_REQUEST, "a", false, "a[1][0] is 0.1, but"},
    {"{\"a\": [[1e-400]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false,
     "a[0][0] is not exactly 0, but"},
    {"{\"a\": [[-1e-400]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false, "but " INT64_TAKES},
    {"{\"a\": [[2147483648]], \"dtype\": \"int32\"}", MM_BAD_REQUEST, "a", false,
     "a[0][0] is 2147483648, but " INT32_TAKES},
    {"{\"a\": [[-2147483649]], \"dtype\": \"int32\"}", MM_BAD_REQUEST, "a", false, "is -2147483649, but"},
    {"{\"a\": [[-2147483648.5]], \"dtype\": \"int32\"}", MM_BAD_REQUEST, "a", false, "but " INT32_TAKES},
    {"{\"a\": [[9223372036854775808]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false,
     "a[0][0] is 9.22337204e+18, but " INT64_TAKES},
    {"{\"a\": [[-9223372036854775809]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false,
     "a[0][0] is -9.22337204e+18, but " INT64_TAKES},
    {"{\"a\": [[1, 99999999999999999999999]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false,
     "a[0][1] is 1e+23, but " INT64_TAKES},
    {"{\"a\": [[1, 99999999999999999999999]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false, "a[0][1]"},
    {"{\"a\": [[1e999]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false, "beyond 1.79769313e+308"},
    {"{\"a\": [[1.00000000000000000001]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false,
     "a[0][0] is not exactly 1, but " INT64_TAKES},
    {"{\"a\": [[0.99999999999999999999]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false, "a[0][0]"},
    {"{\"a\": [[9007199254740993.0]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false,
     "not exactly 9007199254740992"},
    {"{\"a\": [[\"NaN\"]], \"dtype\": \"int32\"}", MM_BAD_REQUEST, "a", false,
     "a[0][0] is the string \"NaN\", but " INT32_TAKES},
    {"{\"a\": [[\"1\"]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false, "the string \"1\""},
    {"{\"a\": [[null]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false, "a[0][0] is null, but"},
    {"{\"a\": [[true]], \"dtype\": \"float64\"}", MM_BAD_REQUEST, "a", false, "a[0][0] is true, expected"},
    {"{\"a\": [[\"inf\"]], \"dtype\": \"float64\"}", MM_BAD_REQUEST, "a", false, "the string \"inf\""},
    {"{\"a\": [[1e309]], \"dtype\": \"float64\"}", MM_BAD_REQUEST, "", true, "overflow"},
    {"{\"a\": [[-1e309]], \"dtype\": \"float64\"}", MM_BAD_REQUEST, "", true, "overflow"},
    {"{\"a\": [[1.7976931348623159e308]], \"dtype\": \"float64\"}", MM_BAD_REQUEST, "", true, "overflow"},
    {"{\"a\": [[-1.7976931348623159e308]], \"dtype\": \"float64\"}", MM_BAD_REQUEST, "", true, "overflow"},
    /* Without a lower bound, and not float64. */
    {"{\"a\": [[16777217, -1.7976931348623158e308]]}", MM_BAD_REQUEST, "a", false, "a[0][1] is beyond"},
    {"{\"a\": [[1, -1.7976931348623158e308]], \"dtype\": \"int64\"}", MM_BAD_REQUEST, "a", false, "a[0][1]"},
    {"{\"a\": [[1]], \"timeout_ms\": -1.7976931348623158e308}", MM_BAD_REQUEST, "timeout_ms", false, "whole"},
    {"{\"a\": [[1e39]]}", MM_BAD_REQUEST, "a", false, "a[0][0] is 1e+39, which float32 cannot hold"},
    /* Members */
    {"{\"dtype\": \"int32\"}", MM_BAD_REQUEST, "a", false, "it is missing"},
    {"{\"a\": [[1]], \"b\": [[1]]}", MM_BAD_REQUEST, "b", false,
     "'b' is no parameter here; there are: variant, backend, dtype, timeout_ms"},
    {"{\"a\": [[1]], \"transpose_a\": true}", MM_BAD_REQUEST, "transpose_a", false, "no parameter"},
    {"{\"a\": [[1]], \"tile\": 16}", MM_BAD_REQUEST, "tile", false, "no parameter"},
    {"{\"a\": [[1]], \"m\": 1}", MM_BAD_REQUEST, "m", false, "no parameter"},
    {"", MM_BAD_REQUEST, "", false, "expected a JSON object with a"},
    {"[]", MM_BAD_REQUEST, "", false, "expected an object with a"},
    {"{\"a\": [[1]], \"dtype\": \"float16\"}", MM_UNSUPPORTED, "dtype", false,
     "'float16', but there is only: float32, float64, int32, int64"},
    {"{\"a\": [[1, null]], \"dtype\": \"float16\"}", MM_BAD_REQUEST, "a", false, "a[0][1] is null"},
    {"{\"a\": [[1], [2, 3]], \"dtype\": \"float16\"}", MM_BAD_REQUEST, "a", false, "row 1 of a"},
};

/* Beside whole numbers, too, which are read as 64 bits, a time of any length is bounded and no error. */
static void test_long_times(void **state) {
    (void)state;
    static const char *const times[] = {"9223372036854775807", "9223372036854775808", "18446744073709551616",
                                        "99999999999999999999999999999999999999999", "1e19"};
    static const char *const dtypes[] = {"float32", "float64", "int32", "int64"};
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    for (size_t index = 0; index < 4 * sizeof times / sizeof times[0]; index++) {
        struct mm_call call;
        struct mm_error error;
        char text[160];
        snprintf(text, sizeof text, "{\"timeout_ms\": %s, \"a\": [[1, 7]], \"dtype\": \"%s\"}",
                 times[index / 4], dtypes[index % 4]);
        if (decode(&call, text, &limits, buffers, &error) != MM_OK)
            fail_msg("%s: %s", text, error.detail);
        assert_true(call.numbers[MM_PARAMETER_TIMEOUT_MS] == MM_CALL_WHOLE_MAX);
        if (index % 4 >= 2)
            assert_true(whole_at(&call.a, 0) == 1 && whole_at(&call.a, 1) == 7);
        mm_call_release(&call, buffers);
        snprintf(text, sizeof text, "{\"a\": [[1, 7]], \"dtype\": \"%s\", \"timeout_ms\": %s}",
                 dtypes[index % 4], times[index / 4]);
        if (decode(&call, text, &limits, buffers, &error) != MM_OK)
            fail_msg("%s: %s", text, error.detail);
        mm_call_release(&call, buffers);
    }
    mm_buffers_close(buffers);
}

/* Whoever is refused leaves nothing on loan. */
static void test_refused(void **state) {
    (void)state;
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    for (size_t index = 0; index < sizeof refused / sizeof refused[0]; index++) {
        struct mm_call call;
        struct mm_error error;
        enum mm_status status = decode(&call, refused[index].body, &limits, buffers, &error);
        if (status != refused[index].status || strcmp(error.field, refused[index].field) != 0 ||
            (error.line > 0) != refused[index].placed || strstr(error.detail, refused[index].detail) == NULL)
            fail_msg("%s gives %s, field '%s', line %d: %s", refused[index].body, mm_status_name(status),
                     error.field, (int)error.line, error.detail);
        assert_null(call.storage.data);
        assert_int_equal(mm_buffers_used(buffers), 0);
    }
    mm_buffers_close(buffers);
}

/* What is expected is told whole, however long. */
static void test_expected(void **state) {
    (void)state;
    struct mm_buffers *buffers = mm_buffers_open(64);
    struct mm_call call;
    struct mm_error error;
    assert_int_equal(decode_row(&call, "int64", "1, \"Infinity\"", buffers, &error), MM_BAD_REQUEST);
    assert_string_equal(error.expected, "a whole number from -9223372036854775808 to 9223372036854775807");
    assert_string_equal(error.got, "the string \"Infinity\"");
    mm_buffers_close(buffers);
}

/* The type decides of how many bytes the limits speak; and what is malformed is told before what is large. */
static void test_sizes(void **state) {
    (void)state;
    static const struct {
        const char *body;
        size_t bytes; /* of A and C together */
    } bodies[] = {
        {"{\"a\": [[1, 2, 3]]}", 24},
        {"{\"a\": [[1, 2, 3]], \"dtype\": \"int32\"}", 24},
        {"{\"a\": [[1, 2, 3]], \"dtype\": \"float64\"}", 48},
        {"{\"dtype\": \"int64\", \"a\": [[1, 2, 3]]}", 48},
    };
    struct mm_buffers *buffers = mm_buffers_open(1 << 10);
    struct mm_call call;
    struct mm_error error;
    for (size_t index = 0; index < sizeof bodies / sizeof bodies[0]; index++) {
        struct mm_limits within = {8, 1 << 10, bodies[index].bytes};
        assert_int_equal(decode(&call, bodies[index].body, &within, buffers, &error), MM_OK);
        mm_call_release(&call, buffers);
        within.memory_bytes_max--;
        assert_int_equal(decode(&call, bodies[index].body, &within, buffers, &error), MM_TOO_LARGE);
    }
    const struct mm_limits narrow = {2, 1 << 10, 1 << 10};
    assert_int_equal(decode(&call, "{\"a\": [[1, 2, 0.5]], \"dtype\": \"int32\"}", &narrow, buffers, &error),
                     MM_BAD_REQUEST);
    assert_int_equal(decode(&call, "{\"a\": [[1, 2, 5]], \"dtype\": \"int32\"}", &narrow, buffers, &error),
                     MM_TOO_LARGE);
    assert_int_equal(decode(&call, "{\"a\": [[1, 2, -1.7976931348623158e308]], \"dtype\": \"float64\"}",
                            &narrow, buffers, &error),
                     MM_TOO_LARGE);
    assert_int_equal(mm_buffers_used(buffers), 0);
    mm_buffers_close(buffers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float64),  cmocka_unit_test(test_wholes), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_expected), cmocka_unit_test(test_sizes),  cmocka_unit_test(test_long_times),
    };
    decoder = mm_json_decode;
    int failures = cmocka_run_group_tests_name("codec", tests, NULL, NULL);
    decoder = mm_json_tree_decode;
    return failures + cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
