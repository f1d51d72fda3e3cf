/* If-Match and If-None-Match (RFC 9110, 13.1). Knows no store. */
#pragma once

#include "server/http/request.h"

enum mm_condition {
    MM_CONDITION_HOLDS,
    MM_CONDITION_OTHER,      /* If-Match names another value, or there is none */
    MM_CONDITION_MATCHED,    /* If-None-Match names the value that is there */
    MM_CONDITION_LONG_MATCH, /* If-Match is too long to be read */
    MM_CONDITION_LONG_NONE_MATCH
};

/* Whether a header's list, or *, names this item, such as an ETag; NULL: there is nothing to name. weak:
 * W/"x" names "x". Any thread. */
bool mm_list_has(const char *list, const char *item, bool weak);

/* Judges the request's conditions on a value with this ETag; NULL: there is no value. The connection's
 * thread. */
enum mm_condition mm_condition_judge(const struct mm_request *request, const char *etag);

/* Whether it has any. */
bool mm_condition_is_given(const struct mm_request *request);
