/* api/json, of transpositions: random elements of every type are read as they are written, and decimals are
 * rounded once. */
#include "api/formats.h"
#include "api/json_tree.h"
#include "gpu/backend.h"

#include <inttypes.h>
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

enum { BATCH = 4096, BATCHES = 20, TEXT_MAX = 64 };

static const struct mm_limits limits = {
    .dimension_max = BATCH, .body_bytes_max = 1 << 20, .memory_bytes_max = 1 << 20};

static const struct mm_codec *codec(void) {
    const struct mm_codec *codec = NULL;
    assert_int_equal(mm_codec_for_request("application/json", MM_TRANSPOSE, false, false, 0, &codec, NULL),
                     MM_OK);
    return codec;
}

/* One row of elements of a type. */
static void decode_row(struct mm_call *call, const char *dtype, const char *elements,
                       struct mm_buffers *buffers) {
    static char text[BATCH * TEXT_MAX + 64];
    int bytes = snprintf(text, sizeof text, "{\"a\": [[%s]], \"dtype\": \"%s\"}", elements, dtype);
    assert_true(bytes > 0 && (size_t)bytes < sizeof text);
    const struct mm_body body = {.data = text, .bytes = (size_t)bytes};
    struct mm_error error = {0};
    mm_call_init(call, MM_TRANSPOSE);
    if (decoder(call, &body, &limits, buffers, &error) != MM_OK)
        fail_msg("%s: %s", dtype, error.detail);
}

static uint64_t next(uint64_t *random) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 32;
}

static uint64_t random_bits(uint64_t *random) {
    uint64_t high = next(random);
    return high << 32 | next(random);
}

/* Writes the elements as the reply does, in no more bytes than were asked for, and returns the text of C. */
static char *write_matrix(const struct mm_matrix *matrix, struct mm_buffers *buffers) {
    static char text[BATCH * TEXT_MAX];
    static const struct mm_variant variant = {.name = "naive", .op = MM_TRANSPOSE};
    static const struct mm_backend backend = {.name = "cpu"};
    const struct mm_job job = {
        .product.c = *matrix, .variant = &variant, .ran = &variant, .backend = &backend};
    struct mm_buffer result = {0};
    const uint64_t span_ns[MM_SPAN_COUNT] = {0};
    const struct mm_answer answer = {.job = &job, .result = &result, .span_ns = span_ns};
    struct mm_reply_body body = {0};
    size_t bytes;
    assert_true(codec()->reply_bytes_max(matrix, &bytes));
    assert_int_equal(mm_buffers_acquire(buffers, bytes, &body.buffer, NULL), MM_OK);
    codec()->encode(&answer, &body);
    assert_true(body.bytes < bytes);
    assert_int_equal(snprintf(text, sizeof text, "%.*s", (int)body.bytes, (char *)body.buffer.data),
                     (int)body.bytes);
    assert_int_equal(codec()->finish(&answer, &body, NULL), MM_OK);
    assert_true(body.bytes <= bytes);
    mm_buffers_release(buffers, &body.buffer);
    return text;
}

/* Any elements, written and sent again, are the same. NaN has one text, whatever its payload. */
static void check_round_trip(enum mm_dtype dtype, struct mm_buffers *buffers) {
    static uint64_t elements[BATCH];
    static char row[BATCH * TEXT_MAX];
    const size_t element_bytes = mm_dtype_bytes(dtype);
    uint64_t random = 3;
    for (int batch = 0; batch < BATCHES; batch++) {
        for (size_t index = 0; index < BATCH; index++)
            elements[index] = random_bits(&random) >> (batch % 2 ? next(&random) % 64 : 0);
        for (size_t index = 0; index < BATCH && dtype == MM_FLOAT64; index++)
            if (isnan(((double *)elements)[index]))
                elements[index] = 0x8000000000000000;
        for (size_t index = 0; index < BATCH && dtype == MM_FLOAT32; index++)
            if (isnan(((float *)elements)[index]))
                ((float *)elements)[index] = 0.1f;
        const struct mm_matrix matrix = mm_matrix_dense(dtype, 1, BATCH, elements);
        const char *text = write_matrix(&matrix, buffers);
        const char *begin = strstr(text, "[[") + 2;
        snprintf(row, sizeof row, "%.*s", (int)(strstr(text, "]]") - begin), begin);
        struct mm_call call;
        decode_row(&call, mm_dtype_name(dtype), row, buffers);
        for (size_t index = 0; index < BATCH; index++) {
            const char *sent = (const char *)elements + index * element_bytes;
            const char *got = (const char *)call.a.data + index * element_bytes;
            if (memcmp(sent, got, element_bytes) != 0)
                fail_msg("%s: element %zu of %.200s...", mm_dtype_name(dtype), index, row);
        }
        mm_call_release(&call, buffers);
    }
}

static void test_round_trip(void **state) {
    (void)state;
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        check_round_trip((enum mm_dtype)dtype, buffers);
    mm_buffers_close(buffers);
}

/* Random decimals of up to 30 digits become what strtod makes of them. */
static void test_nearest(void **state) {
    (void)state;
    static char row[BATCH * TEXT_MAX];
    static char texts[BATCH][TEXT_MAX];
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    uint64_t random = 5;
    for (int batch = 0; batch < BATCHES; batch++) {
        char *end = row;
        for (int index = 0; index < BATCH; index++) {
            int exponent = (int)(next(&random) % 620) - 325;
            sprintf(texts[index], "%s%d.%015" PRIu64 "%015" PRIu64 "e%d", next(&random) % 2 ? "-" : "",
                    (int)(next(&random) % 10), random_bits(&random) % 1000000000000000,
                    random_bits(&random) % 1000000000000000, exponent);
            end += sprintf(end, "%s%s", index > 0 ? "," : "", texts[index]);
        }
        struct mm_call call;
        decode_row(&call, "float64", row, buffers);
        for (int index = 0; index < BATCH; index++) {
            double expected = strtod(texts[index], NULL);
            if (memcmp((double *)call.a.data + index, &expected, sizeof expected) != 0)
                fail_msg("%s gives %a", texts[index], ((double *)call.a.data)[index]);
        }
        mm_call_release(&call, buffers);
    }
    mm_buffers_close(buffers);
}

/* A reply of the longest texts of each type fits, and one too long is told. */
static void test_bounds(void **state) {
    (void)state;
    double doubles[100];
    int32_t ints[100];
    int64_t longs[100];
    for (size_t index = 0; index < 100; index++) {
        doubles[index] = -2.2250738585072014e-308;
        ints[index] = INT32_MIN;
        longs[index] = INT64_MIN;
    }
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    struct mm_matrix matrix = mm_matrix_dense(MM_FLOAT64, 10, 10, doubles);
    assert_non_null(strstr(write_matrix(&matrix, buffers), "[-2.2250738585072014e-308,-2."));
    matrix = mm_matrix_dense(MM_INT32, 10, 10, ints);
    assert_non_null(strstr(write_matrix(&matrix, buffers), "],[-2147483648,-2147483648"));
    matrix = mm_matrix_dense(MM_INT64, 10, 10, longs);
    assert_non_null(strstr(write_matrix(&matrix, buffers), "-9223372036854775808,-9223372036854775808]]"));
    size_t bytes;
    matrix = mm_matrix_dense(MM_FLOAT64, SIZE_MAX / 16, 1, NULL);
    assert_false(codec()->reply_bytes_max(&matrix, &bytes));
    mm_buffers_close(buffers);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_nearest),
                                       cmocka_unit_test(test_bounds)};
    decoder = mm_json_decode;
    int failures = cmocka_run_group_tests_name("codec", tests, NULL, NULL);
    decoder = mm_json_tree_decode;
    return failures + cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
