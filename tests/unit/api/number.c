/* Tests that numbers are read exactly as strtof and strtod read them. */
#include "api/number/number.h"
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

/* The copy has exactly the number's size, so a sanitizer reports reads past the end. */
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

static void check(const char *text) {
    char negative[2048];
    assert_true((size_t)snprintf(negative, sizeof negative, "-%s", text) < sizeof negative);
    check_float32(text);
    check_float32(negative);
    check_float64(text);
    check_float64(negative);
}

/* Only the last of many digits decides the rounding. */
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

static void test_random(void **state) {
    uint64_t random = 11;
    char text[64], digits[32];
    for (unsigned index = 0; index < RANDOM_COUNT / 2; index++) {
        sprintf(digits, "%010" PRIu64 "%010" PRIu64, next(&random), next(&random));
        const int first = (int)(next(&random) % 9), point = first + 1 + (int)(next(&random) % 10);
        sprintf(text, "1%.*s.%s", point - first, digits + first, digits + point);
        if (index % 2 == 0)
            sprintf(text + strlen(text), "e%d", (int)(next(&random) % 100) - 60);
        check_float32(text);
        check_float64(text);
    }
}

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

/* Writes the midpoint of two floats, with at most 113 digits, or a number slightly beside it. */
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
        number[2 + next(random) % 40] = '\0'; /* drops most digits */
    sprintf(text, "%s%s%s%se%s", next(random) % 2 ? "-" : "", number, strchr(number, '.')[1] ? "" : "0", tail,
            exponent);
}

static void test_midpoints(void **state) {
    uint64_t random = 7;
    char text[400];
    for (unsigned index = 0; index < RANDOM_COUNT / 5; index++) {
        near_midpoint(&random, index % 2 == 0 ? 255 : 2, text);
        check_float32(text);
    }
}

RUN_TESTS(test_long, test_powers, test_random, test_midpoints)
