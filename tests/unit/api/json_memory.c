/* The JSON of api/ when memory runs out at each call of malloc in turn, Jansson's by our allocator among
 * them: it is our failure, never the caller's, and nothing leaks (which the address sanitizer sees). */
#include "api/codec.h"
#include "api/describe.h"
#include "api/problem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static const struct mm_limits limits = {8, 1024, 1024};
static const struct mm_variant variant = {
    .name = "naive", .summary = "one by one", .dtypes = MM_DTYPE_BIT(MM_FLOAT32)};
static const struct mm_backend backend = {.name = "cpu", .variants = &variant, .variant_count = 1};
static struct mm_device device = {.backend = &backend, .name = "Host"};
static struct mm_device *const devices[] = {&device};

static long allocations_left = -1; /* until one fails; negative: none does */

void *__real_malloc(size_t);
void *__wrap_malloc(size_t);

void *__wrap_malloc(size_t bytes) {
    if (allocations_left == 0) {
        errno = ENOMEM;
        return NULL;
    }
    allocations_left -= allocations_left > 0;
    return __real_malloc(bytes);
}

/* Each tells whether it succeeded. */
static bool decode_text(enum mm_op op, char *text, struct mm_buffers *buffers) {
    const struct mm_body body = {.data = text, .bytes = strlen(text)};
    const struct mm_codec *codec;
    struct mm_call call;
    struct mm_error error;
    assert_int_equal(mm_codec_for_request("application/json", op, false, false, 0, &codec, &error), MM_OK);
    mm_call_init(&call, op);
    enum mm_status status = codec->decode(&call, &body, &limits, buffers, &error);
    assert_true(status == MM_OK || status == MM_INTERNAL);
    mm_call_release(&call, buffers);
    return status == MM_OK;
}

static bool decode(struct mm_buffers *buffers) {
    static char text[] = "{\"a\": [[16777217, 2], [3, \"NaN\"]], \"b\": [[1], [2]], \"variant\": \"naive\"}";
    return decode_text(MM_MATMUL, text, buffers);
}

/* By the tree of the whole, for the escape. */
static bool decode_tree(struct mm_buffers *buffers) {
    static char text[] =
        "{\"\\u0061\": [[16777217, 2], [3, \"NaN\"]], \"b\": [[1], [2]], \"variant\": \"naive\"}";
    return decode_text(MM_MATMUL, text, buffers);
}

/* With tokens for which Jansson's buffer grows: where that failed, it would go on without a character. */
static bool decode_long(struct mm_buffers *buffers) {
    static char text[] = "{\"\\u0061\": [[16777217.000000000000000000000000000000000000001]], \"b\": [[1]], "
                         "\"variant\": \"a_name_longer_than_a_buffer\"}";
    return decode_text(MM_MATMUL, text, buffers);
}

/* By two of them, for the integers. */
static bool decode_integers(struct mm_buffers *buffers) {
    static char text[] = "{\"d\\u0074ype\": \"int64\", \"a\": [[1, 2e0], [3, -4]], \"variant\": \"naive\"}";
    return decode_text(MM_TRANSPOSE, text, buffers);
}

static bool encode(struct mm_buffers *buffers) {
    float elements[] = {1, 2, 3, 4};
    struct mm_job job = {.backend = &backend, .variant = &variant, .device = &device};
    job.product.c = mm_matrix_dense(MM_FLOAT32, 2, 2, elements);
    const uint64_t span_ns[MM_SPAN_COUNT] = {0};
    struct mm_buffer result = {0};
    const struct mm_answer answer = {.job = &job, .result = &result, .span_ns = span_ns};
    struct mm_reply_body body = {0};
    const struct mm_codec *codec;
    assert_int_equal(mm_codec_for_reply("application/json", NULL, &codec, NULL), MM_OK);
    size_t bytes;
    assert_true(codec->reply_bytes_max(&job.product.c, &bytes));
    assert_int_equal(mm_buffers_acquire(buffers, bytes, &body.buffer, NULL), MM_OK);
    codec->encode(&answer, &body);
    enum mm_status status = codec->finish(&answer, &body, NULL);
    assert_true(status == MM_OK || status == MM_INTERNAL);
    mm_buffers_release(buffers, &body.buffer);
    return status == MM_OK;
}

static bool is_made(char *text) {
    free(text);
    return text != NULL;
}

static bool problem(struct mm_buffers *buffers) {
    (void)buffers;
    struct mm_error error;
    size_t length;
    mm_fail_field(&error, MM_BAD_REQUEST, "m", "no");
    return is_made(mm_problem_json(&error, "id", &length));
}

static bool describe_variants(struct mm_buffers *buffers) {
    (void)buffers;
    size_t length;
    return is_made(mm_describe_variants(devices, 1, &length));
}

static bool describe_devices(struct mm_buffers *buffers) {
    (void)buffers;
    size_t length;
    return is_made(mm_describe_devices(devices, 1, &length));
}

static void test_each_allocation(void **state) {
    (void)state;
    bool (*const works[])(struct mm_buffers *) = {decode, decode_tree, decode_long,       decode_integers,
                                                  encode, problem,     describe_variants, describe_devices};
    struct mm_buffers *buffers = mm_buffers_open(8192);
    for (size_t index = 0; index < sizeof works / sizeof works[0]; index++) {
        long failures = 0;
        bool succeeded = false;
        while (!succeeded) {
            allocations_left = failures;
            succeeded = works[index](buffers);
            failures += !succeeded;
            assert_int_equal(mm_buffers_used(buffers), 0);
        }
        allocations_left = -1;
        assert_true(failures > 5 && failures < 500);
    }
    mm_buffers_close(buffers);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
