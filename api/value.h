/* A value that a request gives, in JSON's terms and without JSON's text. Any thread may call these
 * functions. */
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
    const char *text; /* of a string, UTF-8, ended by NUL; of an array or object, its JSON; borrowed */
    size_t length;    /* of the text in bytes; 0: the array or object is empty */
    double number;    /* with MM_VALUE_NUMBER; beyond all doubles it is the largest, with its sign */
};

/* "a number", "null" and so on. Static. */
const char *mm_value_kind_name(enum mm_value_kind kind);

/* The value in words, for an error: "the string "x"", "2.5", "null". Long texts are cut. */
void mm_value_describe(const struct mm_value *value, char *out, size_t out_bytes);

/* MM_BAD_REQUEST: the field `name` `verb` ("is" or "has") `got`, but must be `expected`. */
enum mm_status mm_fail_form(const char *name, const char *verb, const char *expected, const char *got,
                            struct mm_error *error);

/* MM_BAD_REQUEST: the field `name` `verb` ("is" or "has") this value, but must be `expected`. */
enum mm_status mm_value_fail(const char *name, const char *verb, const char *expected,
                             const struct mm_value *value, struct mm_error *error);
