/* server/metrics_text: the lines of the text format, character for character. */
#include "server/observe/metrics_text.h"
#include "tests/unit/unit.h"

#include <math.h>

static char *text;
static size_t length;

static FILE *begin(void) {
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    return out;
}

static void assert_text(FILE *out, const char *expected) {
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void test_family(void **state) {
    FILE *out = begin();
    mm_text_family(out, "a_total", "counter", "One \"line\" of C:\\\nand another");
    assert_text(out, "# HELP a_total One \"line\" of C:\\\\\\nand another\n# TYPE a_total counter\n");
}

static void test_labels(void **state) {
    const struct mm_label none[MM_LABELS_MAX] = {{NULL, NULL}};
    const struct mm_label one[MM_LABELS_MAX] = {{"path", "a\"b\\c\nd"}};
    const struct mm_label two[MM_LABELS_MAX] = {{"x", ""}, {"y", "é"}};
    FILE *out = begin();
    mm_text_count(out, "a", NULL, 0);
    mm_text_count(out, "a", none, 1);
    mm_text_count(out, "a", one, UINT64_MAX);
    mm_text_count(out, "a", two, 3);
    assert_text(out, "a 0\na 1\na{path=\"a\\\"b\\\\c\\nd\"} 18446744073709551615\na{x=\"\",y=\"é\"} 3\n");
}

static void test_numbers(void **state) {
    const struct {
        double value;
        const char *expected;
    } rows[] = {
        {0.0, "a 0\n"},
        {0.05, "a 0.05\n"},
        {1.0 / 3, "a 0.33333333333333331\n"},
        {128.0, "a 128\n"},
        {0x1p53, "a 9007199254740992\n"},
        {1e21, "a 1e+21\n"},
        {INFINITY, "a +Inf\n"},
        {-INFINITY, "a -Inf\n"},
        {NAN, "a NaN\n"},
    };
    for (size_t row = 0; row < COUNT(rows); row++) {
        FILE *out = begin();
        mm_text_number(out, "a", NULL, rows[row].value);
        assert_text(out, rows[row].expected);
    }
}

static void test_histogram(void **state) {
    const uint64_t bounds_ns[] = {1000, 2500, 1000000000};
    const uint64_t buckets[] = {2, 0, 3, 1};
    const struct mm_label labels[MM_LABELS_MAX] = {{"stage", "send"}};
    FILE *out = begin();
    mm_text_histogram(out, "h", labels, bounds_ns, buckets, 3, UINT64_C(12000000345));
    mm_text_histogram(out, "g", NULL, bounds_ns, buckets + 3, 0, 5);
    assert_text(out, "h_bucket{stage=\"send\",le=\"1e-06\"} 2\n"
                     "h_bucket{stage=\"send\",le=\"2.5e-06\"} 2\n"
                     "h_bucket{stage=\"send\",le=\"1\"} 5\n"
                     "h_bucket{stage=\"send\",le=\"+Inf\"} 6\n"
                     "h_sum{stage=\"send\"} 12.000000345\n"
                     "h_count{stage=\"send\"} 6\n"
                     "g_bucket{le=\"+Inf\"} 1\n"
                     "g_sum 0.000000005\n"
                     "g_count 1\n");
}

RUN_TESTS(test_family, test_labels, test_numbers, test_histogram)
