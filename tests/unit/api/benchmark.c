/* Benchmarks on the wire: what a request may say, which format answers it, and what the reply tells of rows
 * that are right, wrong and failed. */
#include "api/benchmark.h"
#include "gpu/cpu/cpu_backend.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct mm_limits limits = {
    .dimension_max = 100000, .body_bytes_max = 1 << 20, .memory_bytes_max = 1 << 30};

static enum mm_status decode(const char *text, struct mm_benchmark_call *call, struct mm_error *error) {
    memset(error, 0, sizeof *error);
    return mm_benchmark_decode(text, strlen(text), &limits, call, error);
}

static void defaults(void **state) {
    struct mm_benchmark_call call;
    struct mm_error error;
    (void)state;
    assert_int_equal(decode("{\"m\": 3, \"k\": 100000, \"n\": 1}", &call, &error), MM_OK);
    assert_int_equal(call.request.op, MM_MATMUL);
    assert_int_equal(call.request.m, 3);
    assert_int_equal(call.request.k, 100000);
    assert_int_equal(call.request.n, 1);
    assert_int_equal(call.request.dtype, MM_FLOAT32);
    assert_int_equal(call.request.repeats, 20);
    assert_int_equal(call.timeout_ms, 0);
    assert_int_equal(call.name_count, 0);
    assert_true(!call.request.transpose_a && !call.request.transpose_b);
    assert_int_equal(decode("{\"op\": \"transpose\", \"m\": 3, \"n\": 7}", &call, &error), MM_OK);
    assert_int_equal(call.request.op, MM_TRANSPOSE);
    assert_int_equal(call.request.k, 0);
}

static void all_members(void **state) {
    struct mm_benchmark_call call;
    struct mm_error error;
    (void)state;
    assert_int_equal(decode("{\"repeats\": 7, \"variants\": [\"naive\", \"cpu:tiled_8\", \"dynamic/64\", "
                            "\"cuda:dynamic/999999999\"], \"timeout_ms\": 5000000000, \"dtype\": \"int64\", "
                            "\"n\": 4e1, \"m\": 2.0, \"op\": \"transpose\"}",
                            &call, &error),
                     MM_OK);
    assert_int_equal(call.request.m, 2);
    assert_int_equal(call.request.n, 40);
    assert_int_equal(call.request.dtype, MM_INT64);
    assert_int_equal(call.request.repeats, 7);
    assert_true(call.timeout_ms == 5000000000);
    assert_int_equal(call.name_count, 4);
    static const struct mm_benchmark_name expected[] = {
        {"auto", "naive", 0}, {"cpu", "tiled_8", 0}, {"auto", "dynamic", 64}, {"cuda", "dynamic", 999999999}};
    for (size_t index = 0; index < 4; index++) {
        assert_string_equal(call.names[index].backend, expected[index].backend);
        assert_string_equal(call.names[index].variant, expected[index].variant);
        assert_int_equal(call.names[index].tile, expected[index].tile);
    }
}

/* More than any limit is still told as it came. */
static void large_repeats(void **state) {
    struct mm_benchmark_call call;
    struct mm_error error;
    (void)state;
    assert_int_equal(decode("{\"m\": 1, \"k\": 1, \"n\": 1, \"repeats\": 4294967297}", &call, &error), MM_OK);
    assert_true(call.request.repeats == 4294967297);
    assert_int_equal(decode("{\"m\": 1, \"k\": 1, \"n\": 1, \"repeats\": 1e300}", &call, &error), MM_OK);
    assert_true(call.request.repeats == MM_BENCHMARK_REPEATS_CUT);
}

static void operands_that_are_stored_transposed(void **state) {
    (void)state;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) {
            struct mm_benchmark_call call;
            struct mm_error error;
            char text[128];
            snprintf(text, sizeof text,
                     "{\"transpose_b\": %s, \"m\": 1, \"k\": 2, \"n\": 3, \"transpose_a\": %s}",
                     b ? "true" : "false", a ? "true" : "false");
            assert_int_equal(decode(text, &call, &error), MM_OK);
            assert_true(call.request.transpose_a == (a == 1) && call.request.transpose_b == (b == 1));
            assert_true(call.request.m == 1 && call.request.k == 2 && call.request.n == 3);
        }
}

static void requests_for_accesses(void **state) {
    struct mm_benchmark_call call;
    struct mm_error error;
    (void)state;
    assert_int_equal(decode("{\"op\": \"shared_access\", \"patterns\": [\"linear\"], \"word_bytes\": 4, "
                            "\"padded\": false, \"timeout_ms\": 7}",
                            &call, &error),
                     MM_OK);
    assert_string_equal(call.op->name, "shared_access");
    assert_false(call.op->has_variants);
    assert_int_equal(call.timeout_ms, 7);
    assert_int_equal(call.probe.count, 1);
    assert_int_equal(decode("{\"op\": \"shared_access\", \"m\": 1}", &call, &error), MM_BAD_REQUEST);
    assert_string_equal(error.field, "m");
    assert_int_equal(decode("{\"op\": \"shared_access\", \"timeout_ms\": 0}", &call, &error), MM_BAD_REQUEST);
    assert_string_equal(error.field, "timeout_ms");
    assert_int_equal(decode("{\"m\": 1, \"k\": 1, \"n\": 1, \"patterns\": \"linear\"}", &call, &error),
                     MM_BAD_REQUEST);
    assert_string_equal(error.field, "patterns");
}

static void malformed_requests_are_refused(void **state) {
    static const struct {
        const char *text;
        enum mm_status status;
        const char *field;
        const char *words;
    } cases[] = {
        {"", MM_BAD_REQUEST, "", "the body is empty"},
        {"[]", MM_BAD_REQUEST, "", "a JSON array"},
        {"{\"m\": 1,\n \"k\" 1}", MM_BAD_REQUEST, "", "line 2"},
        {"{\"m\": 1, \"m\": 1, \"k\": 1, \"n\": 1}", MM_BAD_REQUEST, "", "duplicate"},
        {"{}", MM_BAD_REQUEST, "m", "m is missing"},
        {"{\"m\": 1, \"n\": 1}", MM_BAD_REQUEST, "k", "k is missing"},
        {"{\"op\": \"transpose\", \"m\": 1}", MM_BAD_REQUEST, "n", "n is missing"},
        {"{\"op\": \"transpose\", \"m\": 1, \"n\": 1, \"k\": 1}", MM_BAD_REQUEST, "k",
         "'k' is no member here; there are: op, m, n, dtype, variants, repeats, timeout_ms"},
        {"{\"op\": \"transpose\", \"m\": 1, \"n\": 1, \"transpose_a\": false}", MM_BAD_REQUEST, "transpose_a",
         "'transpose_a' is no member here; there are: op, m, n, dtype, variants,"},
        {"{\"op\": \"transpose\", \"m\": 1, \"n\": 1, \"transpose_b\": true}", MM_BAD_REQUEST, "transpose_b",
         "no member here"},
        {"{\"op\": \"shared_access\", \"transpose_b\": true}", MM_BAD_REQUEST, "transpose_b",
         "'transpose_b'"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"transpose_a\": 1}", MM_BAD_REQUEST, "transpose_a",
         "transpose_a must be true or false, but is the number 1"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"transpose_b\": \"true\"}", MM_BAD_REQUEST, "transpose_b",
         "but is the string 'true'"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"transpose_b\": null}", MM_BAD_REQUEST, "transpose_b", "null"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"colour\": \"red\"}", MM_BAD_REQUEST, "colour",
         "there are: op, m, k, n, dtype, transpose_a, transpose_b, variants, repeats, timeout_ms"},
        {"{\"m\": 0, \"k\": 1, \"n\": 1}", MM_BAD_REQUEST, "m", "at least 1, but is the number 0"},
        {"{\"m\": -1, \"k\": 1, \"n\": 1}", MM_BAD_REQUEST, "m", "the number -1"},
        {"{\"m\": 1.5, \"k\": 1, \"n\": 1}", MM_BAD_REQUEST, "m", "the number 1.5"},
        {"{\"m\": \"1\", \"k\": 1, \"n\": 1}", MM_BAD_REQUEST, "m", "the string '1'"},
        {"{\"m\": -1e999, \"k\": 1, \"n\": 1}", MM_BAD_REQUEST, "m", "the number beyond -1.79769313e+308"},
        {"{\"m\": null, \"k\": 1, \"n\": 1}", MM_BAD_REQUEST, "m", "null"},
        {"{\"m\": 1, \"k\": [1], \"n\": 1}", MM_BAD_REQUEST, "k", "an array"},
        {"{\"m\": 1, \"k\": 1, \"n\": {}}", MM_BAD_REQUEST, "n", "an object"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"repeats\": 0}", MM_BAD_REQUEST, "repeats", "at least 1"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"repeats\": true}", MM_BAD_REQUEST, "repeats", "true"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"timeout_ms\": 0.5}", MM_BAD_REQUEST, "timeout_ms", "0.5"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"dtype\": 32}", MM_BAD_REQUEST, "dtype", "a string"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"op\": 1}", MM_BAD_REQUEST, "op", "a string"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"variants\": []}", MM_BAD_REQUEST, "variants", "a list of names"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"variants\": \"naive\"}", MM_BAD_REQUEST, "variants", "the string"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"variants\": [\"naive\", 1]}", MM_BAD_REQUEST, "variants",
         "variants[1] must be a name"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"variants\": [\"\"]}", MM_BAD_REQUEST, "variants", "variants[0]"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"variants\": [\":naive\"]}", MM_BAD_REQUEST, "variants",
         "':naive'"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"variants\": [\"cpu:\"]}", MM_BAD_REQUEST, "variants", "'cpu:'"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"variants\": [\"/8\"]}", MM_BAD_REQUEST, "variants", "'/8'"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"variants\": [\"a/\"]}", MM_BAD_REQUEST, "variants", "'a/'"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"variants\": [\"a/0\"]}", MM_BAD_REQUEST, "variants", "'a/0'"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"variants\": [\"a/8x\"]}", MM_BAD_REQUEST, "variants", "'a/8x'"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"variants\": [\"a/1234567890\"]}", MM_BAD_REQUEST, "variants",
         "'a/"},
        {"{\"m\": 100001, \"k\": 1, \"n\": 1}", MM_TOO_LARGE, "m", "m is 100001, but the limit is 100000"},
        {"{\"m\": 4294967297, \"k\": 1, \"n\": 1}", MM_TOO_LARGE, "m", "m is 4294967297, but"},
        {"{\"m\": -4294967297, \"k\": 1, \"n\": 1}", MM_BAD_REQUEST, "m", "the number -4294967297"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1e999}", MM_TOO_LARGE, "n",
         "n is beyond 1.79769313e+308, but the limit is 100000"},
        {"{\"m\": 100001, \"k\": 1, \"n\": 0}", MM_BAD_REQUEST, "n", "at least 1"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"op\": \"add\"}", MM_UNSUPPORTED, "op",
         "op is 'add', but there is only: matmul, transpose, shared_access"},
        {"{\"m\": 1, \"k\": 1, \"n\": 1, \"dtype\": \"int32\"}", MM_UNSUPPORTED, "dtype", "only: float32"},
        {"{\"dtype\": \"int32\", \"m\": 100001, \"k\": 1, \"n\": 1}", MM_TOO_LARGE, "m", "limit"},
        {"{\"dtype\": \"int32\", \"m\": 1, \"k\": 1, \"n\": 1, \"x\": 1}", MM_BAD_REQUEST, "x", "no member"},
    };
    (void)state;
    for (size_t index = 0; index < sizeof cases / sizeof cases[0]; index++) {
        struct mm_benchmark_call call;
        struct mm_error error;
        enum mm_status status = decode(cases[index].text, &call, &error);
        if (status != cases[index].status || error.status != status ||
            strcmp(error.field, cases[index].field) != 0 || strstr(error.detail, cases[index].words) == NULL)
            fail_msg("%s: %s of '%s': %s", cases[index].text, mm_status_name(status), error.field,
                     error.detail);
        assert_int_equal(error.has_limit, status == MM_TOO_LARGE);
    }
    struct mm_benchmark_call call;
    struct mm_error error;
    static const char zero[] = "{\"m\": 1, \"k\": 1, \"n\": 1\0}";
    assert_int_equal(mm_benchmark_decode(zero, sizeof zero - 1, &limits, &call, &error), MM_BAD_REQUEST);
}

/* As deep as a body of a benchmark can be: refused, and no stack is used up. */
static void nesting_is_bounded(void **state) {
    static char deep[MM_BENCHMARK_BODY_BYTES_MAX];
    struct mm_benchmark_call call;
    struct mm_error error;
    (void)state;
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"m\":", 5);
    assert_int_equal(mm_benchmark_decode(deep, sizeof deep, &limits, &call, &error), MM_BAD_REQUEST);
    assert_non_null(strstr(error.detail, "depth"));
}

/* A request of so many rows of the same name. */
static enum mm_status decode_rows(unsigned count, struct mm_error *error) {
    struct mm_benchmark_call call;
    char text[64 + 16 * (MM_BENCHMARK_ROWS_MAX + 1)] = "{\"m\": 1, \"k\": 1, \"n\": 1, \"variants\": [";
    for (unsigned index = 0; index < count; index++)
        strcat(text, index > 0 ? ", \"naive\"" : "\"naive\"");
    strcat(text, "]}");
    enum mm_status status = decode(text, &call, error);
    if (status == MM_OK)
        assert_int_equal(call.name_count, count);
    return status;
}

static void rows_are_bounded(void **state) {
    struct mm_error error;
    (void)state;
    assert_int_equal(decode_rows(MM_BENCHMARK_ROWS_MAX, &error), MM_OK);
    assert_int_equal(decode_rows(MM_BENCHMARK_ROWS_MAX + 1, &error), MM_TOO_LARGE);
    assert_string_equal(error.field, "variants");
    assert_int_equal(error.limit, MM_BENCHMARK_ROWS_MAX);
}

static void types_are_judged(void **state) {
    struct mm_error error;
    (void)state;
    assert_int_equal(mm_benchmark_judge_type("application/json; charset=utf-8", false, 0, &error), MM_OK);
    assert_int_equal(mm_benchmark_judge_type(NULL, false, 0, &error), MM_OK);
    assert_int_equal(mm_benchmark_judge_type(NULL, true, '{', &error), MM_OK);
    assert_int_equal(mm_benchmark_judge_type("application/x-www-form-urlencoded", true, '{', &error), MM_OK);
    assert_int_equal(mm_benchmark_judge_type("", true, 'm', &error), MM_UNSUPPORTED_MEDIA_TYPE);
    assert_non_null(strstr(error.detail, "curl -d"));
    assert_int_equal(mm_benchmark_judge_type("application/octet-stream", false, 0, &error),
                     MM_UNSUPPORTED_MEDIA_TYPE);
    assert_string_equal(error.field, "Content-Type");
    assert_non_null(strstr(error.detail, "application/json"));
}

static void formats_follow_accept(void **state) {
    static const struct {
        const char *accept;
        const char *reply_type; /* NULL: none */
    } cases[] = {
        {NULL, "application/json"},
        {"*/*", "application/json"},
        {"text/plain", "text/plain; charset=utf-8"},
        {"text/*", "text/plain; charset=utf-8"},
        {"application/json;q=0.5, text/plain;q=0.6", "text/plain; charset=utf-8"},
        {"application/json;q=0.5, text/plain;q=0.5", "application/json"},
        {"text/plain;q=0, */*", "application/json"},
        {"application/x-npy, application/octet-stream", NULL},
        {"text/html", NULL},
    };
    (void)state;
    for (size_t index = 0; index < sizeof cases / sizeof cases[0]; index++) {
        const struct mm_benchmark_format *format;
        struct mm_error error;
        enum mm_status status = mm_benchmark_choose_format(cases[index].accept, &format, &error);
        assert_int_equal(status, cases[index].reply_type == NULL ? MM_NOT_ACCEPTABLE : MM_OK);
        if (status == MM_OK)
            assert_string_equal(format->reply_type, cases[index].reply_type);
        else
            assert_non_null(strstr(error.detail, "application/json, text/plain"));
    }
}

static enum mm_status do_nothing(const struct mm_product *product, struct mm_lane *lane,
                                 struct mm_error *error) {
    (void)product;
    (void)lane;
    (void)error;
    return MM_OK;
}

static enum mm_status refuse(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    (void)product;
    (void)lane;
    return mm_fail(error, MM_UNSUPPORTED, "not this \"shape\"");
}

/* Takes 20 ms, against which a plain run is nothing. */
static enum mm_status take_time(const struct mm_product *product, struct mm_lane *lane,
                                struct mm_error *error) {
    const uint64_t until_ns = mm_clock_ns() + 20000000;
    while (mm_clock_ns() < until_ns)
        continue;
    return mm_cpu_backend.variants[0].launch(product, lane, error);
}

static const struct mm_variant *choose(const struct mm_device *device, const struct mm_product *product) {
    (void)device;
    (void)product;
    return &mm_cpu_backend.variants[1];
}

static const unsigned tiles[] = {8, 0};
static const struct mm_variant nothing = {.name = "nothing", .launch = do_nothing};
static const struct mm_variant refuses = {.name = "refuses", .launch = refuse};
static const struct mm_variant slow = {.name = "slow", .launch = take_time, .tile = 4, .tiles = tiles};
static const struct mm_variant chooses = {.name = "chooses", .choose = choose};
static const struct mm_variant yardstick = {.name = "blas", .launch = take_time};

/* A benchmark of these rows that has been run on the CPU. */
static struct mm_benchmark *run(struct mm_benchmark_request *request, struct mm_device *device) {
    struct mm_benchmark *benchmark = mm_benchmark_open(request, SIZE_MAX);
    struct mm_job job;
    assert_true(mm_benchmark_next(benchmark, &job));
    while (job.task->run(job.task, device, false, &job.error) == MM_TASK_AGAIN)
        continue;
    assert_false(mm_benchmark_next(benchmark, &job));
    return benchmark;
}

static void ask(struct mm_benchmark_request *request, const struct mm_variant *variant, unsigned tile) {
    request->subjects[request->subject_count++] =
        (struct mm_benchmark_subject){.backend = &mm_cpu_backend, .variant = variant, .tile = tile};
}

static struct mm_device *open_cpu(void) {
    struct mm_device *device = NULL;
    assert_int_equal(mm_cpu_backend.open(0, &device, NULL), MM_OK);
    strcpy(device->name, "A \"CPU\"");
    return device;
}

static double number(const json_t *row, const char *name) {
    const json_t *value = json_object_get(row, name);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* The members of an object, in their order, each with a space behind it. */
static const char *names_of(json_t *object) {
    static char names[512];
    const char *name;
    json_t *value;
    names[0] = '\0';
    json_object_foreach(object, name, value) {
        strcat(strcat(names, name), " ");
    }
    return names;
}

static void replies_tell_the_rows(void **state) {
    struct mm_benchmark_request request = {
        .op = MM_MATMUL, .m = 8, .k = 4, .n = 8, .dtype = MM_FLOAT32, .repeats = 3};
    struct mm_device *device = open_cpu();
    size_t length = 0;
    (void)state;
    ask(&request, &mm_cpu_backend.variants[0], 0);
    ask(&request, &slow, 8);
    ask(&request, &chooses, 0);
    ask(&request, &nothing, 0);
    ask(&request, &refuses, 0);
    ask(&request, &yardstick, 0);
    struct mm_benchmark *benchmark = run(&request, device);
    char *text = mm_benchmark_json(benchmark, &length);
    assert_int_equal(length, strlen(text));
    json_t *reply = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(reply);
    assert_string_equal(names_of(reply), "op m k n dtype rows device ");
    assert_string_equal(json_string_value(json_object_get(reply, "device")), "A \"CPU\"");
    json_t *rows = json_object_get(reply, "rows");
    assert_int_equal(json_array_size(rows), 6);

    json_t *row = json_array_get(rows, 0);
    assert_string_equal(names_of(row),
                        "variant backend kernel_ms gflops of_blas relative_error max_error global_loads "
                        "repeats device ");
    assert_string_equal(json_string_value(json_object_get(row, "variant")), "naive");
    assert_true(number(row, "of_blas") > 2.0 && number(row, "max_error") < 0.5);
    assert_true(number(row, "relative_error") > 0.0 && number(row, "relative_error") < 1e-6);
    assert_true(number(row, "global_loads") == 512 && number(row, "repeats") == 3);

    row = json_array_get(rows, 1);
    json_t *times = json_object_get(row, "kernel_ms");
    assert_true(20.0 <= number(times, "min") && number(times, "min") <= number(times, "median") &&
                number(times, "median") <= number(times, "max"));
    const double rate = 512.0 / number(times, "median") / 1e6;
    assert_true(number(row, "gflops") > 0.999 * rate && number(row, "gflops") < 1.001 * rate);
    assert_true(number(row, "tile") == 8 && number(row, "global_loads") == 64);

    row = json_array_get(rows, 2);
    assert_string_equal(json_string_value(json_object_get(row, "ran")), "tiled_8");
    row = json_array_get(rows, 3);
    assert_string_equal(json_string_value(json_object_get(row, "max_error")), "Infinity");
    assert_string_equal(json_string_value(json_object_get(row, "relative_error")), "Infinity");

    row = json_array_get(rows, 4);
    assert_string_equal(names_of(row),
                        "variant backend kernel_ms gflops of_blas relative_error max_error global_loads "
                        "repeats device error ");
    assert_true(
        json_is_null(json_object_get(row, "kernel_ms")) && json_is_null(json_object_get(row, "gflops")) &&
        json_is_null(json_object_get(row, "of_blas")) && json_is_null(json_object_get(row, "max_error")) &&
        json_is_null(json_object_get(row, "global_loads")) && number(row, "repeats") == 0);
    assert_true(json_is_null(json_object_get(row, "relative_error")));
    json_t *error = json_object_get(row, "error");
    assert_string_equal(json_string_value(json_object_get(error, "code")), "unsupported");
    assert_string_equal(json_string_value(json_object_get(error, "detail")), "not this \"shape\"");
    row = json_array_get(rows, 5);
    assert_true(json_is_null(json_object_get(row, "global_loads")) && number(row, "of_blas") == 1.0);
    json_decref(reply);
    free(text);

    text = mm_benchmark_text(benchmark, &length);
    assert_int_equal(length, strlen(text));
    assert_ptr_equal(strstr(text, "matmul m=8 k=4 n=8 float32 on A \"CPU\"\n\nvariant"), text);
    assert_non_null(strstr(text, "\nslow/8 "));
    assert_non_null(strstr(text, "\nchooses (tiled_8) "));
    assert_non_null(strstr(text, "  relative error  max error  "));
    assert_non_null(strstr(text, "             inf        inf  ")); /* both */
    assert_non_null(strstr(text, "  unsupported: not this \"shape\"\n"));
    /* Aligned: but for what failed, all lines of the table are equally long. */
    const char *line = strchr(text, '\n') + 2;
    const size_t width = strcspn(line, "\n");
    for (; *line != '\0'; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") == width || strstr(line, "refuses") == line);
    free(text);
    mm_benchmark_close(benchmark);
    mm_cpu_backend.close(device);
}

static void replies_tell_how_operands_are_stored(void **state) {
    static const struct {
        bool transpose_a, transpose_b;
        const char *members, *title;
    } cases[] = {
        {true, false, "op m k n dtype transpose_a rows device ",
         "matmul m=8 k=4 n=9 float32 transpose_a on A"},
        {false, true, "op m k n dtype transpose_b rows device ",
         "matmul m=8 k=4 n=9 float32 transpose_b on A"},
        {true, true, "op m k n dtype transpose_a transpose_b rows device ",
         "matmul m=8 k=4 n=9 float32 transpose_a transpose_b on A"},
    };
    struct mm_device *device = open_cpu();
    (void)state;
    for (size_t which = 0; which < sizeof cases / sizeof cases[0]; which++) {
        struct mm_benchmark_request request = {.op = MM_MATMUL,
                                               .m = 8,
                                               .k = 4,
                                               .n = 9,
                                               .dtype = MM_FLOAT32,
                                               .transpose_a = cases[which].transpose_a,
                                               .transpose_b = cases[which].transpose_b,
                                               .repeats = 1};
        size_t length = 0;
        ask(&request, &mm_cpu_backend.variants[0], 0);
        struct mm_benchmark *benchmark = run(&request, device);
        char *text = mm_benchmark_json(benchmark, &length);
        json_t *reply = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        assert_string_equal(names_of(reply), cases[which].members);
        json_t *row = json_array_get(json_object_get(reply, "rows"), 0);
        assert_true(number(row, "max_error") < 0.5 && number(row, "relative_error") < 1e-6);
        json_decref(reply);
        free(text);
        text = mm_benchmark_text(benchmark, &length);
        assert_ptr_equal(strstr(text, cases[which].title), text);
        free(text);
        mm_benchmark_close(benchmark);
    }
    mm_cpu_backend.close(device);
}

static void replies_tell_transpositions(void **state) {
    struct mm_benchmark_request request = {
        .op = MM_TRANSPOSE, .m = 40, .n = 30, .dtype = MM_INT64, .repeats = 2};
    struct mm_device *device = open_cpu();
    size_t length = 0;
    (void)state;
    ask(&request, mm_backend_variant(&mm_cpu_backend, MM_TRANSPOSE, "naive"), 0);
    struct mm_benchmark *benchmark = run(&request, device);
    char *text = mm_benchmark_json(benchmark, &length);
    json_t *reply = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_string_equal(names_of(reply), "op m n dtype rows device ");
    json_t *row = json_array_get(json_object_get(reply, "rows"), 0);
    assert_string_equal(names_of(row), "variant backend kernel_ms gigabytes_per_second of_copy max_error "
                                       "global_loads repeats device ");
    const double median = number(json_object_get(row, "kernel_ms"), "median");
    const double rate = 2.0 * 40 * 30 * 8 / median / 1e6;
    assert_true(number(row, "gigabytes_per_second") > 0.999 * rate &&
                number(row, "gigabytes_per_second") < 1.001 * rate);
    assert_true(number(row, "of_copy") > 0.0 && number(row, "max_error") == 0.0);
    assert_true(number(row, "global_loads") == 1200);
    json_decref(reply);
    free(text);
    text = mm_benchmark_text(benchmark, &length);
    assert_ptr_equal(strstr(text, "transpose m=40 n=30 int64 on"), text);
    assert_non_null(strstr(text, " GB/s  of copy  max error  "));
    free(text);
    mm_benchmark_close(benchmark);
    mm_cpu_backend.close(device);
}

static void replies_tell_accesses(void **state) {
    const struct mm_device device = {
        .backend = &mm_cpu_backend, .name = "A device with banks", .shared_bank_bytes = 4};
    struct mm_probe_task task = {.device = &device};
    size_t length = 0;
    (void)state;
    task.probe.count = task.probe.done = 1;
    task.probe.accesses[0] =
        (struct mm_access){.memory = MM_MEMORY_SHARED, .pattern = MM_PATTERN_LINEAR, .word_bytes = 4};
    task.probe.times[0] = (struct mm_access_time){.latency_cycles = 29.0, .cycles = 1.25};
    char *text = mm_benchmark_probe_json(&task, &length);
    assert_int_equal(length, strlen(text));
    json_t *reply = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_string_equal(names_of(reply), "op backend device shared_bank_bytes rows summary ");
    json_t *row = json_array_get(json_object_get(reply, "rows"), 0);
    assert_true(number(row, "cycles_per_access") == 1.25);
    json_decref(reply);
    free(text);
    text = mm_benchmark_probe_text(&task, &length);
    assert_int_equal(length, strlen(text));
    assert_ptr_equal(strstr(text, "A device with banks (cpu), banks of 4 bytes"), text);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(all_members),
        cmocka_unit_test(large_repeats),
        cmocka_unit_test(operands_that_are_stored_transposed),
        cmocka_unit_test(requests_for_accesses),
        cmocka_unit_test(malformed_requests_are_refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(rows_are_bounded),
        cmocka_unit_test(types_are_judged),
        cmocka_unit_test(formats_follow_accept),
        cmocka_unit_test(replies_tell_the_rows),
        cmocka_unit_test(replies_tell_how_operands_are_stored),
        cmocka_unit_test(replies_tell_transpositions),
        cmocka_unit_test(replies_tell_accesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
