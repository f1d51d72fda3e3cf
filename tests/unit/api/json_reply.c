/* api/json, the reply: its text to the last byte, and the memory that it takes. */
#include "api/codec.h"
#include "gpu/backend.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct mm_codec *codec(void) {
    size_t count;
    const struct mm_codec *codecs = mm_codecs(&count);
    while (strcmp(codecs->reply_type, "application/json") != 0)
        codecs++;
    return codecs;
}

static const struct mm_variant variant = {.name = "tiled_16"};
static const struct mm_variant chooser = {.name = "auto"};
static const struct mm_backend backend = {.name = "cuda"};

static const struct {
    size_t m, k, n;
    float elements[4];
    uint64_t kernel_ns;
    bool ran;
    const char *device;
    const char *text;
} replies[] = {
    {2,
     3,
     2,
     {19, -0.0f, 0.1f, 50},
     12,
     true,
     "NVIDIA H200",
     "{\"c\": [[19,-0.0],[0.1,50]], \"shape\": [2, 2], \"dtype\": \"float32\", \"variant\": \"tiled_16\", "
     "\"backend\": \"cuda\", \"device\": \"NVIDIA H200\", \"gflops\": 2.0, \"batched\": 1, \"timing\": "
     "{\"receive_ms\": 1.0, \"decode_ms\": 1e-6, \"queue_ms\": 0.0, \"upload_ms\": 0.123456, "
     "\"kernel_ms\": 1.2e-5, \"download_ms\": 1234567.890123, \"encode_ms\": 0.5, \"total_ms\": "
     "60000.000001}}"},
    {1,
     1,
     3,
     {NAN, INFINITY, -INFINITY},
     3,
     true,
     "a \"b\" \xff",
     "{\"c\": [[\"NaN\",\"Infinity\",\"-Infinity\"]], \"shape\": [1, 3], \"dtype\": \"float32\", "
     "\"variant\": "
     "\"tiled_16\", \"backend\": \"cuda\", \"device\": \"a \\\"b\\\" \xef\xbf\xbd\", \"gflops\": 2.0, "
     "\"batched\": 1, \"timing\": {\"receive_ms\": 1.0, \"decode_ms\": 1e-6, \"queue_ms\": 0.0, "
     "\"upload_ms\": 0.123456, \"kernel_ms\": 3e-6, \"download_ms\": 1234567.890123, \"encode_ms\": 0.5, "
     "\"total_ms\": 60000.000001}}"},
    {3,
     1,
     0,
     {0},
     0,
     false,
     NULL,
     "{\"c\": [[],[],[]], \"shape\": [3, 0], \"dtype\": \"float32\", \"variant\": \"auto\", \"backend\": "
     "\"cuda\", \"device\": \"\", \"gflops\": 0.0, \"batched\": 1, \"timing\": {\"receive_ms\": 1.0, "
     "\"decode_ms\": 1e-6, \"queue_ms\": 0.0, \"upload_ms\": 0.123456, \"kernel_ms\": 0.0, "
     "\"download_ms\": 1234567.890123, \"encode_ms\": 0.5, \"total_ms\": 60000.000001}}"},
    {0,
     1,
     3,
     {0},
     0,
     false,
     NULL,
     "{\"c\": [], \"shape\": [0, 3], \"dtype\": \"float32\", \"variant\": \"auto\", \"backend\": \"cuda\", "
     "\"device\": \"\", \"gflops\": 0.0, \"batched\": 1, \"timing\": {\"receive_ms\": 1.0, \"decode_ms\": "
     "1e-6, \"queue_ms\": 0.0, \"upload_ms\": 0.123456, \"kernel_ms\": 0.0, \"download_ms\": "
     "1234567.890123, \"encode_ms\": 0.5, \"total_ms\": 60000.000001}}"},
};

/* As the server does it: the memory first, then the text. */
static void encode(const struct mm_answer *answer, struct mm_buffers *buffers, struct mm_reply_body *body) {
    size_t bytes;
    assert_true(codec()->reply_bytes_max(&answer->job->product.c, &bytes));
    assert_int_equal(mm_buffers_acquire(buffers, bytes, &body->buffer, NULL), MM_OK);
    codec()->encode(answer, body);
}

static void check_reply(size_t index, struct mm_buffers *buffers) {
    float elements[4];
    memcpy(elements, replies[index].elements, sizeof elements);
    struct mm_device device = {.backend = &backend};
    struct mm_job job = {.backend = &backend, .variant = &chooser, .batched = 1};
    job.product.m = replies[index].m;
    job.product.k = replies[index].k;
    job.product.n = replies[index].n;
    job.product.c = mm_matrix_dense(MM_FLOAT32, replies[index].m, replies[index].n, elements);
    job.ran = replies[index].ran ? &variant : NULL;
    job.device = replies[index].device != NULL ? &device : NULL;
    snprintf(device.name, sizeof device.name, "%s",
             replies[index].device != NULL ? replies[index].device : "");
    job.span_ns[MM_SPAN_KERNEL] = replies[index].kernel_ns;
    uint64_t span_ns[MM_SPAN_COUNT] = {1000000, 1, 0, 123456, replies[index].kernel_ns, 1234567890123, 0, 0};
    struct mm_buffer result = {0};
    const struct mm_answer answer = {.job = &job, .result = &result, .span_ns = span_ns};
    struct mm_reply_body body = {0};
    encode(&answer, buffers, &body);
    span_ns[MM_SPAN_ENCODE] = 500000;
    span_ns[MM_SPAN_TOTAL] = 60000000001;
    assert_int_equal(codec()->finish(&answer, &body, NULL), MM_OK);
    assert_true(body.bytes <= body.buffer.bytes);
    if (body.bytes != strlen(replies[index].text) ||
        memcmp(body.buffer.data, replies[index].text, body.bytes) != 0)
        fail_msg("reply %zu is %.*s", index, (int)body.bytes, (const char *)body.buffer.data);
    mm_buffers_release(buffers, &body.buffer);
}

static void test_reply(void **state) {
    (void)state;
    struct mm_buffers *buffers = mm_buffers_open(4096);
    for (size_t index = 0; index < sizeof replies / sizeof replies[0]; index++)
        check_reply(index, buffers);
    mm_buffers_close(buffers);
}

/* The widest there is: elements of the longest text, and a device whose name is all escapes. Without
 * elements, no room that they left over can help. */
static void check_widest(size_t edge) {
    float elements[100];
    for (size_t index = 0; index < 100; index++)
        elements[index] = -1.45123456e-38f;
    struct mm_device device = {.backend = &backend};
    memset(device.name, 1, sizeof device.name - 1);
    struct mm_job job = {
        .backend = &backend, .variant = &variant, .ran = &variant, .device = &device, .batched = UINT32_MAX};
    job.path = (struct mm_path){MM_PATH_REPAIRED, UINT64_MAX};
    job.verification = (struct mm_verification){.is_done = true,
                                                .residual = 1.23456789012345e-300,
                                                .bound = 1.23456789012345e-100,
                                                .rows_unjudged = INT64_MAX};
    job.product.c = mm_matrix_dense(MM_FLOAT32, edge, edge, elements);
    uint64_t span_ns[MM_SPAN_COUNT];
    memset(span_ns, 0xff, sizeof span_ns);
    struct mm_buffer result = {0};
    const struct mm_answer answer = {.job = &job, .result = &result, .span_ns = span_ns};
    struct mm_reply_body body = {0};
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    encode(&answer, buffers, &body);
    assert_int_equal(codec()->finish(&answer, &body, NULL), MM_OK);
    assert_true(body.bytes <= body.buffer.bytes);
    assert_true(((const char *)body.buffer.data)[body.bytes - 1] == '}');
    mm_buffers_release(buffers, &body.buffer);
    mm_buffers_close(buffers);
}

static void test_widest_reply(void **state) {
    (void)state;
    check_widest(10);
    check_widest(0);
}

/* The envelope of a product of nothing by this path, and with what came of its check. */
static void check_envelope(struct mm_path path, struct mm_verification verification, const char *text) {
    struct mm_device device = {.backend = &backend, .name = "Card"};
    struct mm_job job = {.backend = &backend,
                         .variant = &variant,
                         .ran = &variant,
                         .device = &device,
                         .batched = 1,
                         .path = path,
                         .verification = verification};
    job.product.c = mm_matrix_dense(MM_FLOAT32, 0, 0, NULL);
    const uint64_t span_ns[MM_SPAN_COUNT] = {0};
    struct mm_buffer result = {0};
    const struct mm_answer answer = {.job = &job, .result = &result, .span_ns = span_ns};
    struct mm_reply_body body = {0};
    struct mm_buffers *buffers = mm_buffers_open(8192);
    encode(&answer, buffers, &body);
    assert_int_equal(codec()->finish(&answer, &body, NULL), MM_OK);
    ((char *)body.buffer.data)[body.bytes] = '\0'; /* there is more room than that */
    if (strstr(body.buffer.data, text) == NULL)
        fail_msg("no %s in %s", text, (const char *)body.buffer.data);
    mm_buffers_release(buffers, &body.buffer);
    mm_buffers_close(buffers);
}

static void check_path(struct mm_path path, const char *text) {
    check_envelope(path, (struct mm_verification){.is_done = false}, text);
}

/* Between what was there before it and the times; nowhere where there is nothing to tell. */
static void test_path(void **state) {
    (void)state;
    check_path((struct mm_path){MM_PATH_NONE, 0}, "\"batched\": 1, \"timing\": {");
    check_path((struct mm_path){MM_PATH_CERTIFIED, 0},
               "\"batched\": 1, \"path\": \"certified\", \"timing\": {");
    check_path((struct mm_path){MM_PATH_REPAIRED, 3},
               "\"batched\": 1, \"path\": \"repaired:3\", \"timing\": {");
    check_path((struct mm_path){MM_PATH_REPAIRED, UINT64_MAX}, "\"path\": \"repaired:18446744073709551615\"");
    check_path((struct mm_path){MM_PATH_SIMT, 0}, "\"path\": \"simt\"");
}

/* Behind the path; what is more than any number is a word, and what nobody could judge is neither good nor
 * bad. */
static void test_verification(void **state) {
    (void)state;
    const struct mm_path none = {.kind = MM_PATH_NONE};
    const struct mm_path simt = {.kind = MM_PATH_SIMT};
    check_envelope(
        none, (struct mm_verification){.is_done = true, .residual = 1.5e-7, .bound = 0.25, .rows_judged = 2},
        "\"batched\": 1, \"verify\": {\"residual\": 1.5e-7, \"bound\": 0.25, \"passed\": true, "
        "\"rows_unjudged\": 0}, \"timing\": {");
    check_envelope(simt,
                   (struct mm_verification){.is_done = true,
                                            .residual = (double)INFINITY,
                                            .bound = 0.5,
                                            .rows_judged = 2,
                                            .rows_unjudged = 3},
                   "\"path\": \"simt\", \"verify\": {\"residual\": \"Infinity\", \"bound\": 0.5, \"passed\": "
                   "false, \"rows_unjudged\": 3}, \"timing\": {");
    check_envelope(none, (struct mm_verification){.is_done = true, .rows_unjudged = 3},
                   "\"verify\": {\"residual\": 0.0, \"bound\": 0.0, \"passed\": null, \"rows_unjudged\": 3}");
    check_envelope(none, (struct mm_verification){.is_done = true},
                   "\"verify\": {\"residual\": 0.0, \"bound\": 0.0, \"passed\": true, \"rows_unjudged\": 0}");
}

/* A transposition tells its rate in bytes: 2·6·8 of them in 12 ns. */
static void test_transposition(void **state) {
    (void)state;
    static const struct mm_variant shared = {.name = "shared", .op = MM_TRANSPOSE};
    int64_t elements[] = {1, 2, 3, 4, 5, INT64_MIN};
    struct mm_device device = {.backend = &backend, .name = "Host"};
    struct mm_job job = {
        .backend = &backend, .variant = &shared, .ran = &shared, .device = &device, .batched = 1};
    job.product.m = 2;
    job.product.n = 3;
    job.product.a = mm_matrix_dense(MM_INT64, 3, 2, NULL);
    job.product.c = mm_matrix_dense(MM_INT64, 2, 3, elements);
    job.span_ns[MM_SPAN_KERNEL] = 12;
    const uint64_t span_ns[MM_SPAN_COUNT] = {0};
    struct mm_buffer result = {0};
    const struct mm_answer answer = {.job = &job, .result = &result, .span_ns = span_ns};
    struct mm_reply_body body = {0};
    struct mm_buffers *buffers = mm_buffers_open(8192);
    encode(&answer, buffers, &body);
    assert_int_equal(codec()->finish(&answer, &body, NULL), MM_OK);
    static const char begin[] =
        "{\"c\": [[1,2,3],[4,5,-9223372036854775808]], \"shape\": [2, 3], \"dtype\": \"int64\", "
        "\"variant\": \"shared\", \"backend\": \"cuda\", \"device\": \"Host\", "
        "\"gigabytes_per_second\": 8.0, \"batched\": 1, \"timing\": {";
    assert_true(body.bytes > sizeof begin);
    assert_memory_equal(body.buffer.data, begin, sizeof begin - 1);
    mm_buffers_release(buffers, &body.buffer);
    mm_buffers_close(buffers);
}

static void test_bound_of_a_reply(void **state) {
    (void)state;
    size_t bytes = 0;
    struct mm_matrix c = mm_matrix_dense(MM_FLOAT32, 1000, 1000, NULL);
    assert_true(codec()->reply_bytes_max(&c, &bytes));
    assert_true(bytes > 15000000 && bytes < 20000000);
    c = mm_matrix_dense(MM_FLOAT32, SIZE_MAX / 8, 8, NULL);
    assert_false(codec()->reply_bytes_max(&c, &bytes));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reply),         cmocka_unit_test(test_widest_reply),
        cmocka_unit_test(test_path),          cmocka_unit_test(test_verification),
        cmocka_unit_test(test_transposition), cmocka_unit_test(test_bound_of_a_reply)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
