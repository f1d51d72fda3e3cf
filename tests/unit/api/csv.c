/* Tests the CSV reader. Reads files, writes the matrices as CSV again and compares the texts. Also checks the
 * errors. */
#include "api/csv/csv.h"

#include "api/call.h"
#include "api/codec.h"
#include "tests/decode.h"
#include "tests/unit/memory.h"

/* `text` is a copy of exactly the file's size, so a sanitizer reports reads past its end. */
struct matrix {
    char *text;
    void *elements;
    struct mm_csv csv;
    struct mm_error error;
};

static enum mm_status read(const char *text, size_t bytes, enum mm_dtype dtype, struct matrix *matrix) {
    *matrix = (struct matrix){.text = malloc(bytes)};
    assert_non_null(matrix->text);
    memcpy(matrix->text, text, bytes);
    enum mm_status status = mm_csv_open("a", matrix->text, bytes, dtype, &matrix->csv, &matrix->error);
    if (status != MM_OK)
        return status;
    const size_t count = matrix->csv.rows * matrix->csv.cols;
    assert_true(count <= bytes + 1);
    matrix->elements = malloc(count * mm_dtype_bytes(dtype));
    assert_non_null(matrix->elements);
    return mm_csv_read(&matrix->csv, matrix->elements, &matrix->error);
}

static void release(struct matrix *matrix) {
    free(matrix->text);
    free(matrix->elements);
}

/* Returns the array as a CSV reply, which the next call overwrites. */
static const char *encode(enum mm_dtype dtype, struct mm_shape shape, void *elements) {
    static char text[1 << 10];
    const struct mm_answer answer = {
        .matrix = {.dtype = dtype, .data = elements}, .has_matrix = true, .shape = &shape};
    struct mm_reply_body body = {0};
    size_t bytes;
    assert_true(mm_csv_codec.reply_bytes_max(&shape, dtype, &bytes));
    assert_int_equal(mm_reservation_acquire(&memory, bytes, &body.buffer, NULL), MM_OK);
    mm_csv_codec.encode(&answer, &body);
    assert_true(body.bytes <= bytes && body.bytes < sizeof text);
    memcpy(text, body.buffer.data, body.bytes);
    text[body.bytes] = '\0';
    mm_reservation_free(&memory, &body.buffer);
    return text;
}

#define MARK "\xEF\xBB\xBF"
#define NUMPY_ONE "1.000000000000000000e+00"

static const struct {
    enum mm_dtype dtype;
    const char *text, *again;
} files[] = {
    {MM_FLOAT32, "1,2\n3,4\n", "1,2\n3,4\n"},
    {MM_FLOAT32, "1,2\r\n3,4", "1,2\n3,4\n"},
    {MM_FLOAT32, MARK "1;2\n3;4\r\n\r\n \t\n\n", "1,2\n3,4\n"},
    {MM_FLOAT32, " 1 ,\t-0 \t\n3.5e1 , 0.1\n", "1,-0.0\n35,0.1\n"},
    {MM_FLOAT32, "7", "7\n"},
    {MM_FLOAT32, "7\n8\n", "7\n8\n"},
    {MM_FLOAT32, "1,2,3 ", "1,2,3\n"},
    {MM_FLOAT32, "", ""},
    {MM_FLOAT32, MARK, ""},
    {MM_FLOAT32, "\n \r\n", ""},
    {MM_FLOAT32, "NaN,Infinity,-Infinity", "NaN,Infinity,-Infinity\n"},
    {MM_FLOAT32, "nan, inf ,-inf\n1,2,3\n", "NaN,Infinity,-Infinity\n1,2,3\n"},
    {MM_FLOAT32, NUMPY_ONE "," NUMPY_ONE, "1,1\n"},
    {MM_FLOAT64, "0.1,1.7976931348623157e308", "0.1,1.7976931348623157e+308\n"},
    {MM_FLOAT64, "nan\ninf", "NaN\nInfinity\n"},
    {MM_FLOAT16, "0.1,65504", "0.1,65500\n"},
    {MM_BFLOAT16, "0.1,-inf", "0.1,-Infinity\n"},
    {MM_FLOAT8_E4M3FN, "448,nan", "450,NaN\n"},
    {MM_FLOAT8_E5M2, "57344,inf", "60000,Infinity\n"},
    {MM_INT8, "-128,127," NUMPY_ONE, "-128,127,1\n"},
    {MM_UINT8, "0,255", "0,255\n"},
    {MM_BOOL, "true,False,0,1,TRUE," NUMPY_ONE, "1,0,0,1,1,1\n"},
    {MM_INT32, "-2147483648,2147483647", "-2147483648,2147483647\n"},
    {MM_INT64, "-9223372036854775808;9223372036854775807", "-9223372036854775808,9223372036854775807\n"},
};

static void test_files(void **state) {
    for (size_t index = 0; index < COUNT(files); index++) {
        struct matrix matrix;
        const enum mm_dtype dtype = files[index].dtype;
        if (read(files[index].text, strlen(files[index].text), dtype, &matrix) != MM_OK)
            fail_msg("%s: %s", files[index].text, matrix.error.detail);
        assert_string_equal(
            encode(dtype, mm_shape_of_matrix(matrix.csv.rows, matrix.csv.cols), matrix.elements),
            files[index].again);
        release(&matrix);
    }
}

#define HEADER "; if the line is a header, remove it, as tail -n +2 or np.loadtxt(..., skiprows=1) does"
#define DELIMITER "; separate numbers by commas or semicolons, as np.savetxt(..., delimiter=',') does"

static const struct {
    enum mm_dtype dtype;
    const char *text;
    uint64_t line, column;
    const char *got, *detail;
} refused[] = {
    {MM_FLOAT32, "x,y\n1,2", 1, 1, "'x'",
     "a[0][0], at line 1, column 1 of the CSV file, is 'x', but float32 takes "},
    {MM_FLOAT32, MARK "x,y\n1,2", 1, 1, "'x'", HEADER},
    {MM_FLOAT32, ",x\n0,1", 1, 1, "empty", HEADER},
    {MM_FLOAT32, "# title\n1,2\n", 1, 1, "'# title'", HEADER},
    {MM_FLOAT32, "; \xC3\xA4\n0;1", 1, 1, "empty", HEADER},
    {MM_FLOAT32, "1,2\n3, 4x \n", 2, 4, "'4x'", "a[1][1], at line 2, column 4 of the CSV file, is '4x'"},
    {MM_FLOAT32, "1,2\n3,\n", 2, 3, "empty", "is empty, but float32"},
    {MM_FLOAT32, "1\n\n2", 2, 1, "empty", "a[1][0]"},
    {MM_FLOAT32, "1,2\n3\n", 2, 1, "1",
     "row 1 of a, line 2 of the CSV file, has 1 field, but row 0 has 2, separated by ','"},
    {MM_FLOAT32, "1;2\n3;4\n5;6;7", 3, 1, "3", "has 3 fields, but row 0 has 2, separated by ';'"},
    {MM_FLOAT32, "1,2\n3;4\n", 2, 1, "1", "separated by ','"},
    {MM_FLOAT32, "1 2\n3 4", 1, 1, "'1 2'", DELIMITER},
    {MM_FLOAT32, "1\t2\n3\t4", 1, 1, "'1\t2'", DELIMITER},
    {MM_FLOAT32, "1,5;2\n3;4", 1, 1, "'1,5'",
     "is '1,5', but float32 takes numbers up to 3.40282347e+38, \"NaN\", "
     "\"Infinity\", \"-Infinity\"; write a decimal point, not a comma"},
    {MM_FLOAT32, "1,\"2\"", 1, 3, "'\"2\"'", "; write it without quotes"},
    {MM_FLOAT32, "+1", 1, 1, "'+1'", ""},
    {MM_FLOAT32, ".5", 1, 1, "'.5'", ""},
    {MM_FLOAT32, "1\r2", 1, 1, "'1\r2'", ""},
    {MM_FLOAT32, "infinit", 1, 1, "'infinit'", ""},
    {MM_FLOAT32, "3.4028236e38", 1, 1, "'3.4028236e38'", "takes numbers up to"},
    {MM_FLOAT32, "true", 1, 1, "'true'", ""},
    {MM_FLOAT8_E4M3FN, "1,inf", 1, 3, "'inf'", "numbers up to 448, \"NaN\""},
    {MM_INT32, "1,nan", 1, 3, "'nan'", "whole numbers"},
    {MM_INT32, "1,2147483648", 1, 3, "'2147483648'", "whole numbers"},
    {MM_INT64, "0.5", 1, 1, "'0.5'", "whole numbers"},
    {MM_BOOL, "1,2", 1, 3, "'2'", "0, 1, true and false"},
    {MM_FLOAT32, "123456789012345678901234567890123456789x", 1, 1,
     "'123456789012345678901234567890123456789x'", ""},
    {MM_FLOAT32, "1234567890123456789012345678901234567890x", 1, 1,
     "'1234567890123456789012345678901234567890'", ""},
};

static void test_refused(void **state) {
    for (size_t index = 0; index < COUNT(refused); index++) {
        struct matrix matrix;
        const struct mm_error *error = &matrix.error;
        const char *text = refused[index].text;
        const enum mm_status status = read(text, strlen(text), refused[index].dtype, &matrix);
        if (status != MM_BAD_REQUEST || error->status != status || error->line != refused[index].line ||
            error->column != refused[index].column || strcmp(error->field, "a") != 0 ||
            strcmp(error->got, refused[index].got) != 0 ||
            strstr(error->detail, refused[index].detail) == NULL)
            fail_msg("%s: %s at %zu, %zu, got %s: %s", text, mm_status_name(status), (size_t)error->line,
                     (size_t)error->column, error->got, error->detail);
        release(&matrix);
    }
}

/* The first line of each text counts as numbers, so the error must not mention a header. */
static void test_no_header(void **state) {
    static const char *const texts[] = {".5\n1",        "-nan\n1",   "+1\n2",  ",5\n1,2",
                                        " , -nan\n1,2", "(1+2j)\n1", "nan\n1", "true\n1"};
    for (size_t index = 0; index < COUNT(texts); index++) {
        struct matrix matrix;
        const enum mm_status status = read(texts[index], strlen(texts[index]), MM_INT32, &matrix);
        if (status != MM_BAD_REQUEST || strstr(matrix.error.detail, "header") != NULL)
            fail_msg("%s: %s", texts[index], matrix.error.detail);
        release(&matrix);
    }
}

static void test_zero_bytes(void **state) {
    struct matrix matrix;
    for (size_t at = 0; at < 4; at++) {
        char text[] = "1,2\n";
        text[at] = '\0';
        assert_int_equal(read(text, 4, MM_FLOAT32, &matrix), MM_BAD_REQUEST);
        release(&matrix);
    }
}

/* The file is part of a form with small limits: dimensions up to 3, and little memory. */
static void test_limits(void **state) {
    static const struct {
        const char *text;
        size_t memory_bytes_max, budget_bytes;
        enum mm_status status;
        const char *detail;
    } cases[] = {
        {"1,2,3\n4,5,6\n7,8,9\n", 72, 64, MM_OK, ""},
        {"1,2,3\n4,5,6\n7,8,9\n", 71, 64, MM_TOO_LARGE, "71"},
        {"1,2,3\n4,5,6\n7,8,9\n", 72, 35, MM_BUSY, "memory is full"},
        {"1,2,3,4\n", 72, 64, MM_TOO_LARGE, "columns"},
        {"1\n2\n3\n4\n", 72, 64, MM_TOO_LARGE, "rows"},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_limits limits = {
            .dimension_max = 3, .body_bytes_max = 1 << 10, .memory_bytes_max = cases[index].memory_bytes_max};
        close_budget();
        open_budget(cases[index].budget_bytes);
        char text[256];
        const int length =
            snprintf(text, sizeof text,
                     "--B\r\nContent-Disposition: form-data; name=a; filename=.csv\r\n\r\n%s\r\n--B--",
                     cases[index].text);
        const struct mm_body body = {.data = text, .bytes = (size_t)length};
        struct mm_call call;
        struct mm_error error = {0};
        mm_call_init(&call, MM_TRANSPOSE);
        const enum mm_status status = decode_whole(&mm_form_codec, "multipart/form-data; boundary=B",
                                                   &call.operands, &body, &limits, &memory, &error);
        if (status != cases[index].status || strstr(error.detail, cases[index].detail) == NULL)
            fail_msg("%s: %s: %s", cases[index].text, mm_status_name(status), error.detail);
        assert_true(status == MM_OK || call.operands.storage.data == NULL);
        mm_operands_release(&call.operands, &memory);
        assert_int_equal(memory.used_bytes, 0);
    }
}

static void test_replies(void **state) {
    size_t bytes;
    assert_string_equal(encode(MM_FLOAT32, mm_shape_of_matrix(2, 0), NULL), "\n\n");
    assert_string_equal(encode(MM_FLOAT32, mm_shape_of_matrix(0, 2), NULL), "");
    assert_string_equal(encode(MM_INT8, (struct mm_shape){1, {3}}, (int8_t[]){1, 2, 3}), "1,2,3\n");
    assert_string_equal(encode(MM_INT8, (struct mm_shape){0}, (int8_t[]){-7}), "-7\n");
    const struct mm_shape vast = mm_shape_of_matrix(SIZE_MAX / 16, 1), deep = {3, {1, 1, 1}};
    assert_false(mm_csv_codec.reply_bytes_max(&vast, MM_FLOAT64, &bytes));
    assert_int_equal(mm_codec_check_reply(&mm_csv_codec, &vast, NULL), MM_OK);
    assert_int_equal(mm_codec_check_reply(&mm_csv_codec, &deep, NULL), MM_NOT_ACCEPTABLE);
}

RUN_TESTS_BETWEEN(open_memory, close_memory, test_files, test_refused, test_no_header, test_zero_bytes,
                  test_limits, test_replies)
