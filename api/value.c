/* Reads whole numbers, and describes values in words, for errors. */
#include "api/value.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static void describe_number(double number, char *out, size_t out_bytes) {
    const bool is_exact = floor(number) == number && fabs(number) < 0x1p53;
    if (fabs(number) >= DBL_MAX)
        snprintf(out, out_bytes, "beyond %.9g (overflow)", number);
    else
        snprintf(out, out_bytes, "%.*g", is_exact ? 17 : 9, number);
}

const char *mm_value_kind_name(enum mm_value_kind kind) {
    static const char *const names[] = {
        [MM_VALUE_NULL] = "null",        [MM_VALUE_FALSE] = "false",   [MM_VALUE_TRUE] = "true",
        [MM_VALUE_NUMBER] = "a number",  [MM_VALUE_TEXT] = "a string", [MM_VALUE_ARRAY] = "an array",
        [MM_VALUE_OBJECT] = "an object",
    };
    return names[kind];
}

void mm_value_describe(const struct mm_value *value, char *out, size_t out_bytes) {
    enum { SHOWN_MAX = 32 };
    const bool is_long = value->length > SHOWN_MAX;
    if (value->kind == MM_VALUE_TEXT)
        snprintf(out, out_bytes, "the string \"%.*s%s\"", is_long ? SHOWN_MAX : (int)value->length,
                 value->text, is_long ? "..." : "");
    else if (value->kind == MM_VALUE_NUMBER)
        describe_number(value->number, out, out_bytes);
    else if (value->kind == MM_VALUE_ARRAY && value->length == 0)
        snprintf(out, out_bytes, "an empty array");
    else
        snprintf(out, out_bytes, "%s", mm_value_kind_name(value->kind));
}

bool mm_value_whole(const struct mm_value *value, double least, double most, uint64_t *number) {
    const double given = value->number;
    if (value->kind != MM_VALUE_NUMBER || !(given >= least && given <= most) || floor(given) != given)
        return false;
    *number = given < 0x1p53 ? (uint64_t)given : UINT64_MAX;
    return true;
}

enum mm_status mm_fail_form(const char *name, const char *verb, const char *expected, const char *got,
                            struct mm_error *error) {
    mm_fail_field(error, MM_BAD_REQUEST, name, "%s %s %s, but must be %s", name, verb, got, expected);
    mm_fail_expected(error, "%s", expected);
    mm_fail_got(error, "%s", got);
    return MM_BAD_REQUEST;
}

enum mm_status mm_value_fail(const char *name, const char *verb, const char *expected,
                             const struct mm_value *value, struct mm_error *error) {
    char got[64];
    mm_value_describe(value, got, sizeof got);
    return mm_fail_form(name, verb, expected, got, error);
}
