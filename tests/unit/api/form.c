/* Tests multipart forms of files and parameters: the operands that they decode to, and the errors. The fuzz
 * target multipart tests forms that arrive in chunks. */
#include "api/call.h"
#include "api/codec.h"
#include "tests/decode.h"
#include "tests/unit/memory.h"

enum { ALIGNMENT = 64, BODY_MAX = 1 << 10 };

static const struct mm_limits limits = {
    .dimension_max = 1000, .body_bytes_max = 1 << 20, .memory_bytes_max = 1 << 20};

static const char plain_type[] = "multipart/form-data; boundary=B";

static const struct mm_codec *codec(void) {
    const struct mm_codec *codec = NULL;
    assert_int_equal(mm_codec_for_request(plain_type, MM_MATMUL, false, false, 0, &codec, NULL), MM_OK);
    return codec;
}

/* The .npy files that the forms below contain. A form names a file by its letter. */
static const struct {
    char letter;
    size_t bytes; /* bytes of its elements */
    const char *header;
    size_t header_bytes; /* length of the padded header; 0 for no padding */
} files[] = {
    {'A', 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
    {'B', 12, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 1), }"},
    {'P', 24, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 128},
    {'Q', 12, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }", 128},
    {'Z', 0, "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 3), }"},
    {'Y', 0, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }"},
    {'D', 48, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }"},
    {'E', 24, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1), }"},
    {'I', 24, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }"},
    {'J', 48, "{'descr': '<i8', 'fortran_order': True, 'shape': (2, 3), }"},
    {'F', 12, "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }"},
    {'V', 12, "{'descr': '<V2', 'fortran_order': False, 'shape': (2, 3), }"},
    {'X', 6, "{'descr': '<V2', 'fortran_order': False, 'shape': (3, 1), }"},
    {'S', 23, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
    {'L', 25, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
    {'W', 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (1001, 3), }"},
    {'O', 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000, 1000), }"},
    {'M', 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 18446744073709551616), }"},
    {'N', 24, "{'descr': '>i4', 'fortran_order': False, 'shape': (2, 3), }"},
    {'R', 24, "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2, 3), }"},
    {'T', 24, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 1), }", 128},
    {'C', 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }"},
    {'G', 12, "{'descr': '<f4', 'fortran_order': True, 'shape': (3,), }"},
    {'H', 4, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }"},
    {'K', 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 2, 3), }"},
};

struct text {
    char bytes[BODY_MAX];
    size_t length;
};

static void add(struct text *text, const void *bytes, size_t length) {
    assert_true(text->length + length <= sizeof text->bytes);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static void add_file(struct text *text, char letter) {
    enum { BEFORE = 10 };
    size_t index = 0;
    while (files[index].letter != letter)
        assert_true(++index < COUNT(files));
    const size_t start = text->length;
    size_t header_bytes = BEFORE + strlen(files[index].header) + 1;
    if (header_bytes < files[index].header_bytes)
        header_bytes = files[index].header_bytes;
    add(text, (const char[]){'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(header_bytes - BEFORE), 0},
        BEFORE);
    add(text, files[index].header, strlen(files[index].header));
    while (text->length < start + header_bytes - 1)
        add(text, " ", 1);
    add(text, "\n", 1);
    for (size_t byte = 0; byte < files[index].bytes; byte++)
        add(text, (const char[]){(char)(byte + index)}, 1);
}

/* Returns a form in which | stands for CRLF and $ with a letter stands for a file. */
static const struct text *text_of(const char *form) {
    static struct text text;
    text.length = 0;
    for (; *form != '\0'; form++) {
        if (*form == '|')
            add(&text, "\r\n", 2);
        else if (*form == '$')
            add_file(&text, *++form);
        else
            add(&text, form, 1);
    }
    return &text;
}

/* PART begins a part with a delimiter and headers. */
#define PART(name) "--B|Content-Disposition: form-data; name=\"" name "\"||"
#define AB PART("a") "$A|" PART("b") "$B|"
#define END "--B--|"
#define VARIANT PART("variant") "naive|"
#define CSV(name, text)                                                                                      \
    "--B|Content-Disposition: form-data; name=" name "; filename=\"" name ".csv\"||" text "|"
#define TYPED(name, type, text)                                                                              \
    "--B|Content-Type: " type "|Content-Disposition: form-data; name=" name "||" text "|"

/* AB holds the operands of a product of 2×3 by 3×1. */
static const struct {
    enum mm_op op;
    const char *form;
    enum mm_status status;
    const char *field, *detail;
} cases[] = {
    {MM_MATMUL, AB END},
    {MM_MATMUL, PART("b") "$B|" PART("a") "$A|" END},
    {MM_MATMUL, VARIANT AB VARIANT END},
    {MM_MATMUL, PART("a") "$C|" PART("b") "$G|" END},
    {MM_MATMUL, PART("a") "$R|" PART("b") "$T|" END},
    {MM_MATMUL, PART("a") "$H|" PART("b") "$H|" END},
    {MM_MATMUL, PART("a") "$K|" PART("b") "$B|" END, MM_BAD_REQUEST, "a", "of rank 9, but the rank may be 8"},
    {MM_MATMUL, AB PART("dtype") "float32|" END},
    {MM_MATMUL, PART("variant") "tiled_8|" AB VARIANT END, MM_BAD_REQUEST, "variant", "given twice"},
    {MM_MATMUL, PART("a") "$A|" END, MM_BAD_REQUEST, "b", "no part named b"},
    {MM_MATMUL, END, MM_BAD_REQUEST, "a", "no part named a"},
    {MM_MATMUL, PART("a") "$A|" AB END, MM_BAD_REQUEST, "a", "two parts named a"},
    {MM_MATMUL, AB PART("b") "$B|" END, MM_BAD_REQUEST, "b", "two parts named b"},
    {MM_MATMUL, AB PART("extra") "1|" END, MM_BAD_REQUEST, "extra", "'extra'"},
    {MM_MATMUL, AB PART("m") "99999999999|" END, MM_TOO_LARGE, "m", "--max-dimension"},
    {MM_MATMUL, AB PART("m") "1|" END, MM_BAD_REQUEST, "m", "m is given, but only a raw body"},
    {MM_MATMUL, AB PART("lda") "1|" END, MM_BAD_REQUEST, "lda", "'lda' is unknown in the body"},
    {MM_MATMUL, AB PART("a_from") "identity()|" END, MM_BAD_REQUEST, "a", "leave one out"},
    {MM_MATMUL, AB PART("transpose_a") "yes|" END, MM_BAD_REQUEST, "transpose_a", "true, false, 1 or 0"},
    {MM_MATMUL, PART("a") "$D|" PART("b") "$B|" END, MM_BAD_REQUEST, "b", "float64"},
    {MM_MATMUL, PART("a") "$D|" PART("b") "$E|" END},
    {MM_MATMUL, PART("a") "a.npy|" PART("b") "$B|" END, MM_BAD_REQUEST, "a",
     "a begins with 'a.npy' and is not a .npy file; numpy.save('a.npy', a) makes one"},
    {MM_MATMUL, PART("a") "$A|" PART("b") "|" END, MM_BAD_REQUEST, "b", "b is empty and is not a .npy file"},
    {MM_MATMUL, PART("A") "$A|" PART("b") "$B|" END, MM_BAD_REQUEST, "A", "did you mean 'a'?"},
    {MM_MATMUL, PART("a") "$D|" PART("b") "$E|" PART("dtype") "float64|" END},
    {MM_MATMUL, PART("a") "$V|" PART("b") "$X|" PART("dtype") "bfloat16|" END},
    {MM_MATMUL, PART("a") "$V|" PART("b") "$X|" END, MM_UNSUPPORTED, "dtype",
     "a and b are of type '<V2', which NumPy writes for types that it does not know; if they are bfloat16, "
     "add "
     "-F dtype=bfloat16"},
    {MM_MATMUL, PART("a") "$V|" PART("b") "$X|" PART("dtype") "float16|" END, MM_BAD_REQUEST, "dtype",
     "bfloat16"},
    {MM_MATMUL, AB PART("dtype") "float|" END, MM_UNSUPPORTED, "dtype",
     "'float', but must be one of: float32"},
    {MM_MATMUL, AB PART("result_dtype") "float16|" END},
    {MM_MATMUL, AB PART("result_dtype") "float64|" END, MM_UNSUPPORTED, "result_dtype",
     "'float64', but must be one of: float32, float16, bfloat16"},
    {MM_MATMUL, PART("a") "$D|" PART("b") "$E|" PART("dtype") "float32|" END, MM_BAD_REQUEST, "dtype",
     "float64"},
    {MM_MATMUL, PART("a") "$S|" PART("b") "$B|" END, MM_BAD_REQUEST, "a",
     "a has the shape (2, 3) of float32 by its header, which takes 24 bytes, but 23 bytes follow"},
    {MM_MATMUL, PART("a") "$L|" PART("b") "$B|" END, MM_BAD_REQUEST, "a",
     "takes 24 bytes, but 25 bytes follow"},
    {MM_MATMUL, PART("a") "$W|" PART("b") "$B|" END, MM_TOO_LARGE, "a", "the limit is 1000"},
    {MM_MATMUL, PART("a") "$M|" PART("b") "$B|" END, MM_TOO_LARGE, "a", "the limit is 1000"},
    {MM_MATMUL, PART("a") "$O|" PART("b") "$B|" END, MM_TOO_LARGE, "a", "the size in bytes"},
    {MM_MATMUL, PART("a") "$I|" PART("b") "$B|" END, MM_BAD_REQUEST, "b",
     "b has elements of type float32 ('<f4'), but a of type int32 ('<i4'); convert one, as NumPy does by "
     "b.astype(a.dtype)"},
    {MM_MATMUL, CSV("a", "1,2,3\n4,5,6") CSV("b", "1\n2\n3") END},
    {MM_MATMUL, CSV("a", "1,2,3\n4,5,6") PART("b") "$B|" END},
    {MM_MATMUL, PART("a") "$D|" TYPED("b", "text/csv", "1\n2\n3") END},
    {MM_MATMUL,
     TYPED("a", "Text/CSV; charset=utf-8", "1,2,3") CSV("b", "1\n2\n0.5") PART("dtype") "float16|" END},
    {MM_MATMUL, CSV("a", "1,2,3") PART("b") "$B|" PART("dtype") "float16|" END, MM_BAD_REQUEST, "dtype",
     "dtype is 'float16', but the elements of b are of type float32 ('<f4')"},
    {MM_MATMUL, CSV("a", "1,2,3") PART("b") "$X|" END, MM_UNSUPPORTED, "dtype",
     "the elements of b are of type '<V2'"},
    {MM_MATMUL, CSV("a", "1,2,3") PART("b") "$X|" PART("dtype") "bfloat16|" END},
    {MM_MATMUL, PART("a") "$I|" CSV("b", "1\n2\n0.5") END, MM_BAD_REQUEST, "b",
     "b[2][0], at line 3, column 1 of the CSV file, is '0.5', but int32 takes whole numbers"},
    {MM_MATMUL, CSV("a", "1,2,3") CSV("b", "1\n2\n") CSV("a", "1") END, MM_BAD_REQUEST, "a",
     "two parts named a"},
    {MM_MATMUL, CSV("a", "1,2,3") CSV("b", "1\n2,3") END, MM_BAD_REQUEST, "b", "row 1 of b"},
    {MM_MATMUL, CSV("a", "1,2,3") CSV("b", "1") PART("dtype") "float31|" END, MM_UNSUPPORTED, "dtype",
     "float31"},
    {MM_MATMUL, CSV("a", "") CSV("b", "") END},
    {MM_MATMUL, CSV("a", "1,2,3") END, MM_BAD_REQUEST, "b", "add a .npy or .csv file"},
    {MM_MATMUL, TYPED("a", "text/plain", "1,2,3") CSV("b", "1") END, MM_BAD_REQUEST, "a",
     "is not a .npy file"},
    {MM_MATMUL, CSV("a", "$A") CSV("b", "1") END, MM_BAD_REQUEST, "a", "a[0][0], at line 1"},
    {MM_MATMUL, AB CSV("c", "1\n2") CSV("bias", "3") PART("beta") "-0.5|" PART("activation") "silu|" END},
    {MM_MATMUL, CSV("a", "1,2") CSV("b", "1,2,3\n4,5,6") CSV("bias", "1\n2\n3") CSV("c", "1;2;3") END},
    {MM_MATMUL, PART("a") "$I|" PART("b") "$I|" PART("c") "$A|" END, MM_UNSUPPORTED, "c",
     "the elements of c are float32, but the result is int32"},
    {MM_MATMUL, AB PART("bias") "$X|" END, MM_UNSUPPORTED, "bias", "bfloat16"},
    {MM_MATMUL, AB PART("bias") "$X|" PART("result_dtype") "bfloat16|" END},
    {MM_MATMUL, AB CSV("c", "1") PART("c_from") "uniform(1)|" END, MM_BAD_REQUEST, "c", "leave one out"},
    {MM_MATMUL, AB CSV("bias", "x") END, MM_BAD_REQUEST, "bias", "bias[0][0]"},
    {MM_MATMUL, AB PART("alpha") "half|" END, MM_BAD_REQUEST, "alpha", "a number, like 0.5"},
    {MM_TRANSPOSE, CSV("a", "1,2") CSV("c", "1,2") END, MM_BAD_REQUEST, "c", "'c' is unknown"},
    {MM_TRANSPOSE, CSV("a", "1,2") END},
    {MM_TRANSPOSE, PART("a") "$D|" END},
    {MM_TRANSPOSE, VARIANT PART("a") "$J|" END},
    {MM_TRANSPOSE, PART("a") "$D|" PART("dtype") "float64|" END},
    {MM_TRANSPOSE, AB END, MM_BAD_REQUEST, "b",
     "'b' is unknown in the body, which takes: a, variant, backend, dtype, timeout_ms"},
    {MM_TRANSPOSE, PART("a") "$J|" PART("transpose_a") "1|" END, MM_BAD_REQUEST, "transpose_a",
     "is unknown in the body"},
    {MM_TRANSPOSE, PART("a") "$F|" END},
    {MM_TRANSPOSE, PART("a") "$V|" END, MM_UNSUPPORTED, "dtype", "add -F dtype=bfloat16"},
    {MM_TRANSPOSE, PART("a") "$N|" END, MM_UNSUPPORTED, "a",
     "'>i4', but must be one of: <f4, <f8, <f2, <V2, <V1, <f1, |i1, |u1, |b1, <i4, <i8; convert them"},
    {MM_TRANSPOSE, PART("a") "$I|" PART("dtype") "float32|" END, MM_BAD_REQUEST, "dtype",
     "dtype is 'float32', but the elements of a are of type int32 ('<i4'); leave dtype out"},
};

/* The result of the last decoding. The operands point into `received`. */
static struct mm_call call;
static struct mm_error error;
static char *received;
static bool is_quick;

static void *allocate(size_t bytes) {
    void *allocated = NULL;
    assert_int_equal(posix_memalign(&allocated, ALIGNMENT, bytes), 0);
    return allocated;
}

static void begin(enum mm_op op) {
    error = (struct mm_error){0};
    mm_call_init(&call, op);
    mm_parameter_set_text(&call.operands.parameters, MM_IN_QUERY, "backend", 7, "cpu", 3, &limits,
                          NULL); /* as if the query had this parameter */
}

/* Decodes a body of unknown length that arrives in chunks. After each chunk, the body has memory of exactly
 * its size, so a sanitizer reports reads past its end. */
static enum mm_status decode(enum mm_op op, const char *bytes, size_t length, size_t first, size_t others) {
    const struct mm_body_reader *reader = codec()->reader;
    begin(op);
    void *reading = reader->begin(&call.operands, plain_type, MM_LENGTH_UNKNOWN, &limits, &memory);
    assert_non_null(reading);
    size_t held = 0;
    received = allocate(0);
    for (size_t at = 0, piece = first; at < length; at += piece, piece = others) {
        piece = piece < length - at ? piece : length - at;
        char *larger = allocate(held + piece);
        memcpy(larger, received, held);
        memcpy(larger + held, bytes + at, piece);
        free(received);
        received = larger;
        held = reader->feed(reading, received, held + piece);
    }
    const struct mm_body body = {.data = received, .bytes = held};
    is_quick = reader->is_quick(reading);
    return reader->finish(reading, &call.operands, &body, &error);
}

/* The form arrives at once, then byte by byte. */
static void test_decoded(void **state) {
    for (size_t index = 0; index < 2 * COUNT(cases); index++) {
        const size_t row = index / 2, piece = index % 2 == 0 ? SIZE_MAX : 1;
        const struct text *text = text_of(cases[row].form);
        const enum mm_status status = decode(cases[row].op, text->bytes, text->length, piece, piece);
        if (status != cases[row].status || error.status != status ||
            (status != MM_OK &&
             (strcmp(error.field, cases[row].field) != 0 || strstr(error.detail, cases[row].detail) == NULL)))
            fail_msg("%s %s: %s, field '%s': %s", mm_op_name(cases[row].op), cases[row].form,
                     mm_status_name(status), error.field, error.detail);
        mm_operands_release(&call.operands, &memory);
        assert_int_equal(memory.used_bytes, 0);
        free(received);
    }
}

/* An operand in a .npy file points into the body, so the request keeps the body. If both operands are in CSV,
 * the request does not keep the body. */
static void test_csv(void **state) {
    for (int alone = 0; alone < 2; alone++) {
        const struct text *text = text_of(alone ? CSV("a", "1,-2,3\n4,5,6") CSV("b", "7\n8\n0.5") END
                                                : CSV("a", "1,-2,3\n4,5,6") PART("b") "$B|" END);
        assert_int_equal(decode(MM_MATMUL, text->bytes, text->length, SIZE_MAX, SIZE_MAX), MM_OK);
        assert_false(is_quick);
        assert_int_equal(call.operands.views_body, !alone);
        assert_int_equal(call.operands.of[1].column_major, !alone);
        assert_int_equal(memory.used_bytes, call.operands.storage.bytes);
        assert_memory_equal(call.operands.of[0].view.data, ((float[]){1, -2, 3, 4, 5, 6}), 24);
        if (alone)
            assert_memory_equal(call.operands.of[1].view.data, ((float[]){7, 8, 0.5f}), 12);
        assert_int_equal((uintptr_t)call.operands.of[0].view.data % ALIGNMENT, 0);
        assert_int_equal((uintptr_t)call.operands.of[1].view.data % ALIGNMENT, 0);
        mm_operands_release(&call.operands, &memory);
        free(received);
    }
}

/* A stack in Fortran order cannot point into the body, so its elements are copied. */
static void test_fortran(void **state) {
    static const struct {
        const char *form;
        bool views_body;
    } forms[] = {
        {PART("a") "$R|" PART("b") "$T|" END, false},
        {CSV("b", "1\n2\n3") PART("a") "$R|" END, false},
        {PART("a") "$R|" PART("b") "$G|" END, true},
    };
    for (size_t index = 0; index < 2 * COUNT(forms); index++) {
        const size_t row = index / 2, piece = index % 2 == 0 ? SIZE_MAX : 1;
        const struct text *text = text_of(forms[row].form);
        const unsigned char *elements = memchr(text->bytes, '}', text->length);
        assert_int_equal(decode(MM_MATMUL, text->bytes, text->length, piece, piece), MM_OK);
        assert_false(is_quick);
        assert_int_equal(call.operands.views_body, forms[row].views_body);
        assert_false(call.operands.of[0].column_major || call.operands.of[1].column_major);
        assert_int_equal(memory.used_bytes, call.operands.storage.bytes);
        assert_true(call.operands.of[0].shape.rank == 3 && call.operands.of[0].view.rows == 2 &&
                    call.operands.of[0].view.cols == 3);
        assert_int_equal((uintptr_t)call.operands.of[0].view.data % ALIGNMENT, 0);
        if (row != 1) /* in row 1, a is the second file */
            for (size_t element = 0; element < 6; element++)
                assert_memory_equal((char *)call.operands.of[0].view.data + 4 * element,
                                    elements + 2 + 4 * (element / 3 + element % 3 * 2), 4);
        mm_operands_release(&call.operands, &memory);
        free(received);
    }
}

/* Operands must be aligned, even if the files begin at unaligned addresses. */
static void test_views(void **state) {
    static const struct {
        enum mm_op op;
        const char *form;
        size_t a_bytes, b_bytes;
        unsigned char a_first, b_first; /* value of the first byte; each next byte is one more */
        bool a_column_major, b_column_major;
    } views[] = {
        {MM_MATMUL, AB END, 24, 12, 0, 1, false, true},
        {MM_MATMUL, PART("a") "$P|" VARIANT PART("b") "$Q|" END, 24, 12, 2, 3, true, false},
        {MM_MATMUL, PART("a") "$Z|" PART("b") "$Y|" END, 0, 0, 0, 0, true, false},
        {MM_TRANSPOSE, VARIANT PART("a") "$J|" END, 48, 0, 9, 0, true, false},
    };
    for (size_t index = 0; index < COUNT(views) * 8; index++) {
        const size_t row = index / 8, shift = index % 8;
        const struct text *text = text_of(views[row].form);
        const struct mm_matrix *a = &call.operands.of[0].view, *b = &call.operands.of[1].view;
        received = malloc(text->length + shift);
        assert_non_null(received);
        memcpy(received + shift, text->bytes, text->length);
        const struct mm_body body = {.data = received + shift, .bytes = text->length};
        begin(views[row].op);
        assert_int_equal(decode_whole(codec(), plain_type, &call.operands, &body, &limits, NULL, NULL),
                         MM_OK);
        assert_int_equal(mm_matrix_bytes(a), views[row].a_bytes);
        assert_int_equal(mm_matrix_bytes(b), views[row].b_bytes);
        for (size_t byte = 0; byte < views[row].a_bytes; byte++)
            assert_int_equal(((unsigned char *)a->data)[byte], views[row].a_first + byte);
        for (size_t byte = 0; byte < views[row].b_bytes; byte++)
            assert_int_equal(((unsigned char *)b->data)[byte], views[row].b_first + byte);
        assert_int_equal((uintptr_t)a->data % mm_dtype_bytes(a->dtype), 0);
        assert_int_equal((uintptr_t)b->data % sizeof(float), 0);
        assert_true(call.operands.of[0].column_major == views[row].a_column_major &&
                    call.operands.of[1].column_major == views[row].b_column_major);
        free(received);
    }
}

static void test_truncated(void **state) {
    const struct text *text = text_of(PART("a") "$A|" VARIANT PART("b") "$B|" END);
    for (size_t length = 0; length + 2 < text->length; length++) {
        assert_int_equal(decode(MM_MATMUL, text->bytes, length, SIZE_MAX, 0), MM_BAD_REQUEST);
        assert_true(error.detail[0] != '\0');
        free(received);
    }
}

/* The boundary may occur within the elements, because the .npy header tells their length. */
static void test_boundary_within(void **state) {
    static const char within[] = "\r\n--B\r\nxy";
    struct text text = *text_of(AB END);
    char *elements = memchr(text.bytes, '}', text.length);
    memcpy(elements + 2 + 8, within, sizeof within - 1);
    for (size_t first = 1; first <= text.length; first++) {
        assert_int_equal(decode(MM_MATMUL, text.bytes, text.length, first, SIZE_MAX), MM_OK);
        assert_true(is_quick);
        assert_memory_equal(call.operands.of[0].view.data, elements + 2, 24);
        assert_int_equal((uintptr_t)call.operands.of[0].view.data % ALIGNMENT, 0);
        assert_int_equal((uintptr_t)call.operands.of[1].view.data % ALIGNMENT, 0);
        free(received);
    }
}

/* Cancels the request after each part of the form. */
static void test_cancel(void **state) {
    const struct mm_body_reader *reader = codec()->reader;
    const struct text *text = text_of(AB END);
    begin(MM_MATMUL);
    for (size_t length = 0; length <= text->length; length++) {
        void *reading = reader->begin(&call.operands, plain_type, MM_LENGTH_UNKNOWN, &limits, NULL);
        received = allocate(length);
        memcpy(received, text->bytes, length);
        if (length > 0)
            (void)reader->feed(reading, received, length);
        reader->cancel(reading);
        free(received);
    }
    assert_null(reader->begin(&call.operands, "multipart/form-data", MM_LENGTH_UNKNOWN, &limits, NULL));
}

RUN_TESTS_BETWEEN(open_memory, close_memory, test_decoded, test_csv, test_fortran, test_views, test_truncated,
                  test_boundary_within, test_cancel)
