/* Statuses and errors: every way in which a request can fail, the name it has on the wire, and the
 * sentence that says what was expected and what came. It knows no HTTP numbers: api/problem.c has
 * the one table that maps them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "gpu/names.h"

/* One row a status: constant, wire name (fixed by the contract), title for people. */
#define MM_STATUS_TABLE(X)                                                                                   \
    X(MM_OK, "ok", "OK")                                                                                     \
    X(MM_BAD_REQUEST, "bad_request", "The request is malformed")                                             \
    X(MM_UNAUTHORIZED, "unauthorized", "A valid key is required")                                            \
    X(MM_FORBIDDEN, "forbidden", "This origin or host is not allowed")                                       \
    X(MM_NOT_FOUND, "not_found", "There is nothing at this path")                                            \
    X(MM_NO_SUCH_MATRIX, "no_such_matrix", "There is no matrix of this name")                                \
    X(MM_METHOD_NOT_ALLOWED, "method_not_allowed", "This path does not take the method")                     \
    X(MM_NOT_ACCEPTABLE, "not_acceptable", "None of the accepted types can be produced")                     \
    X(MM_REQUEST_TIMEOUT, "request_timeout", "The request took too long to arrive")                          \
    X(MM_LENGTH_REQUIRED, "length_required", "The request does not say its length")                          \
    X(MM_PRECONDITION_FAILED, "precondition_failed", "The matrix is not the expected one")                   \
    X(MM_TOO_LARGE, "too_large", "The request exceeds a limit")                                              \
    X(MM_UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "The body's type is not supported")               \
    X(MM_BAD_SHAPE, "bad_shape", "The matrices do not conform")                                              \
    X(MM_UNSUPPORTED, "unsupported", "Not supported")                                                        \
    X(MM_BUSY, "busy", "The service is full")                                                                \
    X(MM_INTERNAL, "internal", "The service failed")                                                         \
    X(MM_DEVICE_FAILED, "device_failed", "The device failed")                                                \
    X(MM_STOPPING, "stopping", "The service is stopping")                                                    \
    X(MM_NOT_READY, "not_ready", "The service is not ready")                                                 \
    X(MM_TIMEOUT, "timeout", "The deadline passed")                                                          \
    X(MM_NO_DEVICE_MEMORY, "no_device_memory", "The device is out of memory")                                \
    X(MM_STORE_FULL, "store_full", "The store is full")

enum mm_status { MM_STATUS_TABLE(MM_CONSTANT) MM_STATUS_COUNT };

/* What went wrong. The function that knows most about the failure fills it in once. The caller owns it; it
 * has a fixed size and is never allocated. Texts are "" and numbers 0 if they do not apply. */
struct mm_error {
    enum mm_status status;
    char detail[640];  /* a sentence: what was expected and what came */
    char field[48];    /* the option, member or part at fault, at most this much of its name */
    char expected[64]; /* short forms of what detail says, for programs */
    char got[64];
    uint64_t limit; /* the limit that was exceeded, if has_limit; 0 can be a limit */
    bool has_limit;
    uint64_t line; /* where in a text body, from 1 */
    uint64_t column;
    uint64_t needed_bytes; /* with MM_NO_DEVICE_MEMORY and MM_STORE_FULL; host memory, with MM_BUSY */
    uint64_t free_bytes;
};

/* The wire name ("bad_shape") and the title of a status. Static strings; any thread. */
const char *mm_status_name(enum mm_status status);
const char *mm_status_title(enum mm_status status);

__BEGIN_DECLS

/* Clears *error, sets status, field and detail (cut to fit), and returns the status, so a function
 * can end in `return mm_fail(error, MM_BAD_SHAPE, ...)`. error may be NULL: then only the status
 * is passed on. Further members are set by the caller afterwards. Any thread. */
enum mm_status mm_fail_field(struct mm_error *error, enum mm_status status, const char *field,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Fills an error in as mm_fail_field does, and leaves its field "". */
#define mm_fail(error, status, ...) mm_fail_field(error, status, "", __VA_ARGS__)

/* Fills in MM_TOO_LARGE with the limit that was exceeded, and returns it. `field` may be ""; error may be
 * NULL. Any thread. */
enum mm_status mm_fail_limit(struct mm_error *error, const char *field, uint64_t limit, const char *format,
                             ...) __attribute__((format(printf, 4, 5)));

/* Fills in MM_NO_DEVICE_MEMORY with the needed and the free bytes of `place`, and returns it. The detail says
 * that no single block is large enough if as much is free; error->needed_bytes is then one more than
 * free_bytes, so it always exceeds free_bytes. needed_bytes 0: unknown. error may be NULL. Any thread. */
enum mm_status mm_fail_memory(struct mm_error *error, const char *place, uint64_t needed_bytes,
                              uint64_t free_bytes);

/* Add the short forms to an error that was filled in. error may be NULL. */
void mm_fail_expected(struct mm_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mm_fail_got(struct mm_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

__END_DECLS
