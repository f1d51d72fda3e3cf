/* JSON values that Jansson cannot build itself. Only files of api/ include this, because it exposes Jansson.
 * Any thread may call these functions, one at a time for each value. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* Returns a string value from any bytes; each byte that is not UTF-8 becomes U+FFFD. The caller owns the
 * reference. NULL if memory runs out. */
json_t *mm_json_text(const char *text);

/* Prints a value as json_dumps does, and releases the value. The caller frees the text. NULL if the value is
 * NULL or memory runs out. json_dumps itself is not safe then: in Jansson 2.14 it may leave out a part of a
 * key. */
char *mm_json_print(json_t *value, size_t flags, size_t *length);

/* Adds a member to an object, which then owns the value. Returns -1 if either is NULL, or memory runs out. */
static inline int mm_json_put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value);
}

/* Adds a text as a member, unless it is NULL or empty. Returns -1 if `object` is NULL, or memory runs out. */
int mm_json_put_known_text(json_t *object, const char *key, const char *text);

/* Adds a count as a member, unless it is 0. Returns -1 if `object` is NULL, or memory runs out. */
int mm_json_put_known_count(json_t *object, const char *key, uint64_t value);

/* Returns the value if `failed` is 0. Otherwise releases the value and returns NULL. */
json_t *mm_json_finish(json_t *value, int failed);

/* Returns an integer value. Jansson's integers end at 2⁶³−1, so a larger count becomes 2⁶³−1. The caller owns
 * the reference. NULL if memory runs out. */
json_t *mm_json_count(uint64_t value);
