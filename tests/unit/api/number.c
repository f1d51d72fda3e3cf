/* api/number: every number is what strtof, strtod or strtoll make of its text; where it ends; and what is
 * none. */
#include "api/number/number.h"
#include "api/number/float_text.h"
#include "tests/unit/unit.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RANDOM_COUNT = 100000 };
#else
enum { RANDOM_COUNT = 1000000 };
#endif

static uint64_t next(uint64_t *random) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 32;
}

/* The number in memory of just its size, so that a read past its end shows. */
static void check_float32(const char *text) {
    const size_t length = strlen(text);
    const float expected = strtof(text, NULL);
    char *copy = malloc(length);
    assert_non_null(copy);
    memcpy(copy, text, length);
    float got = 0;
    bool held = true;
    const char *end = mm_number_float32(copy, copy + length, &got, &held);
    if (end != copy + length || held == (bool)isinf(expected) ||
        (held && memcmp(&got, &expected, sizeof got) != 0))
        fail_msg("%s gives %a, %s", text, (double)got, held ? "held" : "not held");
    free(copy);
}

static void check_float64(const char *text) {
    const double expected = strtod(text, NULL);
    double got = 0;
    bool held = true;
    const char *end = mm_number_float64(text, text + strlen(text), &got, &held);
    if (*end != '\0' || held == (bool)isinf(expected) || (held && memcmp(&got, &expected, sizeof got) != 0))
        fail_msg("%s gives %a, %s", text, got, held ? "held" : "not held");
}

/* Of both signs, of both types. */
static void check(const char *text) {
    char negative[2048];
    assert_true((size_t)snprintf(negative, sizeof negative, "-%s", text) < sizeof negative);
    check_float32(text);
    check_float32(negative);
    check_float64(text);
    check_float64(negative);
}

static const char *const hard[] = {
    "0|0.0|0e5|0.000000000000000000000000000000000000000000000000000000000000000|1|10|0.1|19|"
    "123456789|9999999999999999999|10000000000000000000|18446744073709551615|18446744073709551616|"
    "9223372036854775807|9223372036854775808",
    /* midpoints, and what is just beside them */
    "16777217|16777217.0|16777219|16777217.00000000000000000001|16777216.99999999999999999999|"
    "1.00000005960464477539062|1.000000059604644775390625|1.0000000596046447753906250001|"
    "1.00000017881393432617187|1.000000178813934326171875|1.00000017881393432617188|33554434|33554438|"
    "8388608.5|8388609.5|0.500000029802322387695312500|9007199254740992.5|9007199791611904|"
    "9007199791611904.0|9007199791611905",
    /* the largest, and the least that is too large */
    "3.4028234663852886e38|3.4028235677973366e38|3.4028235677973367e38|3.40282357e38|3.4028236e38|"
    "340282356779733661637539395458142568447|"
    "340282356779733661637539395458142568447.99999999999999999999|"
    "340282356779733661637539395458142568448|1e38|1e39|1e308|1.7976931348623157e308|"
    "1.7976931348623158e308|1.7976931348623159e308|1e309|1e999999999999999999999999999|"
    "340282346638528859811704183484516925440|"
    "340282356779733661637539395458142568448.0000000000000000000000000000000000000001|"
    "340282356779733661637539395458142568449|340282366920938463463374607431768211456|3.5e38",
    /* subnormals, and the least */
    "1.1754943508222875e-38|1.1754942807573643e-38|1.1754942107e-38|1.4e-45|1.401298464324817e-45|"
    "2.1019476964872256e-45|2.1019476964872257e-45|7.006492321624085e-46|7.0064923216240853e-46|"
    "7.0064923216240854e-46|7.1e-46|1e-46|1e-47|1e-64|1e-65|1e-66|1e-67|9999999999999999999e-64|"
    "9999999999999999999e-65|9999999999999999999e-66|4.9e-324|2.4e-324|1e-400|"
    "1e-999999999999999999999999999",
    /* exponents of every form */
    "1e0|1e+0|1e-0|1E5|12.5e+01|12.5e-01|0.00001e5|100000e-5|1e00000000000000000007",
};

static void test_hard(void **state) {
    for (size_t index = 0; index < COUNT(hard); index++) {
        EACH(text, hard[index]) {
            check(text);
        }
    }
}

/* Digits past all that decides, but for the last; and exponents that such digits make up for. */
static void test_long(void **state) {
    char text[2000];
    static const char *const midpoints[] = {"1.000000059604644775390625",
                                            "340282356779733661637539395458142568448.", "9007199254740993."};
    for (size_t index = 0; index < COUNT(midpoints); index++) {
        for (int zeros = 1; zeros < 1900; zeros += 47) {
            sprintf(text, "%s%0*d", midpoints[index], zeros, 0);
            check(text);
            strcat(text, "1");
            check(text);
        }
    }
    for (int zeros = 1; zeros < 900; zeros += 31) {
        sprintf(text, "1%0*de-%d", zeros, 0, zeros);
        check(text);
        sprintf(text, "0.%0*d15e%d", zeros, 0, zeros);
        check(text);
        sprintf(text, "0.%0*de400", zeros, 0);
        check(text);
        sprintf(text, "1%0*de400", zeros, 0);
        check(text);
        sprintf(text, "123.%0*d", zeros, 7);
        check(text);
    }
}

/* Each power of ten, with few digits and with as many as are read at once. */
static void test_powers(void **state) {
    char text[64];
    for (int exponent = -340; exponent < 320; exponent++) {
        static const char *const digits[] = {
            "1", "7", "999", "1234567890123456789", "9999999999999999999", "12345678901234567890123"};
        for (size_t index = 0; index < COUNT(digits); index++) {
            sprintf(text, "%se%d", digits[index], exponent);
            check(text);
        }
    }
}

/* One to twenty-four digits with a point among them, small and large. */
static void random_decimal(uint64_t *random, char *text) {
    const int count = 1 + (int)(next(random) % 24), point = (int)(next(random) % 25);
    int length = 0;
    if (point == 0)
        text[length++] = '0';
    for (int index = 0; index < count; index++) {
        if (index == point)
            text[length++] = '.';
        text[length++] = (char)(next(random) % 10 + '0');
        if (length == 1 && text[0] == '0' && point > 1)
            text[0] = '1';
    }
    if (next(random) % 2 == 0)
        length += sprintf(text + length, "e%d", (int)(next(random) % 100) - 60);
    text[length] = '\0';
}

static void test_random(void **state) {
    uint64_t random = 11;
    char text[64];
    for (unsigned index = 0; index < RANDOM_COUNT / 2; index++) {
        random_decimal(&random, text);
        check_float32(text);
        check_float64(text);
    }
}

/* A bit pattern of any float32, in as many digits as make it sure or fewer, or of a midpoint. */
static void test_bit_patterns(void **state) {
    uint64_t random = 13;
    char text[128];
    for (unsigned index = 0; index < RANDOM_COUNT / 2; index++) {
        const uint32_t bits = (uint32_t)next(&random);
        float value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value) || !isfinite(nextafterf(value, INFINITY)))
            continue;
        const double middle = ((double)value + (double)nextafterf(value, INFINITY)) / 2;
        sprintf(text, "%.*e", (int)(next(&random) % 22), index % 2 == 0 ? (double)value : middle);
        check_float32(text);
    }
}

/* Makes the decimal one less in its last digit. */
static void decrement(char *digits, size_t count) {
    while (count-- > 0) {
        if (digits[count] == '.')
            continue;
        if (digits[count] > '0') {
            digits[count]--;
            return;
        }
        digits[count] = '9';
    }
}

/* A midpoint of float32 exactly (it has at most 113 significant digits), or by a tail above or below it. */
static void near_midpoint(uint64_t *random, uint32_t exponents, char *text) {
    uint32_t bits = (uint32_t)(next(random) % exponents) << 23 | (uint32_t)(next(random) & 0x7fffff);
    float below;
    memcpy(&below, &bits, sizeof below);
    double above = bits == 0x7f7fffff ? 0x1p128 : (double)nextafterf(below, INFINITY);
    char number[200];
    sprintf(number, "%.120e", ((double)below + above) / 2);
    char *exponent = strchr(number, 'e');
    *exponent++ = '\0';
    const char *tail = "";
    unsigned kind = (unsigned)(next(random) % 4);
    if (kind == 1)
        tail = next(random) % 2 ? "1" : "0000000000000000000000000000000000000001";
    if (kind == 2) {
        tail = next(random) % 2 ? "9" : "9999999999999999999999999999999999999999";
        decrement(number, strlen(number));
    }
    if (kind == 3)
        number[2 + next(random) % 40] = '\0'; /* a few digits of it */
    sprintf(text, "%s%s%s%se%s", next(random) % 2 ? "-" : "", number, strchr(number, '.')[1] ? "" : "0", tail,
            exponent);
}

/* Of normal numbers and of subnormal ones. */
static void test_midpoints(void **state) {
    uint64_t random = 7;
    char text[400];
    for (unsigned index = 0; index < RANDOM_COUNT / 5; index++) {
        near_midpoint(&random, index % 2 == 0 ? 255 : 2, text);
        check_float32(text);
    }
}

static void check_round_trip(uint32_t bits) {
    uint32_t back;
    float value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value))
        return;
    char text[MM_FLOAT_TEXT_ROOM + 1];
    text[MM_FLOAT_TEXT_ROOM] = '?';
    const size_t length = mm_float_text(value, text);
    assert_true(length <= MM_FLOAT_TEXT_MAX && text[MM_FLOAT_TEXT_ROOM] == '?');
    bool held = true;
    if (mm_number_float32(text, text + length, &back, &held) != text + length || back != bits || !held)
        fail_msg("%a is written as %.*s", (double)value, (int)length, text);
}

/* What is written is read again: any bit pattern, and all powers of two with their neighbours, where the
 * distance from one to the next changes. */
static void test_round_trip(void **state) {
    uint64_t random = 17;
    for (unsigned index = 0; index < 2 * RANDOM_COUNT; index++)
        check_round_trip((uint32_t)next(&random));
    for (uint32_t exponent = 0; exponent < 512; exponent++)
        for (uint32_t beside = 0; beside < 3; beside++)
            check_round_trip((exponent << 23) + beside - 1);
    for (uint32_t bit = 0; bit < 23; bit++)
        check_round_trip(UINT32_C(1) << bit);
}

static const struct {
    const char *text;
    bool held32, held64;
    int64_t value;
} wholes[] = {
    {"0", true, true, 0},
    {"-0", true, true, 0},
    {"0e999", true, true, 0},
    {"-0.000", true, true, 0},
    {"1e2", true, true, 100},
    {"1000e-3", true, true, 1},
    {"1.50e1", true, true, 15},
    {"1.5", false, false, 0},
    {"1e-1", false, false, 0},
    {"2147483647", true, true, INT32_MAX},
    {"2147483648", false, true, INT64_C(2147483648)},
    {"-2147483648", true, true, INT32_MIN},
    {"-2147483649", false, true, INT64_C(-2147483649)},
    {"9007199254740993", false, true, 9007199254740993},
    {"9007199254740993.0", false, false, 0},
    {"9007199254740992.0", false, true, 9007199254740992},
    {"9223372036854775807", false, true, INT64_MAX},
    {"9223372036854775807.0", false, false, 0},
    {"9223372036854775808", false, false, 0},
    {"-9223372036854775808", false, true, INT64_MIN},
    {"-9223372036854775809", false, false, 0},
    {"18446744073709551616", false, false, 0},
    {"1e18", false, true, 1000000000000000000},
    {"1e19", false, false, 0},
    {"1e99999999999999999999", false, false, 0},
    {"1.00000000000000000001", false, false, 0},
};

static void test_wholes(void **state) {
    for (size_t index = 0; index < COUNT(wholes); index++) {
        const char *text = wholes[index].text, *end = text + strlen(text);
        bool held32 = true, held64 = true;
        int32_t narrow = 0;
        int64_t wide = 0;
        assert_ptr_equal(mm_number_int32(text, end, &narrow, &held32), end);
        assert_ptr_equal(mm_number_int64(text, end, &wide, &held64), end);
        if (held32 != wholes[index].held32 || held64 != wholes[index].held64 ||
            (held32 && narrow != wholes[index].value) || (held64 && wide != wholes[index].value))
            fail_msg("%s gives %" PRId32 " (%d) and %" PRId64 " (%d)", text, narrow, held32, wide, held64);
    }
}

/* Where the number ends; -1: there is none. */
static const struct {
    const char *text;
    int length;
} ends[] = {
    {"1,2", 1},      {"12]", 2},      {"0", 1},
    {"01", -1},      {"-01", -1},     {"-", -1},
    {"", -1},        {"+1", -1},      {".5", -1},
    {"1.", -1},      {"1.e5", -1},    {"1e", -1},
    {"1e+", -1},     {"1e-x", -1},    {"1.5.5", 3},
    {"1e5e5", 3},    {"1e5.", 3},     {"1x", 1},
    {"0x1", 1},      {"-0e", -1},     {"NaN", -1},
    {"inf", -1},     {"12345678", 8}, {"123456789", 9},
    {"1234567:", 7}, {"1234567/", 7}, {"0.1234567\xff", 9},
    {"--1", -1},     {" 1", -1},
};

static void test_ends(void **state) {
    static mm_number_reader *const readers[] = {mm_number_float32, mm_number_float64, mm_number_int32,
                                                mm_number_int64};
    for (size_t index = 0; index < COUNT(ends); index++) {
        for (size_t reader = 0; reader < COUNT(readers); reader++) {
            const char *text = ends[index].text;
            uint64_t element;
            bool held = true;
            const char *end = readers[reader](text, text + strlen(text), &element, &held);
            if (end != (ends[index].length < 0 ? NULL : text + ends[index].length))
                fail_msg("'%s' ends at %d", text, end == NULL ? -1 : (int)(end - text));
        }
    }
}

RUN_TESTS(test_hard, test_long, test_powers, test_random, test_bit_patterns, test_midpoints, test_round_trip,
          test_wholes, test_ends)
