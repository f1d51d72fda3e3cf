/* Errors as HTTP responses (RFC 9457), and the only map from a status to an HTTP code. Any thread may call
 * these functions. */
#pragma once

#include "gpu/status.h"

#include <stdbool.h>
#include <stddef.h>

#define MM_PROBLEM_TYPE "application/problem+json"
#define MM_PROBLEM_URN "urn:matmuld:problem:" /* followed by the name of the status */

/* A row of the table of HTTP statuses, which is sorted by code. If an mm_status is in several rows, the first
 * of these rows is used. Code 499 means that the client has disconnected. It occurs only in statistics. */
struct mm_http {
    unsigned code;
    const char *response;       /* the response's name in openapi.json; NULL if it is no problem */
    enum mm_status statuses[2]; /* statuses with this code; MM_OK may fill an unused place */
};
enum { MM_HTTP_COUNT = 22 };
extern const struct mm_http mm_http_table[MM_HTTP_COUNT];

/* The beginning of a curl command in errors. The client replaces ADDRESS by the server's address. */
#define MM_CURL "curl -sS --fail-with-body ADDRESS"

unsigned mm_problem_http(enum mm_status status);

/* Whether the same request may succeed a little later. If so, the reply has Retry-After. */
bool mm_problem_passes(enum mm_status status);

/* Returns the problem as malloc'ed JSON text, which the caller frees, or NULL if memory runs out. Leaves out
 * members of the error that are not set. A byte that is not UTF-8 becomes U+FFFD. */
char *mm_problem_json(const struct mm_error *error, const char *request_id, size_t *length);
