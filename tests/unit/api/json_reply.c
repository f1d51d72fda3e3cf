/* Tests JSON replies: the exact text, written by one thread or in parts, and the memory that it needs. */
#include "api/codec.h"
#include "api/json/json_array.h"
#include "gpu/device/backend.h"
#include "tests/unit/memory.h"

#include <math.h>

static struct mm_reply_body body;

static int close_body(void **state) {
    mm_reservation_free(&memory, &body.buffer);
    return close_memory(state);
}

static const struct mm_variant variant = {.name = "tiled_16"};
static const struct mm_backend backend = {.name = "cuda"};

/* Writes a reply in the server's order: reserves memory, then writes the elements, then the times. */
static const char *encode(const struct mm_job *job, const struct mm_shape *shape, uint64_t *span_ns) {
    static char text[1 << 18];
    struct mm_buffer result = {0};
    const struct mm_answer answer = {.outcome = &job->outcome,
                                     .device = job->work.device,
                                     .operand_dtype = job->product.a.dtype,
                                     .matrix = job->product.c,
                                     .reduction = &job->outcome.reduction,
                                     .has_matrix = true,
                                     .shape = shape,
                                     .result = &result,
                                     .span_ns = span_ns};
    size_t bytes;
    mm_reservation_free(&memory, &body.buffer);
    body = (struct mm_reply_body){0};
    assert_true(mm_json_codec.reply_bytes_max(shape, job->product.c.dtype, &bytes));
    assert_int_equal(mm_reservation_acquire(&memory, bytes, &body.buffer, NULL), MM_OK);
    mm_json_codec.encode(&answer, &body);
    if (span_ns[MM_SPAN_RECEIVE] != 0) {
        span_ns[MM_SPAN_ENCODE] = 500000;
        span_ns[MM_SPAN_TOTAL] = 60000000001;
    }
    mm_json_codec.finish(&answer, &body);
    assert_true(body.bytes <= body.buffer.bytes && body.bytes < sizeof text);
    memcpy(text, body.buffer.data, body.bytes);
    text[body.bytes] = '\0';
    assert_int_equal(strlen(text), body.bytes);
    return text;
}

static const struct {
    struct mm_shape shape;
    size_t k;
    float elements[4];
    uint64_t kernel_ns;
    const char *device, *c, *device_text, *gflops, *kernel_ms;
} replies[] = {
    {{2, {2, 2}},
     3,
     {19, -0.0f, 0.1f, 50},
     12,
     "NVIDIA H200",
     "[[19,-0.0],[0.1,50]]",
     "NVIDIA H200",
     "2.000000",
     "0.000012"},
    {{2, {1, 3}},
     1,
     {NAN, INFINITY, -INFINITY},
     3,
     "a \"b\" \xff",
     "[[`NaN`,`Infinity`,`-Infinity`]]",
     "a \\`b\\` \xef\xbf\xbd",
     "2.000000",
     "0.000003"},
    {{2, {3, 0}}, 1, {0}, 0, "x", "[[],[],[]]", "x", "0.000000", "0.000000"},
    {{2, {0, 3}}, 1, {0}, 0, "x", "[]", "x", "0.000000", "0.000000"},
    {{0}, 1, {-7}, 2, "x", "-7", "x", "1.000000", "0.000002"},
    {{1, {3}}, 1, {1, 2, 3}, 6, "x", "[1,2,3]", "x", "1.000000", "0.000006"},
};

/* A product in tiles says so. */
static void test_tiles(void **state) {
    uint64_t span_ns[MM_SPAN_COUNT] = {0};
    const struct mm_shape shape = {2, {0, 3}};
    const struct mm_device device = {.backend = &backend};
    struct mm_job job = {.work.device = &device,
                         .outcome = {.ran = &variant, .batched = 1, .devices = 1, .tiles = 12}};
    job.product.c = mm_matrix_dense(MM_FLOAT32, 0, 3, NULL);
    assert_non_null(
        strstr(encode(&job, &shape, span_ns), quoted("`batched`: 1, `devices`: 1, `tiles`: 12, `timing`")));
}

static void test_reply(void **state) {
    for (size_t index = 0; index < COUNT(replies); index++) {
        const struct mm_shape *shape = &replies[index].shape;
        const size_t m = mm_shape_rows(shape, false), n = mm_shape_cols(shape, false);
        float elements[4];
        char expected[1024], dims[64] = "";
        struct mm_device device = {.backend = &backend};
        struct mm_job job = {.work.device = &device,
                             .outcome = {.ran = &variant, .batched = 1, .devices = 1}};
        uint64_t span_ns[MM_SPAN_COUNT] = {1000000, 1, 0, 123456, replies[index].kernel_ns, 1234567890123};
        memcpy(elements, replies[index].elements, sizeof elements);
        job.product = (struct mm_product){.m = m, .k = replies[index].k, .n = n};
        job.product.c = mm_matrix_dense(MM_FLOAT32, m, n, elements);
        strcpy(device.name, replies[index].device);
        job.outcome.flops_or_bytes = mm_job_flops_or_bytes(&job);
        job.outcome.span_ns[MM_SPAN_KERNEL] = replies[index].kernel_ns;
        for (unsigned dim = 0; dim < shape->rank; dim++)
            sprintf(dims + strlen(dims), "%s%zu", dim > 0 ? ", " : "", shape->dims[dim]);
        snprintf(
            expected, sizeof expected,
            "{`c`: %s, `shape`: [%s], `dtype`: `float32`, `variant`: `tiled_16`, `backend`: `cuda`, "
            "`device`: "
            "`%s`, `gflops`: %s, `batched`: 1, `devices`: 1, `timing`: {`receive_ms`: 1.000000, `decode_ms`: "
            "0.000001, "
            "`queue_ms`: 0.000000, "
            "`upload_ms`: 0.123456, `kernel_ms`: %s, `download_ms`: 1234567.890123, `encode_ms`: 0.500000, "
            "`total_ms`: 60000.000001}}",
            replies[index].c, dims, replies[index].device_text, replies[index].gflops,
            replies[index].kernel_ms);
        assert_string_equal(encode(&job, shape, span_ns), quoted(expected));
    }
}

/* The reply with the longest elements, dimensions and device name must fit into the reserved memory. */
static void test_widest_reply(void **state) {
    for (size_t edge = 0; edge <= 10; edge += 10) {
        float elements[100];
        struct mm_device device = {.backend = &backend};
        struct mm_job job = {.work.device = &device,
                             .outcome.ran = &variant,
                             .outcome.batched = UINT32_MAX,
                             .outcome.tiles = SIZE_MAX,
                             .outcome.devices = UINT32_MAX,
                             .outcome.path = {MM_PATH_REPAIRED, UINT64_MAX},
                             .outcome.verification = {.is_done = true,
                                                      .residual = 1.23456789012345e-300,
                                                      .bound = 1.23456789012345e-100,
                                                      .rows_unjudged = INT64_MAX,
                                                      .error.middle = 1.23456789012345e-300,
                                                      .norm.middle = 2.0}};
        uint64_t span_ns[MM_SPAN_COUNT];
        for (size_t index = 0; index < 100; index++)
            elements[index] = -1.45123456e-38f;
        memset(device.name, 1, sizeof device.name - 1);
        memset(span_ns, 0xff, sizeof span_ns);
        span_ns[MM_SPAN_RECEIVE] = 0;
        struct mm_shape shape = {8, {1, 1, 1, 1, 1, 1, edge, edge}};
        for (unsigned dim = 1; edge == 0 && dim < 8; dim++)
            shape.dims[dim] = SIZE_MAX;
        shape.dims[0] = edge > 0;
        job.product.c = mm_matrix_dense(MM_FLOAT32, edge, edge, elements);
        const char *text = encode(&job, &shape, span_ns);
        assert_true(text[strlen(text) - 1] == '}');
    }
}

/* JSON has no infinite numbers, so an infinite result of a check becomes a string. */
static void test_infinite_check(void **state) {
    uint64_t span_ns[MM_SPAN_COUNT] = {0};
    const struct mm_device device = {.backend = &backend};
    struct mm_job job = {.work.device = &device,
                         .outcome.ran = &variant,
                         .outcome.path = {MM_PATH_REPAIRED, UINT64_MAX},
                         .outcome.verification = {.is_done = true,
                                                  .residual = (double)INFINITY,
                                                  .bound = 0.5,
                                                  .rows_checked = 2,
                                                  .error.middle = (double)INFINITY,
                                                  .norm.middle = 1.0}};
    const struct mm_shape shape = mm_shape_of_matrix(0, 0);
    job.product.c = mm_matrix_dense(MM_FLOAT32, 0, 0, NULL);
    assert_non_null(strstr(encode(&job, &shape, span_ns),
                           quoted("`path`: `repaired:18446744073709551615`, `verify`: {`residual`: "
                                  "`Infinity`, `bound`: 0.5, `passed`: false, `rows_unjudged`: 0, "
                                  "`relative_error`: `Infinity`}, `timing`: {")));
}

static void test_largest_reply_size(void **state) {
    static const struct {
        struct mm_shape shape;
        enum mm_dtype dtype;
    } too_large[] = {{{2, {SIZE_MAX / 8, 8}}, MM_FLOAT32},
                     {{2, {SIZE_MAX / 16, 1}}, MM_FLOAT64},
                     {{5, {1 << 20, 1 << 20, 1 << 20, 2, 0}}, MM_INT8}};
    size_t bytes = 0;
    const struct mm_shape shape = mm_shape_of_matrix(1000, 1000);
    assert_true(mm_json_codec.reply_bytes_max(&shape, MM_FLOAT32, &bytes));
    assert_true(bytes > 15000000 && bytes < 20000000);
    for (size_t index = 0; index < COUNT(too_large); index++)
        assert_false(mm_json_codec.reply_bytes_max(&too_large[index].shape, too_large[index].dtype, &bytes));
}

/* Fills the array with elements whose texts have all lengths, or only with the longest. */
static void fill(enum mm_dtype dtype, void *elements, size_t count, bool longest) {
    static const double longest_numbers[MM_DTYPE_COUNT] = {[MM_FLOAT32] = -1.45123456e-38f,
                                                           [MM_FLOAT64] = -2.2250738585072014e-308,
                                                           [MM_FLOAT16] = -6.1095e-05,
                                                           [MM_BFLOAT16] = -1.004e-38,
                                                           [MM_FLOAT8_E4M3FN] = -0.0137,
                                                           [MM_FLOAT8_E5M2] = -1.5e-05,
                                                           [MM_INT8] = INT8_MIN,
                                                           [MM_INT32] = INT32_MIN,
                                                           [MM_INT64] = INT64_MIN};
    const int few = dtype == MM_BOOL ? 2 : 100;
    for (size_t index = 0; index < count; index++)
        mm_dtype_put(dtype, elements, index,
                     longest                    ? longest_numbers[dtype]
                     : mm_dtype_is_float(dtype) ? (double)(index % 977) / 3.0
                                                : (double)(index % (size_t)few));
}

/* Runs the parts in reverse order, because helping threads may run them in any order. */
struct backwards {
    struct mm_helpers head; /* must be first, so its address can be cast */
    unsigned count;         /* parts of the last call; 0 if there was none */
};

static void run_backwards(struct mm_helpers *helpers, unsigned count, void (*one)(void *data, unsigned index),
                          void *data) {
    ((struct backwards *)helpers)->count = count;
    while (count-- > 0)
        one(data, count);
}

/* Writes into memory of exactly the requested size, so a sanitizer reports writes past its end. */
static char *write(const struct mm_shape *shape, enum mm_dtype dtype, void *elements,
                   struct mm_helpers *helpers, size_t *length) {
    size_t bytes;
    assert_true(mm_json_array_text_bytes(shape, dtype, &bytes));
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, '#', bytes);
    *length = mm_json_array_write(shape, dtype, elements, helpers, text);
    assert_true(*length <= bytes);
    return text;
}

static void expect(enum mm_dtype dtype, struct mm_shape shape, unsigned parts) {
    const struct mm_matrix view = mm_shape_view(&shape, false, dtype);
    void *elements = malloc(mm_matrix_bytes(&view) + 1);
    assert_non_null(elements);
    for (int longest = 0; longest < 2; longest++) {
        struct backwards helpers = {.head.run = run_backwards};
        size_t length, expected_length;
        fill(dtype, elements, view.rows * view.cols, longest != 0);
        char *expected = write(&shape, dtype, elements, NULL, &expected_length);
        char *text = write(&shape, dtype, elements, &helpers.head, &length);
        assert_int_equal(helpers.count, parts);
        assert_int_equal(length, expected_length);
        assert_memory_equal(text, expected, length);
        free(expected);
        free(text);
    }
    free(elements);
}

/* Large arrays are split into parts. Small arrays and single rows are not. */
static void test_parts_make_the_same_text(void **state) {
    static const struct {
        struct mm_shape shape;
        unsigned parts;
    } parted[] = {{{2, {256, 256}}, 2}, {{2, {301, 331}}, 3},   {{2, {2, 60000}}, 2},
                  {{2, {65536, 1}}, 2}, {{3, {7, 43, 331}}, 3}, {{5, {2, 3, 1, 4096, 3}}, 2}};
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        for (size_t index = 0; index < COUNT(parted); index++)
            if (dtype == MM_FLOAT32 || index % 3 == dtype % 3)
                expect(dtype, parted[index].shape, parted[index].parts);
    expect(MM_FLOAT32, mm_shape_of_matrix(1025, 1023), 31);
    expect(MM_INT32, mm_shape_of_matrix(300 * 32768, 0), 256);
    expect(MM_FLOAT32, mm_shape_of_matrix(255, 257), 0);
    expect(MM_FLOAT32, mm_shape_of_matrix(1, 200000), 0);
    expect(MM_FLOAT32, (struct mm_shape){1, {200000}}, 0);
    expect(MM_FLOAT32, mm_shape_of_matrix(65535, 1), 0);
}

/* The expected texts come from Python's json.dumps(np.arange(…).reshape(…).tolist()). */
static void test_nesting(void **state) {
    static const struct {
        struct mm_shape shape;
        const char *text;
    } arrays[] = {
        {{0}, "0"},
        {{1, {1}}, "[0]"},
        {{1, {0}}, "[]"},
        {{2, {0, 5}}, "[]"},
        {{2, {2, 0}}, "[[],[]]"},
        {{3, {2, 2, 1}}, "[[[0],[1]],[[2],[3]]]"},
        {{3, {1, 1, 3}}, "[[[0,1,2]]]"},
        {{3, {2, 0, 3}}, "[[],[]]"},
        {{3, {2, 1, 0}}, "[[[]],[[]]]"},
        {{4, {0, 2, 0, 3}}, "[]"},
        {{4, {2, 1, 2, 2}}, "[[[[0,1],[2,3]]],[[[4,5],[6,7]]]]"},
        {{4, {1, 2, 2, 0}}, "[[[[],[]],[[],[]]]]"},
        {{8, {1, 1, 2, 1, 1, 1, 2, 1}}, "[[[[[[[[0],[1]]]]],[[[[[2],[3]]]]]]]]"},
    };
    int8_t elements[] = {0, 1, 2, 3, 4, 5, 6, 7};
    for (size_t index = 0; index < COUNT(arrays); index++) {
        size_t length;
        char *text = write(&arrays[index].shape, MM_INT8, elements, NULL, &length);
        assert_int_equal(length, strlen(arrays[index].text));
        assert_memory_equal(text, arrays[index].text, length);
        free(text);
    }
}

RUN_TESTS_BETWEEN(open_memory, close_body, test_reply, test_tiles, test_widest_reply, test_infinite_check,
                  test_largest_reply_size, test_parts_make_the_same_text, test_nesting)
