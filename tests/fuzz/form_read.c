/* Fuzzes the reading of forms that arrive: however the body is cut, it gives the same elements, parameters
 * and errors. The input is a line, whose bytes are the lengths of the pieces in turn, the Content-Type in a
 * line, and the body. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

static void check(enum mm_op op, const char *content_type, struct piece text, struct piece lengths) {
    const struct mm_codec *codec = fuzz_codec("multipart/form-data");
    struct decoding whole, pieces;
    const struct mm_body body = {
        .data = fuzz_copy_bytes(text), .bytes = text.bytes, .content_type = content_type};
    struct mm_body read = {.content_type = content_type};
    mm_call_init(&whole.call, op);
    fuzz_decode(&whole, codec, &body);
    if (fuzz_read(&pieces, op, codec, &read, MM_LENGTH_UNKNOWN, text, lengths))
        fuzz_require_same_decoding(&whole, &pieces);
    fuzz_release(&pieces);
    fuzz_release(&whole);
    free(read.data);
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
