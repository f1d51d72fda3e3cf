/* JSON values that Jansson does not make by itself. For the files of api/ alone: it shows Jansson. */
#ifndef MM_API_JSON_VALUE_H
#define MM_API_JSON_VALUE_H

#include <jansson.h>
#include <stdint.h>

/* A string of a text that may hold any bytes: those that are no UTF-8 become U+FFFD, one each. A new
 * reference; NULL when memory is out. */
json_t *mm_json_text(const char *text);

/* As json_loadb does, a new reference or NULL with a fault; but where memory runs out it is NULL, with errno
 * at ENOMEM and nothing in the fault. Jansson up to 2.14 at least goes on without the character that it had
 * no room for: a name or a number is another one then, a number ends the process by an assertion, and a
 * string without its closing quote is read past its end. So whatever Jansson allocates is watched here, and
 * to be freed through it. */
json_t *mm_json_load(const char *text, size_t bytes, size_t flags, json_error_t *fault);

/* The value's text, as json_dumps gives it, to be freed; NULL when memory is out, where json_dumps of Jansson
 * up to 2.14 at least can leave a part of a key out instead. `value` may be NULL: then so is the text. */
char *mm_json_print(const json_t *value, size_t flags, size_t *length);

/* An integer; what Jansson's signed 64 bits do not hold becomes 2⁶³−1. A new reference or NULL. */
json_t *mm_json_count(uint64_t value);

#endif
