/* Fuzzes the JSON scanner against the tree of the whole: both take the same bodies, give the same elements
 * and parameters, and say the same of what is wrong; and the scanner does so however the body is cut. The
 * input is a line, whose bytes are the lengths of the pieces in turn, and the body. (That elements are what
 * strtof makes of the text is the target json's to check.) */
#include "tests/fuzz/fuzz.h"

#include "api/json_scan.h"
#include "api/json_tree.h"

#include <stdlib.h>
#include <string.h>

/* So much that memory is never what a body fails of. */
enum { BUDGET_BYTES = 16 << 20 };

static void begin(struct decoding *decoding, enum mm_op op) {
    decoding->error = (struct mm_error){0};
    decoding->buffers = fuzz_buffers_take(BUDGET_BYTES);
    mm_call_init(&decoding->call, op);
}

static void end(struct decoding *decoding) {
    if (decoding->status != MM_OK) {
        fuzz_require_error(decoding->status, &decoding->error);
        REQUIRE(mm_buffers_used(decoding->buffers) == 0);
    }
    REQUIRE(mm_buffers_used(decoding->buffers) == decoding->call.storage.bytes);
    fuzz_release(decoding);
}

static void decode_tree(struct decoding *decoding, enum mm_op op, struct piece text) {
    char *copy = fuzz_copy_bytes(text);
    const struct mm_body body = {.data = copy, .bytes = text.bytes};
    begin(decoding, op);
    decoding->status =
        mm_json_tree_decode(&decoding->call, &body, &fuzz_limits, decoding->buffers, &decoding->error);
    free(copy);
}

/* Feeds pieces of these lengths in turn; all at once where there are none. */
static void decode_pieces(struct decoding *decoding, enum mm_op op, struct piece text, struct piece lengths,
                          bool known) {
    char *copy = fuzz_copy_bytes(text);
    const struct mm_body body = {.data = copy, .bytes = text.bytes};
    struct mm_json_scan scan;
    bool goes_on = true;
    begin(decoding, op);
    mm_json_scan_begin(&scan, &decoding->call, known ? text.bytes : MM_LENGTH_UNKNOWN, &fuzz_limits,
                       decoding->buffers);
    for (size_t at = 0, turn = 0; at < text.bytes && goes_on; turn++) {
        size_t length = lengths.bytes == 0 ? text.bytes : (unsigned char)lengths.text[turn % lengths.bytes];
        length = length < text.bytes - at ? length + (length == 0) : text.bytes - at;
        char *piece = fuzz_copy_bytes((struct piece){text.text + at, length});
        goes_on = mm_json_scan_feed(&scan, piece, length);
        free(piece);
        at += length;
    }
    /* What the limit allows, and what aligns the second matrix. */
    REQUIRE(mm_buffers_used(decoding->buffers) <= fuzz_limits.memory_bytes_max + MM_JSON_ALIGNMENT);
    decoding->status = mm_json_scan_finish(&scan, &decoding->call, &body, &decoding->error);
    free(copy);
}

static void require_same(const struct decoding *x, const struct decoding *y) {
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
    REQUIRE(x->call.given == y->call.given && x->call.dtype == y->call.dtype);
    REQUIRE(memcmp(x->call.names, y->call.names, sizeof x->call.names) == 0);
    REQUIRE(memcmp(x->call.numbers, y->call.numbers, sizeof x->call.numbers) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct piece text = {(const char *)data, bytes};
    const struct piece lengths = fuzz_take(&text, '\n');
    FUZZ_EACH_OP(op) {
        struct decoding tree, whole, pieces;
        decode_tree(&tree, op, text);
        decode_pieces(&whole, op, text, (struct piece){NULL, 0}, true);
        decode_pieces(&pieces, op, text, lengths, lengths.bytes % 2 == 0);
        require_same(&tree, &whole);
        require_same(&tree, &pieces);
        end(&pieces);
        end(&whole);
        end(&tree);
    }
    return 0;
}
