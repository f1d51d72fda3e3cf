/* Errors on the wire: RFC 9457 problem details, and the one place that maps a status to HTTP. Any thread may
 * call these functions. */
#pragma once

#include "gpu/status.h"

#include <stdbool.h>
#include <stddef.h>

#define MM_PROBLEM_TYPE "application/problem+json"
#define MM_PROBLEM_URN "urn:matmuld:problem:" /* and the name of the status */

/* An HTTP status of replies. The rows rise; a status of the domain is sent as the first that has it. 499 is
 * sent to nobody: the client has left. */
struct mm_http {
    unsigned code;
    const char *response;       /* its name among openapi.json's; NULL: it is no problem */
    enum mm_status statuses[2]; /* that it stands for; a second one if it is not MM_OK */
};
enum { MM_HTTP_COUNT = 22 };
extern const struct mm_http mm_http_table[MM_HTTP_COUNT];

/* How a request begins that a detail shows; ADDRESS is this server's. */
#define MM_CURL "curl -sS --fail-with-body ADDRESS"

/* The HTTP status code of a status: 200 for MM_OK. */
unsigned mm_problem_http(enum mm_status status);

/* Whether the same request can succeed a little later: such a reply always has Retry-After. */
bool mm_problem_passes(enum mm_status status);

/* The problem as JSON text, with those members of the error that are set. malloc'ed, the caller frees; NULL
 * if memory runs out. Bytes that are no UTF-8 come out as U+FFFD. */
char *mm_problem_json(const struct mm_error *error, const char *request_id, size_t *length);
