/* Errors as HTTP responses: RFC 9457 problem details, and the only map from a status to HTTP. Any thread may
 * call these functions. */
#pragma once

#include "gpu/status.h"

#include <stdbool.h>
#include <stddef.h>

#define MM_PROBLEM_TYPE "application/problem+json"
#define MM_PROBLEM_URN "urn:matmuld:problem:" /* the name of the status follows */

/* An HTTP status of replies. The rows are sorted by code. mm_problem_http finds the first row that has a
 * status. The server never sends 499: it only counts requests whose client has left. */
struct mm_http {
    unsigned code;
    const char *response;       /* the response's name in openapi.json; NULL: not a problem */
    enum mm_status statuses[2]; /* the statuses that the row covers; the second one may be MM_OK: unused */
};
enum { MM_HTTP_COUNT = 22 };
extern const struct mm_http mm_http_table[MM_HTTP_COUNT];

/* The start of a curl command in error details. The client replaces ADDRESS by the server's address. */
#define MM_CURL "curl -sS --fail-with-body ADDRESS"

/* Returns the HTTP status code of a status. */
unsigned mm_problem_http(enum mm_status status);

/* Whether the request can succeed a little later without a change. Such a reply always has Retry-After. */
bool mm_problem_passes(enum mm_status status);

/* Returns the problem as malloc'ed JSON text, which the caller frees, or NULL if memory runs out. Members of
 * the error that are not set are left out. Bytes that are not UTF-8 become U+FFFD. */
char *mm_problem_json(const struct mm_error *error, const char *request_id, size_t *length);
