/* JSON values that Jansson does not make by itself: text with foreign bytes, unsigned counts. */
#include "api/json_value.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the well-formed UTF-8 sequence at text, which ends in NUL; 0 where there is none. The
 * bounds of the second byte keep out overlong forms, surrogates and what lies beyond U+10FFFF (the
 * Unicode standard, table 3-7). */
static size_t sequence_bytes(const unsigned char *text) {
    unsigned char first = text[0];
    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (text[1] < low || text[1] > high)
        return 0;
    size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    for (size_t index = 2; index < bytes; index++)
        if ((text[index] & 0xC0) != 0x80)
            return 0;
    return bytes;
}

json_t *mm_json_text(const char *text) {
    static const char replacement[] = "\xEF\xBF\xBD";
    enum { REPLACEMENT_BYTES = sizeof replacement - 1 };
    char *clean = malloc(strlen(text) * REPLACEMENT_BYTES + 1);
    if (clean == NULL)
        return NULL;
    char *end = clean;
    while (*text != '\0') {
        size_t bytes = sequence_bytes((const unsigned char *)text);
        memcpy(end, bytes > 0 ? text : replacement, bytes > 0 ? bytes : REPLACEMENT_BYTES);
        end += bytes > 0 ? bytes : REPLACEMENT_BYTES;
        text += bytes > 0 ? bytes : 1;
    }
    json_t *string = json_stringn(clean, (size_t)(end - clean));
    free(clean);
    return string;
}

json_t *mm_json_count(uint64_t value) {
    return json_integer(value < INT64_MAX ? (json_int_t)value : INT64_MAX);
}
