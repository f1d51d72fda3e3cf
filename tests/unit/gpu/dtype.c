/* Tests the values of the narrow element types, and the table of their precisions. */
#include "gpu/matrix/dtype.h"
#include "tests/unit/unit.h"

#include <math.h>

static double rounded(enum mm_dtype dtype, double value) {
    uint64_t element;
    mm_dtype_put(dtype, &element, 0, value);
    return mm_dtype_get(dtype, &element, 0);
}

/* Formats of types that the C language lacks. */
static const struct {
    enum mm_dtype dtype;
    int exponent_bits;
    int mantissa_bits;
    bool has_infinity;
} narrow[] = {{MM_FLOAT16, 5, 10, true},
              {MM_BFLOAT16, 8, 7, true},
              {MM_FLOAT8_E4M3FN, 4, 3, false},
              {MM_FLOAT8_E5M2, 5, 2, true}};

/* Returns 2^(exponent − bias) · 1.mantissa. A subnormal is 2^(1 − bias) · 0.mantissa. */
static double value_by_fields(size_t which, unsigned bits) {
    const int exponent_bits = narrow[which].exponent_bits, mantissa_bits = narrow[which].mantissa_bits;
    const int highest = (1 << exponent_bits) - 1, bias = highest / 2;
    const int exponent = (int)(bits >> mantissa_bits) & highest;
    const int mantissa = (int)bits & ((1 << mantissa_bits) - 1);
    const double sign = bits >> (exponent_bits + mantissa_bits) != 0 ? -1.0 : 1.0;
    if (exponent == highest && narrow[which].has_infinity)
        return mantissa == 0 ? sign * (double)INFINITY : (double)NAN;
    if (exponent == highest && mantissa == (1 << mantissa_bits) - 1)
        return (double)NAN;
    const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
    return sign * ldexp(whole, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
}

static bool is_same(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* Numbers round to the nearest value of the type, and midpoints to the even value. */
static void every_encoding_is_read_and_rounded_to(void **state) {
    for (size_t which = 0; which < COUNT(narrow); which++) {
        const enum mm_dtype dtype = narrow[which].dtype;
        const unsigned count = 2U << (narrow[which].exponent_bits + narrow[which].mantissa_bits);
        for (unsigned bits = 0; bits < count; bits++) {
            const uint16_t element = (uint16_t)bits, above = (uint16_t)(bits + 1);
            const double value = mm_dtype_get(dtype, &element, 0), next = mm_dtype_get(dtype, &above, 0);
            assert_true(is_same(value, value_by_fields(which, bits)));
            assert_true(is_same(value, rounded(dtype, value)));
            if (!isfinite(value) || bits % (count / 2) == count / 2 - 1 || !isfinite(next))
                continue;
            const double middle = 0.5 * value + 0.5 * next;
            assert_true(is_same(rounded(dtype, middle), bits % 2 == 0 ? value : next));
            assert_true(is_same(rounded(dtype, nextafter(middle, value)), value));
            assert_true(is_same(rounded(dtype, nextafter(middle, next)), next));
        }
    }
}

static void figures_are_those_of_the_type(void **state) {
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        const struct mm_precision precision = mm_dtype_precision(dtype);
        if (!mm_dtype_is_float(dtype)) {
            assert_true(precision.unit == 0.0 && precision.least == 0.0 && precision.largest == 0.0);
            continue;
        }
        const double step = 2.0 * precision.unit; /* distance from 1 to the next value */
        assert_true(rounded(dtype, 1.0 + step) == 1.0 + step);
        assert_true(rounded(dtype, 1.0 + precision.unit) == 1.0);
        assert_true(rounded(dtype, 1.0 + 0.75 * step) == 1.0 + step);
        assert_true(rounded(dtype, precision.least) == precision.least);
        assert_true(rounded(dtype, 0.5 * precision.least) == 0.0);
        assert_true(rounded(dtype, 1.5 * precision.least) == 2.0 * precision.least);
        assert_true(rounded(dtype, precision.largest) == precision.largest);
        assert_false(isfinite(rounded(dtype, precision.largest * (1.0 + step))));
    }
}

static void sums_are_as_wide_as_the_table_says(void **state) {
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        const enum mm_dtype sum = mm_dtype_sum(dtype);
        assert_int_equal(mm_dtype_is_float(dtype), mm_dtype_is_float(sum));
        assert_int_equal(mm_dtype_bytes(sum), mm_dtype_bytes(dtype) == 8 ? 8 : 4);
        assert_int_equal(mm_dtype_sum(sum), sum);
    }
}

RUN_TESTS(every_encoding_is_read_and_rounded_to, figures_are_those_of_the_type,
          sums_are_as_wide_as_the_table_says)
