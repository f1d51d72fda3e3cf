/* float32 and float64 as text. The decimal point is the C locale's: this program never calls setlocale. */
#include "api/float_text.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT_DIGITS_MIN = 6, FLOAT_DIGITS_MAX = 9, DOUBLE_DIGITS_MIN = 15, DOUBLE_DIGITS_MAX = 17 };

static size_t copy(char *text, const char *token) {
    size_t length = strlen(token);
    memcpy(text, token, length);
    return length;
}

/* Zeros, and what JSON has no number for. A float32 is the same as a double. */
static bool is_special(double value) {
    return value == 0 || !isfinite(value);
}

static size_t special_text(double value, char *text) {
    if (isnan(value))
        return copy(text, "\"NaN\"");
    if (isinf(value))
        return copy(text, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    return copy(text, signbit(value) ? "-0.0" : "0");
}

size_t mm_float_text(float value, char *text) {
    if (is_special((double)value))
        return special_text((double)value, text);
    /* Six digits always survive the way through float32, so that what was short comes out short. */
    char token[MM_FLOAT_TEXT_MAX + 1];
    int length = 0;
    for (int digits = FLOAT_DIGITS_MIN; digits <= FLOAT_DIGITS_MAX; digits++) {
        length = snprintf(token, sizeof token, "%.*g", digits, (double)value);
        if (digits == FLOAT_DIGITS_MAX || strtof(token, NULL) == value)
            break;
    }
    assert(length > 0 && length <= MM_FLOAT_TEXT_MAX);
    memcpy(text, token, (size_t)length);
    return (size_t)length;
}

size_t mm_double_text(double value, char *text) {
    if (is_special(value))
        return special_text(value, text);
    char token[MM_DOUBLE_TEXT_MAX + 1];
    int length = 0;
    for (int digits = DOUBLE_DIGITS_MIN; digits <= DOUBLE_DIGITS_MAX; digits++) {
        length = snprintf(token, sizeof token, "%.*g", digits, value);
        if (digits == DOUBLE_DIGITS_MAX || strtod(token, NULL) == value)
            break;
    }
    assert(length > 0 && length <= MM_DOUBLE_TEXT_MAX);
    memcpy(text, token, (size_t)length);
    return (size_t)length;
}
