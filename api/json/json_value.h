/* JSON values that Jansson cannot build itself. Only files of api/ include this, because it exposes Jansson.
 * Any thread may call these functions, one at a time for each value. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* A string of any bytes; each byte that is not UTF-8 becomes U+FFFD. A new reference; NULL if out of
 * memory. */
json_t *mm_json_text(const char *text);

/* Prints a value as json_dumps does, and releases the value. The caller frees the text. NULL if the value is
 * NULL or memory is out; json_dumps of Jansson up to 2.14 at least may leave out a part of a key then. */
char *mm_json_print(json_t *value, size_t flags, size_t *length);

/* Adds a member to an object and takes over the value. -1 if either is NULL or memory is out. */
static inline int mm_json_put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value);
}

/* Adds a text or a count to an object, unless it is NULL, empty or 0. -1 if memory is out. */
int mm_json_put_known_text(json_t *object, const char *key, const char *text);
int mm_json_put_known_count(json_t *object, const char *key, uint64_t value);

/* Ends the building of a value: returns it, or releases it and returns NULL if `failed` is not 0. */
json_t *mm_json_made(json_t *made, int failed);

/* An integer; a value over 2⁶³−1, the most that Jansson holds, becomes 2⁶³−1. A new reference; NULL if out of
 * memory. */
json_t *mm_json_count(uint64_t value);
