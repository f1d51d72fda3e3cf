/* Evaluates If-Match and If-None-Match (RFC 9110, 13.1). Knows no store. Runs on the connection's thread. */
#pragma once

#include "server/http/request.h"

enum mm_condition {
    MM_CONDITION_HOLDS,
    MM_CONDITION_OTHER,     /* If-Match does not list the value's tag, or there is no value */
    MM_CONDITION_MATCHED,   /* If-None-Match lists the value's tag */
    MM_CONDITION_BAD_MATCH, /* If-Match is malformed or too long */
    MM_CONDITION_BAD_NONE_MATCH
};

/* Evaluates the request's conditions. `etag` is the value's tag, or NULL if there is no value. */
enum mm_condition mm_condition_decide(const struct mm_request *request, const char *etag);

bool mm_condition_is_given(const struct mm_request *request);
