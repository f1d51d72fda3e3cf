/* api/form: forms of two files and parameters, the views that they become, and the same bodies cut short and
 * mutated, of which none may do harm. */
#include "api/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BODY_MAX = 2048, MUTATIONS = 100000 };

static const struct mm_limits limits = {
    .dimension_max = 1000000, .body_bytes_max = 1 << 20, .memory_bytes_max = 1 << 20};

static const struct mm_codec *codec(void) {
    const struct mm_codec *codec = NULL;
    struct mm_error error;
    assert_int_equal(
        mm_codec_for_request("multipart/form-data; boundary=B", MM_MATMUL, false, false, 0, &codec, &error),
        MM_OK);
    return codec;
}

/* A body being written. */
struct text {
    char bytes[BODY_MAX];
    size_t length;
};

static void add(struct text *text, const void *bytes, size_t length) {
    assert_true(text->length + length <= sizeof text->bytes);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static void add_head(struct text *text, const char *name) {
    char head[128];
    add(text, head,
        (size_t)snprintf(head, sizeof head, "--B\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n",
                         name));
}

/* A part with a file of so many floats, counted up from `first`. */
static void add_file(struct text *text, const char *name, const char *descr, const char *order,
                     const char *shape, size_t count, float first) {
    char dict[256];
    int length = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr,
                          order, shape);
    add_head(text, name);
    add(text, "\x93NUMPY\x01\x00", 8);
    add(text, (const char[]){(char)length, 0}, 2);
    add(text, dict, (size_t)length);
    for (size_t index = 0; index < count; index++) {
        float value = first + (float)index;
        add(text, &value, sizeof value);
    }
    add(text, "\r\n", 2);
}

static void add_field(struct text *text, const char *name, const char *value) {
    add_head(text, name);
    add(text, value, strlen(value));
    add(text, "\r\n", 2);
}

static void end(struct text *text) {
    add(text, "--B--\r\n", 7);
}

/* Sums what the views show, through floats, so that sanitizers see every access. */
static float sum(const struct mm_matrix *matrix) {
    const float *elements = matrix->data;
    float total = 0;
    for (size_t index = 0; index < matrix->rows * matrix->cols; index++)
        total += elements[index];
    return total;
}

/* Decodes a copy in memory of its own size, whose address is `shift` past an aligned one. */
static enum mm_status decode(const void *body, size_t bytes, size_t shift, struct mm_call *call, float *sums,
                             struct mm_error *error) {
    struct mm_buffers *buffers = mm_buffers_open(0);
    char *memory = malloc(bytes + shift);
    assert_true(memory != NULL || bytes + shift == 0);
    if (bytes > 0)
        memcpy(memory + shift, body, bytes);
    const struct mm_body view = {
        .data = memory + shift, .bytes = bytes, .content_type = "multipart/form-data; boundary=B"};
    enum mm_status status = codec()->decode(call, &view, &limits, buffers, error);
    if (status == MM_OK) {
        sums[0] = sum(&call->a);
        sums[1] = sum(&call->b);
    }
    mm_call_release(call, buffers);
    free(memory);
    mm_buffers_close(buffers);
    return status;
}

static const struct {
    const char *a_order;
    const char *a_shape;
    const char *b_order;
    const char *b_shape;
    size_t counts[2];
} good[] = {
    {"False", "(2, 3)", "False", "(3, 1)", {6, 3}}, {"True", "(2, 3)", "False", "(3, 1)", {6, 3}},
    {"False", "(2, 3)", "True", "(3, 1)", {6, 3}},  {"True", "(2, 3)", "True", "(3, 1)", {6, 3}},
    {"False", "(0, 3)", "True", "(3, 0)", {0, 0}},  {"True", "(0, 0)", "False", "(0, 5)", {0, 0}},
};

/* Wherever the files begin, the elements are read whole and aligned. */
static void test_good(void **state) {
    (void)state;
    for (size_t index = 0; index < sizeof good / sizeof good[0]; index++) {
        for (size_t shift = 0; shift < 8; shift++) {
            struct text text = {.length = 0};
            struct mm_call call;
            struct mm_error error = {0};
            float sums[2] = {0};
            add_file(&text, "a", "<f4", good[index].a_order, good[index].a_shape, good[index].counts[0], 1);
            add_field(&text, "variant", "naive");
            add_file(&text, "b", "<f4", good[index].b_order, good[index].b_shape, good[index].counts[1], 10);
            end(&text);
            mm_call_init(&call, MM_MATMUL);
            if (decode(text.bytes, text.length, shift, &call, sums, &error) != MM_OK)
                fail_msg("row %zu, shift %zu: %s", index, shift, error.detail);
            assert_true(call.a_column_major == (good[index].a_order[0] == 'T'));
            assert_true(call.b_column_major == (good[index].b_order[0] == 'T'));
            assert_string_equal(call.names[MM_PARAMETER_VARIANT], "naive");
            assert_true(sums[0] == (good[index].counts[0] > 0 ? 21.0f : 0.0f));
            assert_true(sums[1] == (good[index].counts[1] > 0 ? 33.0f : 0.0f));
        }
    }
}

/* The parts that the forms below are made of: files, and fields with a value. */
static const struct {
    char letter;
    const char *name;
    const char *value; /* NULL: a file */
    const char *descr;
    const char *order;
    const char *shape;
    size_t count;
} pieces[] = {
    {'a', "a", NULL, "<f4", "False", "(2, 3)", 6},
    {'b', "b", NULL, "<f4", "True", "(3, 1)", 3},
    {'8', "a", NULL, "<f8", "False", "(2, 3)", 12},
    {'9', "b", NULL, "<f8", "False", "(3, 1)", 6},
    {'s', "a", NULL, "<f4", "False", "(2, 3)", 5},
    {'l', "a", NULL, "<f4", "False", "(2, 3)", 7},
    {'i', "a", NULL, "<i4", "True", "(2, 3)", 6},
    {'I', "a", NULL, "<i8", "False", "(2, 3)", 12},
    {'h', "a", NULL, "<f2", "False", "(2, 3)", 3},
    {'e', "a", NULL, ">i4", "False", "(2, 3)", 6},
    {'w', "a", NULL, "<f4", "True", "(1000001, 3)", 6},
    {'W', "a", NULL, "<f4", "True", "(1000000, 1000000)", 6},
    {'v', "variant", "naive", NULL, NULL, NULL, 0},
    {'V', "variant", "tiled_8", NULL, NULL, NULL, 0},
    {'x', "extra", "1", NULL, NULL, NULL, 0},
    {'m', "m", "99999999999", NULL, NULL, NULL, 0},
    {'L', "lda", "3", NULL, NULL, NULL, 0},
    {'t', "transpose_a", "yes", NULL, NULL, NULL, 0},
    {'d', "dtype", "float32", NULL, NULL, NULL, 0},
    {'D', "dtype", "float64", NULL, NULL, NULL, 0},
};

static void make(const char *parts, struct text *text) {
    text->length = 0;
    for (; *parts != '\0'; parts++) {
        size_t index = 0;
        while (pieces[index].letter != *parts)
            assert_true(++index < sizeof pieces / sizeof pieces[0]);
        if (pieces[index].value != NULL)
            add_field(text, pieces[index].name, pieces[index].value);
        else
            add_file(text, pieces[index].name, pieces[index].descr, pieces[index].order, pieces[index].shape,
                     pieces[index].count, 1);
    }
    end(text);
}

struct form {
    const char *parts;
    enum mm_status status;
    const char *field;
    const char *detail;
};

static const struct form forms[] = {
    {"ab", MM_OK, "", ""},
    {"ba", MM_OK, "", ""},
    {"Vabv", MM_BAD_REQUEST, "variant", "'tiled_8'"},
    {"vabv", MM_OK, "", ""},
    {"a", MM_BAD_REQUEST, "b", "no part named b"},
    {"b", MM_BAD_REQUEST, "a", "no part named a"},
    {"", MM_BAD_REQUEST, "a", "no part named a"},
    {"aab", MM_BAD_REQUEST, "a", "two parts named a"},
    {"bab", MM_BAD_REQUEST, "b", "two parts named b"},
    {"abx", MM_BAD_REQUEST, "extra", "'extra'"},
    {"abm", MM_BAD_REQUEST, "m", "'m' is no parameter here"},
    {"abL", MM_BAD_REQUEST, "lda", "'lda' is no parameter here"},
    {"abt", MM_BAD_REQUEST, "transpose_a", "true, false, 1 or 0"},
    {"abd", MM_OK, "", ""},
    {"abD", MM_BAD_REQUEST, "dtype", "float64"},
    {"8b", MM_BAD_REQUEST, "b", "float64"},
    {"89", MM_UNSUPPORTED, "dtype", "float64"},
    {"89D", MM_UNSUPPORTED, "dtype", "float64"},
    {"89d", MM_BAD_REQUEST, "dtype", "float64"},
    {"sb", MM_BAD_REQUEST, "a", "takes 24 bytes, but 20 bytes follow"},
    {"lb", MM_BAD_REQUEST, "a", "takes 24 bytes, but 28 bytes follow"},
    {"wb", MM_TOO_LARGE, "a", "the limit is 1000000"},
    {"Wb", MM_TOO_LARGE, "a", "the size in bytes"},
    {"ib", MM_BAD_REQUEST, "a", "must be little-endian floating-point numbers, as '<f4' is"},
    {"hb", MM_BAD_REQUEST, "b", "both must be of one type"},
};

static const struct form transpositions[] = {
    {"a", MM_OK, "", ""},
    {"8", MM_OK, "", ""},
    {"i", MM_OK, "", ""},
    {"I", MM_OK, "", ""},
    {"va", MM_OK, "", ""},
    {"8D", MM_OK, "", ""},
    {"ab", MM_BAD_REQUEST, "b", "'b' is no parameter here; there are: variant, backend, dtype, timeout_ms"},
    {"b", MM_BAD_REQUEST, "b", "'b' is no parameter here"},
    {"", MM_BAD_REQUEST, "a", "no part named a"},
    {"aa", MM_BAD_REQUEST, "a", "two parts named a"},
    {"at", MM_BAD_REQUEST, "transpose_a", "'transpose_a' is no parameter here"},
    {"am", MM_BAD_REQUEST, "m", "'m' is no parameter here"},
    {"h", MM_UNSUPPORTED, "dtype", "'float16', but there is only: float32, float64, int32, int64"},
    {"e", MM_BAD_REQUEST, "a", "'>i4', but must be little-endian numbers of 4 or 8 bytes"},
    {"id", MM_BAD_REQUEST, "dtype", "dtype is 'float32', but a is a file of int32 ('<i4'), which says it"},
    {"s", MM_BAD_REQUEST, "a", "takes 24 bytes, but 20 bytes follow"},
    {"w", MM_TOO_LARGE, "a", "the limit is 1000000"},
};

static void check_form(enum mm_op op, const struct form *form) {
    struct text text;
    struct mm_call call;
    struct mm_error error = {0};
    float sums[2];
    make(form->parts, &text);
    mm_call_init(&call, op);
    enum mm_status status = decode(text.bytes, text.length, 0, &call, sums, &error);
    if (status != form->status || strcmp(error.field, form->field) != 0 ||
        strstr(error.detail, form->detail) == NULL)
        fail_msg("%s %s: %s, field '%s': %s", mm_op_name(op), form->parts, mm_status_name(status),
                 error.field, error.detail);
}

static void test_forms(void **state) {
    (void)state;
    for (size_t index = 0; index < sizeof forms / sizeof forms[0]; index++)
        check_form(MM_MATMUL, &forms[index]);
    for (size_t index = 0; index < sizeof transpositions / sizeof transpositions[0]; index++)
        check_form(MM_TRANSPOSE, &transpositions[index]);
}

/* The file says the type and the order, and eight bytes an element are aligned to eight wherever they begin.
 */
static void test_transposition(void **state) {
    (void)state;
    struct mm_buffers *buffers = mm_buffers_open(0);
    for (size_t shift = 0; shift < 8; shift++) {
        struct text text;
        make("vI", &text);
        char *memory = malloc(text.length + shift);
        assert_non_null(memory);
        memcpy(memory + shift, text.bytes, text.length);
        const struct mm_body body = {
            .data = memory + shift, .bytes = text.length, .content_type = "multipart/form-data; boundary=B"};
        struct mm_call call;
        mm_call_init(&call, MM_TRANSPOSE);
        assert_int_equal(codec()->decode(&call, &body, &limits, buffers, NULL), MM_OK);
        assert_true(call.a.dtype == MM_INT64 && call.a.rows == 2 && call.a.cols == 3);
        assert_int_equal((uintptr_t)call.a.data % sizeof(int64_t), 0);
        const float *halves = call.a.data;
        for (size_t index = 0; index < 12; index++)
            assert_true(halves[index] == (float)(index + 1));
        assert_false(call.a_column_major);
        assert_int_equal(mm_matrix_bytes(&call.b), 0);
        free(memory);
    }
    mm_buffers_close(buffers);
}

static void test_truncated(void **state) {
    (void)state;
    struct text text;
    make("avb", &text);
    for (size_t length = 0; length + 2 < text.length; length++) {
        struct mm_call call;
        struct mm_error error = {0};
        float sums[2];
        mm_call_init(&call, MM_MATMUL);
        assert_int_equal(decode(text.bytes, length, 0, &call, sums, &error), MM_BAD_REQUEST);
        assert_true(error.detail[0] != '\0');
    }
}

/* A generator of its own, so that every run tries the same bodies. */
static uint32_t next_random(uint32_t *random) {
    *random = *random * 1664525u + 1013904223u;
    return *random >> 8;
}

/* One to four bytes changed, dropped or doubled: read or refused, but nothing else. */
static void test_mutated(void **state) {
    (void)state;
    uint32_t random = 1;
    size_t read = 0;
    for (unsigned round = 0; round < MUTATIONS; round++) {
        struct text text;
        struct mm_call call;
        struct mm_error error = {0};
        float sums[2];
        make(round % 2 == 0 ? "avb" : "ba", &text);
        for (uint32_t left = 1 + next_random(&random) % 4; left > 0; left--) {
            static const char likely[] = "\r\n-B\"';:(){},0129LT\x93";
            size_t at = next_random(&random) % text.length;
            size_t behind = text.length - at;
            switch (next_random(&random) % 4) {
            case 0:
                text.bytes[at] = (char)next_random(&random);
                break;
            case 1:
                text.bytes[at] = likely[next_random(&random) % sizeof likely];
                break;
            case 2:
                memmove(text.bytes + at, text.bytes + at + 1, behind - 1);
                text.length--;
                break;
            default:
                memmove(text.bytes + at + 1, text.bytes + at, behind);
                text.length++;
                break;
            }
        }
        mm_call_init(&call, MM_MATMUL);
        enum mm_status status = decode(text.bytes, text.length, 0, &call, sums, &error);
        if (status != MM_OK && status != MM_BAD_REQUEST && status != MM_TOO_LARGE && status != MM_UNSUPPORTED)
            fail_msg("round %u: %s", round, mm_status_name(status));
        read += status == MM_OK;
    }
    /* Those that touch an element alone are read; the others are the point. */
    assert_in_range(read, 1, MUTATIONS / 2);
}

/* A product that conforms in the caller's shapes stays the same product when it is turned. */
static void test_turn(void **state) {
    (void)state;
    for (unsigned flags = 0; flags < 16; flags++) {
        struct mm_call call;
        mm_call_init(&call, MM_MATMUL);
        bool transpose_a = flags & 1, transpose_b = flags & 2;
        call.a = mm_matrix_dense(MM_FLOAT32, transpose_a ? 3 : 2, transpose_a ? 2 : 3, NULL);
        call.b = mm_matrix_dense(MM_FLOAT32, transpose_b ? 5 : 3, transpose_b ? 3 : 5, NULL);
        call.a_column_major = flags & 4;
        call.b_column_major = flags & 8;
        struct mm_product product = {
            .a = call.a, .b = call.b, .transpose_a = transpose_a, .transpose_b = transpose_b};
        assert_int_equal(mm_product_conform(&product, NULL), MM_OK);
        mm_call_turn(&call, &product);
        assert_true(product.transpose_a == (transpose_a != call.a_column_major));
        assert_true(product.transpose_b == (transpose_b != call.b_column_major));
        assert_true(product.a.cols == product.a.ld && product.b.cols == product.b.ld);
        assert_int_equal(mm_product_conform(&product, NULL), MM_OK);
        assert_true(product.m == 2 && product.k == 3 && product.n == 5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good),          cmocka_unit_test(test_forms),
                                       cmocka_unit_test(test_transposition), cmocka_unit_test(test_truncated),
                                       cmocka_unit_test(test_mutated),       cmocka_unit_test(test_turn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
