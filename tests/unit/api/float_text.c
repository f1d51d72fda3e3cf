/* api/float_text: known texts, and that random doubles read back as they were; floats do in number.c. */
#include "api/number/float_text.h"
#include "tests/unit/unit.h"

#include <float.h>
#include <math.h>

enum { RANDOM_COUNT = 500000 };

static const struct {
    float value;
    const char *text;
} known[] = {
    {0.0f, "0"},
    {-0.0f, "-0.0"},
    {1.0f, "1"},
    {-1.0f, "-1"},
    {19.0f, "19"},
    {0.1f, "0.1"},
    {-2.5f, "-2.5"},
    {100000.0f, "100000"},
    {1234567.0f, "1234567"},
    {16777216.0f, "16777216"},
    {1.0f / 3.0f, "0.33333334"},
    {1e10f, "1e+10"},
    {1e6f, "1e+06"},
    {2.5e6f, "2.5e+06"},
    {1234.5f, "1234.5"},
    {0.00012345f, "0.00012345"},
    {999999.94f, "999999.94"},
    {1048576.25f, "1048576.2"},         /* half way between two of eight digits */
    {9.8e-45f, "9.80909e-45"},          /* subnormal: seven units of the last place */
    {1.1754942e-38f, "1.1754942e-38"},  /* the largest of those */
    {9.9999998e17f, "1e+18"},           /* rounded up to a digit more */
    {0x1.9d37b2p+34f, "2.7730561e+10"}, /* whose seven digits lie on a midpoint, and go to the other side */
    {0x1.000008p+25f, "3.355445e+07"},  /* whose lie on one, and come back */
    {1e-5f, "1e-05"},
    {FLT_MAX, "3.4028235e+38"},
    {FLT_MIN, "1.1754944e-38"},
    {-1.40129846e-45f, "-1.4013e-45"},
    {INFINITY, "\"Infinity\""},
    {-INFINITY, "\"-Infinity\""},
    {NAN, "\"NaN\""},
    {-NAN, "\"NaN\""},
};

static void test_known(void **state) {
    for (size_t index = 0; index < COUNT(known); index++) {
        char text[MM_FLOAT_TEXT_ROOM + 1];
        size_t length = mm_float_text(known[index].value, text);
        assert_true(length <= MM_FLOAT_TEXT_MAX);
        text[length] = '\0';
        assert_string_equal(text, known[index].text);
    }
}

static uint64_t next(uint64_t *random) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 32;
}

static const struct {
    double value;
    const char *text;
} known_doubles[] = {
    {0.0, "0"},
    {-0.0, "-0.0"},
    {1.0, "1"},
    {-2.5, "-2.5"},
    {0.1, "0.1"},
    {0.1 + 0.2, "0.30000000000000004"},
    {1.0 / 3.0, "0.3333333333333333"},
    {123456789012345.0, "123456789012345"},
    {9007199254740991.0, "9007199254740991"},
    {1e22, "1e+22"},
    {1e23, "1e+23"},
    {5e-324, "4.94065645841247e-324"},
    {DBL_MIN, "2.2250738585072014e-308"},
    {-DBL_MAX, "-1.7976931348623157e+308"},
    {INFINITY, "\"Infinity\""},
    {-INFINITY, "\"-Infinity\""},
    {NAN, "\"NaN\""},
};

static void test_known_doubles(void **state) {
    for (size_t index = 0; index < COUNT(known_doubles); index++) {
        char text[MM_DOUBLE_TEXT_MAX + 1];
        size_t length = mm_double_text(known_doubles[index].value, text);
        assert_true(length <= MM_DOUBLE_TEXT_MAX);
        text[length] = '\0';
        assert_string_equal(text, known_doubles[index].text);
    }
}

/* Bit patterns of every magnitude; and where 15 or 16 digits read back, no more are written. */
static void test_doubles_read_back(void **state) {
    uint64_t random = 1;
    for (unsigned index = 0; index < RANDOM_COUNT; index++) {
        const uint64_t high = next(&random);
        const uint64_t bits = high << 32 | next(&random);
        double value;
        memcpy(&value, &bits, sizeof value);
        char text[MM_DOUBLE_TEXT_MAX + 1];
        memset(text, '?', sizeof text);
        size_t length = mm_double_text(value, text);
        assert_true(length <= MM_DOUBLE_TEXT_MAX);
        assert_true(text[length] == '?');
        text[length] = '\0';
        if (isnan(value)) {
            assert_string_equal(text, "\"NaN\"");
            continue;
        }
        double back = strtod(text, NULL);
        assert_memory_equal(&back, &value, sizeof value);
        char shorter[MM_DOUBLE_TEXT_MAX + 1];
        for (int digits = 15; digits < 17; digits++) {
            snprintf(shorter, sizeof shorter, "%.*g", digits, value);
            if (strtod(shorter, NULL) == value)
                break;
        }
        if (strtod(shorter, NULL) == value)
            assert_string_equal(text, shorter);
    }
}

RUN_TESTS(test_known, test_known_doubles, test_doubles_read_back)
