/* The rows of the element types. A type of MM_DTYPE_TABLE without a row here does not compile. */
#include "api/element.h"

#include "api/number/digits.h"
#include "api/number/float_text.h"

#include <assert.h>
#include <string.h>

enum { WHOLE_TEXT_MAX = sizeof "-9223372036854775808" - 1 };

static size_t whole_text(int64_t value, char *text) {
    char *end = text;
    if (value < 0)
        *end++ = '-';
    return (size_t)(mm_put_digits(end, value < 0 ? -(uint64_t)value : (uint64_t)value) - text);
}

#define WRITER(NAME, TYPE, TEXT)                                                                             \
    static char *write_##NAME(const void *elements, size_t count, char *end) {                               \
        const TYPE *values = elements;                                                                       \
        for (size_t index = 0; index < count; index++) {                                                     \
            if (index > 0)                                                                                   \
                *end++ = ',';                                                                                \
            end += TEXT(values[index], end);                                                                 \
        }                                                                                                    \
        return end;                                                                                          \
    }

WRITER(float32, float, mm_float_text)
WRITER(float64, double, mm_double_text)
WRITER(int32, int32_t, whole_text)
WRITER(int64, int64_t, whole_text)

static void put_float32(float value, void *element) {
    memcpy(element, &value, sizeof value);
}

static void put_float64(float value, void *element) {
    const double wide = (double)value;
    memcpy(element, &wide, sizeof wide);
}

#define SPECIALS "\"NaN\", \"Infinity\", \"-Infinity\""

/* The members in the order of struct mm_element. */
#define ROW_MM_FLOAT32                                                                                       \
    "<f4", mm_number_float32, put_float32, write_float32, MM_FLOAT_TEXT_MAX,                                 \
        "numbers up to 3.40282347e+38, " SPECIALS
#define ROW_MM_FLOAT64                                                                                       \
    "<f8", mm_number_float64, put_float64, write_float64, MM_DOUBLE_TEXT_MAX,                                \
        "numbers up to 1.79769313e+308, " SPECIALS
#define ROW_MM_INT32                                                                                         \
    "<i4", mm_number_int32, NULL, write_int32, WHOLE_TEXT_MAX, "whole numbers from -2147483648 to 2147483647"
#define ROW_MM_INT64                                                                                         \
    "<i8", mm_number_int64, NULL, write_int64, WHOLE_TEXT_MAX,                                               \
        "whole numbers from -9223372036854775808 to 9223372036854775807"

static const struct mm_element elements[MM_DTYPE_COUNT] = {
#define X(constant, ...) [constant] = {ROW_##constant},
    MM_DTYPE_TABLE(X)
#undef X
};

const struct mm_element *mm_element(enum mm_dtype dtype) {
    assert(dtype < MM_DTYPE_COUNT);
    return &elements[dtype];
}
