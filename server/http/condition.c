/* Lists of ETags, and what they ask for. */
#include "server/http/condition.h"

#include "api/slice.h"

#include <string.h>

/* Other servers' tags may hold commas: their parts are no tags of ours. */
bool mm_list_has(const char *list, const char *item, bool weak) {
    const char *const end = list + strlen(list);
    for (const char *at = list; item != NULL && at <= end;) {
        const char *stop = at + strcspn(at, ",");
        struct mm_slice tag = mm_slice_trim(at, stop);
        if (weak && tag.length > 2 && memcmp(tag.start, "W/", 2) == 0)
            tag = (struct mm_slice){tag.start + 2, tag.length - 2};
        if (mm_slice_is(tag, item) || mm_slice_is(tag, "*"))
            return true;
        at = stop + 1;
    }
    return false;
}

enum mm_condition mm_condition_judge(const struct mm_request *request, const char *etag) {
    char text[MM_ACCEPT_BYTES];
    bool is_cut;
    const char *list = mm_request_list(request, MM_HEADER_IF_MATCH, text, &is_cut);
    if (is_cut)
        return MM_CONDITION_LONG_MATCH;
    if (list != NULL && !mm_list_has(list, etag, false))
        return MM_CONDITION_OTHER;
    list = mm_request_list(request, MM_HEADER_IF_NONE_MATCH, text, &is_cut);
    if (is_cut)
        return MM_CONDITION_LONG_NONE_MATCH;
    return list != NULL && mm_list_has(list, etag, true) ? MM_CONDITION_MATCHED : MM_CONDITION_HOLDS;
}

bool mm_condition_is_given(const struct mm_request *request) {
    return request->headers[MM_HEADER_IF_MATCH] != NULL || request->headers[MM_HEADER_IF_NONE_MATCH] != NULL;
}
