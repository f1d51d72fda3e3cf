/* api/npy: headers as NumPy writes them and as it does not, and the one that we write. */
#include "api/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Makes the head of a file of this version around a header's text. The caller frees. */
static char *make_file(unsigned major, const char *text, size_t *bytes) {
    size_t length = strlen(text);
    size_t length_bytes = major == 1 ? 2 : 4;
    *bytes = 8 + length_bytes + length;
    char *file = malloc(*bytes);
    assert_non_null(file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (char)major;
    file[7] = 0;
    for (size_t index = 0; index < length_bytes; index++)
        file[8 + index] = (char)(length >> 8 * index & 255);
    memcpy(file + 8 + length_bytes, text, length);
    return file;
}

static const struct {
    unsigned version;
    const char *text;
    const char *dtype_name;
    uint64_t rows;
    uint64_t cols;
    bool column_major;
} good[] = {
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }         \n", "float32", 2, 3, false},
    {2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }         \n", "float32", 2, 3, false},
    {3, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }         \n", "float32", 2, 3, false},
    {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }\n", "float32", 3, 2, true},
    {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5), }\n", "float64", 0, 5, false},
    {1, "{'descr': '<f2', 'fortran_order': False, 'shape': (5, 0), }\n", "float16", 5, 0, false},
    {1, "{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}\n", "float32", 2, 3, false},
    {1, "{\"descr\":\"<f4\",\"fortran_order\":True,\"shape\":(2,3)}", "float32", 2, 3, true},
    {1, " {  'descr'\t: '<f4' , 'fortran_order' : False , 'shape' : ( 2 , 3 , ) } \n", "float32", 2, 3,
     false},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }\n", "float32", 2, 3, false},
    {2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3), }\n", "float32", 2, 3, false},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 0), }\n", "float32",
     UINT64_MAX, 0, false},
};

static void test_good(void **state) {
    (void)state;
    for (size_t index = 0; index < sizeof good / sizeof good[0]; index++) {
        size_t bytes;
        char *file = make_file(good[index].version, good[index].text, &bytes);
        struct mm_npy_header header;
        struct mm_error error = {0};
        if (mm_npy_read_header("a", MM_NPY_FLOATS, file, bytes, &header, &error) != MM_OK)
            fail_msg("%s: %s", good[index].text, error.detail);
        assert_int_equal(header.bytes, bytes);
        assert_string_equal(header.dtype_name, good[index].dtype_name);
        assert_true(header.rows == good[index].rows && header.cols == good[index].cols);
        assert_true(header.column_major == good[index].column_major);
        free(file);
    }
}

#define HEAD "{'descr': '<f4', 'fortran_order': False, 'shape': "
#define DESCR(descr) "{'descr': " descr ", 'fortran_order': False, 'shape': (2, 3), }\n"

static const struct {
    unsigned version;
    const char *text;
    enum mm_status status;
    const char *detail; /* what it must say */
} bad[] = {
    {0, HEAD "(2, 3), }\n", MM_BAD_REQUEST, "version 0.0"},
    {4, HEAD "(2, 3), }\n", MM_BAD_REQUEST, "version 4.0"},
    {147, HEAD "(2, 3), }\n", MM_BAD_REQUEST, "version 147.0"},
    {1, DESCR("'>f4'"), MM_BAD_REQUEST, "'>f4'"},
    {1, DESCR("'=f4'"), MM_BAD_REQUEST, "'=f4'"},
    {1, DESCR("'f4'"), MM_BAD_REQUEST, "'f4'"},
    {1, DESCR("'|b1'"), MM_BAD_REQUEST, "'|b1'"},
    {1, DESCR("'|O'"), MM_BAD_REQUEST, "'|O'"},
    {1, DESCR("'<i4'"), MM_BAD_REQUEST, "'<i4'"},
    {1, DESCR("'<c8'"), MM_BAD_REQUEST, "'<c8'"},
    {1, DESCR("'<f4x'"), MM_BAD_REQUEST, "'<f4x'"},
    {1, DESCR("'<f16'"), MM_BAD_REQUEST, "'<f16'"},
    {1, DESCR("''"), MM_BAD_REQUEST, "''"},
    {1, DESCR("[('x', '<f4')]"), MM_BAD_REQUEST, "a simple type"},
    {1, DESCR("'<f4"), MM_BAD_REQUEST, ""},
    {1, DESCR("'<\\f4'"), MM_BAD_REQUEST, "a simple type"},
    {1, DESCR("u'<f4'"), MM_BAD_REQUEST, "a simple type"},
    {1, DESCR("'<f4\""), MM_BAD_REQUEST, ""},
    {1, HEAD "(), }\n", MM_BAD_REQUEST, "rank 0"},
    {1, HEAD "(6,), }\n", MM_BAD_REQUEST, "rank 1"},
    {1, HEAD "(2, 3, 1), }\n", MM_BAD_REQUEST, "rank 3"},
    {1, HEAD "(99999999999999999999, 3, 1), }\n", MM_BAD_REQUEST, "rank 3"},
    {1, HEAD "6, }\n", MM_BAD_REQUEST, "a tuple"},
    {1, HEAD "[2, 3], }\n", MM_BAD_REQUEST, "a tuple"},
    {1, HEAD "(-2, 3), }\n", MM_BAD_REQUEST, "a decimal non-negative integer"},
    {1, HEAD "(+2, 3), }\n", MM_BAD_REQUEST, "a decimal non-negative integer"},
    {1, HEAD "(02, 3), }\n", MM_BAD_REQUEST, "a decimal non-negative integer"},
    {1, HEAD "(2, 00), }\n", MM_BAD_REQUEST, "a decimal non-negative integer"},
    {1, HEAD "(2.0, 3), }\n", MM_BAD_REQUEST, "',' or ')'"},
    {1, HEAD "(2_0, 3), }\n", MM_BAD_REQUEST, "',' or ')'"},
    {1, HEAD "(0x2, 3), }\n", MM_BAD_REQUEST, "',' or ')'"},
    {1, HEAD "(2, 3,,), }\n", MM_BAD_REQUEST, "a decimal non-negative integer"},
    {1, HEAD "(, 2, 3), }\n", MM_BAD_REQUEST, "a decimal non-negative integer"},
    {1, HEAD "(2 3), }\n", MM_BAD_REQUEST, "',' or ')'"},
    {1, HEAD "(2LL, 3), }\n", MM_BAD_REQUEST, "',' or ')'"},
    {3, HEAD "(2L, 3), }\n", MM_BAD_REQUEST, "',' or ')'"},
    {1, HEAD "(2, 3\n", MM_BAD_REQUEST, "',' or ')'"},
    {1, HEAD "(18446744073709551616, 3), }\n", MM_TOO_LARGE, "18446744073709551616"},
    {1, HEAD "(3, 99999999999999999999999999999999999999999999999), }\n", MM_TOO_LARGE,
     "9999999999999999999999999999999999999999..."},
    {1, HEAD "(2, 3), , }\n", MM_BAD_REQUEST, "one of the keys"},
    {1, HEAD "(2, 3), 'shape': (2, 3), }\n", MM_BAD_REQUEST, "each once"},
    {1, HEAD "(2, 3), 'other': 1, }\n", MM_BAD_REQUEST, "one of the keys"},
    {1, HEAD "(2, 3) 'x'}\n", MM_BAD_REQUEST, "',' or '}'"},
    {1, HEAD "(2, 3), }\n\n", MM_BAD_REQUEST, "should be its end"},
    {1, HEAD "(2, 3), } x\n", MM_BAD_REQUEST, "should be its end"},
    {1, HEAD "(2, 3), \n", MM_BAD_REQUEST, "one of the keys"},
    {1, "{'descr': '<f4', 'fortran_order': False}\n", MM_BAD_REQUEST, "no 'shape'"},
    {1, "{'descr': '<f4', 'shape': (2, 3)}\n", MM_BAD_REQUEST, "no 'fortran_order'"},
    {1, "{'shape': (2, 3), 'fortran_order': False}\n", MM_BAD_REQUEST, "no 'descr'"},
    {1, "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}\n", MM_BAD_REQUEST, "True or False"},
    {1, "{'descr': '<f4', 'fortran_order': 'True', 'shape': (2, 3)}\n", MM_BAD_REQUEST, "True or False"},
    {1, "{'descr': '<f4', 'fortran_order': Trueish, 'shape': (2, 3)}\n", MM_BAD_REQUEST, "',' or '}'"},
    {1, "{'descr' '<f4', 'fortran_order': True, 'shape': (2, 3)}\n", MM_BAD_REQUEST, "':'"},
    {1, "{}\n", MM_BAD_REQUEST, "no 'descr'"},
    {1, "", MM_BAD_REQUEST, "'{'"},
    {1, "\n", MM_BAD_REQUEST, "'{'"},
};

static void test_bad(void **state) {
    (void)state;
    for (size_t index = 0; index < sizeof bad / sizeof bad[0]; index++) {
        size_t bytes;
        char *file = make_file(bad[index].version, bad[index].text, &bytes);
        struct mm_npy_header header;
        struct mm_error error = {0};
        enum mm_status status = mm_npy_read_header("b", MM_NPY_FLOATS, file, bytes, &header, &error);
        if (status != bad[index].status || strstr(error.detail, bad[index].detail) == NULL)
            fail_msg("version %u, %s: %s: %s", bad[index].version, bad[index].text, mm_status_name(status),
                     error.detail);
        assert_string_equal(error.field, "b");
        assert_true(mm_npy_read_header("b", MM_NPY_FLOATS, file, bytes, &header, NULL) == status);
        free(file);
    }
}

/* No prefix of a file is one, and nothing behind its end is read: each lies in memory of its own size. */
static void test_truncated(void **state) {
    (void)state;
    for (unsigned version = 1; version <= 3; version++) {
        size_t bytes;
        char *file = make_file(version, good[0].text, &bytes);
        for (size_t length = 0; length < bytes; length++) {
            char *prefix = malloc(length);
            struct mm_npy_header header;
            assert_true(prefix != NULL || length == 0);
            if (length > 0)
                memcpy(prefix, file, length);
            assert_int_equal(mm_npy_read_header("a", MM_NPY_FLOATS, prefix, length, &header, NULL),
                             MM_BAD_REQUEST);
            free(prefix);
        }
        free(file);
    }
}

/* A header's length within the file that cuts its text short. */
static void test_short_header(void **state) {
    (void)state;
    size_t bytes;
    char *file = make_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", &bytes);
    struct mm_npy_header header;
    for (size_t length = 0; length + 10 < bytes; length++) {
        file[8] = (char)length;
        assert_int_equal(mm_npy_read_header("a", MM_NPY_FLOATS, file, bytes, &header, NULL), MM_BAD_REQUEST);
    }
    file[7] = 1;
    file[8] = (char)(bytes - 10);
    assert_int_equal(mm_npy_read_header("a", MM_NPY_FLOATS, file, bytes, &header, NULL), MM_BAD_REQUEST);
    file[7] = 0;
    assert_int_equal(mm_npy_read_header("a", MM_NPY_FLOATS, file, bytes, &header, NULL), MM_OK);
    free(file);
}

/* Integers are numbers, and no floating-point numbers. */
static void test_integers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *dtype_name; /* NULL: refused in any case */
        bool integers;
    } files[] = {
        {DESCR("'<f4'"), "float32", false}, {DESCR("'<f8'"), "float64", false},
        {DESCR("'<f2'"), "float16", false}, {DESCR("'<i4'"), "int32", true},
        {DESCR("'<i8'"), "int64", true},    {DESCR("'>i4'"), NULL, true},
        {DESCR("'<i2'"), NULL, true},       {DESCR("'<u4'"), NULL, true},
        {DESCR("'|i1'"), NULL, true},       {DESCR("'<c8'"), NULL, true},
    };
    for (size_t index = 0; index < sizeof files / sizeof files[0]; index++) {
        size_t bytes;
        char *file = make_file(1, files[index].text, &bytes);
        struct mm_npy_header header;
        struct mm_error error = {0};
        enum mm_status status = mm_npy_read_header("a", MM_NPY_NUMBERS, file, bytes, &header, &error);
        assert_int_equal(status, files[index].dtype_name == NULL ? MM_BAD_REQUEST : MM_OK);
        if (status == MM_OK) {
            assert_string_equal(header.dtype_name, files[index].dtype_name);
            assert_memory_equal(header.descr, strchr(files[index].text, '<'), 3);
        } else {
            assert_non_null(strstr(error.detail, "numbers of 4 or 8 bytes"));
            assert_string_equal(error.expected, "<f4, <f8, <i4 or <i8");
        }
        status = mm_npy_read_header("a", MM_NPY_FLOATS, file, bytes, &header, &error);
        assert_int_equal(status, files[index].integers ? MM_BAD_REQUEST : MM_OK);
        assert_true(status == MM_OK || strcmp(error.expected, "<f4") == 0);
        free(file);
    }
}

static void test_write(void **state) {
    (void)state;
    static const size_t shapes[][2] = {{2, 3}, {0, 0}, {0, 7}, {1, 1}, {SIZE_MAX, SIZE_MAX}};
    for (size_t index = 0; index < sizeof shapes / sizeof shapes[0]; index++) {
        const struct mm_matrix c = mm_matrix_dense(MM_FLOAT32, shapes[index][0], shapes[index][1], NULL);
        char head[MM_NPY_HEAD_BYTES];
        struct mm_npy_header header;
        mm_npy_write_head(&c, head);
        assert_int_equal(mm_npy_read_header("c", MM_NPY_FLOATS, head, sizeof head, &header, NULL), MM_OK);
        assert_int_equal(header.bytes, MM_NPY_HEAD_BYTES);
        assert_true(header.rows == c.rows && header.cols == c.cols && !header.column_major);
        assert_string_equal(header.descr, "<f4");
    }
    char head[MM_NPY_HEAD_BYTES];
    const struct mm_matrix c = mm_matrix_dense(MM_FLOAT32, 2, 3, NULL);
    mm_npy_write_head(&c, head);
    assert_memory_equal(
        head, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  ", 71);
    assert_int_equal(head[MM_NPY_HEAD_BYTES - 1], '\n');
    static const char *const descrs[MM_DTYPE_COUNT] = {
        [MM_FLOAT32] = "<f4", [MM_FLOAT64] = "<f8", [MM_INT32] = "<i4", [MM_INT64] = "<i8"};
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        const struct mm_matrix typed = mm_matrix_dense((enum mm_dtype)dtype, 2, 3, NULL);
        mm_npy_write_head(&typed, head);
        assert_memory_equal(head + 21, descrs[dtype], 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good),      cmocka_unit_test(test_bad),
                                       cmocka_unit_test(test_truncated), cmocka_unit_test(test_short_header),
                                       cmocka_unit_test(test_integers),  cmocka_unit_test(test_write)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
