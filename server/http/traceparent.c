/* Checks traceparent: version-trace_id-parent_id-flags, of 2, 32, 16 and 2 hexadecimal digits in lower case.
 */
#include "server/http/traceparent.h"

static bool has_form(const char *text) {
    static const char form[] = "hh-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh",
                      digits[] = "0123456789abcdef";
    for (size_t index = 0; index < MM_TRACEPARENT_CHARS; index++)
        if (form[index] == '-' ? text[index] != '-' : memchr(digits, text[index], 16) == NULL)
            return false;
    return true;
}

static bool is_zero(const char *digits, size_t count) {
    size_t index = 0;
    while (index < count && digits[index] == '0')
        index++;
    return index == count;
}

/* A later version may add members, which begin with a dash. Version ff is invalid. */
bool mm_traceparent_read(struct mm_slice value, char copy[MM_TRACEPARENT_CHARS + 1]) {
    enum { PARENT_AT = MM_TRACE_ID_AT + MM_TRACE_ID_CHARS + 1, PARENT_CHARS = 16 };
    const char *text = value.start;
    if (value.length < MM_TRACEPARENT_CHARS || !has_form(text) || memcmp(text, "ff", 2) == 0 ||
        is_zero(text + MM_TRACE_ID_AT, MM_TRACE_ID_CHARS) || is_zero(text + PARENT_AT, PARENT_CHARS))
        return false;
    if (value.length > MM_TRACEPARENT_CHARS && (is_zero(text, 2) || text[MM_TRACEPARENT_CHARS] != '-'))
        return false;
    *(char *)mempcpy(copy, text, MM_TRACEPARENT_CHARS) = '\0';
    return true;
}
