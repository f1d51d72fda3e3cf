/* What the fuzz targets share: pieces of an input, and the decoding of a body under small limits, after
 * which all that codec.h promises is checked. A target that finds a promise broken ends by abort(). */
#pragma once

#include "api/call.h"
#include "api/codec.h"

/* The target, one in each program: called by libFuzzer, or by replay.c. Takes any bytes, which it does not
 * write to, and returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Ends the process with a line that says what does not hold. Not an assert, since it is no debug aid but
 * what the program is for. */
#define REQUIRE(condition) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))
_Noreturn void fuzz_fail(const char *file, int line, const char *condition);

/* Bytes of the input, or a copy of some. */
struct piece {
    const char *text;
    size_t bytes;
};

/* Takes what stands before the next separator, which goes too, or all that is left where there is none. */
struct piece fuzz_take(struct piece *rest, char separator);

/* Takes so many bytes, or all that is left where there are fewer. */
struct piece fuzz_take_bytes(struct piece *rest, size_t bytes_max);

/* Copies in memory of just their size, so that a sanitizer sees the first byte that is read past them;
 * the caller frees. The bytes are aligned as a request's body is; NULL where there are none. The text
 * ends in NUL, and at the first one within it. */
void *fuzz_copy_bytes(struct piece piece);
char *fuzz_copy_text(struct piece piece);

/* Every input is decoded for each operation in turn: what is a product's can be malformed of a transposition.
 */
#define FUZZ_EACH_OP(op) for (enum mm_op op = (enum mm_op)0; op < MM_OP_COUNT; op = (enum mm_op)(op + 1))

/* The one request codec that speaks this media type. */
const struct mm_codec *fuzz_codec(const char *media_type);

/* Small, so that a size that is merely announced takes neither memory nor time, and so that the input of a
 * few kilobytes passes each limit. */
extern const struct mm_limits fuzz_limits;

/* That a refusal says why, in an error that makes a proper problem document. */
void fuzz_require_error(enum mm_status status, const struct mm_error *error);

/* A body that was decoded, or not: `status` tells. The body is the decoding's own copy. */
struct decoding {
    enum mm_status status;
    struct mm_call call;
    struct mm_error error;
    struct mm_body body;
    struct mm_budget budget;
    struct mm_reservation memory; /* of the budget: the decoding does not move */
};

/* Decodes a body into decoding->call, which the caller has begun, and checks either the error or the views:
 * shapes within the limits, every element readable, in the body or in the call's storage. fuzz_release checks
 * that no memory stays taken. */
void fuzz_decode(struct decoding *decoding, const struct mm_codec *codec, const char *content_type,
                 struct piece text);
void fuzz_release(struct decoding *decoding);

/* Reads a body as it arrives, in pieces of these lengths in turn, or all at once if there are none, and
 * checks that it comes to the same as the body that was decoded whole. */
void fuzz_require_read(const struct decoding *whole, const struct mm_codec *codec, uint64_t announced,
                       struct piece text, struct piece lengths);

/* That both are the same. */
void fuzz_require_same_shape(const struct mm_shape *x, const struct mm_shape *y);

/* That both have the same shape and, stored row by row, the same bits. */
void fuzz_require_same(const struct mm_matrix *x, const struct mm_matrix *y);
