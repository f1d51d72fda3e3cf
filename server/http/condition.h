/* If-Match and If-None-Match (RFC 9110, 13.1). Knows no store. The connection's thread calls these
 * functions. */
#pragma once

#include "server/http/request.h"

enum mm_condition {
    MM_CONDITION_HOLDS,
    MM_CONDITION_OTHER,     /* If-Match names other values, or there is no value */
    MM_CONDITION_MATCHED,   /* If-None-Match names the present value */
    MM_CONDITION_BAD_MATCH, /* If-Match is malformed or too long */
    MM_CONDITION_BAD_NONE_MATCH
};

/* Decides the request's conditions on a value with this ETag; NULL: there is no value. The connection's
 * thread. */
enum mm_condition mm_condition_decide(const struct mm_request *request, const char *etag);

/* Whether the request has a condition. */
bool mm_condition_is_given(const struct mm_request *request);
