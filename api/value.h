/* A parameter's value, from JSON or text. Any thread may call these functions. */
#pragma once

#include "gpu/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mm_value_kind {
    MM_VALUE_NULL,
    MM_VALUE_FALSE,
    MM_VALUE_TRUE,
    MM_VALUE_NUMBER,
    MM_VALUE_TEXT,
    MM_VALUE_ARRAY,
    MM_VALUE_OBJECT
};

struct mm_value {
    enum mm_value_kind kind;
    const char *text; /* a string's UTF-8 text, or the JSON of a number, array or object; borrowed */
    size_t length;    /* of the text in bytes; 0 for an empty array or object */
    double number;    /* for MM_VALUE_NUMBER; a number beyond all doubles becomes ±DBL_MAX */
};

/* Returns the kind in words, such as "a number", as a static text. */
const char *mm_value_kind_name(enum mm_value_kind kind);

/* Writes the value for an error, such as `null` or `2.5`. Cuts long texts. */
void mm_value_describe(const struct mm_value *value, char *out, size_t out_bytes);

/* Reads a whole number from `least` to `most`. A number of 2⁵³ or more becomes 2⁶⁴−1. Returns false
 * for every other value. */
bool mm_value_whole(const struct mm_value *value, double least, double most, uint64_t *number);

/* Fails with MM_BAD_REQUEST and the sentence "NAME VERB GOT, but must be EXPECTED". VERB is "is" or "has". */
enum mm_status mm_fail_form(const char *name, const char *verb, const char *expected, const char *got,
                            struct mm_error *error);

/* Fails with MM_BAD_REQUEST and the sentence "NAME VERB VALUE, but must be EXPECTED", as mm_fail_form
 * does. */
enum mm_status mm_value_fail(const char *name, const char *verb, const char *expected,
                             const struct mm_value *value, struct mm_error *error);
