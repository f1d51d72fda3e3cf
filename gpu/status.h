/* Statuses and errors. A status is one way in which a request can fail, and an error describes one failure.
 * api/problem.c has the HTTP status codes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "gpu/names.h"

/* One row for each status: constant, name in the API, title for people. */
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

/* One row for each cause of MM_BUSY: constant, name in the metrics. */
#define MM_BUSY_TABLE(X)                                                                                     \
    X(MM_BUSY_QUEUE_DEPTH, "queue_depth")                                                                    \
    X(MM_BUSY_CLIENT_JOBS, "jobs_per_key")                                                                   \
    X(MM_BUSY_QUEUE_WAIT, "queue_wait")                                                                      \
    X(MM_BUSY_MEMORY, "memory")                                                                              \
    X(MM_BUSY_STORED, "stored_matrices")                                                                     \
    X(MM_BUSY_SYSTEM_MEMORY, "system_memory")                                                                \
    X(MM_BUSY_BENCHMARK, "benchmark")

enum mm_busy { MM_BUSY_TABLE(MM_CONSTANT) MM_BUSY_COUNT };

/* Describes a failure. The caller owns the struct. A text that does not apply is "", and a number that does
 * not apply is 0. */
struct mm_error {
    enum mm_status status;
    enum mm_busy busy;     /* set for MM_BUSY */
    char detail[640];      /* a sentence: what was expected and what was found */
    char field[48];        /* the invalid option, JSON member or form part; truncated if too long */
    char expected[64];     /* the expected value in short, for programs */
    char got[64];          /* the value that was found in short, for programs */
    uint64_t limit;        /* the limit that was exceeded, if has_limit is set */
    bool has_limit;        /* a flag, because a limit can be 0 */
    uint64_t line;         /* line of the error in a text body, counted from 1 */
    uint64_t column;       /* column of the error in a text body, counted from 1 */
    uint64_t needed_bytes; /* set for MM_NO_DEVICE_MEMORY, MM_STORE_FULL, MM_BUSY */
    uint64_t free_bytes;   /* set for MM_NO_DEVICE_MEMORY, MM_STORE_FULL */
};

/* Returns the name in the metrics, such as "queue_depth", a static string. Any thread. */
const char *mm_busy_name(enum mm_busy cause);

/* Return the name in the API, such as "bad_shape", and the title. Both are static strings. Any thread. */
const char *mm_status_name(enum mm_status status);
const char *mm_status_title(enum mm_status status);

__BEGIN_DECLS

/* Clears *error, and sets the status, the field and the detail; long texts are truncated. Returns the
 * status, so a function can end in `return mm_fail(error, MM_BAD_SHAPE, ...)`. error may be NULL. Any
 * thread. */
enum mm_status mm_fail_field(struct mm_error *error, enum mm_status status, const char *field,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));

#define mm_fail(error, status, ...) mm_fail_field(error, status, "", __VA_ARGS__)

/* Sets and returns MM_BUSY with its cause. No other function sets MM_BUSY, so no cause is missing. error may
 * be NULL. Any thread. */
enum mm_status mm_fail_busy(struct mm_error *error, enum mm_busy cause, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Calls mm_fail_field with the status MM_TOO_LARGE, and sets the limit that was exceeded. */
enum mm_status mm_fail_limit(struct mm_error *error, const char *field, uint64_t limit, const char *format,
                             ...) __attribute__((format(printf, 4, 5)));

/* Set `expected` or `got` of an error. Call mm_fail_field first. error may be NULL. Any thread. */
void mm_fail_expected(struct mm_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mm_fail_got(struct mm_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets and returns MM_NO_DEVICE_MEMORY. `device` is the name of the device. needed_bytes is 0 if the need is
 * not known. If needed_bytes does not exceed free_bytes, the detail says that no single block is large
 * enough. error may be NULL. Any thread. */
enum mm_status mm_fail_device_memory(struct mm_error *error, const char *device, uint64_t needed_bytes,
                                     uint64_t free_bytes);

__END_DECLS
