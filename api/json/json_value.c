/* Builds JSON values that Jansson cannot build itself: strings from any bytes, and unsigned counts. */
#include "api/json/json_value.h"

#include "api/json/utf8.h"
#include "api/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *mm_json_text(const char *text) {
    static const char replacement[] = "\xEF\xBF\xBD";
    enum { REPLACEMENT_BYTES = sizeof replacement - 1 };
    char *clean = malloc(strlen(text) * REPLACEMENT_BYTES + 1);
    if (clean == NULL)
        return NULL;
    char *end = clean;
    for (const char *text_end = text + strlen(text); text < text_end;) {
        const size_t bytes = mm_utf8_bytes(text, text_end);
        memcpy(end, bytes > 0 ? text : replacement, bytes > 0 ? bytes : REPLACEMENT_BYTES);
        end += bytes > 0 ? bytes : REPLACEMENT_BYTES;
        text += bytes > 0 ? bytes : 1;
    }
    json_t *string = json_stringn(clean, (size_t)(end - clean));
    free(clean);
    return string;
}

char *mm_json_print(json_t *value, size_t flags, size_t *length) {
    struct mm_text text;
    char *made = NULL;
    FILE *out = value == NULL ? NULL : mm_text_open(&text);
    if (out != NULL) {
        const bool is_whole = json_dumpf(value, out, flags) == 0;
        made = mm_text_close(out, &text, length);
        if (!is_whole) {
            free(made);
            made = NULL;
        }
    }
    json_decref(value);
    return made;
}

int mm_json_put_known_text(json_t *object, const char *key, const char *text) {
    return text == NULL || text[0] == '\0' ? 0 : mm_json_put(object, key, mm_json_text(text));
}

int mm_json_put_known_count(json_t *object, const char *key, uint64_t value) {
    return value == 0 ? 0 : mm_json_put(object, key, mm_json_count(value));
}

json_t *mm_json_finish(json_t *value, int failed) {
    if (failed == 0)
        return value;
    json_decref(value);
    return NULL;
}

json_t *mm_json_count(uint64_t value) {
    return json_integer(value < INT64_MAX ? (json_int_t)value : INT64_MAX);
}
