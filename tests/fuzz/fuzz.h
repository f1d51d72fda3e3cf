/* Functions for all fuzz targets. They split the input, decode a body under small limits, and check that the
 * result is what codec.h promises. A failed check ends the process with abort(). */
#pragma once

#include "api/call.h"
#include "api/codec.h"
#include "api/oip/oip.h"

/* libFuzzer or replay.c calls this function with arbitrary bytes. Each program defines it. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Prints the condition and aborts if it is false. Unlike assert, also works in builds with NDEBUG. */
#define REQUIRE(condition) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))
_Noreturn void fuzz_fail(const char *file, int line, const char *condition);

/* A part of a text. Does not own the bytes, which need not end in NUL. */
struct slice {
    const char *text;
    size_t bytes;
};

/* Removes the text before the first separator from `rest` and returns it. Also removes the separator. Without
 * a separator, returns all of `rest`. */
struct slice fuzz_split(struct slice *rest, char separator);

/* Removes at most bytes_max bytes from the start of `rest` and returns them. */
struct slice fuzz_split_bytes(struct slice *rest, size_t bytes_max);

/* Copies a slice to memory of exactly the slice's size, so a sanitizer reports reads past the end. The copy
 * is aligned like a request's body. Returns NULL for an empty slice. The caller frees the copy. */
void *fuzz_copy_bytes(struct slice slice);
char *fuzz_copy_text(struct slice slice);

/* Loops over the operations. A body may be valid for a product and malformed for a transposition. */
#define FUZZ_EACH_OP(op) for (enum mm_op op = (enum mm_op)0; op < MM_OP_COUNT; op = (enum mm_op)(op + 1))

/* Returns the codec of a media type. Aborts if there is none. */
const struct mm_codec *fuzz_codec(const char *media_type);

/* Limits for decoding. They are so small that an input of a few kilobytes can exceed each limit. */
extern const struct mm_limits fuzz_limits;

/* Checks that the error has a text and gives a valid problem document. */
void fuzz_require_error(enum mm_status status, const struct mm_error *error);

/* The result of decoding a body. Owns a copy of the body. Must not be moved, because it points to itself. */
struct decoding {
    enum mm_status status;
    union {
        struct mm_call call;
        struct mm_oip_call infer; /* begins with `call` */
    };
    struct mm_error error;
    const char *content_type; /* not owned */
    struct mm_body body;
    struct mm_budget budget;
    struct mm_reservation memory;
};

/* Decodes a body into decoding->call, which the caller has initialised. On success, checks the matrices and
 * reads all elements. On failure, checks the error. In both cases the caller calls fuzz_release. */
void fuzz_decode(struct decoding *decoding, const struct mm_codec *codec, const char *content_type,
                 struct slice text);
void fuzz_release(struct decoding *decoding);

/* Decodes a body that arrives in chunks, and checks that the result equals `whole`. The bytes of `lengths`
 * are the lengths of the chunks. If `lengths` is empty, the body arrives in one chunk. */
void fuzz_require_read(const struct decoding *whole, const struct mm_codec *codec, uint64_t announced,
                       struct slice text, struct slice lengths);

void fuzz_require_same_shape(const struct mm_shape *x, const struct mm_shape *y);

/* Checks that two matrices have equal shapes and equal bits in all elements. Strides may differ. */
void fuzz_require_same(const struct mm_matrix *x, const struct mm_matrix *y);
