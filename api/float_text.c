/* float32 as text. The decimal point is the C locale's: this program never calls setlocale. */
#include "api/float_text.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MIN = 6, DIGITS_MAX = 9 };

static size_t copy(char *text, const char *token) {
    size_t length = strlen(token);
    memcpy(text, token, length);
    return length;
}

size_t mm_float_text(float value, char *text) {
    if (isnan(value))
        return copy(text, "\"NaN\"");
    if (isinf(value))
        return copy(text, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    if (value == 0)
        return copy(text, signbit(value) ? "-0.0" : "0");
    /* Six digits always survive the way through float32, so that what was short comes out short. */
    char token[MM_FLOAT_TEXT_MAX + 1];
    int length = 0;
    for (int digits = DIGITS_MIN; digits <= DIGITS_MAX; digits++) {
        length = snprintf(token, sizeof token, "%.*g", digits, (double)value);
        if (digits == DIGITS_MAX || strtof(token, NULL) == value)
            break;
    }
    assert(length > 0 && length <= MM_FLOAT_TEXT_MAX);
    memcpy(text, token, (size_t)length);
    return (size_t)length;
}
