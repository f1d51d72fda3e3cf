/* api/float_text: known texts, and that random bit patterns read back as they were. */
#include "api/float_text.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
    (void)state;
    for (size_t index = 0; index < sizeof known / sizeof known[0]; index++) {
        char text[MM_FLOAT_TEXT_MAX + 1];
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

static void test_reads_back(void **state) {
    (void)state;
    uint64_t random = 1;
    for (unsigned index = 0; index < RANDOM_COUNT; index++) {
        uint32_t bits = (uint32_t)next(&random);
        float value, back;
        memcpy(&value, &bits, sizeof value);
        char text[MM_FLOAT_TEXT_MAX + 1];
        memset(text, '?', sizeof text);
        size_t length = mm_float_text(value, text);
        assert_true(length <= MM_FLOAT_TEXT_MAX);
        assert_true(text[length] == '?');
        text[length] = '\0';
        if (isnan(value)) {
            assert_string_equal(text, "\"NaN\"");
            continue;
        }
        assert_true(text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
        back = strtof(text, NULL);
        assert_memory_equal(&back, &value, sizeof value);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known), cmocka_unit_test(test_reads_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
