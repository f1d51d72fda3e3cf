/* Tests the decoding of JSON bodies: which bodies are accepted, and the errors of rejected bodies. */
#include "api/call.h"
#include "api/codec.h"
#include "api/json/json_array.h"
#include "tests/decode.h"
#include "tests/unit/memory.h"

#include <fenv.h>

static const struct mm_limits limits = {
    .dimension_max = 8, .body_bytes_max = 1 << 20, .memory_bytes_max = 256};

static struct mm_call call;
static struct mm_error error;

/* The copy has exactly the body's size, so a sanitizer reports reads past the end. */
static enum mm_status decode_bytes(enum mm_op op, const char *text, size_t bytes,
                                   const struct mm_limits *within) {
    char *copy = malloc(bytes + (bytes == 0));
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    const struct mm_body body = {.data = copy, .bytes = bytes};
    error = (struct mm_error){0};
    mm_call_init(&call, op);
    assert_int_equal(
        mm_parameter_set_text(&call.operands.parameters, MM_IN_QUERY, "backend", 7, "cuda", 4, &limits, NULL),
        MM_OK);
    const enum mm_status status =
        decode_whole(&mm_json_codec, NULL, &call.operands, &body, within, &memory, &error);
    assert_int_equal(fegetround(), FE_TONEAREST);
    assert_int_equal(error.status, status);
    free(copy);
    return status;
}

static enum mm_status decode(enum mm_op op, const char *text) {
    text = quoted(text);
    return decode_bytes(op, text, strlen(text), &limits);
}

static void release(void) {
    mm_operands_release(&call.operands, &memory);
    assert_int_equal(memory.used_bytes, 0);
}

/* Bodies with the operands that they decode to, as JSON. A transposition has no b. */
static const struct {
    const char *body, *a, *b;
} valid[] = {
    {"{`a`: [[1,2],[3,4]], `b`: [[5,6],[7,8]]}", "[[1,2],[3,4]]", "[[5,6],[7,8]]"},
    {"{`b`:[[1]],`a`:[[2]]}", "[[2]]", "[[1]]"},
    {" \r\n\t{ `a` : [ [ 1 , 2 ] ] , `b` : [ [ 3 ] , [ 4 ] ] } \n", "[[1,2]]", "[[3],[4]]"},
    {"{`a`: [], `b`: []}", "[]", "[]"},
    {"{`a`: [[],[]], `b`: [[]]}", "[[],[]]", "[[]]"},
    {"{`a`: [[1]], `b`: []}", "[[1]]", "[]"},
    {"{`a`: [1,-2.5], `b`: [ 3 ]}", "[1,-2.5]", "[3]"},
    {"{`a`: [[[1,2],[3,4]],[[5,6],[7,8]]], `b`: [[[9]]]}", "[[[1,2],[3,4]],[[5,6],[7,8]]]", "[[[9]]]"},
    {"{`a`: [[[[[[[[1,2]]]],[[[[3,4]]]]]]]], `b`: [`NaN`]}", "[[[[[[[[1,2]]]],[[[[3,4]]]]]]]]", "[`NaN`]"},
    {"{`a`: [[[]]], `b`: [[[],[]],[[],[]]]}", "[[[]]]", "[[[],[]],[[],[]]]"},
    {"{`a`: [ [ [ 1 ] , [ 2 ] ] , [ [ 3 ] , [ 4 ] ] ], `b`: []}", "[[[1],[2]],[[3],[4]]]", "[]"},
    {"{`a`: [[-0, 0, -0.0, 1e-400, -1e-400]], `b`: []}", "[[-0.0,0,-0.0,0,-0.0]]", "[]"},
    {"{`a`: [[`NaN`, `Infinity`, `-Infinity`]], `b`: []}", "[[`NaN`,`Infinity`,`-Infinity`]]", "[]"},
    {"{`a`: [[10000000000000000000, -123456789012345678901234567890]], `b`: []}", "[[1e+19,-1.2345679e+29]]",
     "[]"},
    {"{`a`: [[1.0000000596046447753906250001, 0.1]], `b`: []}", "[[1.0000001,0.1]]", "[]"},
    {"{`a`: [[1]], `\\u0062`: [[2]], `variant`: `n\\u0061ive`, `timeout_ms`: 5e2, `transpose_a`: true}",
     "[[1]]", "[[2]]"},
    {"{`a`: [[1, -2.5, 0, 1e2]], `dtype`: `float64`}", "[[1,-2.5,0,100]]"},
    {"{`a`: [[0.1, 0.30000000000000004, 1e23, 5e-324]], `dtype`: `float64`}",
     "[[0.1,0.30000000000000004,1e+23,4.94065645841247e-324]]"},
    {"{`dtype`: `float64`, `a`: [[-0, -0.0, -1e-400, 1e-400]]}", "[[-0.0,-0.0,-0.0,0]]"},
    {"{`a`: [[`NaN`, `Infinity`, `-Infinity`]], `dtype`: `float64`}", "[[`NaN`,`Infinity`,`-Infinity`]]"},
    /* Midpoints between two float64, and numbers slightly above or below. */
    {"{`a`: [[9007199254740993, 9007199254740995, 9007199254740993.0000000000000000000001]], `dtype`: "
     "`float64`}",
     "[[9007199254740992,9007199254740996,9007199254740994]]"},
    /* This number exceeds the largest float64 but rounds to it. */
    {"{`a`: [[1.7976931348623158e308, -1.7976931348623158e308]], `dtype`: `float64`}",
     "[[1.7976931348623157e+308,-1.7976931348623157e+308]]"},
    {"{`a`: [[-1.7976931348623158e308, 1, `NaN`]], `dtype`: `float64`}",
     "[[-1.7976931348623157e+308,1,`NaN`]]"},
    {"{`a`: [[0, -0, 2147483647, -2147483648]], `dtype`: `int32`}", "[[0,0,2147483647,-2147483648]]"},
    {"{`dtype`: `int32`, `a`: [[1e2, 1.0, -5E+1, 2147483647.0, -0.0, 0e999, 1000e-3]]}",
     "[[100,1,-50,2147483647,0,0,1]]"},
    {"{`a`: [[9223372036854775807, -9223372036854775808]], `dtype`: `int64`}",
     "[[9223372036854775807,-9223372036854775808]]"},
    {"{`dtype`: `int64`, `a`: [[9007199254740993, -9007199254740993, 9223372036854775806]]}",
     "[[9007199254740993,-9007199254740993,9223372036854775806]]"},
    {"{`a`: [[0.1, 65504, 65519, 2e-8, -1e-9, `NaN`]], `dtype`: `float16`}",
     "[[0.1,65500,65500,0,-0.0,`NaN`]]"},
    {"{`dtype`: `bfloat16`, `a`: [[0.1, 3.39e38, `-Infinity`]]}", "[[0.1,3.39e+38,`-Infinity`]]"},
    {"{`a`: [[0.1, 448, `NaN`]], `dtype`: `float8_e4m3fn`}", "[[0.1,450,`NaN`]]"},
    {"{`a`: [[0.1, 57344, `Infinity`]], `dtype`: `float8_e5m2`}", "[[0.09,60000,`Infinity`]]"},
    {"{`a`: [[127, -128, 1e1]], `dtype`: `int8`}", "[[127,-128,10]]"},
    {"{`a`: [[255, 0, -0]], `dtype`: `uint8`}", "[[255,0,0]]"},
    {"{`a`: [[true, false, 1, 0, 1.0]], `dtype`: `bool`}", "[[1,0,1,0,1]]"},
    {"{`dtype`: `bool`, `a`: [[true, false], [0, 1]]}", "[[1,0],[0,1]]"},
    /* A timeout may exceed 64 bits, even if the elements are integers. */
    {"{`timeout_ms`: 18446744073709551616, `a`: [[1, 7]], `dtype`: `int64`}", "[[1,7]]"},
    {"{`a`: [[1, 7]], `dtype`: `int32`, `timeout_ms`: 9223372036854775808}", "[[1,7]]"},
    {"{`dtype`: `int64`, `timeout_ms`: 99999999999999999999999999999999999999999, `a`: [[1, 7]]}", "[[1,7]]"},
    {"{`a`: [[1e18, -9223372036854775808.0, 9223372036854774784.0, 1e0]], `dtype`: `int64`}",
     "[[1000000000000000000,-9223372036854775808,9223372036854774784,1]]"},
};

static void expect_array(const struct mm_shape *shape, const struct mm_matrix *view, const char *expected) {
    char text[512];
    assert_int_equal((uintptr_t)view->data % 64, 0);
    assert_int_equal(view->ld, view->cols);
    text[mm_json_array_write(shape, view->dtype, view->data, NULL, text)] = '\0';
    assert_string_equal(text, quoted(expected));
}

static void test_valid(void **state) {
    for (size_t index = 0; index < COUNT(valid); index++) {
        const enum mm_op op = valid[index].b == NULL ? MM_TRANSPOSE : MM_MATMUL;
        if (decode(op, valid[index].body) != MM_OK)
            fail_msg("%s: %s", valid[index].body, error.detail);
        const char *dtype = strstr(valid[index].body, "`dtype`: `");
        assert_true(dtype == NULL ? call.operands.dtype == MM_FLOAT32
                                  : strstr(dtype, mm_dtype_name(call.operands.dtype)) != NULL);
        expect_array(&call.operands.of[0].shape, &call.operands.of[0].view, valid[index].a);
        expect_array(&call.operands.of[1].shape, &call.operands.of[1].view,
                     op == MM_TRANSPOSE ? "[]" : valid[index].b);
        release();
    }
}

#define B ", `b`: [[1]]}"

struct refused {
    const char *body, *field;
    unsigned line, column; /* position of the error; line 0 for no position, column 0 for any column */
    const char *detail;    /* text that error.detail must contain */
    enum mm_status status; /* expected status; if omitted, MM_BAD_REQUEST */
};

static const struct refused products[] = {
    /* Bodies that are not JSON. */
    {"", "", 0, 0, "empty"},
    {"  ", "", 1, 3, "ends at line 1, column 3, but must have an object like {"},
    {"{", "", 1, 2, "the JSON body ends"},
    {"{`a`:\n", "", 2, 1, "the JSON body ends"},
    {"{`a`: x}", "", 1, 7, "'x'"},
    {"{`a`:\n  tru}", "", 2, 3, "'tru'"},
    {"{`\xc3\xa9`: x}", "", 1, 7, "'x'"},
    {"{`a`: [[1,2,]]" B, "", 1, 13, "']'"},
    {"{`a`: [[01]]" B, "", 1, 9, "'01'"},
    {"{`a`: [[0x1]]" B, "", 1, 10, "has 'x1'"},
    {"{`a`: [[NaN]]" B, "", 1, 9, "has 'NaN' at line 1, column 9, but must have \"NaN\" in quotes"},
    {"{`a`: [[-Infinity]]" B, "", 1, 9, "\"-Infinity\" in quotes"},
    {"{`a`: [[1]]" B " x", "", 1, 26, "has 'x' at line 1, column 26, but must have nothing after the object"},
    {"{`a`: [[1]], `a`: [[1]]" B, "", 1, 14, "a name that was not given before"},
    {"{'a': [[1]]" B, "", 1, 2, "'"},
    {"null", "", 1, 1, "must have an object"},
    {"[[1]]", "", 1, 1, "has '[' at line 1, column 1, but must have an object like {"},
    {"\xef\xbb\xbf\xef\xbb\xbf{}", "", 1, 1, "0xef"},
    {"\xef\xbb\xbf{`a`: tru}", "", 1, 7, "'tru'"},
    {"{`a`: `\xff`}", "", 1, 8, "0xff"},
    {"{`a`: `\xc3", "", 1, 8, "0xc3"},
    {"{`a`: `\\", "", 1, 8, "an escape of JSON"},
    {"{`a`: `\\u00", "", 1, 8, "an escape of JSON"},
    {"{`\\u0000`: 1}", "", 1, 3, "u0000"},
    {"{`variant`: `\\ud800`}", "", 1, 14, "ud800"},
    {"{`a`: [[-1e999]]" B, "a", 1, 9, "a[0][0] is beyond -1.79769313e+308 (overflow)"},
    {"{`a` [[1]]" B, "", 1, 6, "must have ':'"},
    {"{`a`: [[1]],}", "", 1, 13, "must have a name in double quotes"},
    {"{`a`: [[1 2]]" B, "", 1, 11, "must have ',' or the closing bracket"},
    {"{`a`: [[1,,2]]" B, "", 1, 11, "must have a value"},
    {"{`a`: [[1]], /* one */ `b`: [[1]]}", "", 1, 14, "'/'"},
    {"{`a\n`: 1}", "", 1, 4, "0x0a"},
    {"{`a`: [[1]]", "", 1, 12, "ends"},
    {"{`a`: [[1]],\n `b", "", 2, 4, "ends at line 2, column 4, but must have the string's closing quote"},
    {"{a: [[1]]" B, "", 1, 2, "has 'a'"},
    {"{`a`: [[1e]]" B, "", 1, 9, "'1e'"},
    {"`a`", "", 1, 1, "must have an object"},
    {"{`a`: [[1]], `\\u0061`: 1}", "", 1, 14, "a name that was not given before"},
    {"{`variant`: `naive`, `variant`: `naive`}", "", 1, 22, "a name that was not given before"},
    {"{`\xed\xa0\x80`: 1}", "", 1, 3, "0xed"},
    {"\xef\xbb\xbf", "", 1, 1, "ends at line 1, column 1"},
    /* Arrays that are missing, ragged or too deep. */
    {"{}", "a", 0, 0, "missing"},
    {"{`a`: [[1]]}", "b", 0, 0,
     "b is missing, but b must be an array of numbers, or of arrays of them, like [["},
    {"{`a`: null" B, "a", 1, 7, "a is null"},
    {"{`a`: [[1], false]" B, "a", 1, 13, "a[1] is false, but a[0] is an array; put numbers beside numbers"},
    {"{`a`: [[[1],[2]], [[3], 4]]" B, "a", 1, 25, "a[1][1] is a number, but a[0][0] is an array"},
    {"{`a`: [[[1],[2]], 5, [6]]" B, "a", 1, 19, "a[1] is a number, but a[0] is an array"},
    {"{`a`: [[], 1]" B, "a", 1, 12, "a[1] is a number, but a[0] is an array"},
    {"{`a`: [1, [2]]" B, "a", 1, 11, "a[1] is an array, but a[0] is none"},
    {"{`a`: [[1], [2, []], [null]]" B, "a", 1, 17, "a[1][1] is an array, but a[0][0] is none"},
    {"{`a`: 5" B, "a", 1, 7, "a is a number, but a must be"},
    {"{`a`: `NaN`" B, "a", 1, 7, "a is a string"},
    {"{`a`: {}" B, "a", 1, 7, "a is an object"},
    {"{`a`: [[1,2],[3,4],[5,6,7]]" B, "a", 1, 26, "a[2] has 3 elements, but a[0] has 2; make all arrays"},
    {"{`a`: [[[1,2],[3,4]],[[5,6],[7]]]" B, "a", 1, 31, "a[1][1] has 1 element, but a[0][0] has 2"},
    {"{`a`: [[[1],[2]],[[3]]]" B, "a", 1, 22, "a[1] has 1 element, but a[0] has 2"},
    {"{`a`: [[],[[]]]" B, "a", 1, 14, "a[1] has 1 element, but a[0] has 0"},
    {"{`a`: [[],[[1,[2]],3]]" B, "a", 1, 21, "a[1] has 2 elements, but a[0] has 0"},
    {"{`a`: [[[]],[[{`x`:[1]}]]]" B, "a", 1, 24, "a[1][0] has 1 element, but a[0][0] has 0"},
    {"{`a`: [[[[[[[[[1]]]]]]]]]" B, "a", 1, 15, "a has more than 8 dimensions, but the limit is 8"},
    {"{`a`: [[[[[[[[[]],[1]]]]]]]]" B, "a", 1, 15, "a has more than 8 dimensions"},
    /* Elements that are not numbers or are out of range. */
    {"{`a`: [[1,null]]" B, "a", 1, 11, "a[0][1] is null"},
    {"{`a`: [[1],[true]]" B, "a", 1, 13, "a[1][0] is true"},
    {"{`a`: [[1],[{}]]" B, "a", 1, 13, "a[1][0] is an object"},
    {"{`a`: [{`a`:[1]}]" B, "a", 1, 8, "a[0] is an object, but float32 takes"},
    {"{`a`: [[[1,2]],[[3,`x`]]]" B, "a", 1, 20, "a[1][0][1] is the string \"x\""},
    {"{`a`: [[`1`]]" B, "a", 1, 9, "a[0][0] is the string \"1\""},
    {"{`a`: [[`nan`]]" B, "a", 1, 9, "the string \"nan\""},
    {"{`a`: [[1]], `b`: [[1, 1e39]]}", "b", 1, 24, "b[0][1] is 1e+39, but float32 takes"},
    {"{`a`: [[-1e39]]" B, "a", 1, 9, "a[0][0] is -1e+39"},
    {"{`a`: [[-340282356779733661637539395458142568448]]" B, "a", 1, 9, "is -3.40282357e+38"},
    {"{`a`: [[3.4028235677973367e38]]" B, "a", 1, 9, "is 3.40282357e+38"},
    /* Wrong parameters. */
    {"{`a`: [[1]], `shape`: [1, 1]" B, "shape", 1, 23,
     "'shape' is unknown in the body, which takes: a, b, variant"},
    {"{`a`: {`from`: `identity()`, `from`: `identity()`}" B, "", 1, 30,
     "must have a name that was not given before"},
    {"{`a`: [[1]], `A`: 1" B, "A", 1, 19, "did you mean 'a'?"},
    {"{`a`: [[1]], ``: 1" B, "", 1, 18, "is unknown"},
    {"{`a`: [[1]], `variant`: null" B, "variant", 1, 25, "variant is null, but must be a string"},
    {"{`a`: [[1]], `variant`: 16" B, "variant", 1, 25, "variant is 16, but must be a string"},
    {"{`a`: [[1]], `backend`: [`cpu`]" B, "backend", 1, 25, "is an array"},
    {"{`a`: [[1]], `dtype`: {}" B, "dtype", 1, 23, "is an object"},
    {"{`a`: [[1]], `gr\xc3\xb6\xc3\x9f\145`: 1" B, "gr\xc3\xb6\xc3\x9f\145", 1, 23, "is unknown"},
    {"{`a`: [[1]], `m`: 1" B, "m", 0, 0, "m is given, but only a raw body"},
    {"{`a`: [[1]], `transpose_b`: `true`" B, "transpose_b", 1, 29, "is the string"},
    {"{`a`: [[1]], `verify`: 1" B, "verify", 1, 24, "is 1, but must be true or false"},
    {"{`a`: [[1]], `vendor`: true" B, "vendor", 1, 24, "is true, but must be \"allow\" or \"never\""},
    {"{`a`: [[1]], `tile`: 16.5" B, "tile", 1, 22, "is 16.5, but must be a whole number"},
    {"{`a`: [[1]], `devices`: `2`" B, "devices", 1, 25, "is the string"},
    {"{`a`: [[1]], `devices`: 0" B, "devices", 1, 25, "or \"auto\""},
    {"{`a`: [[1]], `tile`: `16`" B, "tile", 1, 22, "is the string"},
    {"{`a`: [[1]], `tile`: 0" B, "tile", 1, 22, "is 0, but must be a whole number from 1 to"},
    {"{`a`: [[1]], `timeout_ms`: 0" B, "timeout_ms", 1, 28, "is 0, but must be a whole number of at least 1"},
    {"{`a`: [[1]], `timeout_ms`: -0.0" B, "timeout_ms", 1, 28, "is -0"},
    {"{`a`: [[1]], `transpose_b`: 1" B, "transpose_b", 1, 29, "must be true or false"},
    {"{`a`: [[1]], `timeout_ms`: 1e999" B, "timeout_ms", 1, 28, "a whole number"},
    {"{`a`: [[1]], `backend`: `cpu`" B, "backend", 1, 25, "backend is given twice with different values"},
    {"{`a`: [[1]], `dtype`: `float65`" B, "dtype", 0, 0, "float64", MM_UNSUPPORTED},
    /* Matrices over a limit. */
    {"{`a`: [[1,2,3,4,5,6,7,8,9]]" B, "a", 0, 0, "the limit is 8", MM_TOO_LARGE},
    {"{`a`: [[],[],[],[],[],[],[],[],[]]" B, "a", 0, 0, "the limit is 8", MM_TOO_LARGE},
    {"{`a`: [[[],[],[],[],[],[],[],[],[]]]" B, "a", 0, 0, "dimension 1 of a is 9", MM_TOO_LARGE},
    {"{`a`: [[1]], `b`: [[1],[2],[3],[4],[5],[6],[7],[8],[9]]}", "b", 0, 0, "the limit is 8", MM_TOO_LARGE},
    {"{`a`: [[1],[2],[3],[4],[5],[6],[7]], `b`: [[1,2,3,4,5,6,7,8]]}", "", 0, 0, "together they may take 256",
     MM_TOO_LARGE},
    /* The body is malformed and too large. The error must say that it is malformed. */
    {"{`a`: [[1,2,3,4,5,6,7,8,`x`]]" B, "a", 1, 25, "a[0][8] is the string"},
    {"{`a`: [[1,2,3,4,5,6,7,8,9]], `b`: [[1e39]]}", "b", 1, 37, "but float32 takes"},
    /* c and bias. */
    {"{`a`: [[1]], `c`: null" B, "c", 1, 19, "c is null, but c must be an array"},
    {"{`a`: [[1]], `c`: {}" B, "c", 1, 19, "c is an object"},
    {"{`a`: [[1]], `c`: `x`" B, "c", 1, 19, "c is the string \"x\", but float32 takes"},
    {"{`a`: [[1]], `c`: [[1e39]]" B, "c", 1, 21, "c[0][0] is 1e+39, but float32 takes"},
    {"{`a`: [[1]], `c`: [[70000]], `result_dtype`: `float16`" B, "c", 1, 21, "but float16 takes"},
    {"{`a`: [[1]], `bias`: [2147483648], `dtype`: `int8`" B, "bias", 1, 23, "but int32 takes"},
    {"{`a`: [[1]], `bias`: [1, [2]]" B, "bias", 1, 26, "bias[1] is an array, but bias[0] is none"},
    {"{`a`: [[1]], `c_shape`: [1, 1]" B, "c_shape", 0, 0, "c_shape is given, but c is not"},
    {"{`a`: [[1]], `c`: [[1]], `c_shape`: [1]" B, "c_shape", 0, 0, "c_shape is 1, but c is 1×1",
     MM_BAD_SHAPE},
    {"{`a`: [[1]], `alpha`: `1`" B, "alpha", 1, 23, "alpha is the string \"1\", but must be a number"},
    {"{`a`: [[1]], `activation`: 1" B, "activation", 1, 28, "must be a string: none, relu"},
};

static const struct refused transpositions[] = {
    {"{`a`: [[1e-400]], `dtype`: `int64`}", "a", 1, 0, "a[0][0] is not exactly 0, but"},
    {"{`a`: [[-1e-400]], `dtype`: `int64`}", "a", 1, 0,
     "but int64 takes whole numbers from -9223372036854775808 to 9223372036854775807"},
    {"{`a`: [[`Infinity`]], `dtype`: `float8_e4m3fn`}", "a", 1, 0, "float8_e4m3fn takes numbers up to 448, "},
    {"{`a`: [[65520]], `dtype`: `float16`}", "a", 1, 0, "float16 takes numbers up to 65504"},
    {"{`a`: [[2]], `dtype`: `bool`}", "a", 1, 0, "bool takes 0, 1, true and false"},
    {"{`a`: [[true]], `dtype`: `int8`}", "a", 1, 0, "a[0][0] is true, but int8 takes"},
    {"{`a`: [[`NaN`]], `dtype`: `int8`}", "a", 1, 0, "int8 takes whole numbers from -128 to 127"},
    {"{`a`: [[true]], `dtype`: `float64`}", "a", 1, 0, "a[0][0] is true, but float64 takes"},
    {"{`a`: [[1.7976931348623159e308]], `dtype`: `float64`}", "a", 1, 0, "overflow"},
    /* Very large negative numbers. */
    {"{`a`: [[1, -1.7976931348623158e308]], `dtype`: `int64`}", "a", 1, 0, "a[0][1]"},
    {"{`a`: [[1]], `timeout_ms`: -1.7976931348623158e308}", "timeout_ms", 1, 0, "whole"},
    {"{`a`: [[1], [2, 3]], `dtype`: `float17`}", "a", 1, 0, "a[1] has 2"},
    {"{`a`: [[1, null]], `dtype`: `float64`}", "a", 1, 12, "a[0][1] is null"},
    {"{`a`: [[1, 1e999]], `dtype`: `float16`}", "a", 1, 12, "float16 takes numbers up to 65504"},
    {"{`a`: [[-1e309]], `dtype`: `float64`}", "a", 1, 9, "overflow"},
    {"{`a`: [[1.00000000000000000001]], `dtype`: `int32`}", "a", 1, 9, "a[0][0] is not exactly 1"},
    {"{`a`: [[0], [2147483648]], `dtype`: `int32`}", "a", 1, 14, "a[1][0] is 2147483648"},
    {"{`a`: [[-2147483649]], `dtype`: `int32`}", "a", 1, 9, "-2147483648 to 2147483647"},
    {"{`a`: [[1e999]], `dtype`: `int64`}", "a", 1, 9, "a[0][0] is beyond 1.79769313e+308"},
    {"{`a`: [[9007199254740993.0]], `dtype`: `int64`}", "a", 1, 9, "not exactly 9007199254740992"},
    {"{`a`: [[123456789012345678901234567890]], `dtype`: `int64`}", "a", 1, 9, "is 1.23456789e+29"},
    {"{`a`: [[9223372036854775808]], `dtype`: `int64`}", "a", 1, 9, "is 9.22337204e+18"},
    {"{`a`: [[-9223372036854775809]], `dtype`: `int64`}", "a", 1, 9, "is not exactly -9223372036854775808"},
    {"{`a`: [[1]], `k`: 1}", "k", 1, 19, "'k' is unknown in the body, which takes: a, variant"},
    {"{`a`: [[1]], `m`: 1}", "m", 0, 0, "m is given, but only a raw body"},
    {"{`a`: [[1]], `tile`: 16}", "tile", 1, 22, "'tile' is unknown"},
    {"{`a`: [[1, 2]], `shape`: [1, 2, 1]}", "shape", 0, 0, "shape is 1×2×1, but a is 1×2", MM_BAD_SHAPE},
    {"[[1]]", "", 1, 1, "must have an object like {\"a\": [[1,2]]}"},
};

/* A rejected request must leave no memory allocated. */
static void expect_refused(enum mm_op op, const struct refused *rows, size_t count) {
    for (size_t index = 0; index < count; index++) {
        const struct refused *row = &rows[index];
        const enum mm_status status = decode(op, row->body);
        if (status != (row->status == MM_OK ? MM_BAD_REQUEST : row->status) ||
            strcmp(error.field, row->field) != 0 || error.line != row->line ||
            (error.column != row->column && (row->column != 0 || row->line == 0)) ||
            strstr(error.detail, row->detail) == NULL)
            fail_msg("%s gives %s, field '%s', %d:%d: %s", row->body, mm_status_name(status), error.field,
                     (int)error.line, (int)error.column, error.detail);
        assert_null(call.operands.storage.data);
        assert_int_equal(memory.used_bytes, 0);
    }
}

static void test_refused(void **state) {
    expect_refused(MM_MATMUL, products, COUNT(products));
    expect_refused(MM_TRANSPOSE, transpositions, COUNT(transpositions));
    assert_int_equal(decode(MM_TRANSPOSE, "{`a`: [[1, `Infinity`]], `dtype`: `int64`}"), MM_BAD_REQUEST);
    assert_string_equal(error.expected, "whole numbers from -9223372036854775808 to 9223372036854775807");
    assert_string_equal(error.got, "the string \"Infinity\"");
}

/* A body over the limits is rejected even if there is no memory. */
static void test_limits_before_memory(void **state) {
    close_budget();
    open_budget(0);
    assert_int_equal(decode(MM_MATMUL, "{`a`: [[1,2,3,4,5,6,7,8]]" B), MM_BUSY);
    assert_string_equal(error.field, "");
    assert_int_equal(decode(MM_MATMUL, "{`a`: [[1,2,3,4,5,6,7,8,9]]" B), MM_TOO_LARGE);
    assert_string_equal(error.field, "a");
}

/* In the position of the error, only LF ends a line, and a column is a character, not a byte. */
static void test_zero_byte(void **state) {
    static const char body[] = "{\"a\":\r\n \"\xe2\x82\xac\"\0, \"b\": [[1]]}";
    assert_int_equal(decode_bytes(MM_MATMUL, body, sizeof body - 1, &limits), MM_BAD_REQUEST);
    assert_non_null(strstr(error.detail,
                           "has a zero byte at line 2, column 5, but must have ',' or the closing bracket"));
    assert_true(error.line == 2 && error.column == 5);
}

/* The limits count bytes of the requested element type. */
static void test_sizes(void **state) {
    static const struct {
        const char *body;
        size_t dimension_max, bytes;
        enum mm_status status;
    } bodies[] = {
        {"{`a`: [[1, 2, 3]]}", 8, 24},
        {"{`a`: [[1, 2, 3]], `dtype`: `float64`}", 8, 48},
        {"{`dtype`: `int64`, `a`: [[1, 2, 3]]}", 8, 48},
        {"{`a`: [[1, 2, 3]]}", 8, 23, MM_TOO_LARGE},
        {"{`a`: [[1, 2, 3]], `dtype`: `float64`}", 8, 47, MM_TOO_LARGE},
        {"{`dtype`: `int64`, `a`: [[1, 2, 3]]}", 8, 47, MM_TOO_LARGE},
        {"{`a`: [[1, 2, 0.5]], `dtype`: `int32`}", 2, 1 << 10, MM_BAD_REQUEST},
        {"{`a`: [[1, 2, 5]], `dtype`: `int32`}", 2, 1 << 10, MM_TOO_LARGE},
        {"{`a`: [[1, 2, -1.7976931348623158e308]], `dtype`: `float64`}", 2, 1 << 10, MM_TOO_LARGE},
    };
    for (size_t index = 0; index < COUNT(bodies); index++) {
        const struct mm_limits within = {bodies[index].dimension_max, 1 << 10, bodies[index].bytes};
        const char *text = quoted(bodies[index].body);
        assert_int_equal(decode_bytes(MM_TRANSPOSE, text, strlen(text), &within), bodies[index].status);
        release();
    }
}

RUN_TESTS_BETWEEN(open_memory, close_memory, test_valid, test_refused, test_limits_before_memory,
                  test_zero_byte, test_sizes)
