/* Tests headers of .npy files: valid headers, malformed headers, and the header of a reply. */
#include "api/npy/npy.h"
#include "tests/unit/unit.h"

/* Returns the beginning of a .npy file with this header. The caller frees it. */
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

#define HEADER(descr, order, shape)                                                                          \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }\n"
#define OF(descr) HEADER(descr, "False", "(2, 3)")

static const struct {
    unsigned version;
    const char *text;
    const char *dtype;
    struct mm_shape shape;
    bool is_fortran;
} good[] = {
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }         \n", "float32", {2, {2, 3}}},
    {2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }         \n", "float32", {2, {2, 3}}},
    {3, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }         \n", "float32", {2, {2, 3}}},
    {1, HEADER("<f4", "True", "(3, 2)"), "float32", {2, {3, 2}}, true},
    {1, HEADER("<f8", "False", "(0, 5)"), "float64", {2, {0, 5}}},
    {1, HEADER("<f2", "False", "(5, 0)"), "float16", {2, {5, 0}}},
    {1, "{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}\n", "float32", {2, {2, 3}}},
    {1, "{\"descr\":\"<f4\",\"fortran_order\":True,\"shape\":(2,3)}", "float32", {2, {2, 3}}, true},
    {1,
     " {  'descr'\t: '<f4' , 'fortran_order' : False , 'shape' : ( 2 , 3 , ) } \n",
     "float32",
     {2, {2, 3}}},
    {1, HEADER("<f4", "False", "(2L, 3L)"), "float32", {2, {2, 3}}},
    {1, OF("<i4"), "int32", {2, {2, 3}}},
    {1, OF("<i8"), "int64", {2, {2, 3}}},
    {1, OF("|i1"), "int8", {2, {2, 3}}},
    {1, OF("|u1"), "uint8", {2, {2, 3}}},
    {1, OF("<i1"), "int8", {2, {2, 3}}},
    {1, OF("=u1"), "uint8", {2, {2, 3}}},
    {1, OF(">b1"), "bool", {2, {2, 3}}},
    {1, OF(">V1"), "float8_e4m3fn", {2, {2, 3}}},
    {1, OF("|f1"), "float8_e5m2", {2, {2, 3}}},
    {1, OF("|b1"), "bool", {2, {2, 3}}},
    {1, OF("<V2"), "bfloat16", {2, {2, 3}}},
    {1, OF("|V2"), "bfloat16", {2, {2, 3}}},
    {1, OF("|V1"), "float8_e4m3fn", {2, {2, 3}}},
    {1, OF("<f1"), "float8_e5m2", {2, {2, 3}}},
    {1, HEADER("<f4", "False", "(18446744073709551615, 0)"), "float32", {2, {UINT64_MAX, 0}}},
    {1, HEADER("<f4", "False", "()"), "float32", {0}},
    {1, HEADER("<f4", "True", "(5,)"), "float32", {1, {5}}, true},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}\n", "float32", {1, {0}}},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0, 4)}\n", "float32", {3, {2, 0, 4}}},
    {1, HEADER("<f4", "True", "(1, 2, 3, 4, 5, 6, 7, 8)"), "float32", {8, {1, 2, 3, 4, 5, 6, 7, 8}}, true},
};

static void assert_shape(const struct mm_shape *shape, const struct mm_shape *expected) {
    assert_int_equal(shape->rank, expected->rank);
    assert_memory_equal(shape->dims, expected->dims, sizeof shape->dims);
}

static void test_good(void **state) {
    for (size_t index = 0; index < COUNT(good); index++) {
        size_t bytes;
        char *file = make_file(good[index].version, good[index].text, &bytes);
        struct mm_npy_header header;
        struct mm_error error = {0};
        if (mm_npy_read_header("a", file, bytes, &header, &error) != MM_OK)
            fail_msg("%s: %s", good[index].text, error.detail);
        assert_int_equal(header.bytes, bytes);
        assert_string_equal(mm_dtype_name(header.dtype), good[index].dtype);
        assert_non_null(strstr(good[index].text, header.descr));
        assert_true(strlen(header.descr) == 3 && header.is_void == (header.descr[1] == 'V'));
        assert_shape(&header.shape, &good[index].shape);
        assert_true(header.is_fortran == good[index].is_fortran);
        free(file);
    }
}

#define HEAD "{'descr': '<f4', 'fortran_order': False, 'shape': "
#define ROWS_2 ", 'fortran_order': False, 'shape': (2, 3), }\n"

/* `parts` is a list. Each part, between `before` and `after`, makes a malformed header. The error must
 * contain `words`, or the part itself if `words` is NULL. A ! in a part stands for |. */
static const struct {
    unsigned version;
    const char *before, *parts, *after, *words;
    enum mm_status status; /* expected status; if omitted, MM_BAD_REQUEST */
} bad[] = {
    {0, HEAD "(2, 3), }\n", "", "", "version is 0.0"},
    {4, HEAD "(2, 3), }\n", "", "", "version is 4.0"},
    {1, "{'descr': ",
     "'>f4'|'=f4'|'f4'|'!b2'|'!O'|'<c8'|'<f4x'|'<f16'|''|'>V2'|'!V3'|'i1'|'!i4'|'<u4'|'>i4'|'!'", ROWS_2,
     NULL, MM_UNSUPPORTED},
    {1, "{'descr': ", "[('x', '<f4')]|'<\\f4'|u'<f4'", ROWS_2, "a simple type"},
    {1, "{'descr': ", "'<f4|'<f4\"", ROWS_2, "", MM_UNSUPPORTED},
    {1, HEAD, "(1, 1, 1, 1, 1, 1, 1, 1, 1)|(99999999999999999999, 1, 1, 1, 1, 1, 1, 1, 1)", ", }\n",
     "of rank 9, but the rank may be 8 at most"},
    {1, HEAD, "6|[2, 3]|(3)", ", }\n", "a tuple"},
    {1, HEAD, "(-2, 3)|(+2, 3)|(02, 3)|(2, 00)|(2, 3,,)|(, 2, 3)", ", }\n", "a decimal non-negative integer"},
    {1, HEAD, "(2.0, 3)|(2_0, 3)|(0x2, 3)|(2 3)|(2LL, 3)", ", }\n", "',' or ')'"},
    {3, HEAD, "(2L, 3)", ", }\n", "',' or ')'"},
    {1, HEAD, "(2, 3", "\n", "',' or ')'"},
    {1, HEAD "(2, 3), ", ", }|'other': 1, }|", "\n", "one of the keys"},
    {1, HEAD "(2, 3)", ", 'shape': (2, 3), }", "\n", "each once"},
    {1, HEAD "(2, 3)", " 'x'}", "\n", "',' or '}'"},
    {1, HEAD "(2, 3), }", "\n| x", "\n", "should be its end"},
    {1, "{'descr': '<f4', ", "'fortran_order': False", "}\n", "no 'shape'"},
    {1, "{'descr': '<f4', ", "'shape': (2, 3)", "}\n", "no 'fortran_order'"},
    {1, "{", "'shape': (2, 3), 'fortran_order': False|", "}\n", "no 'descr'"},
    {1, "{'descr': '<f4', 'fortran_order': ", "0|'True'", ", 'shape': (2, 3)}\n", "True or False"},
    {1, "{'descr': '<f4', 'fortran_order': ", "Trueish", ", 'shape': (2, 3)}\n", "',' or '}'"},
    {1, "{'descr' '<f4'", ", 'fortran_order': True", ", 'shape': (2, 3)}\n", "':'"},
    {1, "", "|\n", "", "'{'"},
};

static void test_bad(void **state) {
    for (size_t index = 0; index < COUNT(bad); index++) {
        EACH(part, bad[index].parts) {
            const enum mm_status expected = bad[index].status == MM_OK ? MM_BAD_REQUEST : bad[index].status;
            char text[256];
            size_t bytes;
            for (char *at = part; (at = strchr(at, '!')) != NULL;)
                *at = '|';
            snprintf(text, sizeof text, "%s%s%s", bad[index].before, part, bad[index].after);
            char *file = make_file(bad[index].version, text, &bytes);
            struct mm_npy_header header;
            struct mm_error error = {0};
            const enum mm_status status = mm_npy_read_header("b", file, bytes, &header, &error);
            if (status != expected || strcmp(error.field, "b") != 0 ||
                strstr(error.detail, bad[index].words == NULL ? part : bad[index].words) == NULL)
                fail_msg("version %u, %s: %s: %s", bad[index].version, text, mm_status_name(status),
                         error.detail);
            assert_true(mm_npy_read_header("b", file, bytes, &header, NULL) == status);
            if (expected == MM_UNSUPPORTED)
                assert_non_null(strstr(error.expected, "<f4, <f8, <f2, <V2"));
            free(file);
        }
    }
}

/* Every prefix of a file is rejected without a read past its end. */
static void test_truncated(void **state) {
    for (unsigned version = 1; version <= 3; version++) {
        size_t bytes;
        char *file = make_file(version, good[0].text, &bytes);
        for (size_t length = 0; length < bytes; length++) {
            char *prefix = malloc(length);
            struct mm_npy_header header;
            assert_true(prefix != NULL || length == 0);
            if (length > 0)
                memcpy(prefix, file, length);
            assert_int_equal(mm_npy_read_header("a", prefix, length, &header, NULL), MM_BAD_REQUEST);
            free(prefix);
        }
        free(file);
    }
}

/* The header length is too short for the header. */
static void test_short_header(void **state) {
    size_t bytes;
    char *file = make_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", &bytes);
    struct mm_npy_header header;
    for (size_t length = 0; length + 10 < bytes; length++) {
        file[8] = (char)length;
        assert_int_equal(mm_npy_read_header("a", file, bytes, &header, NULL), MM_BAD_REQUEST);
    }
    file[7] = 1;
    file[8] = (char)(bytes - 10);
    assert_int_equal(mm_npy_read_header("a", file, bytes, &header, NULL), MM_BAD_REQUEST);
    file[7] = 0;
    assert_int_equal(mm_npy_read_header("a", file, bytes, &header, NULL), MM_OK);
    free(file);
}

static void test_write(void **state) {
    static const char *const descrs[MM_DTYPE_COUNT] = {
        [MM_FLOAT32] = "<f4",       [MM_FLOAT64] = "<f8",     [MM_FLOAT16] = "<f2", [MM_BFLOAT16] = "<V2",
        [MM_FLOAT8_E4M3FN] = "<V1", [MM_FLOAT8_E5M2] = "<f1", [MM_INT8] = "|i1",    [MM_UINT8] = "|u1",
        [MM_BOOL] = "|b1",          [MM_INT32] = "<i4",       [MM_INT64] = "<i8"};
    static const struct {
        struct mm_shape shape;
        const char *text;
        size_t bytes; /* length of NumPy's header without its padding */
    } shapes[] = {
        {{0}, "()", 128},
        {{1, {3}}, "(3,)", 128},
        {{2, {2, 3}}, "(2, 3)", 128},
        {{3, {4, 0, 2147483647}}, "(4, 0, 2147483647)", 128},
        {{2, {SIZE_MAX, SIZE_MAX}}, "(18446744073709551615, 18446744073709551615)", 128},
        {{8, {1, 2, 3, 4, 5, 6, 7, 8}}, "(1, 2, 3, 4, 5, 6, 7, 8)", 128},
        {{4, {SIZE_MAX, SIZE_MAX, SIZE_MAX, 0}},
         "(18446744073709551615, 18446744073709551615, 18446744073709551615, 0)",
         192},
        {{8, {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX}}, "(1844", 256},
    };
    char head[MM_NPY_HEAD_BYTES_MAX], expected[MM_NPY_HEAD_BYTES_MAX];
    struct mm_npy_header header;
    for (size_t index = 0; index < COUNT(shapes); index++) {
        const struct mm_shape *shape = &shapes[index].shape;
        const size_t bytes = mm_npy_write_head(shape, MM_FLOAT32, head);
        assert_int_equal(bytes, shapes[index].bytes);
        const int length =
            sprintf(expected, "{'descr': '<f4', 'fortran_order': False, 'shape': %s", shapes[index].text);
        assert_memory_equal(head, "\x93NUMPY\x01", 8);
        assert_int_equal((unsigned char)head[8], bytes - 10);
        assert_int_equal(head[9], 0);
        assert_memory_equal(head + 10, expected, (size_t)length);
        assert_int_equal(head[bytes - 1], '\n');
        for (size_t at = 0; at < bytes; at++)
            assert_true(at == 7 || at == 9 || head[at] != '\0');
        assert_int_equal(mm_npy_read_header("c", head, bytes, &header, NULL), MM_OK);
        assert_int_equal(header.bytes, bytes);
        assert_shape(&header.shape, shape);
        assert_false(header.is_fortran);
    }
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        const size_t bytes = mm_npy_write_head(&shapes[2].shape, (enum mm_dtype)dtype, head);
        assert_int_equal(mm_npy_read_header("c", head, bytes, &header, NULL), MM_OK);
        assert_string_equal(header.descr, descrs[dtype]);
    }
}

/* Also tests addresses that are not aligned. */
static void test_reorder(void **state) {
    static const struct mm_shape shapes[] = {{2, {3, 5}},      {3, {2, 3, 4}},
                                             {3, {33, 1, 65}}, {4, {2, 1, 3, 2}},
                                             {3, {1, 70, 40}}, {8, {2, 1, 2, 3, 1, 2, 2, 2}},
                                             {3, {2, 0, 3}}};
    static const enum mm_dtype dtypes[] = {MM_INT8, MM_FLOAT16, MM_INT32, MM_INT64};
    static unsigned char from[1 << 16], to[1 << 16];
    for (size_t byte = 0; byte < sizeof from; byte++)
        from[byte] = (unsigned char)(byte * 2654435761u >> 16);
    for (size_t row = 0; row < COUNT(shapes) * COUNT(dtypes); row++) {
        const struct mm_shape *shape = &shapes[row / COUNT(dtypes)];
        const enum mm_dtype dtype = dtypes[row % COUNT(dtypes)];
        const size_t bytes = mm_dtype_bytes(dtype);
        size_t count = 1;
        for (unsigned dim = 0; dim < shape->rank; dim++)
            count *= shape->dims[dim];
        assert_true(count * bytes + 1 <= sizeof from);
        memset(to, 0, sizeof to);
        mm_npy_reorder(shape, dtype, from + 1, to);
        for (size_t index = 0; index < count; index++) {
            size_t left = index, fortran = 0;
            for (unsigned dim = shape->rank; dim-- > 0; left /= shape->dims[dim]) {
                size_t step = 1;
                for (unsigned before = 0; before < dim; before++)
                    step *= shape->dims[before];
                fortran += left % shape->dims[dim] * step;
            }
            assert_memory_equal(to + index * bytes, from + 1 + fortran * bytes, bytes);
        }
        assert_int_equal(to[count * bytes], 0);
    }
}

RUN_TESTS(test_good, test_bad, test_truncated, test_short_header, test_write, test_reorder)
