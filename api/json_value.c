/* JSON values that Jansson does not make by itself: text with foreign bytes, unsigned counts. */
#include "api/json_value.h"

#include <errno.h>
#include <stdbool.h>
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

/* Whether one of Jansson's allocations failed on this thread. */
static _Thread_local bool ran_out;

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes);
    ran_out = ran_out || memory == NULL;
    return memory;
}

/* Before there is a second thread, which might be within Jansson. */
__attribute__((constructor)) static void watch_jansson(void) {
    json_set_alloc_funcs(allocate, free);
}

json_t *mm_json_load(const char *text, size_t bytes, size_t flags, json_error_t *fault) {
    ran_out = false;
    errno = 0;
    json_t *value = json_loadb(text, bytes, flags, fault);
    if (!ran_out)
        return value;
    json_decref(value);
    errno = ENOMEM;
    return NULL;
}

/* A text that grows. */
struct text {
    char *start;
    size_t bytes;
    size_t room;
    bool failed; /* for good: whoever prints may go on all the same */
};

static bool make_room(struct text *text, size_t bytes) {
    enum { LEAST = 512 };
    if (bytes <= text->room - text->bytes)
        return true;
    if (bytes > SIZE_MAX / 2 - text->room)
        return false;
    const size_t room = 2 * text->room + bytes + LEAST;
    char *start = realloc(text->start, room);
    if (start == NULL)
        return false;
    text->start = start;
    text->room = room;
    return true;
}

static int append(const char *piece, size_t bytes, void *argument) {
    struct text *text = argument;
    text->failed = text->failed || !make_room(text, bytes + 1);
    if (text->failed)
        return -1;
    memcpy(text->start + text->bytes, piece, bytes);
    text->bytes += bytes;
    text->start[text->bytes] = '\0';
    return 0;
}

char *mm_json_print(const json_t *value, size_t flags, size_t *length) {
    struct text text = {0};
    if (value == NULL || json_dump_callback(value, append, &text, flags) != 0 || text.failed) {
        free(text.start);
        return NULL;
    }
    *length = text.bytes;
    return text.start;
}

json_t *mm_json_count(uint64_t value) {
    return json_integer(value < INT64_MAX ? (json_int_t)value : INT64_MAX);
}
