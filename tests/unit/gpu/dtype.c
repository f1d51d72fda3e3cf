/* What the table of element types says of their precision, against rounding to them. */
#include "gpu/dtype.h"
#include "tests/unit/unit.h"

#include <math.h>

/* The value that is left of a number of this type. */
static double rounded(enum mm_dtype dtype, double value) {
    uint64_t element;
    mm_dtype_put(dtype, &element, 0, value);
    return mm_dtype_get(dtype, &element, 0);
}

static void figures_are_those_of_the_type(void **state) {
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        const struct mm_precision precision = mm_dtype_precision(dtype);
        if (!mm_dtype_is_float(dtype)) {
            assert_true(precision.unit == 0.0 && precision.least == 0.0 && precision.largest == 0.0);
            continue;
        }
        const double step = 2.0 * precision.unit; /* from 1 to the next number */
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

RUN_TESTS(figures_are_those_of_the_type, sums_are_as_wide_as_the_table_says)
