/* Tests the parsing of parameters: every parameter as text, and large numbers in JSON. */
#include "api/call.h"
#include "gpu/queue/job.h"
#include "tests/unit/unit.h"

#include <float.h>

static const struct mm_limits limits = {
    .dimension_max = 2147483647, .body_bytes_max = 1 << 20, .memory_bytes_max = 1 << 20};

static struct mm_call call;
static struct mm_error error;

static enum mm_status set_text(const char *name, const char *value) {
    error = (struct mm_error){0};
    return mm_parameter_set_text(&call.operands.parameters, MM_IN_QUERY, name, strlen(name), value,
                                 strlen(value), &limits, &error);
}

static enum mm_status set_number(const char *name, double number) {
    const struct mm_value value = {.kind = MM_VALUE_NUMBER, .text = "", .number = number};
    error = (struct mm_error){0};
    return mm_parameter_set_value(&call.operands.parameters, MM_IN_JSON, name, strlen(name), &value, NULL,
                                  &error);
}

static uint64_t number_of(const struct mm_parameter *row) {
    const char *value = (const char *)&call + row->offset;
    return row->bytes == sizeof(bool) ? *(const bool *)value : *(const uint64_t *)(const void *)value;
}

static const struct {
    const char *name, *value;
    uint64_t number;
} good[] = {
    {"m", "0", 0},
    {"k", "2147483647", 2147483647},
    {"n", "0000000000000000000000005", 5},
    {"lda", "0000000000000000000000000000000000000000", 0},
    {"timeout_ms", "4294967295", 4294967295},
    {"timeout_ms", "9007199254740991", 9007199254740991},
    {"timeout_ms", "9007199254740993", 9007199254740992},
    {"timeout_ms", "9999999999999999999999999999999999999999", 9007199254740992},
    {"transpose_a", "1", 1},
    {"transpose_b", "false", 0},
    {"transpose_b", "0", 0},
    {"verify", "1", 1},
    {"verify", "false", 0},
    {"vendor", "allow", 1},
    {"vendor", "never", 0},
    {"accuracy", "tf32", 1},
    {"accuracy", "float32", 0},
    {"tile", "16", 16},
    {"tile", "4294967295", UINT32_MAX},
    {"devices", "2", 2},
    {"devices", "all", MM_DEVICES_ALL},
    {"devices", "auto", MM_DEVICES_AUTO},
};

static void test_good_texts(void **state) {
    for (size_t index = 0; index < COUNT(good); index++) {
        mm_call_init(&call, MM_MATMUL);
        const struct mm_parameters *values = &call.operands.parameters;
        const struct mm_parameter *row =
            mm_parameter_find(values, MM_IN_QUERY, good[index].name, strlen(good[index].name));
        if (set_text(good[index].name, good[index].value) != MM_OK)
            fail_msg("%s=%s: %s", good[index].name, good[index].value, error.detail);
        assert_true(values->given == UINT64_C(1) << (row - values->table->rows));
        assert_true(number_of(row) == good[index].number);
    }
}

static const struct {
    const char *name;
    enum mm_status status;
    const char *values;
} bad[] = {
    {"m", MM_TOO_LARGE,
     "2147483648|4294967296|9223372036854775807|9223372036854775808|18446744073709551615|"
     "18446744073709551616"},
    {"ldb", MM_TOO_LARGE, "9999999999999999999999999999999999999999"},
    {"m", MM_BAD_REQUEST,
     "|-0|-1|+1|1.5|1e3|\"2\"| 1|1 |0x10|null|9999999999999999999999999999999999999999x|\xd9\xa3"},
    {"timeout_ms", MM_BAD_REQUEST, "0|-5|1.5||soon"},
    {"transpose_a", MM_BAD_REQUEST, "yes|True||01|2"},
    {"verify", MM_BAD_REQUEST, "on|yes"},
    {"vendor", MM_BAD_REQUEST, "Allow|allowed|true|1|"},
    {"accuracy", MM_BAD_REQUEST, "TF32|float64|high|1|"},
    {"devices", MM_BAD_REQUEST, "0|-1|4294967296|ALL|autos|"},
    {"tile", MM_BAD_REQUEST, "4294967296|9999999999999999999999999999999999999999|0|-4|large"},
    {"tiles", MM_BAD_REQUEST, "16"},
    {"alpha", MM_BAD_REQUEST, "|NaN|inf|0x1|+1|.5|1.|1e|1 | 1|one|1,5"},
    {"beta", MM_BAD_REQUEST, "true|-"},
    {"activation", MM_BAD_REQUEST, "|ReLU|elu|relu |gelu-tanh"},
    {"c", MM_BAD_REQUEST, "|Body|1|uniform(7)"},
    {"bias", MM_BAD_REQUEST, "true"},
    {"ldc", MM_BAD_REQUEST, "-1"},
    {"c_shape", MM_BAD_REQUEST, "2x3"},
    {"a_shape", MM_BAD_REQUEST, "|,|1,|,1|1,,2|-1|2.0|(1,2)|1, 2|[1]|1,2,3,4,5,6,7,8,9|1;2|0x1"},
    {"shape", MM_BAD_REQUEST, "1,2"},
    {"a", MM_BAD_REQUEST, "1"},
    {"M", MM_BAD_REQUEST, "1"},
    {"", MM_BAD_REQUEST, "1"},
    {"transpose", MM_BAD_REQUEST, "1"},
};

static void test_bad_texts(void **state) {
    for (size_t index = 0; index < COUNT(bad); index++) {
        EACH(value, bad[index].values) {
            mm_call_init(&call, MM_MATMUL);
            const enum mm_status status = set_text(bad[index].name, value);
            if (status != bad[index].status || strcmp(error.field, bad[index].name) != 0 ||
                strstr(error.detail, bad[index].name) == NULL || call.operands.parameters.given != 0 ||
                error.has_limit != (status == MM_TOO_LARGE))
                fail_msg("%s=%s gives %s: %s", bad[index].name, value, mm_status_name(status), error.detail);
        }
    }
}

static void test_parameters_of_products_alone(void **state) {
    EACH(name,
         "b|k|ldb|tile|transpose_a|result_dtype|verify|vendor|colour|c|bias|c_from|bias_from|c_shape|ldc|"
         "alpha|beta|activation") {
        mm_call_init(&call, MM_TRANSPOSE);
        assert_int_equal(set_text(name, "1"), MM_BAD_REQUEST);
        assert_string_equal(error.field, name);
    }
}

static void test_shapes(void **state) {
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(set_text("a_shape", "8,1,005,4"), MM_OK);
    assert_int_equal(set_text("b_shape", "1,2,3,4,5,6,0,18446744073709551616"), MM_OK);
    assert_int_equal(call.operands.of[0].shape.rank, 4);
    assert_memory_equal(call.operands.of[0].shape.dims, ((size_t[]){8, 1, 5, 4}), 4 * sizeof(size_t));
    assert_int_equal(call.operands.of[1].shape.rank, 8);
    assert_memory_equal(call.operands.of[1].shape.dims, ((size_t[]){1, 2, 3, 4, 5, 6, 0, SIZE_MAX}),
                        8 * sizeof(size_t));
    assert_int_equal(set_text("a_shape", "8,1,5,4"), MM_OK);
    assert_int_equal(set_text("a_shape", "8,1,5,4,0"), MM_BAD_REQUEST);
    assert_int_equal(set_text("a_shape", "8,1,5,5"), MM_BAD_REQUEST);
    assert_string_equal(error.detail, "a_shape is given twice with different values; give it once");
}

/* A number of any length is compared with the limit. */
static void test_dimension_without_limit(void **state) {
    const struct mm_limits none = {.dimension_max = SIZE_MAX};
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(mm_parameter_set_text(&call.operands.parameters, MM_IN_QUERY, "m", 1,
                                           "18446744073709551614", 20, &none, NULL),
                     MM_OK);
    assert_true(call.operands.dimensions[MM_DIMENSION_M] == UINT64_MAX - 1);
    assert_int_equal(mm_parameter_set_text(&call.operands.parameters, MM_IN_QUERY, "k", 1,
                                           "18446744073709551616", 20, &none, NULL),
                     MM_TOO_LARGE);
}

static void test_names(void **state) {
    char longest[200];
    mm_call_init(&call, MM_MATMUL);
    assert_string_equal(call.variant, "auto");
    assert_string_equal(call.backend, "auto");
    assert_string_equal(call.operands.dtype_name, "float32");
    assert_int_equal(set_text("variant", "tiled_16"), MM_OK);
    assert_string_equal(call.variant, "tiled_16");
    memset(longest, 'x', sizeof longest);
    assert_int_equal(mm_parameter_set_text(&call.operands.parameters, MM_IN_QUERY, "backend", 7, longest,
                                           sizeof longest, &limits, &error),
                     MM_OK);
    assert_int_equal(strlen(call.backend), MM_PARAMETER_NAME_MAX);
    assert_int_equal(mm_parameter_set_text(&call.operands.parameters, MM_IN_QUERY, "dtype", 5, "float32\0x",
                                           9, &limits, &error),
                     MM_BAD_REQUEST);
    assert_string_equal(error.field, "dtype");
    assert_int_equal(
        mm_parameter_set_text(&call.operands.parameters, MM_IN_QUERY, "m\0", 2, "1", 1, &limits, &error),
        MM_BAD_REQUEST);
    assert_int_equal(mm_parameter_set_text(&call.operands.parameters, MM_IN_QUERY, longest, sizeof longest,
                                           "1", 1, &limits, &error),
                     MM_BAD_REQUEST);
    assert_int_equal(
        mm_parameter_set_text(&call.operands.parameters, MM_IN_QUERY, "m", 1, NULL, 0, &limits, &error),
        MM_BAD_REQUEST);
}

/* The error quotes a large number unchanged. Numbers that differ only above bit 32 are different. */
static void test_large_numbers(void **state) {
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(set_text("tile", "4294967304"), MM_BAD_REQUEST);
    assert_string_equal(error.detail,
                        "tile is '4294967304', but must be a whole decimal number from 1 to 4294967295");
    assert_int_equal(set_number("tile", 4294967304), MM_BAD_REQUEST);
    assert_string_equal(error.detail, "tile is 4294967304, but must be a whole number from 1 to 4294967295");
    assert_int_equal(set_number("timeout_ms", DBL_MAX), MM_BAD_REQUEST);
    assert_non_null(strstr(error.detail, "is beyond 1.79769313e+308"));
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(set_number("timeout_ms", 1e300), MM_OK);
    assert_true(call.timeout_ms == 9007199254740992);
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(set_text("timeout_ms", "5000000000"), MM_OK);
    assert_int_equal(set_text("timeout_ms", "0005000000000"), MM_OK);
    assert_int_equal(set_text("timeout_ms", "705032704"), MM_BAD_REQUEST);
}

/* A factor is converted to every type of sums that can represent it. */
static void test_factors(void **state) {
    static const struct {
        const char *text, *sums; /* the types of sums that can represent the factor */
    } factors[] = {
        {"1", "float32|float64|int32|int64"},
        {"-2147483648", "float32|float64|int32|int64"},
        {"2147483648", "float32|float64|int64"},
        {"-9223372036854775808", "float32|float64|int64"},
        {"9223372036854775808", "float32|float64"},
        {"0.5", "float32|float64"},
        {"2e3", "float32|float64|int32|int64"},
        {"1e39", "float64"},
        {"1e309", ""},
    };
    for (size_t index = 0; index < COUNT(factors); index++)
        EACH(dtype, "float32|float64|float16|int8|int32|int64") {
            struct mm_product product = {.m = 0};
            mm_call_init(&call, MM_MATMUL);
            assert_int_equal(set_text("alpha", factors[index].text), MM_OK);
            assert_int_equal(set_text("dtype", dtype), MM_OK);
            assert_int_equal(mm_call_resolve(&call.operands, &error), MM_OK);
            const enum mm_status status = mm_call_epilogue(&call, &product, &error);
            const enum mm_dtype sum = mm_dtype_sum(call.operands.dtype);
            const bool fits = strstr(factors[index].sums, mm_dtype_name(sum)) != NULL;
            if (status != (fits ? MM_OK : MM_BAD_REQUEST) || (!fits && strcmp(error.field, "alpha") != 0))
                fail_msg("alpha=%s of %s: %s", factors[index].text, dtype, error.detail);
        }
}

static const struct {
    const char *given;
    enum mm_status status;
    const char *text; /* the terms, or the field of the error */
} epilogues[] = {
    {"", MM_OK, ""},
    {"beta=0", MM_OK, "beta"},
    {"beta=1", MM_BAD_REQUEST, "beta"},
    {"c=body", MM_OK, "beta"},
    {"c=body|beta=-3", MM_OK, "beta"},
    {"c_from=identity()|bias_from=uniform(7)|activation=gelu_tanh|alpha=1", MM_OK,
     "alpha,beta,bias,gelu_tanh"},
    {"activation=none|verify=1", MM_OK, ""},
    {"activation=relu|verify=1", MM_UNSUPPORTED, "activation"},
    {"activation=relu|dtype=int8", MM_OK, "relu"},
    {"activation=tanh|dtype=int64", MM_UNSUPPORTED, "activation"},
    {"activation=tanh|result_dtype=float16", MM_OK, "tanh"},
    {"dtype=int32|c=body|beta=1.5", MM_BAD_REQUEST, "beta"},
};

static void test_epilogues(void **state) {
    for (size_t index = 0; index < COUNT(epilogues); index++) {
        struct mm_product product = {.m = 0};
        char text[MM_EPILOGUE_TEXT_MAX];
        mm_call_init(&call, MM_MATMUL);
        EACH(pair, epilogues[index].given) {
            char name[32];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(pair, "="), pair);
            if (*pair != '\0')
                assert_int_equal(set_text(name, strchr(pair, '=') + 1), MM_OK);
        }
        assert_int_equal(mm_call_resolve(&call.operands, &error), MM_OK);
        const enum mm_status status = mm_call_epilogue(&call, &product, &error);
        mm_call_epilogue_text(&call, text);
        if (status != epilogues[index].status ||
            strcmp(status == MM_OK ? text : error.field, epilogues[index].text) != 0)
            fail_msg("%s: %s, '%s': %s", epilogues[index].given, mm_status_name(status), text, error.detail);
        assert_true(status != MM_OK || product.epilogue.is_set == (strcmp(text, "") != 0) ||
                    strcmp(epilogues[index].given, "beta=0") == 0);
    }
}

RUN_TESTS(test_factors, test_epilogues, test_good_texts, test_bad_texts, test_parameters_of_products_alone,
          test_shapes, test_dimension_without_limit, test_names, test_large_numbers)
