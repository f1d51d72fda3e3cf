/* api/form: forms of files and parameters, and the views that they become or the words by which they are
 * refused; in pieces they are the same, however they are cut, and the elements lie aligned. */
#include "api/codec.h"
#include "tests/unit/unit.h"

enum { ALIGNMENT = 64, BODY_MAX = 16 << 10, MUTATIONS = 20000, CUTS = 6, LARGE_CUTS = 30 };

static const struct mm_limits limits = {
    .dimension_max = 1000, .body_bytes_max = 1 << 20, .memory_bytes_max = 1 << 20};

static const char plain_type[] = "multipart/form-data; boundary=B";

static const struct mm_codec *codec(void) {
    const struct mm_codec *codec = NULL;
    assert_int_equal(mm_codec_for_request(plain_type, MM_MATMUL, false, false, 0, &codec, NULL), MM_OK);
    return codec;
}

/* --- bodies ------------------------------------------------------------------------------------------- */

/* What a form is written of: its text, in which | is a CRLF, $ and a letter are a row of this table, and ^ is
 * a NUL. */
static const struct {
    char letter;
    char major;          /* of the .npy file; 0: no file, but `text` so often */
    size_t count;        /* of bytes behind the header, or of times */
    const char *text;    /* the file's header */
    size_t header_bytes; /* padded by spaces to as many, with what stands before it; 0: as it is */
} pieces[] = {
    {'A', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
    {'B', 1, 12, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 1), }"},
    {'P', 1, 24, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 128},
    {'Q', 1, 12, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }", 128},
    {'2', 2, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }", 64},
    {'3', 3, 12, "{'shape':(3,1),'fortran_order':False,'descr':'<f4'}"},
    {'m', 1, 4, "{'descr':'<f4','fortran_order':True,'shape':(1,1)}"},
    {'Z', 1, 0, "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 3), }"},
    {'Y', 1, 0, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }"},
    {'G', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 4096},
    {'g', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 4097},
    {'D', 1, 48, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }"},
    {'E', 1, 24, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1), }"},
    {'I', 1, 24, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }"},
    {'J', 1, 48, "{'descr': '<i8', 'fortran_order': True, 'shape': (2, 3), }"},
    {'F', 1, 12, "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }"},
    {'>', 1, 24, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }"},
    {'S', 1, 23, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
    {'L', 1, 25, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
    {'W', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (1001, 3), }"},
    {'O', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000, 1000), }"},
    {'o', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 3), }"},
    {'M', 1, 24, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3), }"},
    {'R', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }"},
    {'N', 1, 24, "{'descr': '>i4', 'fortran_order': False, 'shape': (2, 3), }"},
    {'9', 9, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
    {'x', 0, 4096, "x"},
    {'h', 0, 400, "X-Y: 12345|"},
    {'v', 0, 62, "--B|Content-Disposition: form-data; name=\"variant\"||naive|"},
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

static void add_file(struct text *text, size_t index) {
    const char major = pieces[index].major;
    const size_t start = text->length, before = major == 1 ? 10 : 12;
    size_t header_bytes = before + strlen(pieces[index].text) + 1;
    if (header_bytes < pieces[index].header_bytes)
        header_bytes = pieces[index].header_bytes;
    const size_t told = header_bytes - before;
    add(text, "\x93NUMPY", 6);
    add(text, (const char[]){major, 0, (char)(told & 255), (char)(told >> 8), 0, 0}, before - 6);
    add(text, pieces[index].text, strlen(pieces[index].text));
    while (text->length < start + header_bytes - 1)
        add(text, " ", 1);
    add(text, "\n", 1);
    for (size_t byte = 0; byte < pieces[index].count; byte++)
        add(text, (const char[]){(char)(byte + index)}, 1);
}

static void write_form(struct text *text, const char *form) {
    for (; *form != '\0'; form++) {
        size_t index = 0;
        if (*form == '|') {
            add(text, "\r\n", 2);
        } else if (*form == '^') {
            add(text, "", 1);
        } else if (*form != '$') {
            add(text, form, 1);
        } else {
            for (form++; pieces[index].letter != *form; index++)
                assert_true(index + 1 < COUNT(pieces));
            if (pieces[index].major != 0)
                add_file(text, index);
            for (size_t left = pieces[index].major != 0 ? 0 : pieces[index].count; left > 0; left--)
                write_form(text, pieces[index].text);
        }
    }
}

/* A part's delimiter and headers. */
#define PART(name) "--B|Content-Disposition: form-data; name=\"" name "\"||"
#define AB PART("a") "$A|" PART("b") "$B|"

static const struct form {
    const char *form;
    const char *content_type; /* NULL: plain_type */
} forms[] = {
    /* As clients write them: well, or with parameters that are wrong. */
    {AB "--B--"},
    {AB "--B--|and an epilogue|--B|"},
    {PART("b") "$Q|" PART("variant") "naive|" PART("a") "$P|--B--|"},
    {PART("tile") "16|" PART("a") "$2|" PART("transpose_a") "1|" PART("b") "$3|" PART(
        "timeout_ms") "5|--B--|"},
    {PART("a") "$m|" PART("b") "$m|--B--|"},
    {PART("a") "$Z|" PART("b") "$Y|--B--|"},
    {PART("a") "$A|" PART("b") "$Y|--B--|"},
    {PART("a") "$G|" PART("b") "$B|--B--|"},
    {"--B|content-type: x/y; charset=z|Content-Disposition:form-data;name=a;filename=\"a.npy\"||$A|"
     "--B|Content-Disposition: form-data; filename=\"--B\"; name=\"b\"|X:||$B|--B--|"},
    {"--B|Content-Disposition: form-data; name=\"a\"|Content-Transfer-Encoding: base64||$A|" PART(
        "b") "$B|--B--|"},
    {AB PART("variant") "|--B--|"},
    {AB PART("variant") "a|--x|--|--B--|"},
    {AB PART("variant") "$x|--B--|"},
    {AB PART("variant") "naive|" PART("variant") "naive|--B--|"},
    {AB PART("variant") "naive|" PART("variant") "blas|--B--|"},
    {AB "$v--B--|"},
    {AB PART("extra") "1|" PART("tile") "0|--B--|"},
    {PART("tile") "0|" PART("extra") "1|" AB "--B--|"},
    {AB PART("") "1|--B--|"},
    {AB PART("va\\\"riant") "1|--B--|"},
    {AB PART("backend") "c^pu|--B--|"},
    {PART("aa") "$A|" PART("b") "$B|" PART("a") "$A|--B--|"},
    {"--=_70 (')+_,-./:=?0123456789012345678901234567890123456789012345678901|"
     "Content-Disposition: form-data; name=a||$A|"
     "--=_70 (')+_,-./:=?0123456789012345678901234567890123456789012345678901|"
     "Content-Disposition: form-data; name=b||$B|"
     "--=_70 (')+_,-./:=?0123456789012345678901234567890123456789012345678901--|",
     "multipart/form-data; boundary=\"=_70 "
     "(')+_,-./:=?0123456789012345678901234567890123456789012345678901\""},
    /* Parameters alone, and not a form. */
    {PART("variant") "naive|--B--|"},
    {"--B--|"},
    {""},
    {"-"},
    {"--B"},
    {"--B|"},
    {"x"},
    {"{\"a\": [[1]], \"b\": [[2]]}"},
    /* Delimiters and headers with more about them than they need, or less; multipart.c has others. */
    {"--Bx|" AB "--B--|"},
    {AB "--B-- |"},
    {AB "--B--\r"},
    {AB "--B--x|--B--|"},
    {AB "--B|"},
    {AB "--"},
    {PART("a") "$A|" PART("b") "$B--B--|"},
    {AB PART("variant") "--B--|--B--|"},
    {AB "--B|Content-Disposition: form-data; name=\"variant\"|--B--|"},
    {AB "--B||naive|--B--|"},
    {AB "--B|$h|naive|--B--|"},
    {AB "--B|Content-Disposition: attachment; name=\"variant\"||naive|--B--|"},
    /* Values and files that are long, or not what they should be. */
    {AB PART("variant") "$xx|--B--|"},
    {AB PART("variant") "$x$x$x"},
    {PART("a") "$g|" PART("b") "$B|--B--|"},
    {PART("a") "$A|" PART("a") "$A|" PART("b") "$B|--B--|"},
    {AB PART("b") "$B|--B--|"},
    {AB PART("a") "--B--|"},
    {PART("a") "$A|" PART("b") "$E|--B--|"},
    {PART("a") "$>|" PART("b") "$B|--B--|"},
    {PART("a") "$A|" PART("b") "$S|--B--|"},
    {PART("a") "$A|" PART("b") "$L|--B--|"},
    {PART("a") "$O|" PART("b") "$B|--B--|"},
    {PART("a") "$o|" PART("b") "$B|--B--|"},
    {PART("a") "$M|" PART("b") "$B|--B--|"},
    {PART("a") "$R|" PART("b") "$B|--B--|"},
    {PART("a") "$9|" PART("b") "$B|--B--|"},
    {PART("a") "[[1]]|" PART("b") "$B|--B--|"},
    {PART("a") "|" PART("b") "$B|--B--|"},
    {PART("a") "$x$x|" PART("b") "$B|--B--|"},
    /* Of a transposition. */
    {PART("variant") "naive|" PART("a") "$J|--B--|"},
};

/* What becomes of a form. Those of AB are a product of 2×3 by 3×1. */
#define END "--B--|"
#define VARIANT PART("variant") "naive|"
static const struct judged {
    enum mm_op op;
    const char *form;
    enum mm_status status;
    const char *field, *detail;
} judged[] = {
    {MM_MATMUL, AB END},
    {MM_MATMUL, PART("b") "$B|" PART("a") "$A|" END},
    {MM_MATMUL, VARIANT AB VARIANT END},
    {MM_MATMUL, AB PART("dtype") "float32|" END},
    {MM_MATMUL, PART("variant") "tiled_8|" AB VARIANT END, MM_BAD_REQUEST, "variant", "given twice"},
    {MM_MATMUL, PART("a") "$A|" END, MM_BAD_REQUEST, "b", "no part named b"},
    {MM_MATMUL, PART("b") "$B|" END, MM_BAD_REQUEST, "a", "no part named a"},
    {MM_MATMUL, END, MM_BAD_REQUEST, "a", "no part named a"},
    {MM_MATMUL, PART("a") "$A|" AB END, MM_BAD_REQUEST, "a", "two parts named a"},
    {MM_MATMUL, AB PART("b") "$B|" END, MM_BAD_REQUEST, "b", "two parts named b"},
    {MM_MATMUL, AB PART("extra") "1|" END, MM_BAD_REQUEST, "extra", "'extra'"},
    {MM_MATMUL, AB PART("m") "99999999999|" END, MM_BAD_REQUEST, "m", "'m' is unknown in the body"},
    {MM_MATMUL, AB PART("lda") "3|" END, MM_BAD_REQUEST, "lda", "'lda' is unknown in the body"},
    {MM_MATMUL, AB PART("transpose_a") "yes|" END, MM_BAD_REQUEST, "transpose_a", "true, false, 1 or 0"},
    {MM_MATMUL, AB PART("dtype") "float64|" END, MM_BAD_REQUEST, "dtype", "float64"},
    {MM_MATMUL, PART("a") "$D|" PART("b") "$B|" END, MM_BAD_REQUEST, "b", "float64"},
    {MM_MATMUL, PART("a") "$D|" PART("b") "$E|" END, MM_UNSUPPORTED, "dtype",
     "'float64', but must be one of: float32; convert the file, as NumPy does by a.astype('float32')"},
    {MM_MATMUL, PART("a") "a.npy|" PART("b") "$B|" END, MM_BAD_REQUEST, "a",
     "a begins with 'a.npy' and is not a .npy file; numpy.save('a.npy', a) makes one"},
    {MM_MATMUL, PART("a") "$A|" PART("b") "|" END, MM_BAD_REQUEST, "b", "b is empty and is not a .npy file"},
    {MM_MATMUL, PART("A") "$A|" PART("b") "$B|" END, MM_BAD_REQUEST, "A", "did you mean 'a'?"},
    {MM_MATMUL, PART("a") "$D|" PART("b") "$E|" PART("dtype") "float64|" END, MM_UNSUPPORTED, "dtype",
     "float64"},
    {MM_MATMUL, PART("a") "$D|" PART("b") "$E|" PART("dtype") "float32|" END, MM_BAD_REQUEST, "dtype",
     "float64"},
    {MM_MATMUL, PART("a") "$S|" PART("b") "$B|" END, MM_BAD_REQUEST, "a",
     "takes 24 bytes, but 23 bytes follow"},
    {MM_MATMUL, PART("a") "$L|" PART("b") "$B|" END, MM_BAD_REQUEST, "a",
     "takes 24 bytes, but 25 bytes follow"},
    {MM_MATMUL, PART("a") "$W|" PART("b") "$B|" END, MM_TOO_LARGE, "a", "the limit is 1000"},
    {MM_MATMUL, PART("a") "$O|" PART("b") "$B|" END, MM_TOO_LARGE, "a", "the size in bytes"},
    {MM_MATMUL, PART("a") "$I|" PART("b") "$B|" END, MM_BAD_REQUEST, "a",
     "must be little-endian floating-point numbers, as '<f4' is"},
    {MM_MATMUL, PART("a") "$F|" PART("b") "$B|" END, MM_BAD_REQUEST, "b", "b.astype(a.dtype)"},
    {MM_TRANSPOSE, PART("a") "$A|" END},
    {MM_TRANSPOSE, PART("a") "$D|" END},
    {MM_TRANSPOSE, PART("a") "$I|" END},
    {MM_TRANSPOSE, VARIANT PART("a") "$J|" END},
    {MM_TRANSPOSE, PART("a") "$D|" PART("dtype") "float64|" END},
    {MM_TRANSPOSE, AB END, MM_BAD_REQUEST, "b",
     "'b' is unknown in the body, which takes: a, variant, backend, dtype, timeout_ms"},
    {MM_TRANSPOSE, PART("b") "$B|" END, MM_BAD_REQUEST, "b", "'b' is unknown in the body"},
    {MM_TRANSPOSE, END, MM_BAD_REQUEST, "a", "no part named a"},
    {MM_TRANSPOSE, PART("a") "$A|" PART("a") "$A|" END, MM_BAD_REQUEST, "a", "two parts named a"},
    {MM_TRANSPOSE, PART("a") "$J|" PART("transpose_a") "1|" END, MM_BAD_REQUEST, "transpose_a",
     "is unknown in the body"},
    {MM_TRANSPOSE, PART("a") "$A|" PART("m") "2|" END, MM_BAD_REQUEST, "m", "'m' is unknown in the body"},
    {MM_TRANSPOSE, PART("a") "$F|" END, MM_UNSUPPORTED, "dtype",
     "'float16', but must be one of: float32, float64, int32, int64; convert the file"},
    {MM_TRANSPOSE, PART("a") "$N|" END, MM_BAD_REQUEST, "a",
     "'>i4', but must be little-endian numbers of 4 or 8 bytes"},
    {MM_TRANSPOSE, PART("a") "$I|" PART("dtype") "float32|" END, MM_BAD_REQUEST, "dtype",
     "dtype is 'float32', but the elements of a are of type int32 ('<i4'); leave dtype out"},
    {MM_TRANSPOSE, PART("a") "$S|" END, MM_BAD_REQUEST, "a", "takes 24 bytes, but 23 bytes follow"},
    {MM_TRANSPOSE, PART("a") "$W|" END, MM_TOO_LARGE, "a", "the limit is 1000"},
};

/* --- decoding ----------------------------------------------------------------------------------------- */

/* A decoded body, or the error; the views point into `memory`. */
struct decoded {
    enum mm_status status;
    struct mm_call call;
    struct mm_error error;
    char *memory;
    bool is_quick;
    size_t bytes; /* of the body, as the reader has left it */
};

static void *allocate(size_t bytes) {
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, ALIGNMENT, bytes), 0);
    return memory;
}

static void begin(struct decoded *decoded, enum mm_op op) {
    *decoded = (struct decoded){0};
    mm_call_init(&decoded->call, op);
    mm_call_set_text(&decoded->call, MM_CALL_QUERY, "backend", 7, "cpu", 3, &limits,
                     NULL); /* as the query may */
}

static void decode_whole(struct decoded *decoded, enum mm_op op, const char *content_type, const char *bytes,
                         size_t length) {
    begin(decoded, op);
    decoded->memory = allocate(length);
    memcpy(decoded->memory, bytes, length);
    const struct mm_body body = {.data = decoded->memory, .bytes = length, .content_type = content_type};
    decoded->status = mm_codec_decode(codec(), &decoded->call, &body, &limits, NULL, &decoded->error);
}

/* A generator of its own, so that every run tries the same cuts. */
static uint32_t next_random(uint32_t *random) {
    *random = *random * 1664525u + 1013904223u;
    return *random >> 8;
}

/* How a body is cut: into a first piece and others of one length, or at random. */
struct cut {
    size_t first, others;
    uint32_t random;   /* 0: as above; else pieces of up to `others` */
    bool length_known; /* else the memory grows, and moves, with each piece */
};

static size_t piece_length(struct cut *cut, bool first) {
    if (cut->random != 0)
        return 1 + next_random(&cut->random) % cut->others;
    return first ? cut->first : cut->others;
}

/* As the server does: with room for what was received, and no byte more. */
static void decode_pieces(struct decoded *decoded, enum mm_op op, const char *content_type, const char *bytes,
                          size_t length, struct cut cut) {
    const struct mm_body_reader *reader = codec()->reader;
    begin(decoded, op);
    void *reading = reader->begin(&decoded->call, content_type, cut.length_known ? length : MM_LENGTH_UNKNOWN,
                                  &limits, NULL);
    assert_non_null(reading);
    decoded->memory = cut.length_known ? allocate(length) : NULL;
    for (size_t at = 0, piece; at < length; at += piece) {
        piece = piece_length(&cut, at == 0);
        piece = piece < length - at ? piece : length - at;
        if (!cut.length_known) {
            char *larger = allocate(at + piece);
            if (decoded->bytes > 0)
                memcpy(larger, decoded->memory, decoded->bytes);
            free(decoded->memory);
            decoded->memory = larger;
        }
        memcpy(decoded->memory + decoded->bytes, bytes + at, piece);
        decoded->bytes = reader->feed(reading, decoded->memory, decoded->bytes + piece);
        assert_true(decoded->bytes <= at + piece);
    }
    const struct mm_body body = {
        .data = decoded->memory, .bytes = decoded->bytes, .content_type = content_type};
    decoded->is_quick = reader->is_quick(reading);
    decoded->status = reader->finish(reading, &decoded->call, &body, &decoded->error);
}

static bool is_same_matrix(const struct mm_matrix *x, const struct mm_matrix *y) {
    return x->dtype == y->dtype && x->rows == y->rows && x->cols == y->cols && x->ld == y->ld &&
           (x->data == NULL) == (y->data == NULL) &&
           (x->data == NULL || memcmp(x->data, y->data, mm_matrix_bytes(x)) == 0);
}

static bool is_same_error(const struct mm_error *x, const struct mm_error *y) {
    return x->status == y->status && strcmp(x->detail, y->detail) == 0 && strcmp(x->field, y->field) == 0 &&
           strcmp(x->expected, y->expected) == 0 && strcmp(x->got, y->got) == 0 && x->line == y->line &&
           x->column == y->column && x->has_limit == y->has_limit && x->limit == y->limit;
}

static bool is_same(const struct decoded *x, const struct decoded *y) {
    const struct mm_call *c = &x->call, *d = &y->call;
    if (x->status != MM_OK || y->status != MM_OK)
        return x->status == y->status && is_same_error(&x->error, &y->error);
    return is_same_matrix(&c->a, &d->a) && is_same_matrix(&c->b, &d->b) && c->dtype == d->dtype &&
           c->a_column_major == d->a_column_major && c->b_column_major == d->b_column_major &&
           c->given == d->given && memcmp(c->names, d->names, sizeof c->names) == 0 &&
           memcmp(c->numbers, d->numbers, sizeof c->numbers) == 0 && c->storage.data == NULL;
}

static bool is_aligned(const struct decoded *decoded) {
    return (uintptr_t)decoded->call.a.data % ALIGNMENT == 0 &&
           (uintptr_t)decoded->call.b.data % ALIGNMENT == 0;
}

static void check_cut(const char *what, enum mm_op op, const char *content_type, const char *bytes,
                      size_t length, struct cut cut, const struct decoded *expected) {
    struct decoded got;
    decode_pieces(&got, op, content_type, bytes, length, cut);
    if (!is_same(&got, expected))
        fail_msg("%s of %s cut at %zu and %zu gives %s: %s; expected %s: %s", mm_op_name(op), what, cut.first,
                 cut.others, mm_status_name(got.status), got.error.detail, mm_status_name(expected->status),
                 expected->error.detail);
    free(got.memory);
}

static const struct text *text_of(const char *form) {
    static struct text text;
    text.length = 0;
    write_form(&text, form);
    return &text;
}

/* Cut in two anywhere, into single bytes, and at random. */
static void check_form(enum mm_op op, const struct form *form) {
    const char *type = form->content_type != NULL ? form->content_type : plain_type;
    const struct text text = *text_of(form->form);
    struct decoded expected;
    const size_t length = text.length;
    decode_whole(&expected, op, type, text.bytes, length);
    for (size_t first = 1; first <= length; first++)
        check_cut(form->form, op, type, text.bytes, length, (struct cut){first, SIZE_MAX, 0, true},
                  &expected);
    for (uint32_t seed = 1; seed <= CUTS; seed++)
        check_cut(form->form, op, type, text.bytes, length, (struct cut){0, 100, seed, seed % 2 == 0},
                  &expected);
    check_cut(form->form, op, type, text.bytes, length, (struct cut){1, 1, 0, true}, &expected);
    check_cut(form->form, op, type, text.bytes, length, (struct cut){1, 1, 0, false}, &expected);
    free(expected.memory);
}

static void test_forms(void **state) {
    for (size_t index = 0; index < COUNT(forms); index++) {
        check_form(MM_MATMUL, &forms[index]);
        check_form(MM_TRANSPOSE, &forms[index]);
    }
}

/* One to four bytes changed, dropped or doubled. */
static void mutate(struct text *text, uint32_t *random) {
    static const char likely[] = "\r\n-B\"';:(){},0129LT\x93";
    for (uint32_t left = 1 + next_random(random) % 4; left > 0; left--) {
        const size_t at = next_random(random) % text->length, behind = text->length - at;
        switch (next_random(random) % 4) {
        case 0:
            text->bytes[at] = (char)next_random(random);
            break;
        case 1:
            text->bytes[at] = likely[next_random(random) % (sizeof likely - 1)];
            break;
        case 2:
            memmove(text->bytes + at, text->bytes + at + 1, behind - 1);
            text->length--;
            break;
        default:
            memmove(text->bytes + at + 1, text->bytes + at, behind);
            text->length++;
            break;
        }
    }
}

static void test_judged(void **state) {
    for (size_t index = 0; index < COUNT(judged); index++) {
        const struct judged *row = &judged[index];
        const struct form form = {row->form};
        const struct text *text = text_of(row->form);
        struct decoded decoded;
        decode_whole(&decoded, row->op, plain_type, text->bytes, text->length);
        if (decoded.status != row->status ||
            (row->field != NULL && (strcmp(decoded.error.field, row->field) != 0 ||
                                    strstr(decoded.error.detail, row->detail) == NULL)))
            fail_msg("%s %s: %s, field '%s': %s", mm_op_name(row->op), row->form,
                     mm_status_name(decoded.status), decoded.error.field, decoded.error.detail);
        free(decoded.memory);
        check_form(row->op, &form);
    }
}

/* Wherever the files begin, and in either order, the elements are read whole and aligned. */
static void test_views(void **state) {
    static const struct {
        enum mm_op op;
        const char *form;
        size_t a_bytes, b_bytes;
        unsigned char a_first, b_first; /* of each, the first byte, from which they count up */
        bool a_column_major, b_column_major;
    } views[] = {
        {MM_MATMUL, AB END, 24, 12, 0, 1, false, true},
        {MM_MATMUL, PART("a") "$P|" VARIANT PART("b") "$Q|" END, 24, 12, 2, 3, true, false},
        {MM_MATMUL, PART("a") "$Z|" PART("b") "$Y|" END, 0, 0, 0, 0, true, false},
        {MM_TRANSPOSE, VARIANT PART("a") "$J|" END, 48, 0, 14, 0, true, false},
    };
    for (size_t index = 0; index < COUNT(views) * 8; index++) {
        const size_t shift = index % 8;
        const struct text *text = text_of(views[index / 8].form);
        struct decoded decoded;
        char *memory = malloc(text->length + shift);
        const struct mm_body body = {
            .data = memory + shift, .bytes = text->length, .content_type = plain_type};
        memcpy(memory + shift, text->bytes, text->length);
        begin(&decoded, views[index / 8].op);
        assert_int_equal(mm_codec_decode(codec(), &decoded.call, &body, &limits, NULL, &decoded.error),
                         MM_OK);
        const struct mm_matrix *a = &decoded.call.a, *b = &decoded.call.b;
        assert_int_equal(mm_matrix_bytes(a), views[index / 8].a_bytes);
        assert_int_equal(mm_matrix_bytes(b), views[index / 8].b_bytes);
        for (size_t byte = 0; byte < views[index / 8].a_bytes; byte++)
            assert_int_equal(((unsigned char *)a->data)[byte], views[index / 8].a_first + byte);
        for (size_t byte = 0; byte < views[index / 8].b_bytes; byte++)
            assert_int_equal(((unsigned char *)b->data)[byte], views[index / 8].b_first + byte);
        assert_int_equal((uintptr_t)a->data % mm_dtype_bytes(a->dtype), 0);
        assert_int_equal((uintptr_t)b->data % sizeof(float), 0);
        assert_true(decoded.call.a_column_major == views[index / 8].a_column_major &&
                    decoded.call.b_column_major == views[index / 8].b_column_major);
        free(memory);
    }
}

static void test_truncated(void **state) {
    const struct text *text = text_of(PART("a") "$A|" VARIANT PART("b") "$B|" END);
    for (size_t length = 0; length + 2 < text->length; length++) {
        struct decoded decoded;
        decode_whole(&decoded, MM_MATMUL, plain_type, text->bytes, length);
        assert_int_equal(decoded.status, MM_BAD_REQUEST);
        assert_true(decoded.error.detail[0] != '\0');
        free(decoded.memory);
    }
}

static void test_mutated(void **state) {
    uint32_t random = 1;
    unsigned refused = 0;
    for (unsigned round = 0; round < MUTATIONS; round++) {
        struct text text = *text_of(forms[round % 10].form);
        char what[32];
        struct decoded expected;
        mutate(&text, &random);
        snprintf(what, sizeof what, "mutation %u", round);
        decode_whole(&expected, MM_MATMUL, plain_type, text.bytes, text.length);
        refused += expected.status != MM_OK;
        if (expected.status != MM_OK && expected.status != MM_BAD_REQUEST &&
            expected.status != MM_TOO_LARGE && expected.status != MM_UNSUPPORTED)
            fail_msg("%s: %s", what, mm_status_name(expected.status));
        check_cut(what, MM_MATMUL, plain_type, text.bytes, text.length,
                  (struct cut){0, 300, round + 1, round % 2 == 0}, &expected);
        free(expected.memory);
    }
    assert_in_range(refused, MUTATIONS / 2, MUTATIONS - 1);
}

/* Adds a part with a file of so many random bytes, and returns where it ends. */
static char *add_large(char *at, const char *delimiter, const char *name, const char *dict, size_t bytes,
                       uint32_t *random) {
    at += sprintf(at, "%s\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n\x93NUMPY\x01%c\x40%c%-63s\n",
                  delimiter, name, 0, 0, dict);
    for (; bytes > 0; bytes--)
        *at++ = (char)next_random(random);
    return at;
}

/* A form of 300×200 and 200×150 floats, in pieces as large as the network's. */
static void test_large(void **state) {
    enum { A_BYTES = 4 * 300 * 200, B_BYTES = 4 * 200 * 150 };
    char *bytes = malloc(A_BYTES + B_BYTES + 1024);
    assert_non_null(bytes);
    uint32_t random = 1;
    char *end = add_large(bytes, "--B", "a", "{'descr':'<f4','fortran_order':False,'shape':(300,200)}",
                          A_BYTES, &random);
    end = add_large(end, "\r\n--B", "b", "{'descr':'<f4','fortran_order':True,'shape':(200,150)}", B_BYTES,
                    &random);
    end += sprintf(end, "\r\n--B--");
    const size_t length = (size_t)(end - bytes);
    struct decoded expected, got;
    decode_whole(&expected, MM_MATMUL, plain_type, bytes, length);
    assert_int_equal(expected.status, MM_OK);
    for (uint32_t seed = 1; seed <= LARGE_CUTS; seed++)
        check_cut("a large form", MM_MATMUL, plain_type, bytes, length,
                  (struct cut){0, 48 << 10, seed, seed % 8 != 0}, &expected);
    decode_pieces(&got, MM_MATMUL, plain_type, bytes, length, (struct cut){1000, 32 << 10, 0, true});
    assert_in_range(length - got.bytes, 1, 2 * (ALIGNMENT - 1)); /* closed up by what aligns */
    assert_true(got.is_quick && is_aligned(&got) && is_aligned(&expected));
    free(got.memory);
    free(expected.memory);
    free(bytes);
}

/* A boundary among the elements, which no client may choose: they are what the header says. */
static void test_boundary_within(void **state) {
    static const char within[] = "\r\n--B\r\nxy";
    struct text text = *text_of(AB END);
    struct decoded whole, got;
    char *elements = memchr(text.bytes, '}', text.length);
    memcpy(elements + 2 + 8, within, sizeof within - 1);
    decode_whole(&whole, MM_MATMUL, plain_type, text.bytes, text.length);
    assert_int_equal(whole.status, MM_OK);
    for (size_t first = 1; first <= text.length; first++) {
        decode_pieces(&got, MM_MATMUL, plain_type, text.bytes, text.length,
                      (struct cut){first, SIZE_MAX, 0, true});
        assert_true(got.is_quick && is_aligned(&got));
        assert_int_equal(got.status, MM_OK);
        assert_memory_equal(got.call.a.data, elements + 2, 24);
        free(got.memory);
    }
    free(whole.memory);
}

/* Given up after any part of it. */
static void test_cancel(void **state) {
    const struct mm_body_reader *reader = codec()->reader;
    const struct text text = *text_of(AB END);
    struct mm_call call;
    mm_call_init(&call, MM_MATMUL);
    for (size_t length = 0; length <= text.length; length++) {
        void *reading = reader->begin(&call, plain_type, MM_LENGTH_UNKNOWN, &limits, NULL);
        char *memory = allocate(length);
        memcpy(memory, text.bytes, length);
        if (length > 0)
            (void)reader->feed(reading, memory, length);
        reader->cancel(reading);
        free(memory);
    }
    assert_null(reader->begin(&call, "multipart/form-data", MM_LENGTH_UNKNOWN, &limits, NULL));
}

/* A product that conforms in the caller's shapes stays the same product when it is turned. */
static void test_turn(void **state) {
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

RUN_TESTS(test_judged, test_forms, test_views, test_truncated, test_mutated, test_large, test_boundary_within,
          test_cancel, test_turn)
