/* Fuzzes the reading of forms that arrive against the decoding of whole ones: both take the same bodies, give
 * the same elements and parameters, and say the same of what is wrong, however the body is cut. The input is
 * a line, whose bytes are the lengths of the pieces in turn, the Content-Type in a line, and the body. */
#include "tests/fuzz/fuzz.h"

#include "api/multipart.h"
#include "api/npy.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

/* Whether a file's elements hold what the boundary begins with: this is where both differ, by intention. */
static bool holds_boundary(const char *content_type, enum mm_op op, struct piece text) {
    struct mm_multipart multipart;
    const enum mm_npy_types types = op == MM_MATMUL ? MM_NPY_FLOATS : MM_NPY_NUMBERS;
    const char *file = text.text, *end = text.text + text.bytes;
    if (mm_multipart_begin(&multipart, content_type, NULL) != MM_OK)
        return false;
    while (file < end && (file = memmem(file, (size_t)(end - file), "\x93NUMPY", 6)) != NULL) {
        struct mm_npy_header header;
        enum mm_dtype dtype;
        size_t bytes;
        const size_t left = (size_t)(end - file);
        if (mm_npy_read_header("a", types, file, left, &header, NULL) == MM_OK &&
            mm_dtype_find(header.dtype_name, mm_op_dtypes(op), &dtype, NULL) == MM_OK &&
            mm_matrix_size("a", dtype, header.rows, header.cols, header.cols, &fuzz_limits, &bytes, NULL) ==
                MM_OK &&
            bytes <= left - header.bytes &&
            memmem(file + header.bytes, bytes, multipart.delimiter, multipart.delimiter_bytes) != NULL)
            return true;
        file++;
    }
    return false;
}

static void *larger(void *memory, size_t held, size_t bytes) {
    void *copy = NULL;
    REQUIRE(posix_memalign(&copy, ALIGNMENT, bytes) == 0);
    if (held > 0)
        memcpy(copy, memory, held);
    free(memory);
    return copy;
}

/* Feeds pieces of these lengths in turn, all at once where there are none, to a body in memory of just what
 * was received, which it moves with each of them. Returns that, or NULL where the Content-Type is refused. */
static char *decode_pieces(struct decoding *decoding, enum mm_op op, const char *content_type,
                           struct piece text, struct piece lengths) {
    const struct mm_body_reader *reader = fuzz_codec("multipart/form-data")->reader;
    struct mm_body body = {.content_type = content_type};
    *decoding = (struct decoding){.buffers = fuzz_buffers_take(1 << 20)};
    mm_call_init(&decoding->call, op);
    void *reading =
        reader->begin(&decoding->call, content_type, MM_LENGTH_UNKNOWN, &fuzz_limits, decoding->buffers);
    if (reading == NULL)
        return NULL;
    for (size_t at = 0, turn = 0; at < text.bytes; turn++) {
        size_t length = lengths.bytes == 0 ? text.bytes : (unsigned char)lengths.text[turn % lengths.bytes];
        length = length < text.bytes - at ? length + (length == 0) : text.bytes - at;
        body.data = larger(body.data, body.bytes, at + length);
        memcpy((char *)body.data + body.bytes, text.text + at, length);
        at += length;
        body.bytes = reader->feed(reading, body.data, body.bytes + length, length);
        REQUIRE(body.bytes <= at);
    }
    const bool is_read = reader->is_quick(reading);
    decoding->status = reader->finish(reading, &decoding->call, &body, &decoding->error);
    if (is_read && decoding->status == MM_OK)
        REQUIRE((uintptr_t)decoding->call.a.data % ALIGNMENT == 0 &&
                (uintptr_t)decoding->call.b.data % ALIGNMENT == 0);
    return body.data == NULL ? larger(NULL, 0, 1) : body.data;
}

static void require_same_decoding(const struct decoding *x, const struct decoding *y) {
    REQUIRE(x->status == y->status);
    if (x->status != MM_OK) {
        REQUIRE(strcmp(x->error.detail, y->error.detail) == 0 && strcmp(x->error.field, y->error.field) == 0);
        REQUIRE(strcmp(x->error.expected, y->error.expected) == 0 && strcmp(x->error.got, y->error.got) == 0);
        REQUIRE(x->error.has_limit == y->error.has_limit && x->error.limit == y->error.limit);
        return;
    }
    fuzz_require_same(&x->call.a, &y->call.a);
    fuzz_require_same(&x->call.b, &y->call.b);
    REQUIRE(x->call.a_column_major == y->call.a_column_major &&
            x->call.b_column_major == y->call.b_column_major);
    REQUIRE(x->call.given == y->call.given && x->call.dtype == y->call.dtype);
    REQUIRE(memcmp(x->call.names, y->call.names, sizeof x->call.names) == 0);
    REQUIRE(memcmp(x->call.numbers, y->call.numbers, sizeof x->call.numbers) == 0);
}

static void check(enum mm_op op, const char *content_type, struct piece text, struct piece lengths) {
    struct decoding whole, pieces;
    const struct mm_body body = {
        .data = fuzz_copy_bytes(text), .bytes = text.bytes, .content_type = content_type};
    mm_call_init(&whole.call, op);
    fuzz_decode(&whole, fuzz_codec("multipart/form-data"), &body);
    char *memory = decode_pieces(&pieces, op, content_type, text, lengths);
    if (memory != NULL && !holds_boundary(content_type, op, text))
        require_same_decoding(&whole, &pieces);
    fuzz_release(&pieces);
    fuzz_release(&whole);
    free(memory);
    free(body.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct piece text = {(const char *)data, bytes};
    const struct piece lengths = fuzz_take(&text, '\n');
    char *content_type = fuzz_copy_text(fuzz_take(&text, '\n'));
    FUZZ_EACH_OP(op) {
        check(op, content_type, text, lengths);
        check(op, content_type, text, (struct piece){NULL, 0});
    }
    free(content_type);
    return 0;
}
