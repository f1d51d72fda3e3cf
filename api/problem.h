/* Errors on the wire: RFC 9457 problem details, and the one place that maps a status to HTTP. Any thread may
 * call these functions. */
#pragma once

#include "gpu/status.h"

#include <stdbool.h>
#include <stddef.h>

#define MM_PROBLEM_TYPE "application/problem+json"
#define MM_PROBLEM_URN "urn:matmuld:problem:" /* and the name of the status */

/* How a request begins that a detail shows; ADDRESS is this server's. */
#define MM_CURL "curl -sS --fail-with-body ADDRESS"

/* The HTTP status code of a status: 200 for MM_OK. */
unsigned mm_problem_http(enum mm_status status);

/* Whether the same request can succeed a little later: such a reply always has Retry-After. */
bool mm_problem_passes(enum mm_status status);

/* The problem as JSON text, with those members of the error that are set. malloc'ed, the caller frees; NULL
 * if memory runs out. Bytes that are no UTF-8 come out as U+FFFD. */
char *mm_problem_json(const struct mm_error *error, const char *request_id, size_t *length);
