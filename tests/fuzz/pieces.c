/* Reads bodies as they arrive, cut as the input says, and compares two readings of one. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* ALIGNMENT holds for a body, and for the second matrix of a JSON body. */
enum { BUDGET_BYTES = 16 << 20, ALIGNMENT = 64 };

/* Memory of just so many bytes, in place of the old. */
static void *larger(void *memory, size_t held, size_t bytes) {
    void *copy = NULL;
    REQUIRE(posix_memalign(&copy, ALIGNMENT, bytes) == 0);
    if (held > 0)
        memcpy(copy, memory, held);
    free(memory);
    return copy;
}

bool fuzz_read(struct decoding *decoding, enum mm_op op, const struct mm_codec *codec, struct mm_body *body,
               uint64_t announced, struct piece text, struct piece lengths) {
    *decoding = (struct decoding){.buffers = fuzz_buffers_take(BUDGET_BYTES)};
    mm_call_init(&decoding->call, op);
    void *reading =
        codec->reader->begin(&decoding->call, body->content_type, announced, &fuzz_limits, decoding->buffers);
    if (reading == NULL)
        return false;
    for (size_t at = 0, turn = 0; at < text.bytes; turn++) {
        size_t length = lengths.bytes == 0 ? text.bytes : (unsigned char)lengths.text[turn % lengths.bytes];
        length = length < text.bytes - at ? length + (length == 0) : text.bytes - at;
        body->data = larger(body->data, body->bytes, body->bytes + length);
        memcpy((char *)body->data + body->bytes, text.text + at, length);
        at += length;
        body->bytes = codec->reader->feed(reading, body->data, body->bytes + length);
        REQUIRE(body->bytes <= at);
    }
    REQUIRE(mm_buffers_used(decoding->buffers) <= fuzz_limits.memory_bytes_max + ALIGNMENT);
    if (body->data == NULL)
        body->data = larger(NULL, 0, 1);
    decoding->status = codec->reader->finish(reading, &decoding->call, body, &decoding->error);
    if (decoding->status != MM_OK)
        fuzz_require_error(decoding->status, &decoding->error);
    REQUIRE(mm_buffers_used(decoding->buffers) == decoding->call.storage.bytes);
    REQUIRE(decoding->status == MM_OK || decoding->call.storage.bytes == 0);
    return true;
}

void fuzz_require_same_decoding(const struct decoding *x, const struct decoding *y) {
    REQUIRE(x->status == y->status);
    if (x->status != MM_OK) {
        REQUIRE(strcmp(x->error.detail, y->error.detail) == 0 && strcmp(x->error.field, y->error.field) == 0);
        REQUIRE(strcmp(x->error.expected, y->error.expected) == 0 && strcmp(x->error.got, y->error.got) == 0);
        REQUIRE(x->error.line == y->error.line && x->error.column == y->error.column);
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
