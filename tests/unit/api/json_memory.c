/* The JSON that api/ writes when memory runs out at each call of malloc in turn, Jansson's among them: it is
 * our failure, and nothing leaks (which the address sanitizer sees). What it reads takes no memory but the
 * pool's. */
#include "api/codec.h"
#include "api/describe/describe.h"
#include "api/problem.h"
#include "gpu/cpu/variants.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <jansson.h>

static const struct mm_variant variant = {
    .name = "naive", .summary = "one by one", .launch[MM_FLOAT32] = mm_cpu_naive};
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
    struct mm_error error;
    size_t length;
    mm_fail_field(&error, MM_BAD_REQUEST, "m", "no");
    return is_made(mm_problem_json(&error, "id", &length));
}

static bool describe_variants(struct mm_buffers *buffers) {
    size_t length;
    return is_made(mm_describe_variants(devices, 1, &length));
}

static bool describe_devices(struct mm_buffers *buffers) {
    size_t length;
    return is_made(mm_describe_devices(devices, 1, &length));
}

static void test_each_allocation(void **state) {
    bool (*const works[])(struct mm_buffers *) = {encode, problem, describe_variants, describe_devices};
    struct mm_buffers *buffers = mm_buffers_open(8192);
    json_set_alloc_funcs(__wrap_malloc, free); /* its library's own calls are not wrapped */
    for (size_t index = 0; index < COUNT(works); index++) {
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

RUN_TESTS(test_each_allocation)
