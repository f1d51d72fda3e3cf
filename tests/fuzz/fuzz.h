/* Shared code of the fuzz targets: it cuts the input into slices, decodes a body under small limits, and
 * checks the promises of codec.h. A broken promise ends the process by abort(). */
#pragma once

#include "api/call.h"
#include "api/codec.h"

/* The fuzz target; each program has one. libFuzzer or replay.c calls it with arbitrary bytes. Always returns
 * 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Unlike assert, REQUIRE also checks in builds with NDEBUG: the failed condition is printed, and the process
 * aborts. */
#define REQUIRE(condition) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))
_Noreturn void fuzz_fail(const char *file, int line, const char *condition);

/* A slice of the fuzz input. It does not own the bytes, which need not end in NUL. */
struct slice {
    const char *text;
    size_t bytes;
};

/* Removes the text before the first separator from `rest` and returns it. The separator is dropped. Without a
 * separator, returns all of `rest`. */
struct slice fuzz_split(struct slice *rest, char separator);

/* Removes the first bytes_max bytes from `rest` and returns them, or all of `rest` if it is shorter. */
struct slice fuzz_split_bytes(struct slice *rest, size_t bytes_max);

/* Copies a slice into memory of exactly its size, so a sanitizer reports reads past the end. The copy is
 * aligned like a request's body. Returns NULL for an empty slice. The caller frees it. */
void *fuzz_copy_bytes(struct slice slice);
char *fuzz_copy_text(struct slice slice);

/* Runs the statement once for each operation, because a body that is valid for one may be malformed for the
 * other. */
#define FUZZ_EACH_OP(op) for (enum mm_op op = (enum mm_op)0; op < MM_OP_COUNT; op = (enum mm_op)(op + 1))

/* Returns the codec for request bodies of this media type. */
const struct mm_codec *fuzz_codec(const char *media_type);

/* Limits so small that an input of a few kilobytes can exceed each of them. */
extern const struct mm_limits fuzz_limits;

/* Checks that the error has a text, and that it makes a valid problem document. */
void fuzz_require_error(enum mm_status status, const struct mm_error *error);

/* The result of decoding a body. It owns a copy of the body, and must not be moved. */
struct decoding {
    enum mm_status status;
    struct mm_call call;
    struct mm_error error;
    struct mm_body body;
    struct mm_budget budget;
    struct mm_reservation memory; /* reserved from `budget` */
};

/* Decodes a body into decoding->call, which the caller has initialised. Checks the error, or that the views
 * stay within the limits and all elements are readable. Call fuzz_release in both cases. */
void fuzz_decode(struct decoding *decoding, const struct mm_codec *codec, const char *content_type,
                 struct slice text);
void fuzz_release(struct decoding *decoding);

/* Reads a body that arrives in chunks of these lengths in turn, and checks that the result equals `whole`.
 * Without lengths the body arrives at once. */
void fuzz_require_read(const struct decoding *whole, const struct mm_codec *codec, uint64_t announced,
                       struct slice text, struct slice lengths);

/* Checks that two shapes are equal. */
void fuzz_require_same_shape(const struct mm_shape *x, const struct mm_shape *y);

/* Checks that two matrices have equal shapes and equal elements, bit by bit, whatever their strides. */
void fuzz_require_same(const struct mm_matrix *x, const struct mm_matrix *y);
