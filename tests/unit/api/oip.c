/* Tests the bodies of infer requests (Open Inference Protocol): JSON, binary data, errors, and names of
 * models. */
#include "api/number/digits.h"
#include "api/oip/oip.h"
#include "tests/decode.h"
#include "tests/unit/memory.h"

#include <math.h>
#include <time.h>

static const struct mm_limits limits = {
    .dimension_max = 2147483647, .body_bytes_max = 1 << 20, .memory_bytes_max = 2 << 20};

static void init(struct mm_oip_call *call, const char *name) {
    struct mm_oip_model model;
    assert_true(mm_oip_model_read((struct mm_slice){name, strlen(name)}, &model));
    mm_oip_call_init(call, &model);
}

/* Decodes a body of JSON, in which ` stands for a quote, and 64 bytes of binary data after it. If
 * `tail_bytes` is negative, the whole body is JSON. The JSON begins so that the binary data are aligned. */
static enum mm_status decode(const char *json, int tail_bytes, struct mm_oip_call *call,
                             struct mm_error *error) {
    static _Alignas(64) char body[8192];
    const size_t length = strlen(json), lead = -length % MM_OIP_ALIGNMENT;
    memset(body, 0, sizeof body);
    for (size_t index = 0; index < length; index++)
        body[lead + index] = json[index] == '`' ? '"' : json[index];
    for (unsigned index = 0; index < 64; index++)
        body[lead + length + index] = (char)index;
    if (tail_bytes >= 0)
        call->json_bytes = length;
    call->lead_bytes = lead;
    const struct mm_body whole = {.data = body,
                                  .bytes = lead + length + (size_t)(tail_bytes < 0 ? 0 : tail_bytes)};
    return decode_whole(&mm_oip_codec, NULL, &call->call.operands, &whole, &limits, &memory, error);
}

#define INPUT(name, shape, type, rest)                                                                       \
    "{`name`:`" name "`,`shape`:[" shape "],`datatype`:`" type "`," rest "}"
#define A INPUT("A", "1,2", "FP32", "`data`:[1,2]")
#define B INPUT("B", "2,1", "FP32", "`data`:[3,4]")
#define BINARY(name, shape, type, bytes)                                                                     \
    INPUT(name, shape, type, "`parameters`:{`binary_data_size`:" bytes "}")
#define INPUTS(inputs) "{`inputs`:[" inputs "]}"

static const struct {
    const char *model, *json;
    int tail_bytes; /* -1: no binary data */
    enum mm_status status;
    const char *detail; /* what the error says; NULL: anything */
} cases[] = {
    {"matmul", INPUTS(A "," B), -1, MM_OK},
    {"matmul", INPUTS(B "," A), -1, MM_OK},
    {"matmul", " {`x`:{`y`:[[{}]]},`id`:``,`outputs`:[],`inputs`:[" A "," B "],`parameters`:null} ", -1,
     MM_OK},
    {"matmul", "{`inputs`:[" A "," B "],`outputs`:[{`name`:`C`,`x`:[1]}],`parameters`:{}}", 0, MM_OK},
    {"matmul", INPUTS("{`data`:[[1],[[2]]],`datatype`:`FP32`,`shape`:[1,2],`name`:`A`}," B), -1, MM_OK},
    {"matmul", INPUTS(INPUT("A", "0,2", "FP32", "`data`:[[],[]]") "," B), -1, MM_OK},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`data`:[NaN,-Infinity]") "," B), -1, MM_OK},
    {"matmul", INPUTS(INPUT("A", "1,1", "BOOL", "`data`:[true]") "," INPUT("B", "1,1", "BOOL", "`data`:[0]")),
     -1, MM_OK},
    {"matmul", INPUTS(BINARY("A", "1,2", "FP32", "8") "," BINARY("B", "2,1", "FP32", "8")), 16, MM_OK},
    {"matmul", INPUTS(BINARY("A", "0,2", "FP32", "0") "," B), -1, MM_OK},
    {"matmul", INPUTS(BINARY("BIAS", "1", "FP32", "4") "," A "," B "," BINARY("ADDEND", "1,1", "FP32", "4")),
     8, MM_OK},
    {"matmul.FP64", INPUTS(BINARY("A", "1,1", "FP64", "8") "," BINARY("B", "1,1", "FP64", "8")), 16, MM_OK},
    {"matmul", "{`parameters`:{`sequence_id`:[1],`priority`:3,`variant`:`naive`},`inputs`:[" A "," B "]}", -1,
     MM_OK},
    {"matmul", INPUTS(INPUT("A", "2,2", "FP32", "`parameters`:{`from`:`uniform(1)`}") "," B), -1, MM_OK},
    /* Malformed JSON */
    {"matmul", "", -1, MM_BAD_REQUEST, "empty"},
    {"matmul", "[]", -1, MM_BAD_REQUEST, "must have an object"},
    {"matmul", INPUTS(A "," B) "x", -1, MM_BAD_REQUEST, "nothing after the object"},
    {"matmul", "{`x`:[1 2]}", -1, MM_BAD_REQUEST, "',' or the closing bracket"},
    {"matmul", INPUTS(A "," B), 3, MM_BAD_REQUEST, "3 bytes follow the JSON"},
    {"matmul", "{`id`:`1`,`id`:`1`}", -1, MM_BAD_REQUEST, "id is given twice"},
    {"matmul", "{`inputs`:[1]}", -1, MM_BAD_REQUEST, "inputs is an array, but must be an array of objects"},
    {"matmul", "{`inputs`:{}}", -1, MM_BAD_REQUEST, "inputs is"},
    {"matmul", "{`id`:1}", -1, MM_BAD_REQUEST, "id is 1, but must be a string"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`data`:[1,2]]") "," B), -1, MM_BAD_REQUEST},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`data`:[1 2]") "," B), -1, MM_BAD_REQUEST, "',' or ']'"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`data`:[1,]") "," B), -1, MM_BAD_REQUEST, "a number"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`data`:[1,2,[]x]") "," B), -1, MM_BAD_REQUEST, "',' or ']'"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`data`:[1,`NaN`]") "," B), -1, MM_BAD_REQUEST, "NaN"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`data`:[1,{}]") "," B), -1, MM_BAD_REQUEST,
     "array of numbers"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`data`:3") "," B), -1, MM_BAD_REQUEST, "data is 3"},
    {"matmul", "{`inputs`:[{`data`:[1,2", -1, MM_BAD_REQUEST, "array of numbers"},
    /* Inputs */
    {"matmul", "{}", -1, MM_BAD_REQUEST, "input A is missing"},
    {"matmul", INPUTS(A), -1, MM_BAD_REQUEST, "input B is missing"},
    {"matmul", INPUTS(A "," A), -1, MM_BAD_REQUEST, "given twice"},
    {"matmul", INPUTS(INPUT("X", "1", "FP32", "`data`:[1]")), -1, MM_BAD_REQUEST, "'X'"},
    {"matmul", INPUTS("{`name`:`A`,`shape`:[1,2]}"), -1, MM_BAD_REQUEST, "no datatype"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP8", "`data`:[1,2]") "," B), -1, MM_UNSUPPORTED, "'FP8'"},
    {"matmul", INPUTS(INPUT("A", "1,-2", "FP32", "`data`:[1,2]") "," B), -1, MM_BAD_REQUEST, "whole numbers"},
    {"matmul", INPUTS(INPUT("A", "1,1,1,1,1,1,1,1,2", "FP32", "`data`:[1,2]") "," B), -1, MM_BAD_REQUEST,
     "at most 8"},
    {"matmul", INPUTS(INPUT("A", "1,[$]", "FP32", "`data`:[1,2]") "," B), -1, MM_BAD_REQUEST,
     "whole numbers"},
    {"matmul", INPUTS(INPUT("A", "1,", "FP32", "`data`:[1,2]") "," B), -1, MM_BAD_REQUEST, "whole numbers"},
    {"matmul", INPUTS(INPUT("A", "1,9e9", "FP32", "`data`:[1,2]") "," B), -1, MM_TOO_LARGE},
    {"matmul", INPUTS(INPUT("A", "1,9", "FP32", "`data`:[1,2]") "," B), -1, MM_BAD_REQUEST,
     "fewer elements than 9"},
    {"matmul", INPUTS(INPUT("A", "1,1", "FP32", "`data`:[1,2]") "," B), -1, MM_BAD_REQUEST,
     "more elements than 1"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP64", "`data`:[1,2]") "," B), -1, MM_BAD_REQUEST, "B is FP32"},
    {"matmul.FP64", INPUTS(A "," B), -1, MM_BAD_REQUEST, "FP64 as in the model"},
    {"matmul", INPUTS(A "," B "," INPUT("BIAS", "1", "FP64", "`data`:[1]")), -1, MM_UNSUPPORTED, "BIAS"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`data`:[1,1e39]") "," B), -1, MM_BAD_REQUEST,
     "element 1 of A is 1e39"},
    {"matmul", INPUTS(INPUT("A", "1,1", "INT8", "`data`:[128]") "," INPUT("B", "1,1", "INT8", "`data`:[0]")),
     -1, MM_BAD_REQUEST, "INT8 cannot hold"},
    {"matmul", INPUTS(INPUT("A", "1,1", "FP16", "`data`:[1]") "," BINARY("B", "1,1", "FP16", "2")), 2,
     MM_BAD_REQUEST, "only as binary"},
    {"matmul", INPUTS(BINARY("A", "1,1", "BF16", "2") "," BINARY("B", "1,1", "BF16", "2")), 4, MM_BAD_REQUEST,
     "C is BF16"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`x`:1") "," B), -1, MM_BAD_REQUEST, "exactly one of"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`data`:[1,2],`parameters`:{`binary_data_size`:8}") "," B), 8,
     MM_BAD_REQUEST, "exactly one of"},
    {"matmul", INPUTS(BINARY("A", "1,2", "FP32", "12") "," B), 12, MM_BAD_REQUEST, "make 8"},
    {"matmul", INPUTS(BINARY("A", "1,2", "FP32", "8") "," B), 7, MM_BAD_REQUEST, "7 bytes follow"},
    {"matmul", INPUTS(BINARY("A", "1,2", "FP32", "8") "," B), -1, MM_BAD_REQUEST,
     "Inference-Header-Content-Length"},
    {"matmul", INPUTS(BINARY("A", "1,2", "FP32", "-1") "," B), -1, MM_BAD_REQUEST, "binary_data_size is -1"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`parameters`:{`shared_memory_region`:`x`}") "," B), -1,
     MM_BAD_REQUEST, "takes: binary_data_size, from"},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`parameters`:{`from`:`x y`}") "," B), -1, MM_UNSUPPORTED},
    {"matmul", INPUTS(INPUT("A", "1,2", "FP32", "`parameters`:{`from`:`x`}") "," B), -1, MM_UNSUPPORTED,
     "no matrices"},
    /* Outputs and parameters */
    {"matmul", "{`outputs`:[{`name`:`D`}]}", -1, MM_BAD_REQUEST, "only output is C"},
    {"matmul", "{`outputs`:[{`name`:`C`,`parameters`:{`classification`:1}}]}", -1, MM_BAD_REQUEST,
     "binary_data"},
    {"matmul", "{`parameters`:{`x`:1}}", -1, MM_BAD_REQUEST, "'x' is unknown"},
    {"matmul", "{`parameters`:{`timeout`:-1}}", -1, MM_BAD_REQUEST, "microseconds"},
    {"matmul.naive", "{`parameters`:{`variant`:`blas`}}", -1, MM_BAD_REQUEST, "twice"},
};

static void test_decode(void **state) {
    unsigned failures = 0;
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_error error = {0};
        struct mm_oip_call call;
        init(&call, cases[index].model);
        const enum mm_status status = decode(cases[index].json, cases[index].tail_bytes, &call, &error);
        if (status != cases[index].status ||
            (cases[index].detail != NULL && strstr(error.detail, cases[index].detail) == NULL)) {
            print_error("%s: %s, %s\n", cases[index].json, mm_status_name(status), error.detail);
            failures++;
        }
        mm_operands_release(&call.call.operands, &memory);
    }
    assert_int_equal(failures, 0);
}

static const float *elements_of(const struct mm_oip_call *call, enum mm_operand_index index) {
    return call->call.operands.of[index].view.data;
}

static void test_elements(void **state) {
    struct mm_oip_call call;
    struct mm_error error = {0};
    init(&call, "matmul");
    assert_int_equal(decode(INPUTS(INPUT("B", "2,1", "FP32", "`data`:[[-0.0, 3e0] ]") "," INPUT(
                                "A", "1,2", "FP32", "`data`: [ Infinity,NaN]")),
                            -1, &call, &error),
                     MM_OK);
    assert_true(elements_of(&call, MM_OPERAND_A)[0] == INFINITY &&
                isnan(elements_of(&call, MM_OPERAND_A)[1]));
    assert_true(signbit(elements_of(&call, MM_OPERAND_B)[0]) && elements_of(&call, MM_OPERAND_B)[1] == 3);
    mm_operands_release(&call.call.operands, &memory);

    /* Binary data stay in the body. The data of A begin at a multiple of 64 bytes. */
    init(&call, "matmul");
    assert_int_equal(decode(INPUTS(BINARY("A", "1,2", "FP32", "8") "," BINARY("B", "2,1", "FP32", "8")), 16,
                            &call, &error),
                     MM_OK);
    assert_int_equal((uintptr_t)elements_of(&call, MM_OPERAND_A) % 64, 0);
    assert_ptr_equal(elements_of(&call, MM_OPERAND_B), elements_of(&call, MM_OPERAND_A) + 2);
    assert_true(call.call.operands.views_body && memory.used_bytes == 0);

    /* An operand at an odd address is copied. The bias lies between A and B. */
    init(&call, "matmul");
    assert_int_equal(
        decode("{`parameters`:{`result_dtype`:`float16`,`binary_data_output`:true},`inputs`:[" BINARY(
                   "A", "1,1", "FP32", "4") "," BINARY("BIAS", "1", "FP16", "2") "," BINARY("B", "1,1",
                                                                                            "FP32", "4") "]}",
               10, &call, &error),
        MM_OK);
    assert_int_equal((uintptr_t)elements_of(&call, MM_OPERAND_B) % 4, 0);
    assert_memory_equal(elements_of(&call, MM_OPERAND_B), "\6\7\10\11", 4);
    assert_true(call.is_binary);
    mm_operands_release(&call.call.operands, &memory);
}

static void test_parameters(void **state) {
    struct mm_oip_call call;
    struct mm_error error = {0};
    init(&call, "matmul.naive");
    assert_int_equal(decode("{`id`:`\\u00e9 x`,`parameters`:{`timeout`:1001,`alpha`:2,`transpose_a`:true,"
                            "`activation`:`relu`},`outputs`:[{`name`:`C`,`parameters`:{`binary_data`:true}}],"
                            "`inputs`:[" INPUT("A", "2,1", "FP32", "`data`:[1,2]") "," B "]}",
                            -1, &call, &error),
                     MM_OK);
    assert_string_equal(call.id, "\303\251 x");
    assert_string_equal(call.call.variant, "naive");
    assert_int_equal(call.call.timeout_ms, 2);
    assert_int_equal(call.call.activation, MM_ACTIVATION_RELU);
    assert_true(call.is_binary && call.call.operands.of[MM_OPERAND_A].is_transposed);
    mm_operands_release(&call.call.operands, &memory);

    /* An output's own parameter comes before the default. */
    init(&call, "matmul");
    assert_int_equal(decode("{`outputs`:[{`name`:`C`,`parameters`:{`binary_data`:false}}],`inputs`:[" A "," B
                            "],`parameters`:{`binary_data_output`:true}}",
                            -1, &call, &error),
                     MM_OK);
    assert_false(call.is_binary);
    mm_operands_release(&call.call.operands, &memory);
}

/* After MM_BUSY, the same body can be decoded again. */
static void test_busy(void **state) {
    struct mm_oip_call call;
    struct mm_error error = {0};
    const size_t all = budget.part_bytes[MM_BUDGET_MAIN];
    budget.part_bytes[MM_BUDGET_MAIN] = 16;
    init(&call, "matmul");
    assert_int_equal(decode(INPUTS(A "," B), -1, &call, &error), MM_BUSY);
    budget.part_bytes[MM_BUDGET_MAIN] = all;
    assert_int_equal(decode(INPUTS(A "," B), -1, &call, &error), MM_OK);
    mm_operands_release(&call.call.operands, &memory);
}

static void test_long(void **state) {
    static char json[4096];
    struct mm_oip_call call;
    struct mm_error error = {0};
    init(&call, "matmul");
    sprintf(json, "{`id`:`%0256d`,`inputs`:[" A "," B "]}", 1);
    assert_int_equal(decode(json, -1, &call, &error), MM_OK);
    assert_int_equal(strlen(call.id), 256);
    mm_operands_release(&call.call.operands, &memory);
    sprintf(json, "{`id`:`%0257d`,`inputs`:[" A "," B "]}", 1);
    init(&call, "matmul");
    assert_int_equal(decode(json, -1, &call, &error), MM_BAD_REQUEST);
    const struct mm_body empty = {0};
    init(&call, "matmul");
    call.json_bytes = 3;
    assert_int_equal(decode_whole(&mm_oip_codec, NULL, &call.call.operands, &empty, &limits, &memory, &error),
                     MM_BAD_REQUEST);
    assert_non_null(strstr(error.detail, "only 0 bytes"));

    /* Spaces belong to the head, but elements do not. */
    char *spaces = malloc(MM_OIP_HEAD_MAX + 100);
    assert_non_null(spaces);
    memset(spaces, ' ', MM_OIP_HEAD_MAX);
    strcpy(spaces + MM_OIP_HEAD_MAX, "{}");
    const struct mm_body long_head = {.data = spaces, .bytes = MM_OIP_HEAD_MAX + 2};
    init(&call, "matmul");
    assert_int_equal(
        decode_whole(&mm_oip_codec, NULL, &call.call.operands, &long_head, &limits, &memory, &error),
        MM_TOO_LARGE);
    free(spaces);
}

/* The time for nested arrays is proportional to their length, even if brackets are in strings. */
static void test_brackets(void **state) {
    static const char begin[] = "{\"x\":[", end[] = "0]}", arrays[] = "[\"[\"],";
    enum { COPIES = 100000 };
    static char json[sizeof begin + COPIES * sizeof arrays + sizeof end];
    struct mm_oip_call call;
    struct mm_error error = {0};
    char *at = mm_put_text(json, begin);
    for (int copy = 0; copy < COPIES; copy++)
        at = mm_put_text(at, arrays);
    at = mm_put_text(at, end);
    const struct mm_body body = {.data = json, .bytes = (size_t)(at - json)};
    init(&call, "matmul");
    const clock_t began = clock();
    assert_int_equal(decode_whole(&mm_oip_codec, NULL, &call.call.operands, &body, &limits, &memory, &error),
                     MM_BAD_REQUEST);
    assert_non_null(strstr(error.detail, "input A is missing"));
    assert_true(clock() - began < 5 * CLOCKS_PER_SEC);
}

static void test_models(void **state) {
    static const struct {
        const char *name, *variant; /* variant NULL: no model */
        int dtype;                  /* -1: none */
    } names[] = {
        {"matmul", "auto", -1},
        {"matmul.FP16", "auto", MM_FLOAT16},
        {"matmul.tiled_32", "tiled_32", -1},
        {"matmul.blas.BOOL", "blas", MM_BOOL},
        {"matmul.FP32.FP64", "FP32", MM_FLOAT64},
        {"matmul.auto"},
        {"matmul."},
        {"matmul..FP32"},
        {"matmulx"},
        {"matmu"},
        {""},
        {"xmatmul"},
    };
    for (size_t index = 0; index < COUNT(names); index++) {
        struct mm_oip_model model;
        char text[MM_OIP_MODEL_MAX];
        const struct mm_slice name = {names[index].name, strlen(names[index].name)};
        assert_int_equal(mm_oip_model_read(name, &model), names[index].variant != NULL);
        if (names[index].variant == NULL)
            continue;
        assert_string_equal(model.variant, names[index].variant);
        assert_int_equal(model.is_typed ? (int)model.dtype : -1, names[index].dtype);
        *mm_oip_put_model(text, &model) = '\0';
        assert_string_equal(text, names[index].name);
    }
}

RUN_TESTS_BETWEEN(open_memory, close_memory, test_decode, test_elements, test_parameters, test_busy,
                  test_long, test_brackets, test_models)
