/* A parameter's value, from JSON or from text. Any thread may call these functions. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>

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
    const char *text; /* a string's UTF-8 text, or the JSON of an array or object; borrowed. A string from
                         JSON ends by NUL. */
    size_t length;    /* of the text in bytes; 0: the array or object is empty */
    double number;    /* value of MM_VALUE_NUMBER; a number beyond all doubles becomes ±DBL_MAX */
};

/* Returns the kind in words: "a number", "null". Static. */
const char *mm_value_kind_name(enum mm_value_kind kind);

/* Writes the value in words, for an error: the string "x", 2.5, null. Cuts long texts. */
void mm_value_describe(const struct mm_value *value, char *out, size_t out_bytes);

/* Fails with MM_BAD_REQUEST: "NAME VERB GOT, but must be EXPECTED". The verb is "is" or "has". */
enum mm_status mm_fail_form(const char *name, const char *verb, const char *expected, const char *got,
                            struct mm_error *error);

/* Fails with MM_BAD_REQUEST: "NAME VERB VALUE, but must be EXPECTED". The verb is "is" or "has". */
enum mm_status mm_value_fail(const char *name, const char *verb, const char *expected,
                             const struct mm_value *value, struct mm_error *error);
