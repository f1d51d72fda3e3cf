/* A matrix that is written in parts has the very text of one that is written at once, whoever writes which
 * part first. */
#include "api/codec.h"
#include "api/json_matrix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Helpers that take the last part first. */
struct backwards {
    struct mm_helpers head; /* first */
    unsigned count;         /* of the last call; 0: none */
};

static void run_backwards(struct mm_helpers *helpers, unsigned count, void (*one)(void *data, unsigned index),
                          void *data) {
    ((struct backwards *)helpers)->count = count;
    while (count-- > 0)
        one(data, count);
}

/* Texts of all lengths, or the longest alone. */
static void fill(const struct mm_matrix *matrix, bool longest) {
    for (size_t index = 0; index < matrix->rows * matrix->cols; index++)
        switch (matrix->dtype) {
        case MM_FLOAT32:
            ((float *)matrix->data)[index] = longest ? -1.45123456e-38f : (float)(index % 977) / 32.0f;
            break;
        case MM_FLOAT64:
            ((double *)matrix->data)[index] =
                longest ? -2.2250738585072014e-308 : (double)(index % 977) / 3.0;
            break;
        case MM_INT32:
            ((int32_t *)matrix->data)[index] = longest ? INT32_MIN : (int32_t)(index % 977);
            break;
        default:
            ((int64_t *)matrix->data)[index] = longest ? INT64_MIN : (int64_t)(index % 977);
        }
}

/* In room of just the bytes that are asked for, as a sanitizer sees. */
static char *write(const struct mm_matrix *matrix, struct mm_helpers *helpers, size_t *length) {
    size_t bytes;
    assert_true(mm_json_matrix_text_bytes(matrix, &bytes));
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, '#', bytes);
    *length = mm_json_matrix_write(matrix, helpers, text);
    assert_true(*length <= bytes);
    return text;
}

static void expect(enum mm_dtype dtype, size_t rows, size_t cols, unsigned parts) {
    struct mm_matrix matrix = mm_matrix_dense(dtype, rows, cols, NULL);
    matrix.data = malloc(mm_matrix_bytes(&matrix));
    assert_non_null(matrix.data);
    for (int longest = 0; longest < 2; longest++) {
        struct backwards helpers = {.head.run = run_backwards};
        size_t length, expected_length;
        fill(&matrix, longest != 0);
        char *expected = write(&matrix, NULL, &expected_length);
        char *text = write(&matrix, &helpers.head, &length);
        assert_int_equal(helpers.count, parts);
        assert_int_equal(length, expected_length);
        assert_memory_equal(text, expected, length);
        free(expected);
        free(text);
    }
    free(matrix.data);
}

static void parts_make_the_same_text(void **state) {
    (void)state;
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        expect(dtype, 256, 256, 2);
        expect(dtype, 301, 331, 3);
        expect(dtype, 2, 60000, 2);
        expect(dtype, 65536, 1, 2);
    }
    expect(MM_FLOAT32, 1025, 1023, 31);
    expect(MM_INT32, 300 * 32768, 0, 256);
}

static void what_is_small_or_one_row_is_no_parts(void **state) {
    (void)state;
    expect(MM_FLOAT32, 255, 257, 0);
    expect(MM_FLOAT32, 1, 200000, 0);
    expect(MM_FLOAT32, 65535, 1, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_make_the_same_text),
        cmocka_unit_test(what_is_small_or_one_row_is_no_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
