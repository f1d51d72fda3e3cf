#include "server/http/condition.h"

#include "api/slice.h"

#include <string.h>

static const char *tag_end(const char *at) {
    if (strncmp(at, "W/", 2) == 0)
        at += 2;
    if (*at++ != '"')
        return NULL;
    while (*at == '!' || ((unsigned char)*at > '"' && *at != '\x7f'))
        at++;
    return *at == '"' ? at + 1 : NULL;
}

/* Sets *is_named to whether the header lists this tag; "*" lists every tag. `etag` is NULL if there is no
 * value; no header lists NULL. If `weak`, W/"x" matches "x". Returns false if the header is malformed. */
static bool find_tag(const char *list, const char *etag, bool weak, bool *is_named) {
    const struct mm_slice all = mm_slice_trim(list, list + strlen(list));
    *is_named = etag != NULL && mm_slice_is(all, "*");
    if (mm_slice_is(all, "*"))
        return true;
    for (const char *at = list + strspn(list, " \t,"); *at != '\0'; at += strspn(at, " \t,")) {
        const char *end = tag_end(at);
        if (end == NULL)
            return false;
        const char *start = weak && *at == 'W' ? at + 2 : at;
        *is_named |= etag != NULL && mm_slice_is((struct mm_slice){start, (size_t)(end - start)}, etag);
        at = end + strspn(end, " \t");
        if (*at != ',' && *at != '\0')
            return false;
    }
    return true;
}

enum mm_condition mm_condition_decide(const struct mm_request *request, const char *etag) {
    char text[MM_ACCEPT_BYTES];
    bool is_cut, is_named;
    const char *list = mm_request_list(request, MM_HEADER_IF_MATCH, text, &is_cut);
    if (list != NULL && (is_cut || !find_tag(list, etag, false, &is_named)))
        return MM_CONDITION_BAD_MATCH;
    if (list != NULL && !is_named)
        return MM_CONDITION_OTHER;
    list = mm_request_list(request, MM_HEADER_IF_NONE_MATCH, text, &is_cut);
    if (list != NULL && (is_cut || !find_tag(list, etag, true, &is_named)))
        return MM_CONDITION_BAD_NONE_MATCH;
    return list != NULL && is_named ? MM_CONDITION_MATCHED : MM_CONDITION_HOLDS;
}

bool mm_condition_is_given(const struct mm_request *request) {
    return request->headers[MM_HEADER_IF_MATCH] != NULL || request->headers[MM_HEADER_IF_NONE_MATCH] != NULL;
}
