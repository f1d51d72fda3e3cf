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

/* Adds a member to an object, which takes the value over: -1 if either is NULL, or memory is out. */
static inline int mm_json_put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value);
}

/* Adds a text as a member, unless it is NULL or empty: -1 if `object` is NULL, or memory is out. */
int mm_json_put_known_text(json_t *object, const char *key, const char *text);

/* Adds a count as a member, unless it is 0: -1 if `object` is NULL, or memory is out. */
int mm_json_put_known_count(json_t *object, const char *key, uint64_t value);

/* Returns a value that is complete. If something has failed, frees the value and returns NULL. */
json_t *mm_json_finish(json_t *value, int failed);

/* An integer; a value over 2⁶³−1, the most that Jansson holds, becomes 2⁶³−1. A new reference; NULL if out of
 * memory. */
json_t *mm_json_count(uint64_t value);
