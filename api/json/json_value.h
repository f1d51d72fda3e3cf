/* Helpers for building Jansson's JSON values. Only files of api/ include this header. Any thread may call
 * these functions if no other thread uses the value at that time. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* Returns a string value that the caller owns, or NULL if memory runs out. Bytes that are not UTF-8 become
 * U+FFFD. */
json_t *mm_json_text(const char *text);

/* Prints a value and releases it. The caller frees the text. NULL if the value is NULL or memory runs out.
 * Use this instead of json_dumps, which may lose part of a key in Jansson 2.14 if memory runs out. */
char *mm_json_print(json_t *value, size_t flags, size_t *length);

/* Adds a member to an object, which then owns the value. Returns -1 if an argument is NULL or memory runs
 * out. */
static inline int mm_json_put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value);
}

/* Adds a string member, unless `text` is NULL or empty. Returns -1 if `object` is NULL, or memory runs
 * out. */
int mm_json_put_known_text(json_t *object, const char *key, const char *text);

/* Adds a number member, unless `value` is 0. Returns -1 if `object` is NULL, or memory runs out. */
int mm_json_put_known_count(json_t *object, const char *key, uint64_t value);

/* Returns the value if `failed` is 0. Otherwise releases the value and returns NULL. */
json_t *mm_json_finish(json_t *value, int failed);

/* Returns an integer value. A count above 2⁶³−1, Jansson's largest integer, becomes 2⁶³−1. The caller owns
 * the reference. NULL if memory runs out. */
json_t *mm_json_count(uint64_t value);
