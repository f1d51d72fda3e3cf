/* api/json: each number becomes the float32 nearest to its text, as strtof finds it: random decimals, and
 * texts on and beside the midpoints of float32. */
#include "api/formats.h"
#include "api/json_tree.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* All tests are of each: the codec's decode, and that of the tree alone. */
static enum mm_status (*decoder)(struct mm_call *, const struct mm_body *, const struct mm_limits *,
                                 struct mm_buffers *, struct mm_error *);

enum { BATCH = 4096, BATCHES_EACH = 20, TEXT_MAX = 200 };

static const struct mm_limits limits = {
    .dimension_max = BATCH, .body_bytes_max = SIZE_MAX, .memory_bytes_max = 1 << 20};

static uint64_t next(uint64_t *random) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

static enum mm_status decode_row(const char *elements, struct mm_call *call, struct mm_buffers *buffers) {
    static char text[BATCH * TEXT_MAX + 64];
    int bytes = snprintf(text, sizeof text, "{\"a\": [[%s]], \"b\": []}", elements);
    assert_true(bytes > 0 && (size_t)bytes < sizeof text);
    const struct mm_body body = {.data = text, .bytes = (size_t)bytes};
    mm_call_init(call, MM_MATMUL);
    return decoder(call, &body, &limits, buffers, NULL);
}

/* One to forty digits with a point among them, and an exponent that keeps the number in reach. */
static void random_decimal(uint64_t *random, char *text) {
    char digits[41];
    int count = 1 + (int)(next(random) % 40);
    for (int index = 0; index < count; index++)
        digits[index] = (char)('0' + next(random) % 10);
    int point = (int)(next(random) % (unsigned)count);
    int exponent = (int)(next(random) % 84) - 48 - point;
    sprintf(text, "%s%c.%.*s%se%d", next(random) % 2 ? "-" : "", digits[0], count - 1, digits + 1,
            count == 1 ? "0" : "", exponent);
}

/* Short numbers as people write them, whole and not. */
static void short_decimal(uint64_t *random, char *text) {
    if (next(random) % 2)
        sprintf(text, "%s%d", next(random) % 2 ? "-" : "", (int)(next(random) % 1000000000));
    else
        sprintf(text, "%d.%d", (int)(next(random) % 1000), (int)(next(random) % 100000));
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
    char number[TEXT_MAX];
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

static void normal_midpoint(uint64_t *random, char *text) {
    near_midpoint(random, 255, text);
}

static void subnormal_midpoint(uint64_t *random, char *text) {
    near_midpoint(random, 2, text);
}

static void check_batches(void (*make)(uint64_t *random, char *text), struct mm_buffers *buffers) {
    static char texts[BATCH][TEXT_MAX];
    static char row[BATCH * TEXT_MAX];
    uint64_t random = 7;
    for (int batch = 0; batch < BATCHES_EACH; batch++) {
        char *end = row;
        for (int index = 0; index < BATCH; index++) {
            do
                make(&random, texts[index]);
            while (isinf(strtof(texts[index], NULL)));
            end += sprintf(end, "%s%s", index > 0 ? "," : "", texts[index]);
        }
        struct mm_call call;
        assert_int_equal(decode_row(row, &call, buffers), MM_OK);
        for (int index = 0; index < BATCH; index++) {
            float expected = strtof(texts[index], NULL);
            float got = ((const float *)call.a.data)[index];
            if (memcmp(&got, &expected, sizeof got) != 0)
                fail_msg("%s gives %a, expected %a", texts[index], (double)got, (double)expected);
        }
        mm_call_release(&call, buffers);
    }
}

static void test_nearest(void **state) {
    (void)state;
    struct mm_buffers *buffers = mm_buffers_open(8 << 20); /* a tree of the whole has room */
    check_batches(random_decimal, buffers);
    check_batches(short_decimal, buffers);
    check_batches(normal_midpoint, buffers);
    check_batches(subnormal_midpoint, buffers);
    mm_buffers_close(buffers);
}

/* Around the largest: from half a unit beyond it on, exactly 2¹²⁸ − 2¹⁰³, numbers do not fit. With a
 * 16777217 in front, which makes the second reading happen. */
static const struct {
    const char *text;
    float value; /* 0: refused */
} largest[] = {
    {"340282346638528859811704183484516925440", FLT_MAX},
    {"340282356779733661637539395458142568447", FLT_MAX},
    {"340282356779733661637539395458142568447.9999999999999999999999999999999999999999", FLT_MAX},
    {"340282356779733661637539395458142568448", 0},
    {"340282356779733661637539395458142568448.0000000000000000000000000000000000000001", 0},
    {"340282356779733661637539395458142568449", 0},
    {"340282366920938463463374607431768211456", 0},
    {"3.5e38", 0},
    {"1e309", 0},
    {"1e999999999999999999999", 0},
};

static void test_largest(void **state) {
    (void)state;
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    for (size_t index = 0; index < sizeof largest / sizeof largest[0]; index++) {
        for (int way = 0; way < 4; way++) {
            char row[TEXT_MAX];
            const char *sign = way & 1 ? "-" : "";
            snprintf(row, sizeof row, "%s,%s%s", way & 2 ? "16777217" : "1", sign, largest[index].text);
            struct mm_call call;
            enum mm_status status = decode_row(row, &call, buffers);
            if (status != (largest[index].value == 0 ? MM_BAD_REQUEST : MM_OK))
                fail_msg("%s gives %s", row, mm_status_name(status));
            if (status == MM_OK) {
                const float *got = call.a.data;
                assert_true(got[0] == (way & 2 ? 16777216.0f : 1.0f));
                assert_true(got[1] == (way & 1 ? -largest[index].value : largest[index].value));
            }
            mm_call_release(&call, buffers);
        }
    }
    mm_buffers_close(buffers);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nearest), cmocka_unit_test(test_largest)};
    decoder = mm_json_decode;
    int failures = cmocka_run_group_tests_name("codec", tests, NULL, NULL);
    decoder = mm_json_tree_decode;
    return failures + cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
