/* gpu/narrow.h and gpu/dtype.h: the values of all elements of the narrow types by their definition, and rounding
 * to them at each midpoint and beside it. */
#include "gpu/dtype.h"
#include "tests/unit/unit.h"

#include <math.h>

static const struct narrow {
    enum mm_dtype dtype;
    int exponent_bits, mantissa_bits;
    double largest;
    bool has_infinity;
} types[] = {
    {MM_FLOAT16, 5, 10, 65504, true},
    {MM_BFLOAT16, 8, 7, 0x1.fep127, true},
    {MM_FLOAT8_E4M3FN, 4, 3, 448, false},
    {MM_FLOAT8_E5M2, 5, 2, 57344, true},
};

static double value_of(const struct narrow *type, uint32_t bits) {
    return mm_dtype_get(type->dtype, &bits, 0);
}

static uint32_t nearest_to(const struct narrow *type, double value) {
    uint32_t bits = 0;
    mm_dtype_put(type->dtype, &bits, 0, value);
    return bits;
}

static bool is_nan(const struct narrow *type, uint32_t magnitude) {
    const uint32_t special = ((1U << type->exponent_bits) - 1) << type->mantissa_bits;
    return type->has_infinity ? magnitude > special : magnitude == (special | ((1U << type->mantissa_bits) - 1));
}

/* By the definition: (-1)^s·1.m·2^(e − bias), or 0.m·2^(1 − bias). */
static double expected_value(const struct narrow *type, uint32_t magnitude) {
    const int bias = (1 << (type->exponent_bits - 1)) - 1;
    const int exponent = (int)(magnitude >> type->mantissa_bits);
    const double mantissa = ldexp(magnitude & ((1U << type->mantissa_bits) - 1), -type->mantissa_bits);
    if (type->has_infinity && exponent == (1 << type->exponent_bits) - 1)
        return INFINITY;
    return exponent == 0 ? ldexp(mantissa, 1 - bias) : ldexp(1 + mantissa, exponent - bias);
}

static void every_element_has_its_value(void **state) {
    for (const struct narrow *type = types; type < types + COUNT(types); type++) {
        const uint32_t sign = 1U << (type->exponent_bits + type->mantissa_bits);
        double largest = 0;
        for (uint32_t magnitude = 0; magnitude < sign; magnitude++) {
            if (is_nan(type, magnitude)) {
                assert_true(isnan(value_of(type, magnitude)) && isnan(value_of(type, magnitude | sign)));
                continue;
            }
            const double expected = expected_value(type, magnitude);
            assert_true(value_of(type, magnitude) == expected);
            assert_true(value_of(type, magnitude | sign) == -expected && signbit(value_of(type, magnitude | sign)));
            assert_int_equal(nearest_to(type, expected), magnitude);
            assert_int_equal(nearest_to(type, -expected), magnitude | sign);
            largest = isfinite(expected) ? fmax(largest, expected) : largest;
        }
        assert_true(largest == type->largest);
        assert_true(isnan(value_of(type, nearest_to(type, NAN))));
    }
}

/* Behind the largest comes infinity, or NaN, as if it were the next number. */
static void midpoints_go_to_the_even_one(void **state) {
    for (const struct narrow *type = types; type < types + COUNT(types); type++) {
        const uint32_t largest = nearest_to(type, type->largest);
        for (uint32_t bits = 0; bits <= largest; bits++) {
            const double below = value_of(type, bits);
            const double above = bits < largest ? value_of(type, bits + 1)
                                                : 2 * below - value_of(type, bits - 1);
            const double middle = (below + above) / 2;
            assert_int_equal(nearest_to(type, middle), bits + (bits & 1));
            assert_int_equal(nearest_to(type, nextafter(middle, 0)), bits);
            assert_int_equal(nearest_to(type, nextafter(middle, INFINITY)), bits + 1);
        }
        assert_int_equal(nearest_to(type, 1e300), largest + 1);
        assert_int_equal(nearest_to(type, 1e-300), 0);
    }
}

/* Any element comes back, and a product has one of the types that are told. */
static void rows_hold_together(void **state) {
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        uint64_t elements[2];
        enum mm_dtype found = MM_DTYPE_COUNT;
        mm_dtype_put(dtype, elements, 1, 1.0);
        assert_true(mm_dtype_get(dtype, elements, 1) == 1.0);
        assert_true((mm_dtype_results(dtype) & MM_DTYPE_BIT(mm_dtype_result(dtype))) != 0);
        assert_true(mm_dtype_is_float(dtype) == mm_dtype_is_float(mm_dtype_result(dtype)));
        assert_int_equal(mm_dtype_find("x", mm_dtype_name(dtype), MM_DTYPE_BIT(dtype), &found, NULL), MM_OK);
        assert_int_equal(found, dtype);
        assert_int_equal(mm_dtype_find("x", mm_dtype_name(dtype), ~MM_DTYPE_BIT(dtype), &found, NULL),
                         MM_UNSUPPORTED);
    }
}

RUN_TESTS(every_element_has_its_value, midpoints_go_to_the_even_one, rows_hold_together)
