/* Tests raw bodies, whose shapes come from the query. Shapes are checked before the length of the body. */
#include "api/call.h"
#include "api/codec.h"
#include "tests/unit/memory.h"

static const struct mm_limits limits = {
    .dimension_max = 2147483647, .body_bytes_max = 1 << 20, .memory_bytes_max = 2 << 20};

/* Sets the parameters of a query like "m=1&k=2". Percent-encoding is not supported. */
static enum mm_status set_query(enum mm_op op, struct mm_call *call, const char *query,
                                const struct mm_limits *within, struct mm_error *error) {
    mm_call_init(call, op);
    enum mm_status status = MM_OK;
    while (*query != '\0' && status == MM_OK) {
        size_t length = strcspn(query, "&");
        size_t name_length = strcspn(query, "=");
        status = mm_parameter_set_text(&call->operands.parameters, MM_IN_QUERY, query, name_length,
                                       query + name_length + 1, length - name_length - 1, within, error);
        query += length + (query[length] == '&');
    }
    return status;
}

struct plan {
    const char *query;
    uint64_t body_bytes;
    enum mm_status status;
    const char *field; /* field at fault; NULL if there is none */
};

static const struct plan plans[] = {
    {"m=2&k=3&n=4", MM_LENGTH_UNKNOWN},
    {"", 8, MM_BAD_REQUEST, "m"},
    {"m=1&n=1", 8, MM_BAD_REQUEST, "k"},
    {"m=1&k=1", 8, MM_BAD_REQUEST, "n"},
    {"m=2&k=2&n=2", 28, MM_BAD_REQUEST},
    {"m=1&k=1&n=1", 9, MM_BAD_REQUEST},
    {"m=1&k=1&n=1", 0, MM_BAD_REQUEST},
    {"m=0&k=0&n=0", 4, MM_BAD_REQUEST},
    /* Each stored row, even the last, has as many elements as the leading dimension says. */
    {"m=2&k=3&n=4&lda=0", 72, MM_BAD_REQUEST, "lda"},
    {"m=2&k=2&n=1&lda=1", 16, MM_BAD_REQUEST, "lda"},
    {"m=3&k=2&n=1&lda=2&transpose_a=1", 24, MM_BAD_REQUEST, "lda"},
    {"m=1&k=1&n=3&ldb=2", 12, MM_BAD_REQUEST, "ldb"},
    {"m=2&k=2&n=1&lda=3", 28, MM_BAD_REQUEST},
    {"m=2&k=3&n=4&lda=2&transpose_a=1", 72},
    {"m=2&k=3&n=4&ldb=3&transpose_b=1", 72},
    {"m=2&k=3&n=4&ldb=2&transpose_b=1", 72, MM_BAD_REQUEST, "ldb"},
    {"m=0&k=3&n=0&lda=9&ldb=9", 108},
    /* A size over the limits is reported even if the body has the wrong length. */
    {"m=2147483647&k=2147483647&n=1", 5, MM_TOO_LARGE, "a"},
    {"m=1&k=2147483647&n=2147483647&lda=2147483647", 5, MM_TOO_LARGE, "a"},
    {"m=1&k=1&n=2147483647", 5, MM_TOO_LARGE, "b"},
    {"m=2147483647&k=0&n=2147483647", 0, MM_TOO_LARGE, "c"},
    {"m=1024&k=0&n=513", 0, MM_TOO_LARGE, "c"},
    {"m=1024&k=0&n=512", 0},
    {"m=1024&k=0&n=513&transpose_a=1&transpose_b=1", 0, MM_TOO_LARGE, "c"},
    {"m=1024&k=0&n=512&transpose_a=1&transpose_b=1", 0},
    {"m=1&k=1&n=1&lda=262144", 5, MM_TOO_LARGE},
    {"m=1&k=1&n=1&lda=262143", 1048576},
    {"m=2&k=3&n=4&dtype=float64", 144},
    /* A missing dimension is reported before an unknown element type. */
    {"m=2&k=3&n=4&dtype=float65", 144, MM_UNSUPPORTED, "dtype"},
    {"m=2&k=3&n=4&result_dtype=int8", 72, MM_UNSUPPORTED, "result_dtype"},
    {"m=2&k=3&dtype=float65", 144, MM_BAD_REQUEST, "n"},
    /* Shapes of stacks, as stored. */
    {"a_shape=8,1,5,4&b_shape=3,4,6", 4 * (8 * 5 * 4 + 3 * 4 * 6)},
    {"a_shape=3&b_shape=3&dtype=int8", 6},
    {"a_shape=3,2&b_shape=3,4&transpose_a=1", 72},
    {"a_shape=2,3&b_shape=7", 52},
    {"a_shape=2,3&b_shape=3,4", 71, MM_BAD_REQUEST},
    {"a_shape=2,3", 24, MM_BAD_REQUEST, "b_shape"},
    {"b_shape=2,3&k=1", 24, MM_BAD_REQUEST, "k"},
    {"a_shape=2,3&b_shape=3,4&m=2", 72, MM_BAD_REQUEST, "m"},
    {"a_shape=2,3&b_shape=3,4&m=2&k=3&n=4", 72, MM_BAD_REQUEST, "m"},
    {"a_shape=2,3&b_shape=3,4&ldb=4", 72, MM_BAD_REQUEST, "ldb"},
    {"a_shape=1,2147483648,0&b_shape=0", 0, MM_TOO_LARGE, "a"},
    {"a_shape=0,2147483647,2147483647&b_shape=1", 4, MM_TOO_LARGE, "a"},
    {"a_shape=1&b_shape=2147483647,2147483647,0,1", 4, MM_TOO_LARGE, "b"},
    {"a_shape=1&b_shape=2147483647,1073741824,0,1", 4, MM_TOO_LARGE, "c"},
    {"a_shape=0,2147483647,1&b_shape=1,0", 0},
    {"a_shape=1024,1,1&b_shape=513,1,1,1", 1537 * 4, MM_TOO_LARGE, "c"},
    {"a_shape=18446744073709551616&b_shape=1&dtype=int8", 0, MM_TOO_LARGE, "a"},
    /* In the body, C and the bias follow A and B. Their elements have the result's type. */
    {"m=2&k=3&n=4&c=body&bias=body", 72 + 32 + 16},
    {"m=2&k=3&n=4&c=body&bias=body", 72 + 16, MM_BAD_REQUEST},
    {"m=1&k=3&n=1&dtype=int8&c=body&bias=body", 6 + 4 + 4},
    {"m=1&k=3&n=1&result_dtype=float16&bias=body", 24 + 2},
    {"m=2&k=3&n=4&c=body&ldc=6", 72 + 48},
    {"m=2&k=3&n=4&c=body&ldc=3", 72 + 32, MM_BAD_REQUEST, "ldc"},
    {"m=2&k=3&n=4&ldc=6", 72, MM_BAD_REQUEST, "ldc"},
    {"m=2&k=3&n=4&c=body&c_shape=1,2,4&ldc=4", 72 + 32, MM_BAD_REQUEST, "ldc"},
    {"m=2&k=3&n=4&c=body&c_shape=4&ldc=4", 72 + 16, MM_BAD_REQUEST, "ldc"},
    {"m=2&k=3&n=4&c_shape=2,4", 72, MM_BAD_REQUEST, "c_shape"},
    {"m=2&k=3&n=4&c=body&c_shape=2,4", 72 + 32},
    {"m=2&k=3&n=4&c_from=uniform(7)&bias_from=uniform(8)", 72},
    {"m=2&k=3&n=4&c_from=uniform(7)&c=body", 72, MM_BAD_REQUEST, "c"},
    {"a_shape=5,2,3&b_shape=3,4&c=body", 4 * (30 + 12 + 40)},
    {"a_shape=5,2,3&b_shape=3,4&c=body&c_shape=1,2,4", 4 * (30 + 12 + 8)},
    {"a_shape=5,2,3&b_shape=3,4&c=body&ldc=4", 4 * (30 + 12 + 40), MM_BAD_REQUEST, "ldc"},
    {"a_shape=3&b_shape=3&c=body", 12 + 12 + 4},
    {"m=1&k=1&n=1&c=body&lda=262143", 1048576, MM_TOO_LARGE},
};

/* Requests to transpose an A of m×n. */
static const struct plan transpositions[] = {
    /* A and C have at most 2^20 bytes each. */
    {"m=512&n=512", 1048576},
    {"m=512&n=513", 1050624, MM_TOO_LARGE},
    {"m=512&n=257&dtype=float64", 1052672, MM_TOO_LARGE},
    {"m=1&n=1&lda=262144", 1048576},
    {"m=1&n=1&lda=262145", 1048580, MM_TOO_LARGE},
    {"m=2&n=3&dtype=float16", 12},
    {"m=2&dtype=float16", 12, MM_BAD_REQUEST, "n"},
    {"n=2", 8, MM_BAD_REQUEST, "m"},
    {"m=1&n=3", 8, MM_BAD_REQUEST},
    {"m=1&n=2", 16, MM_BAD_REQUEST},
    {"m=1&n=2&dtype=int64", 8, MM_BAD_REQUEST},
    {"m=1&n=2&lda=1", 8, MM_BAD_REQUEST, "lda"},
    {"m=2147483647&n=2147483647", 8, MM_TOO_LARGE, "a"},
    {"m=2147483647&n=2147483647&dtype=int64", 8, MM_TOO_LARGE, "a"},
    {"shape=2,3,4", 96},
    {"shape=7", 28},
    {"shape=2,3&n=3", 24, MM_BAD_REQUEST, "n"},
    {"shape=2,3&lda=3", 24, MM_BAD_REQUEST, "lda"},
};

static void check_plan(enum mm_op op, const struct plan *row) {
    struct mm_call call;
    struct mm_error error = {0};
    assert_int_equal(set_query(op, &call, row->query, &limits, &error), MM_OK);
    enum mm_status status = mm_raw_codec.plan(&call.operands, row->body_bytes, &limits, &error);
    if (status != row->status || strcmp(error.field, row->field == NULL ? "" : row->field) != 0)
        fail_msg("%s gives %s, field '%s': %s", row->query, mm_status_name(status), error.field,
                 error.detail);
    if (status == MM_TOO_LARGE)
        assert_true(error.has_limit);
}

static void test_plan(void **state) {
    for (size_t index = 0; index < COUNT(plans); index++)
        check_plan(MM_MATMUL, &plans[index]);
    for (size_t index = 0; index < COUNT(transpositions); index++)
        check_plan(MM_TRANSPOSE, &transpositions[index]);
}

/* Sizes above 2^64 bytes must be rejected even without limits. */
static void test_overflow(void **state) {
    static const char *const queries[] = {
        "m=4294967296&k=4294967296&n=0",       "m=4611686018427387904&k=1&n=0",
        "m=3&k=6148914691236517206&n=0",       "m=0&k=4294967296&n=4294967296",
        "m=4294967296&k=0&n=4294967296",       "m=2&k=1&n=1&lda=9223372036854775808",
        "m=2305843009213693952&k=1&n=0&lda=2", "m=2&k=1073741824&n=4294967296",
        "m=1&k=2305843009213693952&n=1",
    };
    const struct mm_limits none = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    for (size_t index = 0; index < COUNT(queries); index++) {
        struct mm_call call;
        struct mm_error error;
        assert_int_equal(set_query(MM_MATMUL, &call, queries[index], &none, &error), MM_OK);
        if (mm_raw_codec.plan(&call.operands, 4, &none, &error) != MM_TOO_LARGE)
            fail_msg("%s is not too large: %s", queries[index], error.detail);
    }
}

/* Operands point into a body of 28 floats and need no other memory, so the memory budget is empty. */
static void test_decode(void **state) {
    static const struct {
        enum mm_op op;
        const char *query;
        enum mm_status status;
        size_t a[3], b[3]; /* rows, columns, leading dimension */
        size_t b_start;    /* index of the first float of b */
    } cases[] = {
        {MM_MATMUL, "m=2&k=3&n=4&lda=5&ldb=6&transpose_a=0", MM_OK, {2, 3, 5}, {3, 4, 6}, 10},
        {MM_MATMUL, "m=2&k=3&n=4&lda=5&ldb=4&transpose_a=1&transpose_b=1", MM_BAD_REQUEST},
        {MM_MATMUL, "m=4&k=4&n=3&transpose_a=1&transpose_b=1", MM_OK, {4, 4, 4}, {3, 4, 4}, 16},
        {MM_MATMUL, "m=2&k=3&n=4&dtype=float65", MM_UNSUPPORTED},
        {MM_TRANSPOSE, "m=2&n=3&lda=7&dtype=float64", MM_OK, {2, 3, 7}},
        {MM_MATMUL, "a_shape=2,1,4&b_shape=5,4,1", MM_OK, {2, 4, 4}, {20, 1, 1}, 8},
        {MM_MATMUL, "a_shape=14&b_shape=14", MM_OK, {1, 14, 14}, {14, 1, 1}, 14},
        {MM_TRANSPOSE, "shape=2,1,7&dtype=float64", MM_OK, {2, 7, 7}},
    };
    open_budget(0);
    float *elements = malloc(28 * sizeof *elements);
    const struct mm_body body = {.data = elements, .bytes = 28 * sizeof *elements}, empty = {0};
    struct mm_call call;
    struct mm_error error = {0};
    for (size_t index = 0; index < COUNT(cases); index++) {
        const size_t *a = cases[index].a, *b = cases[index].b;
        assert_int_equal(set_query(cases[index].op, &call, cases[index].query, &limits, &error), MM_OK);
        assert_int_equal(mm_raw_codec.plan(&call.operands, body.bytes, &limits, &error), cases[index].status);
        if (cases[index].status == MM_BAD_REQUEST) {
            assert_string_equal(error.expected, "124 bytes");
            assert_string_equal(error.got, "112 bytes");
        }
        if (cases[index].status != MM_OK)
            continue;
        mm_raw_codec.decode(&call.operands, &body);
        assert_ptr_equal(call.operands.of[0].view.data, elements);
        assert_true(call.operands.of[0].view.rows == a[0] && call.operands.of[0].view.cols == a[1] &&
                    call.operands.of[0].view.ld == a[2]);
        assert_true(call.operands.of[1].view.rows == b[0] && call.operands.of[1].view.cols == b[1] &&
                    call.operands.of[1].view.ld == b[2]);
        assert_int_equal(call.operands.of[0].view.dtype,
                         cases[index].op == MM_TRANSPOSE ? MM_FLOAT64 : MM_FLOAT32);
        assert_true(b[0] == 0 || call.operands.of[1].view.data == elements + cases[index].b_start);
        mm_operands_release(&call.operands, &memory);
    }
    assert_int_equal(set_query(MM_MATMUL, &call, "m=3&k=0&n=3", &limits, &error), MM_OK);
    assert_int_equal(mm_raw_codec.plan(&call.operands, 0, &limits, &error), MM_OK);
    mm_raw_codec.decode(&call.operands, &empty);
    free(elements);
    close_budget();
}

RUN_TESTS(test_plan, test_overflow, test_decode)
