/* The table of element types. A type of MM_DTYPE_TABLE without a row here is a compile error. */
#include "api/element.h"

#include "api/number/digits.h"
#include "api/number/float_text.h"

#include <assert.h>
#include <math.h>

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

#define NARROW_WRITER(NAME, EXPONENT, MANTISSA)                                                              \
    static size_t NAME##_text(mm_##NAME element, char *text) {                                               \
        return mm_narrow_text(mm_##NAME##_value(element), EXPONENT, MANTISSA, text);                         \
    }                                                                                                        \
    WRITER(NAME, mm_##NAME, NAME##_text)

WRITER(float32, float, mm_float_text)
WRITER(float64, double, mm_double_text)
NARROW_WRITER(float16, 5, 10)
NARROW_WRITER(bfloat16, 8, 7)
NARROW_WRITER(float8_e4m3fn, 4, 3)
NARROW_WRITER(float8_e5m2, 5, 2)
WRITER(int8, int8_t, whole_text)
WRITER(uint8, uint8_t, whole_text)
WRITER(int32, int32_t, whole_text)
WRITER(int64, int64_t, whole_text)

#define SPECIAL(DTYPE, NAME)                                                                                 \
    static bool put_##NAME(float value, void *element) {                                                     \
        mm_dtype_put(DTYPE, element, 0, (double)value);                                                      \
        return isnan(value) || isinf(mm_dtype_get(DTYPE, element, 0));                                       \
    }

SPECIAL(MM_FLOAT32, float32)
SPECIAL(MM_FLOAT64, float64)
SPECIAL(MM_FLOAT16, float16)
SPECIAL(MM_BFLOAT16, bfloat16)
SPECIAL(MM_FLOAT8_E4M3FN, float8_e4m3fn)
SPECIAL(MM_FLOAT8_E5M2, float8_e5m2)

#define FLOATS(LARGEST) "numbers up to " LARGEST ", \"NaN\", \"Infinity\", \"-Infinity\""
#define WHOLES(LEAST, MOST) "whole numbers from " LEAST " to " MOST

/* The rows of the table: one macro for each type. A macro lists the members of struct mm_element in order. */
#define ROW_MM_FLOAT32                                                                                       \
    "<f4", mm_number_float32, put_float32, write_float32, MM_FLOAT_TEXT_MAX, FLOATS("3.40282347e+38")
#define ROW_MM_FLOAT64                                                                                       \
    "<f8", mm_number_float64, put_float64, write_float64, MM_DOUBLE_TEXT_MAX, FLOATS("1.79769313e+308")
#define ROW_MM_FLOAT16                                                                                       \
    "<f2", mm_number_float16, put_float16, write_float16, MM_FLOAT_TEXT_MAX, FLOATS("65504")
#define ROW_MM_BFLOAT16                                                                                      \
    "<V2", mm_number_bfloat16, put_bfloat16, write_bfloat16, MM_FLOAT_TEXT_MAX, FLOATS("3.38953139e+38")
#define ROW_MM_FLOAT8_E4M3FN                                                                                 \
    "<V1", mm_number_float8_e4m3fn, put_float8_e4m3fn, write_float8_e4m3fn, MM_FLOAT_TEXT_MAX,               \
        "numbers up to 448, \"NaN\""
#define ROW_MM_FLOAT8_E5M2                                                                                   \
    "<f1", mm_number_float8_e5m2, put_float8_e5m2, write_float8_e5m2, MM_FLOAT_TEXT_MAX, FLOATS("57344")
#define ROW_MM_INT8 "|i1", mm_number_int8, NULL, write_int8, WHOLE_TEXT_MAX, WHOLES("-128", "127")
#define ROW_MM_UINT8 "|u1", mm_number_uint8, NULL, write_uint8, WHOLE_TEXT_MAX, WHOLES("0", "255")
#define ROW_MM_BOOL "|b1", mm_number_bool, NULL, write_uint8, WHOLE_TEXT_MAX, "0, 1, true and false"
#define ROW_MM_INT32                                                                                         \
    "<i4", mm_number_int32, NULL, write_int32, WHOLE_TEXT_MAX, WHOLES("-2147483648", "2147483647")
#define ROW_MM_INT64                                                                                         \
    "<i8", mm_number_int64, NULL, write_int64, WHOLE_TEXT_MAX,                                               \
        WHOLES("-9223372036854775808", "9223372036854775807")

static const struct mm_element elements[MM_DTYPE_COUNT] = {
#define X(constant, ...) [constant] = {ROW_##constant},
    MM_DTYPE_TABLE(X)
#undef X
};

const struct mm_element *mm_element(enum mm_dtype dtype) {
    assert(dtype < MM_DTYPE_COUNT);
    return &elements[dtype];
}

bool mm_element_is_past_bool(const struct mm_matrix *matrix) {
    unsigned char all = 0;
    if (matrix->dtype != MM_BOOL || matrix->data == NULL)
        return false;
    for (size_t row = 0; row < matrix->rows && matrix->cols > 0; row++)
        for (size_t col = 0; col < matrix->cols; col++)
            all |= ((const unsigned char *)matrix->data)[row * matrix->ld + col];
    return all > 1;
}
