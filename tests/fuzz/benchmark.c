/* Fuzzes the requests of benchmarks and of shared_access: what is taken lies within its limits; a benchmark
 * is the same when it is written and read again, and no access comes twice. */
#include "tests/fuzz/fuzz.h"

#include "api/lab/benchmark.h"
#include "api/call.h"
#include "api/json/json_value.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static bool is_dimension(size_t value) {
    return value >= 1 && value <= fuzz_limits.dimension_max;
}

static void judge(const struct mm_benchmark_call *call) {
    const struct mm_benchmark_request *request = &call->request;
    REQUIRE(is_dimension(request->m) && is_dimension(request->n));
    REQUIRE(request->op == MM_MATMUL ? is_dimension(request->k) : request->k == 0);
    REQUIRE(request->op == MM_MATMUL || (!request->transpose_a && !request->transpose_b));
    REQUIRE((mm_op_dtypes(request->op) & MM_DTYPE_BIT(request->dtype)) != 0);
    REQUIRE(request->repeats >= 1 && request->subject_count == 0 && call->timeout_ms <= MM_CALL_WHOLE_MAX);
    REQUIRE(call->name_count <= MM_BENCHMARK_ROWS_MAX);
    for (size_t index = 0; index < call->name_count; index++) {
        const struct mm_benchmark_name *name = &call->names[index];
        REQUIRE(name->backend[0] != '\0' && strlen(name->backend) <= MM_BENCHMARK_NAME_MAX);
        REQUIRE(name->variant[0] != '\0' && strlen(name->variant) <= MM_BENCHMARK_NAME_MAX);
        REQUIRE(strchr(name->backend, ':') == NULL && strchr(name->variant, '/') == NULL);
        REQUIRE(name->tile < 1000000000);
    }
}

/* The names as a caller writes them; false where one of them was cut within a character, and so is no JSON.
 */
static bool write_names(const struct mm_benchmark_call *call, json_t *root) {
    json_t *names = json_array();
    for (size_t index = 0; index < call->name_count; index++) {
        const struct mm_benchmark_name *name = &call->names[index];
        json_t *text = name->tile > 0 ? json_sprintf("%s:%s/%u", name->backend, name->variant, name->tile)
                                      : json_sprintf("%s:%s", name->backend, name->variant);
        if (text == NULL) {
            json_decref(names);
            return false;
        }
        json_array_append_new(names, text);
    }
    if (call->name_count > 0)
        json_object_set(root, "variants", names);
    json_decref(names);
    return true;
}

static void require_same(const struct mm_benchmark_call *x, const struct mm_benchmark_call *y) {
    REQUIRE(x->request.op == y->request.op && x->request.dtype == y->request.dtype);
    REQUIRE(x->request.m == y->request.m && x->request.n == y->request.n && x->request.k == y->request.k);
    REQUIRE(x->request.transpose_a == y->request.transpose_a);
    REQUIRE(x->request.transpose_b == y->request.transpose_b);
    REQUIRE(x->request.repeats == y->request.repeats && x->timeout_ms == y->timeout_ms);
    REQUIRE(x->name_count == y->name_count);
    for (size_t index = 0; index < x->name_count; index++) {
        REQUIRE(strcmp(x->names[index].backend, y->names[index].backend) == 0);
        REQUIRE(strcmp(x->names[index].variant, y->names[index].variant) == 0);
        REQUIRE(x->names[index].tile == y->names[index].tile);
    }
}

static void write_and_read_again(const struct mm_benchmark_call *call) {
    const struct mm_benchmark_request *request = &call->request;
    struct mm_benchmark_call again;
    json_t *root = json_pack("{s:s, s:I, s:I, s:s, s:I}", "op", mm_op_name(request->op), "m",
                             (json_int_t)request->m, "n", (json_int_t)request->n, "dtype",
                             mm_dtype_name(request->dtype), "repeats", (json_int_t)request->repeats);
    REQUIRE(root != NULL);
    if (request->op == MM_MATMUL)
        json_object_set_new(root, "k", json_integer((json_int_t)request->k));
    if (request->transpose_a)
        json_object_set_new(root, "transpose_a", json_true());
    if (request->op == MM_MATMUL)
        json_object_set_new(root, "transpose_b", json_boolean(request->transpose_b));
    if (call->timeout_ms > 0)
        json_object_set_new(root, "timeout_ms", json_integer((json_int_t)call->timeout_ms));
    if (write_names(call, root)) {
        size_t length;
        char *text = mm_json_print(json_incref(root), 0, &length);
        REQUIRE(text != NULL);
        REQUIRE(mm_benchmark_decode(text, length, &fuzz_limits, &again, NULL) == MM_OK);
        require_same(call, &again);
        free(text);
    }
    json_decref(root);
}

static bool is_same_access(const struct mm_access *x, const struct mm_access *y) {
    return x->memory == y->memory && x->pattern == y->pattern && x->stride == y->stride &&
           x->word_bytes == y->word_bytes && x->padded == y->padded;
}

static void judge_accesses(const struct mm_probe *probe) {
    REQUIRE(probe->count >= 1 && probe->count <= MM_PROBE_ACCESSES_MAX && probe->done == 0);
    for (size_t index = 0; index < probe->count; index++) {
        const struct mm_access *access = &probe->accesses[index];
        REQUIRE(access->pattern < MM_PATTERN_COUNT && (access->word_bytes == 4 || access->word_bytes == 8));
        REQUIRE(access->pattern == MM_PATTERN_STRIDE ? access->stride >= 1 && access->stride <= MM_STRIDE_MAX
                                                     : access->stride == 0);
        REQUIRE(access->memory == MM_MEMORY_SHARED || !access->padded);
        for (size_t other = 0; other < index; other++)
            REQUIRE(!is_same_access(access, &probe->accesses[other]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct mm_benchmark_call call;
    struct mm_error error = {0};
    memset(&call, 0, sizeof call);
    void *body = fuzz_copy_bytes((struct piece){(const char *)data, bytes});
    enum mm_status status = mm_benchmark_decode(body, bytes, &fuzz_limits, &call, &error);
    if (status == MM_OK && !call.op->has_variants) {
        judge_accesses(&call.probe);
    } else if (status == MM_OK) {
        judge(&call);
        write_and_read_again(&call);
    } else {
        REQUIRE(status == MM_BAD_REQUEST || status == MM_TOO_LARGE || status == MM_UNSUPPORTED);
        fuzz_require_error(status, &error);
    }
    free(body);
    return 0;
}
