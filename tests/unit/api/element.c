/* Tests all elements of the narrow floating-point types. Each element must become the shortest text that
 * reads back as that element. Midpoints between elements must round correctly. */
#include "api/element.h"
#include "tests/unit/unit.h"

#include <math.h>

static const enum mm_dtype narrow[] = {MM_FLOAT16, MM_BFLOAT16, MM_FLOAT8_E4M3FN, MM_FLOAT8_E5M2};

static uint32_t read_back(enum mm_dtype dtype, const char *text, bool *fits) {
    uint32_t bits = 0;
    *fits = true;
    assert_ptr_equal(mm_element(dtype)->read(text, text + strlen(text), &bits, fits), text + strlen(text));
    return bits;
}

static int significant_digits(const char *text) {
    int digits = 0, zeros = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (*text == '0' && digits == 0))
            continue;
        zeros = *text == '0' ? zeros + 1 : 0;
        digits++;
    }
    return digits - zeros;
}

static void every_element_reads_back(void **state) {
    for (size_t index = 0; index < COUNT(narrow); index++) {
        const enum mm_dtype dtype = narrow[index];
        const uint32_t count = 1U << 8 * mm_dtype_bytes(dtype);
        for (uint32_t bits = 0; bits < count; bits++) {
            const double value = mm_dtype_get(dtype, &bits, 0);
            char text[64], fewest[64];
            int digits = 0;
            bool fits;
            *mm_element(dtype)->write(&bits, 1, text) = '\0';
            assert_true(strlen(text) <= mm_element(dtype)->text_max);
            assert_int_equal(*text == '"', !isfinite(value));
            if (!isfinite(value))
                continue;
            do {
                snprintf(fewest, sizeof fewest, "%.*e", digits++, value);
            } while (read_back(dtype, fewest, &fits) != bits || !fits);
            if (read_back(dtype, text, &fits) != bits || !fits ||
                significant_digits(text) != significant_digits(fewest))
                fail_msg("%s of %g is written as %s, not as %s", mm_dtype_name(dtype), value, text, fewest);
        }
    }
}

/* A number with 150 digits may lie exactly between two elements. One more digit decides the rounding. */
static void midpoints_are_read_exactly(void **state) {
    for (size_t index = 0; index < COUNT(narrow); index++) {
        const enum mm_dtype dtype = narrow[index];
        for (uint32_t bits = 0; bits < 1U << (8 * mm_dtype_bytes(dtype) - 1); bits++) {
            const uint32_t next = bits + 1;
            const double below = mm_dtype_get(dtype, &bits, 0), above = mm_dtype_get(dtype, &next, 0);
            char text[400];
            bool fits;
            if (!isfinite(below) || !isfinite(above))
                break;
            snprintf(text, sizeof text, "%.160f", (below + above) / 2);
            assert_int_equal(read_back(dtype, text, &fits), bits + (bits & 1));
            strcat(text, "1");
            assert_int_equal(read_back(dtype, text, &fits), bits + 1);
            text[strlen(text) - 1] = '\0';
            char *last = text + strlen(text) - 1; /* decrement the last digit that is not 0 */
            for (; *last == '0' || *last == '.'; last--)
                *last = *last == '0' ? '9' : '.';
            --*last;
            if (*text != '0' || text[1] == '.') /* JSON allows no number like 05 */
                assert_int_equal(read_back(dtype, text, &fits), bits);
        }
    }
}

static void numbers_out_of_range_are_refused(void **state) {
    static const struct {
        enum mm_dtype dtype;
        const char *last, *next;
    } cases[] = {
        {MM_FLOAT16, "65519.99", "65520"},
        {MM_BFLOAT16, "3.3961775e38", "3.3961776e38"},
        {MM_FLOAT8_E4M3FN, "464", "464.0000001"},
        {MM_FLOAT8_E5M2, "-61439.9", "-61440"},
        {MM_INT8, "-128", "-129"},
        {MM_INT8, "1.27e2", "128"},
        {MM_UINT8, "255", "256"},
        {MM_UINT8, "-0", "-1"},
        {MM_BOOL, "1.0", "2"},
        {MM_FLOAT16, "1e-999", "1e999"},
        {MM_BFLOAT16, "0", "-1e309"},
        {MM_FLOAT8_E4M3FN, "0", "1e309"},
        {MM_FLOAT8_E5M2, "0", "1e309"},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        bool fits;
        read_back(cases[index].dtype, cases[index].last, &fits);
        assert_true(fits);
        read_back(cases[index].dtype, cases[index].next, &fits);
        assert_false(fits);
    }
}

RUN_TESTS(every_element_reads_back, midpoints_are_read_exactly, numbers_out_of_range_are_refused)
