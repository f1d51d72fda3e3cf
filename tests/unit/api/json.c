/* api/json, the request: what is taken, and what is refused with which words. The rounding of numbers is
 * json_rounding.c's, the reply json_reply.c's. */
#include "api/formats.h"
#include "api/json_tree.h"

#include <fenv.h>
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
    .dimension_max = 8, .body_bytes_max = 1 << 20, .memory_bytes_max = 256};

/* Decodes from memory of exactly the body's size, so that a read past its end shows. */
static enum mm_status decode(struct mm_call *call, const char *text, size_t bytes, struct mm_buffers *buffers,
                             struct mm_error *error) {
    char *copy = malloc(bytes + (bytes == 0));
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    const struct mm_body body = {.data = copy, .bytes = bytes};
    *error = (struct mm_error){0};
    enum mm_status status = decoder(call, &body, &limits, buffers, error);
    assert_int_equal(fegetround(), FE_TONEAREST);
    free(copy);
    return status;
}

static const struct {
    const char *body;
    size_t a_rows, a_cols, b_rows, b_cols;
    float elements[8]; /* a's, then b's */
} valid[] = {
    {"{\"a\": [[1,2],[3,4]], \"b\": [[5,6],[7,8]]}", 2, 2, 2, 2, {1, 2, 3, 4, 5, 6, 7, 8}},
    {"{\"b\":[[1]],\"a\":[[2]]}", 1, 1, 1, 1, {2, 1}},
    {" \r\n\t{ \"a\" : [ [ 1 , 2 ] ] , \"b\" : [ [ 3 ] , [ 4 ] ] } \n", 1, 2, 2, 1, {1, 2, 3, 4}},
    {"{\"a\": [], \"b\": []}", 0, 0, 0, 0, {0}},
    {"{\"a\": [[],[]], \"b\": [[]]}", 2, 0, 1, 0, {0}},
    {"{\"a\": [[1]], \"b\": []}", 1, 1, 0, 0, {1}},
    {"{\"a\": [[-0, 0, -0.0, 1e-400, -1e-400]], \"b\": []}", 1, 5, 0, 0, {-0.0f, 0, -0.0f, 0, -0.0f}},
    {"{\"a\": [[\"NaN\", \"Infinity\", \"-Infinity\"]], \"b\": []}", 1, 3, 0, 0, {NAN, INFINITY, -INFINITY}},
    {"{\"a\": [[10000000000000000000, -123456789012345678901234567890]], \"b\": []}",
     1,
     2,
     0,
     0,
     {1e19f, -123456789012345678901234567890.0f}},
    {"{\"a\": [[1.0000000596046447753906250001, 0.1]], \"b\": []}", 1, 2, 0, 0, {1.00000012f, 0.1f}},
    {"{\"a\": [[1]], \"\\u0062\": [[2]], \"variant\": \"n\\u0061ive\", \"timeout_ms\": 5e2, \"transpose_a\": "
     "true}",
     1,
     1,
     1,
     1,
     {1, 2}},
};

static void assert_elements(const float *expected, const struct mm_matrix *matrix) {
    const float *elements = matrix->data;
    for (size_t index = 0; index < matrix->rows * matrix->cols; index++) {
        if (isnan(expected[index]))
            assert_true(isnan(elements[index]));
        else
            assert_memory_equal(&elements[index], &expected[index], sizeof(float));
    }
}

static void test_valid(void **state) {
    (void)state;
    struct mm_buffers *buffers = mm_buffers_open(256);
    for (size_t index = 0; index < sizeof valid / sizeof valid[0]; index++) {
        struct mm_call call;
        struct mm_error error;
        mm_call_init(&call, MM_MATMUL);
        if (decode(&call, valid[index].body, strlen(valid[index].body), buffers, &error) != MM_OK)
            fail_msg("%s: %s", valid[index].body, error.detail);
        assert_true(call.a.rows == valid[index].a_rows && call.a.cols == valid[index].a_cols);
        assert_true(call.b.rows == valid[index].b_rows && call.b.cols == valid[index].b_cols);
        assert_true(call.a.ld == call.a.cols && call.b.ld == call.b.cols);
        assert_int_equal((uintptr_t)call.a.data % 64, 0);
        assert_int_equal((uintptr_t)call.b.data % 64, 0);
        assert_elements(valid[index].elements, &call.a);
        assert_elements(valid[index].elements + call.a.rows * call.a.cols, &call.b);
        mm_call_release(&call, buffers);
        assert_int_equal(mm_buffers_used(buffers), 0);
    }
    mm_buffers_close(buffers);
}

static void test_parameters(void **state) {
    (void)state;
    static const char body[] = "{\"variant\": \"tiled_16\", \"backend\": \"cpu\", \"dtype\": \"float32\", "
                               "\"transpose_a\": true, \"transpose_b\": false, \"timeout_ms\": 250, "
                               "\"a\": [], \"b\": []}";
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(decode(&call, body, sizeof body - 1, NULL, &error), MM_OK);
    assert_string_equal(call.names[MM_PARAMETER_VARIANT], "tiled_16");
    assert_string_equal(call.names[MM_PARAMETER_BACKEND], "cpu");
    assert_int_equal(call.numbers[MM_PARAMETER_TRANSPOSE_A], 1);
    assert_int_equal(call.numbers[MM_PARAMETER_TRANSPOSE_B], 0);
    assert_true(mm_call_has(&call, MM_PARAMETER_TRANSPOSE_B));
    assert_int_equal(call.numbers[MM_PARAMETER_TIMEOUT_MS], 250);
    assert_int_equal(call.dtype, MM_FLOAT32);
}

#define B ", \"b\": [[1]]}"

static const struct {
    const char *body;
    enum mm_status status;
    const char *field;
    unsigned line, column; /* of the last character of what is wrong; 0: none is told */
    const char *detail;    /* a part of it */
} refused[] = {
    /* Not JSON */
    {"", MM_BAD_REQUEST, "", 0, 0, "empty"},
    {"  ", MM_BAD_REQUEST, "", 1, 2, "expected"},
    {"{", MM_BAD_REQUEST, "", 1, 1, "end of file"},
    {"{\"a\":\n", MM_BAD_REQUEST, "", 2, 1, "end of file"},
    {"{\"a\": x}", MM_BAD_REQUEST, "", 1, 7, "'x'"},
    {"{\"a\":\n  tru}", MM_BAD_REQUEST, "", 2, 5, "'tru'"},
    {"{\"\xc3\xa9\": x}", MM_BAD_REQUEST, "", 1, 7, "'x'"},
    {"{\"a\": [[1,2,]]" B, MM_BAD_REQUEST, "", 1, 13, "']'"},
    {"{\"a\": [[01]]" B, MM_BAD_REQUEST, "", 1, 9, "'0'"},
    {"{\"a\": [[+1]]" B, MM_BAD_REQUEST, "", 1, 9, "'+'"},
    {"{\"a\": [[.5]]" B, MM_BAD_REQUEST, "", 1, 9, "'.'"},
    {"{\"a\": [[1.]]" B, MM_BAD_REQUEST, "", 1, 10, "'1.'"},
    {"{\"a\": [[0x1]]" B, MM_BAD_REQUEST, "", 1, 10, "'x'"},
    {"{\"a\": [[NaN]]" B, MM_BAD_REQUEST, "", 1, 11, "'NaN'"},
    {"{\"a\": [[1]]" B " x", MM_BAD_REQUEST, "", 1, 26, "end of file expected"},
    {"{\"a\": [[1]]" B "{}", MM_BAD_REQUEST, "", 1, 25, "end of file expected"},
    {"{\"a\": [[1]], \"a\": [[1]]" B, MM_BAD_REQUEST, "", 1, 16, "duplicate"},
    {"{'a': [[1]]" B, MM_BAD_REQUEST, "", 1, 2, "'"},
    {"5", MM_BAD_REQUEST, "", 1, 1, "expected"},
    {"null", MM_BAD_REQUEST, "", 1, 4, "expected"},
    {"[[1]]", MM_BAD_REQUEST, "", 0, 0, "expected an object"},
    {"\xef\xbb\xbf{}", MM_BAD_REQUEST, "", 1, 1, "expected"},
    {"{\"a\": \"\xff\"}", MM_BAD_REQUEST, "", 1, 7, "0xff"},
    {"{\"a\": \"\xc3", MM_BAD_REQUEST, "", 1, 7, "0xc3"},
    {"{\"\\u0000\": 1}", MM_BAD_REQUEST, "", 1, 9, "u0000"},
    {"{\"variant\": \"\\ud800\"}", MM_BAD_REQUEST, "", 1, 20, "D800"},
    {"{\"a\": [[-1e999]]" B, MM_BAD_REQUEST, "", 1, 14, "overflow"},
    /* Not two-dimensional */
    {"{}", MM_BAD_REQUEST, "a", 0, 0, "missing"},
    {"{\"b\": [[1]]}", MM_BAD_REQUEST, "a", 0, 0, "missing"},
    {"{\"a\": [[1]]}", MM_BAD_REQUEST, "b", 0, 0, "missing"},
    {"{\"a\": null" B, MM_BAD_REQUEST, "a", 0, 0, "it is null"},
    {"{\"a\": [[1], false]" B, MM_BAD_REQUEST, "a", 0, 0, "row 1 is false"},
    {"{\"a\": 5" B, MM_BAD_REQUEST, "a", 0, 0, "it is a number"},
    {"{\"a\": \"NaN\"" B, MM_BAD_REQUEST, "a", 0, 0, "it is a string"},
    {"{\"a\": {}" B, MM_BAD_REQUEST, "a", 0, 0, "it is an object"},
    {"{\"a\": [1,2]" B, MM_BAD_REQUEST, "a", 0, 0, "row 0 is a number"},
    {"{\"a\": [[1],2]" B, MM_BAD_REQUEST, "a", 0, 0, "row 1 is a number"},
    {"{\"a\": [[1],null]" B, MM_BAD_REQUEST, "a", 0, 0, "row 1 is null"},
    {"{\"a\": [[[1]]]" B, MM_BAD_REQUEST, "a", 0, 0, "a[0][0] is an array"},
    {"{\"a\": [[1,2],[3,4],[5,6,7]]" B, MM_BAD_REQUEST, "a", 0, 0,
     "row 2 of a has 3 elements, expected 2 like row 0"},
    {"{\"a\": [[1,2],[]]" B, MM_BAD_REQUEST, "a", 0, 0, "row 1 of a has 0 elements, expected 2 like row 0"},
    {"{\"a\": [[],[1]]" B, MM_BAD_REQUEST, "a", 0, 0, "row 1 of a has 1 element, expected 0 like row 0"},
    {"{\"a\": [[1]], \"b\": [[1],[2,3]]}", MM_BAD_REQUEST, "b", 0, 0, "row 1 of b has 2 elements"},
    /* Elements */
    {"{\"a\": [[1,null]]" B, MM_BAD_REQUEST, "a", 0, 0, "a[0][1] is null"},
    {"{\"a\": [[1],[true]]" B, MM_BAD_REQUEST, "a", 0, 0, "a[1][0] is true"},
    {"{\"a\": [[1],[{}]]" B, MM_BAD_REQUEST, "a", 0, 0, "a[1][0] is an object"},
    {"{\"a\": [[\"1\"]]" B, MM_BAD_REQUEST, "a", 0, 0, "a[0][0] is the string \"1\""},
    {"{\"a\": [[\"nan\"]]" B, MM_BAD_REQUEST, "a", 0, 0, "the string \"nan\""},
    {"{\"a\": [[\"+Infinity\"]]" B, MM_BAD_REQUEST, "a", 0, 0, "the string"},
    {"{\"a\": [[1]], \"b\": [[1, 1e39]]}", MM_BAD_REQUEST, "b", 0, 0, "b[0][1] is 1e+39, which float32"},
    {"{\"a\": [[-1e39]]" B, MM_BAD_REQUEST, "a", 0, 0, "a[0][0] is -1e+39"},
    {"{\"a\": [[1e999]]" B, MM_BAD_REQUEST, "a", 0, 0, "a[0][0] is beyond 1.79769313e+308"},
    /* Parameters */
    {"{\"a\": [[1]], \"shape\": [1, 1]" B, MM_BAD_REQUEST, "shape", 0, 0, "'shape' is no parameter"},
    {"{\"a\": [[1]], \"m\": 1" B, MM_BAD_REQUEST, "m", 0, 0, "'m' is no parameter"},
    {"{\"a\": [[1]], \"A\": 1" B, MM_BAD_REQUEST, "A", 0, 0, "'A' is no parameter"},
    {"{\"a\": [[1]], \"\": 1" B, MM_BAD_REQUEST, "", 0, 0, "is no parameter"},
    {"{\"a\": [[1]], \"variant\": null" B, MM_BAD_REQUEST, "variant", 0, 0, "variant must be a string"},
    {"{\"a\": [[1]], \"transpose_b\": 1" B, MM_BAD_REQUEST, "transpose_b", 0, 0, "must be true or false"},
    {"{\"a\": [[1]], \"timeout_ms\": 1.5" B, MM_BAD_REQUEST, "timeout_ms", 0, 0, "the number 1.5"},
    {"{\"a\": [[1]], \"timeout_ms\": \"5\"" B, MM_BAD_REQUEST, "timeout_ms", 0, 0, "the string '5'"},
    {"{\"a\": [[1]], \"timeout_ms\": 1e999" B, MM_BAD_REQUEST, "timeout_ms", 0, 0, "a whole number"},
    {"{\"a\": [[1]], \"backend\": \"cpu\"" B, MM_BAD_REQUEST, "backend", 0, 0,
     "twice, as 'cuda' and as 'cpu'"},
    {"{\"a\": [[1]], \"dtype\": \"float64\"" B, MM_UNSUPPORTED, "dtype", 0, 0, "float64"},
    /* Limits: of a dimension, of one matrix, of the result, of all together */
    {"{\"a\": [[1,2,3,4,5,6,7,8,9]]" B, MM_TOO_LARGE, "a", 0, 0, "the limit is 8"},
    {"{\"a\": [[],[],[],[],[],[],[],[],[]]" B, MM_TOO_LARGE, "a", 0, 0, "the limit is 8"},
    {"{\"a\": [[1]], \"b\": [[1],[2],[3],[4],[5],[6],[7],[8],[9]]}", MM_TOO_LARGE, "b", 0, 0,
     "the limit is 8"},
    {"{\"a\": [[1],[2],[3],[4],[5],[6],[7]], \"b\": [[1,2,3,4,5,6,7,8]]}", MM_TOO_LARGE, "", 0, 0,
     "together they may take 256"},
    /* Malformed and too large: malformed is told first */
    {"{\"a\": [[1,2,3,4,5,6,7,8,\"x\"]]" B, MM_BAD_REQUEST, "a", 0, 0, "a[0][8] is the string"},
    {"{\"a\": [[1,2,3,4,5,6,7,8,9]], \"b\": [[1e39]]}", MM_BAD_REQUEST, "b", 0, 0, "float32 cannot hold"},
};

/* Whoever is refused leaves nothing on loan. */
static void test_refused(void **state) {
    (void)state;
    struct mm_buffers *buffers = mm_buffers_open(256);
    for (size_t index = 0; index < sizeof refused / sizeof refused[0]; index++) {
        struct mm_call call;
        struct mm_error error;
        mm_call_init(&call, MM_MATMUL);
        assert_int_equal(mm_call_set_text(&call, "backend", 7, "cuda", 4, &limits, &error), MM_OK);
        enum mm_status status =
            decode(&call, refused[index].body, strlen(refused[index].body), buffers, &error);
        if (status != refused[index].status || strcmp(error.field, refused[index].field) != 0 ||
            error.line != refused[index].line || error.column != refused[index].column ||
            strstr(error.detail, refused[index].detail) == NULL)
            fail_msg("%s gives %s, field '%s', %d:%d: %s", refused[index].body, mm_status_name(status),
                     error.field, (int)error.line, (int)error.column, error.detail);
        assert_null(call.storage.data);
        assert_int_equal(mm_buffers_used(buffers), 0);
    }
    mm_buffers_close(buffers);
}

/* A pool that lends nothing is asked for nothing before the limits are judged. */
static void test_limits_before_memory(void **state) {
    (void)state;
    static const char within[] = "{\"a\": [[1,2,3,4,5,6,7,8]], \"b\": [[1]]}";
    static const char beyond[] = "{\"a\": [[1,2,3,4,5,6,7,8,9]], \"b\": [[1]]}";
    struct mm_buffers *buffers = mm_buffers_open(0);
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(decode(&call, within, sizeof within - 1, buffers, &error), MM_TOO_LARGE);
    assert_string_equal(error.field, "");
    assert_int_equal(decode(&call, beyond, sizeof beyond - 1, buffers, &error), MM_TOO_LARGE);
    assert_string_equal(error.field, "a");
    mm_buffers_close(buffers);
}

/* A document that the scanner leaves alone, as for the escape in a name, is parsed as a tree, which takes
 * many times the body: a large one is refused where the budget has no room for that, before it is built. */
static void test_tree_is_counted(void **state) {
    (void)state;
    enum { ELEMENTS = 40000 };
    static char body[2 * ELEMENTS + 64];
    size_t length = (size_t)sprintf(body, "{\"\\u0062\": [], \"a\": [[0");
    for (size_t index = 1; index < ELEMENTS; index++)
        length += (size_t)sprintf(body + length, ",0");
    length += (size_t)sprintf(body + length, "]]}");
    struct mm_buffers *tight = mm_buffers_open(1 << 20);
    struct mm_buffers *wide = mm_buffers_open(4 << 20);
    struct mm_buffer taken = {0};
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(decode(&call, body, length, tight, &error), MM_TOO_LARGE);
    assert_string_equal(error.field, "");
    assert_int_equal(decode(&call, body, length, wide, &error), MM_TOO_LARGE);
    assert_string_equal(error.field, "a"); /* it was parsed, and its dimension judged */
    assert_int_equal(mm_buffers_acquire(wide, 2 << 20, &taken, NULL), MM_OK);
    assert_int_equal(decode(&call, body, length, wide, &error), MM_BUSY);
    mm_buffers_release(wide, &taken);
    assert_int_equal(mm_buffers_used(tight), 0);
    assert_int_equal(mm_buffers_used(wide), 0);
    mm_buffers_close(tight);
    mm_buffers_close(wide);
}

/* What a refusal says is needed is all that has to be free at once: the tree, and the matrices beside it. */
static void test_needed_is_told(void **state) {
    (void)state;
    enum { SPACES = 100000, MATRIX_BYTES = 64 + 4 };
    static char body[SPACES + 64];
    size_t length = (size_t)sprintf(body, "{\"a\": [[1]], \"\\u0062\": [[1]]%*s}", SPACES, "");
    struct mm_call call;
    struct mm_error error;
    struct mm_buffers *nothing = mm_buffers_open(0);
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(decode(&call, body, length, nothing, &error), MM_TOO_LARGE);
    size_t tree_bytes = (size_t)error.needed_bytes;
    assert_true(tree_bytes >= length);
    for (size_t room = 0; room <= MATRIX_BYTES; room++) {
        struct mm_buffers *buffers = mm_buffers_open(tree_bytes + room);
        mm_call_init(&call, MM_MATMUL);
        enum mm_status status = decode(&call, body, length, buffers, &error);
        assert_int_equal(status, room < MATRIX_BYTES ? MM_BUSY : MM_OK);
        assert_true(status == MM_OK || error.needed_bytes == tree_bytes + MATRIX_BYTES);
        mm_call_release(&call, buffers);
        assert_int_equal(mm_buffers_used(buffers), 0);
        mm_buffers_close(buffers);
    }
    mm_buffers_close(nothing);
}

/* Zero bytes in place of a character, and between any two. */
static void test_zero_bytes(void **state) {
    (void)state;
    static const char good[] =
        "{\"\\u0061\":\n[[1, 2e0]], \"b\": [[1], [2]],\n\"variant\": \"na\xc3\xaf\", \"transpose_a\": false}";
    enum { LENGTH = sizeof good - 1 };
    struct mm_buffers *buffers = mm_buffers_open(1 << 10);
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(decode(&call, good, LENGTH, buffers, &error), MM_OK);
    mm_call_release(&call, buffers);
    for (size_t place = 0; place <= LENGTH; place++) {
        char bad[LENGTH + 1];
        memcpy(bad, good, place);
        bad[place] = '\0';
        memcpy(bad + place + 1, good + place, LENGTH - place);
        mm_call_init(&call, MM_MATMUL);
        assert_int_equal(decode(&call, bad, LENGTH + 1, buffers, &error), MM_BAD_REQUEST);
        if (place < LENGTH) {
            memcpy(bad, good, LENGTH);
            bad[place] = '\0';
            mm_call_init(&call, MM_MATMUL);
            assert_int_equal(decode(&call, bad, LENGTH, buffers, &error), MM_BAD_REQUEST);
        }
    }
    mm_buffers_close(buffers);
}

/* Where the zero byte stands: lines end in LF, and a character counts once however many bytes it has. */
static void test_zero_byte_is_told(void **state) {
    (void)state;
    static const char body[] = "{\"a\":\r\n \"\xe2\x82\xac\": 1\0, \"b\": [[1]]}";
    struct mm_buffers *buffers = mm_buffers_open(0);
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(decode(&call, body, sizeof body - 1, buffers, &error), MM_BAD_REQUEST);
    assert_non_null(strstr(error.detail, "line 2, column 8: a zero byte"));
    assert_true(error.line == 2 && error.column == 8);
    mm_buffers_close(buffers);
}

/* Bodies that a C string cannot show well: cut anywhere, and nested without end. */
static void test_hostile(void **state) {
    (void)state;
    static const char good[] = "{\"a\": [[1]], \"b\": [[1]], \"variant\": \"naive\"}";
    struct mm_buffers *buffers = mm_buffers_open(64 << 20);
    struct mm_call call;
    struct mm_error error;
    for (size_t length = 0; length < sizeof good - 1; length++) {
        mm_call_init(&call, MM_MATMUL);
        assert_int_equal(decode(&call, good, length, buffers, &error), MM_BAD_REQUEST);
    }
    enum { DEPTH = 100000 };
    char *deep = malloc(DEPTH + 5);
    assert_non_null(deep);
    memcpy(deep, "{\"a\":", 5);
    memset(deep + 5, '[', DEPTH);
    mm_call_init(&call, MM_MATMUL);
    assert_int_equal(decode(&call, deep, DEPTH + 5, buffers, &error), MM_BAD_REQUEST);
    assert_true(error.line == 1 && error.column > 0);
    free(deep);
    mm_buffers_close(buffers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits_before_memory),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_tree_is_counted),
        cmocka_unit_test(test_needed_is_told),
        cmocka_unit_test(test_zero_bytes),
        cmocka_unit_test(test_zero_byte_is_told),
    };
    decoder = mm_json_decode;
    int failures = cmocka_run_group_tests_name("codec", tests, NULL, NULL);
    decoder = mm_json_tree_decode;
    return failures + cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
