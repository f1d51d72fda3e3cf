/* JSON values that Jansson does not make by itself. For the files of api/ alone: it shows Jansson. */
#ifndef MM_API_JSON_VALUE_H
#define MM_API_JSON_VALUE_H

#include <jansson.h>
#include <stdint.h>

/* A string of a text that may hold any bytes: those that are no UTF-8 become U+FFFD, one each. A new
 * reference; NULL when memory is out. */
json_t *mm_json_text(const char *text);

/* An integer; what Jansson's signed 64 bits do not hold becomes 2⁶³−1. A new reference or NULL. */
json_t *mm_json_count(uint64_t value);

#endif
