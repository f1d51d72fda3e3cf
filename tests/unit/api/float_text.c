/* Compares the text of numbers with printf. A float's text must be the shortest that reads back. */
#include "api/number/digits.h"
#include "api/number/float_text.h"
#include "tests/unit/unit.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

enum { RANDOM_COUNT = 100000, TEXT_BYTES = 32 };

static const char *text_of(double value, bool is_float) {
    static char text[MM_DOUBLE_TEXT_MAX + 2]; /* more than a float needs */
    memset(text, '?', sizeof text);
    const size_t length = is_float ? mm_float_text((float)value, text) : mm_double_text(value, text);
    assert_true(length <= (is_float ? MM_FLOAT_TEXT_MAX : MM_DOUBLE_TEXT_MAX));
    assert_int_equal(text[is_float ? MM_FLOAT_TEXT_BUFFER : length], '?');
    text[length] = '\0';
    return text;
}

static void test_known(void **state) {
    static const struct {
        double value;
        const char *as_float, *as_double;
    } known[] = {
        {0.0, "0", "0"},
        {-0.0, "-0.0", "-0.0"},
        {19.0, "19", "19"},
        {-2.5, "-2.5", "-2.5"},
        {0.1, "0.1", "0.1"},
        {1.0 / 3.0, "0.33333334", "0.3333333333333333"},
        {1e5, "100000", "100000"},
        {1e6, "1e+06", "1000000"},
        {1e-5, "1e-05", "1e-05"},
        {1e22, "1e+22", "1e+22"},
        {(double)FLT_MAX, "3.4028235e+38", "3.4028234663852886e+38"},
        {(double)INFINITY, "\"Infinity\"", "\"Infinity\""},
        {(double)-INFINITY, "\"-Infinity\"", "\"-Infinity\""},
        {(double)NAN, "\"NaN\"", "\"NaN\""},
        {-(double)NAN, "\"NaN\"", "\"NaN\""},
    };
    for (size_t index = 0; index < COUNT(known); index++) {
        assert_string_equal(text_of(known[index].value, true), known[index].as_float);
        assert_string_equal(text_of(known[index].value, false), known[index].as_double);
    }
}

static void expect_shortest(double value, bool is_float) {
    const int most = is_float ? 9 : 17;
    char expected[MM_DOUBLE_TEXT_MAX + 1];
    for (int digits = is_float ? 6 : 15; digits <= most; digits++) {
        snprintf(expected, sizeof expected, "%.*g", digits, value);
        if ((is_float ? (double)strtof(expected, NULL) : strtod(expected, NULL)) == value)
            break;
    }
    assert_string_equal(text_of(value, is_float), expected);
}

static void test_hard(void **state) {
    static const float floats[] = {
        1234567.0f,      16777216.0f,      1234.5f,     0.00012345f, 999999.94f,
        FLT_MIN,         -1.40129846e-45f, 1048576.25f, 1048576.75f, /* midway between texts of 8 digits */
        9.8e-45f,        /* subnormal: seven times the smallest number */
        1.1754942e-38f,  /* the largest subnormal */
        9.9999998e17f,   /* rounds up to a text with one more digit */
        0x1.9d37b2p+34f, /* 7 digits give a midpoint of two floats; it reads back as the other */
        0x1.000008p+25f, /* 7 digits give a midpoint of two floats; it reads back as this one */
    };
    static const double doubles[] = {0.1 + 0.2, 123456789012345.0, 9007199254740991.0, 1e23, 5e-324,
                                     DBL_MIN,   -DBL_MAX};
    for (size_t index = 0; index < COUNT(floats); index++)
        expect_shortest((double)floats[index], true);
    for (size_t index = 0; index < COUNT(doubles); index++)
        expect_shortest(doubles[index], false);
}

static void expect_shortest_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    if (isfinite(value) && value != 0.0F)
        expect_shortest((double)value, true);
}

static void test_random(void **state) {
    uint64_t bits = 1;
    for (unsigned index = 0; index < RANDOM_COUNT; index++) {
        double value;
        bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t mixed = bits ^ bits >> 32;
        memcpy(&value, &mixed, sizeof value);
        if (isfinite(value))
            expect_shortest(value, false);
        expect_shortest_bits((uint32_t)(bits >> 32));
    }
}

/* Near powers of two, the distance between floats changes. */
static void test_powers_of_two(void **state) {
    for (uint32_t exponent = 0; exponent < 512; exponent++)
        for (uint32_t beside = 0; beside < 3; beside++)
            expect_shortest_bits((exponent << 23) + beside - 1);
    for (uint32_t bit = 0; bit < 23; bit++)
        expect_shortest_bits(UINT32_C(1) << bit);
}

/* Also checks that the bytes behind the text are unchanged. */
static void expect_digits(const char *end, char *text, const char *expected) {
    assert_ptr_equal(end, text + strlen(expected));
    assert_int_equal(strspn(end, "#"), TEXT_BYTES - strlen(expected));
    text[end - text] = '\0';
    assert_string_equal(text, expected);
    memset(text, '#', strlen(expected) + 1);
}

static void test_digits(void **state) {
    char text[TEXT_BYTES + 1] = "", expected[TEXT_BYTES];
    memset(text, '#', TEXT_BYTES);
    uint64_t number = 0;
    for (unsigned step = 0; step < 140; step++) {
        snprintf(expected, sizeof expected, "%" PRIu64, number);
        expect_digits(mm_put_digits(text, number), text, expected);
        snprintf(expected, sizeof expected, "%" PRIu64 ".%06" PRIu64, number / 1000000, number % 1000000);
        expect_digits(mm_put_millionths(text, number), text, expected);
        number = step % 2 == 0 ? number * 2 + 1 : number + 1;
    }
    expect_digits(mm_put_digits(text, UINT64_MAX), text, "18446744073709551615");
    expect_digits(mm_put_millionths(text, UINT64_MAX), text, "18446744073709.551615");
}

RUN_TESTS(test_known, test_hard, test_random, test_powers_of_two, test_digits)
