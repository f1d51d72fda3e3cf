/* Fuzzes the requests for `shared_access`: what is taken comes to the accesses that the four members ask for,
 * combined here once more, in their order, each once. The input is the body. */
#include "tests/fuzz/fuzz.h"

#include "api/lab/benchmark.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Which values a member names, of those there are: all, where it is absent. */
static bool asks(const json_t *member, const json_t *value) {
    size_t index;
    const json_t *one;
    if (member == NULL || !json_is_array(member))
        return member == NULL || (json_is_number(member) && json_is_number(value)
                                      ? json_number_value(member) == json_number_value(value)
                                      : json_equal(member, value) == 1);
    json_array_foreach(member, index, one) {
        if (asks(one, value))
            return true;
    }
    return false;
}

static bool asks_text(const json_t *root, const char *name, const char *value) {
    json_t *text = json_string(value);
    const bool found = asks(json_object_get(root, name), text);
    json_decref(text);
    return found;
}

static bool asks_number(const json_t *root, const char *name, unsigned value) {
    json_t *number = json_integer((json_int_t)value);
    const bool found = asks(json_object_get(root, name), number);
    json_decref(number);
    return found;
}

static bool asks_boolean(const json_t *root, const char *name, bool value) {
    return asks(json_object_get(root, name), value ? json_true() : json_false());
}

static void expect(const struct mm_probe *probe, size_t *at, struct mm_access access) {
    REQUIRE(*at < probe->count);
    const struct mm_access *found = &probe->accesses[(*at)++];
    REQUIRE(found->memory == access.memory && found->pattern == access.pattern);
    REQUIRE(found->stride == access.stride && found->word_bytes == access.word_bytes);
    REQUIRE(found->padded == access.padded);
}

static void expect_strides(const struct mm_probe *probe, size_t *at, const json_t *root,
                           struct mm_access access) {
    for (access.stride = 1; access.stride <= MM_STRIDE_MAX; access.stride++)
        if (asks_number(root, "strides", access.stride))
            expect(probe, at, access);
}

static void expect_patterns(const struct mm_probe *probe, size_t *at, const json_t *root,
                            struct mm_access access) {
    for (access.pattern = (enum mm_pattern)0; access.pattern < MM_PATTERN_COUNT;
         access.pattern = (enum mm_pattern)(access.pattern + 1)) {
        if (!asks_text(root, "patterns", mm_pattern_name(access.pattern)))
            continue;
        if (access.pattern == MM_PATTERN_STRIDE)
            expect_strides(probe, at, root, access);
        else
            expect(probe, at, access);
    }
}

static void judge(const struct mm_probe *probe, const json_t *root) {
    size_t at = 0;
    for (unsigned word = 4; word <= 8; word += 4)
        for (unsigned padded = 0; padded < 2; padded++)
            if (asks_number(root, "word_bytes", word) && asks_boolean(root, "padded", padded != 0))
                expect_patterns(probe, &at, root,
                                (struct mm_access){
                                    .memory = MM_MEMORY_SHARED, .word_bytes = word, .padded = padded != 0});
    for (unsigned word = 4; word <= 8; word += 4)
        if (asks_number(root, "word_bytes", word) && asks_text(root, "patterns", "stride"))
            expect_strides(probe, &at, root,
                           (struct mm_access){
                               .memory = MM_MEMORY_GLOBAL, .pattern = MM_PATTERN_STRIDE, .word_bytes = word});
    REQUIRE(at == probe->count && at >= 1 && probe->done == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static struct mm_benchmark_call call; /* of many kilobytes */
    struct mm_error error = {0};
    char *body = fuzz_copy_bytes((struct piece){(const char *)data, bytes});
    const enum mm_status status = mm_benchmark_decode(body, bytes, &fuzz_limits, &call, &error);
    if (status != MM_OK) {
        REQUIRE(status == MM_BAD_REQUEST || status == MM_TOO_LARGE || status == MM_UNSUPPORTED);
        fuzz_require_error(status, &error);
    } else if (!call.op->has_variants) {
        json_t *root = json_loadb(body, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
        REQUIRE(root != NULL);
        judge(&call.probe, root);
        json_decref(root);
    }
    free(body);
    return 0;
}
