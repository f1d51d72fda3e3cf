/* JSON values that Jansson does not make by itself. For the files of api/ alone: it shows Jansson. Any thread
 * may call these functions, one at a time for each value. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* A string of any bytes: those that are no UTF-8 become U+FFFD, one each. A new reference; NULL if memory
 * runs out. */
json_t *mm_json_text(const char *text);

/* The value's text, as json_dumps gives it, to be freed; NULL when memory is out, where json_dumps of Jansson
 * up to 2.14 at least can leave a part of a key out instead. Takes over the value, which may be NULL: then so
 * is the text. */
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

/* An integer; what Jansson's signed 64 bits do not hold becomes 2⁶³−1. A new reference or NULL. */
json_t *mm_json_count(uint64_t value);
