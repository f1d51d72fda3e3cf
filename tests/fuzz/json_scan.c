/* Fuzzes the JSON scanner: however a body is cut, it gives the same elements, parameters and errors, and it
 * calls malformed what Jansson calls malformed. The input is a line, whose bytes are the lengths of the
 * pieces in turn, and the body. (The target json compares elements with strtof.) */
#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Jansson refuses numbers beyond all doubles, passes over a zero byte behind a number or a word, and nests
 * deeper. */
static void require_grammar(const struct decoding *decoding, struct piece text) {
    static const char malformed[] = "the JSON body ";
    const bool is_fault = strncmp(decoding->error.detail, malformed, sizeof malformed - 1) == 0;
    json_error_t fault;
    json_t *root =
        json_loadb(text.text, text.bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &fault);
    if (root == NULL && json_error_code(&fault) != json_error_numeric_overflow)
        REQUIRE(decoding->status == MM_BAD_REQUEST);
    if (is_fault && strstr(decoding->error.detail, "64 arrays") == NULL && text.bytes > 0 &&
        memchr(text.text, '\0', text.bytes) == NULL)
        REQUIRE(!json_is_object(root));
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const struct mm_codec *codec = fuzz_codec("application/json");
    const struct piece none = {NULL, 0};
    struct piece text = {(const char *)data, bytes};
    const struct piece lengths = fuzz_take(&text, '\n');
    FUZZ_EACH_OP(op) {
        struct decoding whole, pieces;
        struct mm_body whole_body = {0}, pieces_body = {0};
        REQUIRE(fuzz_read(&whole, op, codec, &whole_body, text.bytes, text, none));
        REQUIRE(fuzz_read(&pieces, op, codec, &pieces_body,
                          lengths.bytes % 2 == 0 ? text.bytes : MM_LENGTH_UNKNOWN, text, lengths));
        fuzz_require_same_decoding(&whole, &pieces);
        require_grammar(&whole, text);
        fuzz_release(&pieces);
        fuzz_release(&whole);
        free(pieces_body.data);
        free(whole_body.data);
    }
    return 0;
}
