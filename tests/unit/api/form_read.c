/* api/form_read: a form that is read while it arrives is what api/form makes of the whole, however it is cut,
 * in its elements and parameters as in what is said of a bad one; and the elements lie aligned. */
#include "api/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
    {'A', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 0},
    {'B', 1, 12, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 1), }", 0},
    {'P', 1, 24, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 128},
    {'Q', 1, 12, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }", 128},
    {'2', 2, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }", 64},
    {'3', 3, 12, "{'shape':(3,1),'fortran_order':False,'descr':'<f4'}", 0},
    {'m', 1, 4, "{'descr':'<f4','fortran_order':True,'shape':(1,1)}", 0},
    {'Z', 1, 0, "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 3), }", 0},
    {'Y', 1, 0, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }", 0},
    {'G', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 4096},
    {'g', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 4097},
    {'D', 1, 48, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", 0},
    {'E', 1, 24, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1), }", 0},
    {'I', 1, 24, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", 0},
    {'J', 1, 48, "{'descr': '<i8', 'fortran_order': True, 'shape': (2, 3), }", 0},
    {'F', 1, 12, "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }", 0},
    {'>', 1, 24, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", 0},
    {'S', 1, 23, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 0},
    {'L', 1, 25, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 0},
    {'W', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (1001, 3), }", 0},
    {'O', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000, 1000), }", 0},
    {'o', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 3), }", 0},
    {'M', 1, 24, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3), }", 0},
    {'R', 1, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", 0},
    {'9', 9, 24, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 0},
    {'x', 0, 4096, "x", 0},
    {'h', 0, 400, "X-Y: 12345|", 0},
    {'v', 0, 62, "--B|Content-Disposition: form-data; name=\"variant\"||naive|", 0},
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
                assert_true(index + 1 < sizeof pieces / sizeof pieces[0]);
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
    bool is_read;             /* as a product: while it arrives, and not when it is whole */
    const char *content_type; /* NULL: plain_type */
} forms[] = {
    /* As clients write them: well, or with parameters that are wrong. */
    {AB "--B--|", true, NULL},
    {AB "--B--", true, NULL},
    {AB "--B--|and an epilogue|--B|", true, NULL},
    {PART("b") "$Q|" PART("variant") "naive|" PART("a") "$P|--B--|", true, NULL},
    {PART("tile") "16|" PART("a") "$2|" PART("transpose_a") "1|" PART("b") "$3|" PART(
         "timeout_ms") "5|--B--|",
     true, NULL},
    {PART("a") "$m|" PART("b") "$m|--B--|", true, NULL},
    {PART("a") "$Z|" PART("b") "$Y|--B--|", true, NULL},
    {PART("a") "$A|" PART("b") "$Y|--B--|", true, NULL},
    {PART("a") "$G|" PART("b") "$B|--B--|", true, NULL},
    {"--B|content-type: x/y; charset=z|Content-Disposition:form-data;name=a;filename=\"a.npy\"||$A|"
     "--B|Content-Disposition: form-data; filename=\"--B\"; name=\"b\"|X:||$B|--B--|",
     true, NULL},
    {"--B|Content-Disposition: form-data; name=\"a\"|Content-Transfer-Encoding: base64||$A|" PART(
         "b") "$B|--B--|",
     true, NULL},
    {AB PART("variant") "|--B--|", true, NULL},
    {AB PART("variant") "a|--x|--|--B--|", true, NULL},
    {AB PART("variant") "$x|--B--|", true, NULL},
    {AB PART("variant") "naive|" PART("variant") "naive|--B--|", true, NULL},
    {AB PART("variant") "naive|" PART("variant") "blas|--B--|", true, NULL},
    {AB "$v--B--|", true, NULL},
    {AB PART("extra") "1|" PART("tile") "0|--B--|", true, NULL},
    {PART("tile") "0|" PART("extra") "1|" AB "--B--|", true, NULL},
    {AB PART("") "1|--B--|", true, NULL},
    {AB PART("va\\\"riant") "1|--B--|", true, NULL},
    {AB PART("m") "2|--B--|", true, NULL},
    {AB PART("backend") "c^pu|--B--|", true, NULL},
    {AB PART("dtype") "float32|--B--|", true, NULL},
    {AB PART("dtype") "float64|--B--|", true, NULL},
    {PART("aa") "$A|" PART("b") "$B|" PART("a") "$A|--B--|", true, NULL},
    {"--=_70 (')+_,-./:=?0123456789012345678901234567890123456789012345678901|"
     "Content-Disposition: form-data; name=a||$A|"
     "--=_70 (')+_,-./:=?0123456789012345678901234567890123456789012345678901|"
     "Content-Disposition: form-data; name=b||$B|"
     "--=_70 (')+_,-./:=?0123456789012345678901234567890123456789012345678901--|",
     true,
     "multipart/form-data; boundary=\"=_70 "
     "(')+_,-./:=?0123456789012345678901234567890123456789012345678901\""},
    /* Parameters alone, and not a form. */
    {PART("variant") "naive|--B--|", false, NULL},
    {"--B--|", false, NULL},
    {"", false, NULL},
    {"-", false, NULL},
    {"--B", false, NULL},
    {"--B|", false, NULL},
    {"x", false, NULL},
    {"{\"a\": [[1]], \"b\": [[2]]}", false, NULL},
    /* Delimiters with more about them than they need, or less. */
    {"|" AB "--B--|", false, NULL},
    {"a preamble|" AB "--B--|", false, NULL},
    {"--Bx|" AB "--B--|", false, NULL},
    {"--B |Content-Disposition: form-data; name=\"a\"||$A|" PART("b") "$B|--B--|", false, NULL},
    {AB "--B-- |", false, NULL},
    {AB "--B--\t", false, NULL},
    {AB "--B--\r", false, NULL},
    {AB "--B--x|", false, NULL},
    {AB "--B--x|--B--|", false, NULL},
    {AB "--B-|", false, NULL},
    {AB "--B|", false, NULL},
    {AB "--B", false, NULL},
    {AB "--", false, NULL},
    {AB, false, NULL},
    {PART("a") "$A|" PART("b") "$B--B--|", false, NULL},
    {PART("a") "$A|" PART("b") "$B|x|--B--|", false, NULL},
    {PART("a") "$A\n--B\nContent-Disposition: form-data; name=\"b\"\n\n$B\n--B--\n", false, NULL},
    {AB PART("variant") "naive|--Bx|--B--|", false, NULL},
    {AB PART("variant") "|--B |" PART("variant") "--B--|", false, NULL},
    {AB PART("variant") "--B--|", false, NULL},
    {AB PART("variant") "--B--|--B--|", false, NULL},
    {AB "--B|Content-Disposition: form-data; name=\"variant\"|--B--|", false, NULL},
    {AB "--B|Content-Disposition: form-data; name=\"variant\"--B--|", false, NULL},
    {AB "$v" PART("variant") "naive|--B--|", false, NULL},
    /* Headers. */
    {AB "--B||naive|--B--|", false, NULL},
    {AB "--B|X: y||naive|--B--|", false, NULL},
    {AB "--B|$h|naive|--B--|", false, NULL},
    {AB "--B|$hContent-Disposition: form-data; name=\"variant\"||naive|--B--|", false, NULL},
    {AB "--B|No header|Content-Disposition: form-data; name=\"variant\"||naive|--B--|", false, NULL},
    {AB "--B|X: ^|Content-Disposition: form-data; name=\"variant\"||naive|--B--|", false, NULL},
    {AB "--B|Content-Disposition: form-data; name=\"variant\"|Content-Disposition: form-data; "
        "name=\"tile\"||1|--B--|",
     false, NULL},
    {AB "--B|Content-Disposition: attachment; name=\"variant\"||naive|--B--|", false, NULL},
    {"--a:b|Content-Disposition: form-data; name=a||$A|--a:b|Content-Disposition: form-data; "
     "name=b|--a:b||$B|--a:b--|",
     false, "multipart/form-data; boundary=a:b"},
    /* Values and files that are long, or not what they should be. */
    {AB PART("variant") "$xx|--B--|", false, NULL},
    {AB PART("variant") "$x$x$x", false, NULL},
    {PART("a") "$g|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$A|--B--|", false, NULL},
    {PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$A|" PART("a") "$A|" PART("b") "$B|--B--|", false, NULL},
    {AB PART("a") "$A|--B--|", false, NULL},
    {AB PART("b") "$B|--B--|", false, NULL},
    {AB PART("a") "--B--|", false, NULL},
    {PART("a") "$D|" PART("b") "$E|--B--|", false, NULL},
    {PART("a") "$D|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$A|" PART("b") "$E|--B--|", false, NULL},
    {PART("a") "$I|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$F|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$>|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$S|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$L|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$A|" PART("b") "$S|--B--|", false, NULL},
    {PART("a") "$A|" PART("b") "$L|--B--|", false, NULL},
    {PART("a") "$W|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$O|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$o|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$M|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$R|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$9|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "[[1]]|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "|" PART("b") "$B|--B--|", false, NULL},
    {PART("a") "$x$x|" PART("b") "$B|--B--|", false, NULL},
    /* Of a transposition. */
    {PART("a") "$A|--B--|", false, NULL},
    {PART("a") "$D|" PART("dtype") "float64|--B--|", false, NULL},
    {PART("a") "$I|--B--|", false, NULL},
    {PART("variant") "naive|" PART("a") "$J|--B--|", false, NULL},
    {PART("a") "$J|" PART("transpose_a") "1|--B--|", false, NULL},
};

/* --- decoding ----------------------------------------------------------------------------------------- */

/* A decoded body, or the error; the views point into `memory`. */
struct decoded {
    enum mm_status status;
    struct mm_call call;
    struct mm_error error;
    char *memory;
    bool is_read;
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
    mm_call_set_text(&decoded->call, "backend", 7, "cpu", 3, &limits, NULL); /* as the query may */
}

static void decode_whole(struct decoded *decoded, enum mm_op op, const char *content_type, const char *bytes,
                         size_t length) {
    begin(decoded, op);
    decoded->memory = allocate(length);
    memcpy(decoded->memory, bytes, length);
    const struct mm_body body = {.data = decoded->memory, .bytes = length, .content_type = content_type};
    decoded->status = codec()->decode(&decoded->call, &body, &limits, NULL, &decoded->error);
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
        decoded->bytes = reader->feed(reading, decoded->memory, decoded->bytes + piece, piece);
        assert_true(decoded->bytes <= at + piece);
    }
    const struct mm_body body = {
        .data = decoded->memory, .bytes = decoded->bytes, .content_type = content_type};
    decoded->is_read = reader->is_quick(reading);
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

/* Whether the form was read while it arrived. */
static bool check_cut(const char *what, enum mm_op op, const char *content_type, const char *bytes,
                      size_t length, struct cut cut, const struct decoded *expected) {
    struct decoded got;
    decode_pieces(&got, op, content_type, bytes, length, cut);
    if (!is_same(&got, expected) || (got.is_read && got.status == MM_OK && !is_aligned(&got)))
        fail_msg("%s of %s cut at %zu and %zu gives %s: %s; expected %s: %s", mm_op_name(op), what, cut.first,
                 cut.others, mm_status_name(got.status), got.error.detail, mm_status_name(expected->status),
                 expected->error.detail);
    free(got.memory);
    return got.is_read;
}

/* Cut in two anywhere, into single bytes, and at random: read as it arrives always, or never. */
static void check_form(enum mm_op op, const struct form *form) {
    const char *type = form->content_type != NULL ? form->content_type : plain_type;
    static struct text text;
    struct decoded expected;
    text.length = 0;
    write_form(&text, form->form);
    const size_t length = text.length;
    decode_whole(&expected, op, type, text.bytes, length);
    const bool is_read = check_cut(form->form, op, type, text.bytes, length,
                                   (struct cut){.first = SIZE_MAX, .length_known = true}, &expected);
    if (op == MM_MATMUL && is_read != form->is_read)
        fail_msg("%s is %s while it arrives", form->form, is_read ? "read" : "not read");
    for (size_t first = 1; first <= length; first++)
        assert_true(is_read == check_cut(form->form, op, type, text.bytes, length,
                                         (struct cut){first, SIZE_MAX, 0, true}, &expected));
    for (uint32_t seed = 1; seed <= CUTS; seed++)
        assert_true(is_read == check_cut(form->form, op, type, text.bytes, length,
                                         (struct cut){0, 100, seed, seed % 2 == 0}, &expected));
    assert_true(is_read ==
                check_cut(form->form, op, type, text.bytes, length, (struct cut){1, 1, 0, true}, &expected));
    assert_true(is_read ==
                check_cut(form->form, op, type, text.bytes, length, (struct cut){1, 1, 0, false}, &expected));
    free(expected.memory);
}

static void test_forms(void **state) {
    (void)state;
    for (size_t index = 0; index < sizeof forms / sizeof forms[0]; index++) {
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

static void test_mutated(void **state) {
    (void)state;
    uint32_t random = 1;
    unsigned read = 0, refused = 0;
    for (unsigned round = 0; round < MUTATIONS; round++) {
        static struct text text;
        char what[32];
        struct decoded expected;
        text.length = 0;
        write_form(&text, forms[round % 10].form);
        mutate(&text, &random);
        snprintf(what, sizeof what, "mutation %u", round);
        decode_whole(&expected, MM_MATMUL, plain_type, text.bytes, text.length);
        refused += expected.status != MM_OK;
        read += check_cut(what, MM_MATMUL, plain_type, text.bytes, text.length,
                          (struct cut){0, 300, round + 1, round % 2 == 0}, &expected);
        free(expected.memory);
    }
    /* Most are refused, and most of these are left to the whole body's decoding: both are the point. */
    assert_in_range(read, MUTATIONS / 100, MUTATIONS / 2);
    assert_in_range(refused, MUTATIONS / 2, MUTATIONS);
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
    (void)state;
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
        assert_true(check_cut("a large form", MM_MATMUL, plain_type, bytes, length,
                              (struct cut){0, 48 << 10, seed, seed % 8 != 0}, &expected));
    decode_pieces(&got, MM_MATMUL, plain_type, bytes, length, (struct cut){1000, 32 << 10, 0, true});
    assert_in_range(length - got.bytes, 1, 2 * (ALIGNMENT - 1)); /* closed up by what aligns */
    free(got.memory);
    free(expected.memory);
    free(bytes);
}

/* A boundary among the elements, which no client may choose: they are what the header says, while the whole
 * body would be refused. This is the one difference. */
static void test_boundary_within(void **state) {
    (void)state;
    static const char within[] = "\r\n--B\r\nxy";
    static struct text text;
    struct decoded whole, got;
    text.length = 0;
    write_form(&text, AB "--B--|");
    char *elements = memchr(text.bytes, '}', text.length);
    memcpy(elements + 2 + 8, within, sizeof within - 1);
    decode_whole(&whole, MM_MATMUL, plain_type, text.bytes, text.length);
    assert_int_equal(whole.status, MM_BAD_REQUEST);
    for (size_t first = 1; first <= text.length; first++) {
        decode_pieces(&got, MM_MATMUL, plain_type, text.bytes, text.length,
                      (struct cut){first, SIZE_MAX, 0, true});
        assert_true(got.is_read && is_aligned(&got));
        assert_int_equal(got.status, MM_OK);
        assert_memory_equal(got.call.a.data, elements + 2, 24);
        free(got.memory);
    }
    free(whole.memory);
}

/* Given up after any part of it. */
static void test_cancel(void **state) {
    (void)state;
    const struct mm_body_reader *reader = codec()->reader;
    static struct text text;
    struct mm_call call;
    text.length = 0;
    write_form(&text, AB "--B--|");
    mm_call_init(&call, MM_MATMUL);
    for (size_t length = 0; length <= text.length; length++) {
        void *reading = reader->begin(&call, plain_type, MM_LENGTH_UNKNOWN, &limits, NULL);
        char *memory = allocate(length);
        memcpy(memory, text.bytes, length);
        if (length > 0)
            (void)reader->feed(reading, memory, length, length);
        reader->cancel(reading);
        free(memory);
    }
    assert_null(reader->begin(&call, "multipart/form-data", MM_LENGTH_UNKNOWN, &limits, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_mutated),
                                       cmocka_unit_test(test_large), cmocka_unit_test(test_boundary_within),
                                       cmocka_unit_test(test_cancel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
