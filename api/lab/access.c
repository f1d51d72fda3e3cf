/* A request for `shared_access`: four sets, and the accesses that they make. It knows no device. */
#include "api/lab/access.h"

#include <assert.h>
#include <string.h>

static const unsigned words[] = {4, 8};
enum { WORD_COUNT = sizeof words / sizeof words[0] };

/* The values of each set, in words, and how many there are. Bit i of a set stands for value i. */
static const struct {
    const char *expected;
    unsigned count;
} kinds[MM_ACCESS_SET_COUNT] = {
    [MM_ACCESS_PATTERNS] = {"any of linear, permuted, stride, same_bank and broadcast", MM_PATTERN_COUNT},
    [MM_ACCESS_STRIDES] = {"whole numbers from 1 to 32", MM_STRIDE_MAX},
    [MM_ACCESS_WORD_BYTES] = {"4, 8 or a list of both", WORD_COUNT},
    [MM_ACCESS_PADDED] = {"true, false or a list of both", 2},
};

static bool is_value(enum mm_access_set kind, unsigned bit, const struct mm_value *value) {
    switch (kind) {
    case MM_ACCESS_PATTERNS:
        return value->kind == MM_VALUE_TEXT &&
               strcmp(value->text, mm_pattern_name((enum mm_pattern)bit)) == 0;
    case MM_ACCESS_STRIDES:
        return value->kind == MM_VALUE_NUMBER && value->number == (double)(bit + 1);
    case MM_ACCESS_WORD_BYTES:
        return value->kind == MM_VALUE_NUMBER && value->number == (double)words[bit];
    case MM_ACCESS_PADDED:
    case MM_ACCESS_SET_COUNT:
        break;
    }
    return value->kind == (bit != 0 ? MM_VALUE_TRUE : MM_VALUE_FALSE);
}

static bool has(const uint32_t *sets, enum mm_access_set set, unsigned bit) {
    return (sets[set] & UINT32_C(1) << bit) != 0;
}

/* Adds one value. A list is bounded, since no value may be in it twice. */
static enum mm_status read_one(enum mm_access_set kind, const char *name, const char *verb,
                               const struct mm_value *value, uint32_t *set, struct mm_error *error) {
    unsigned bit = 0;
    char twice[64];
    while (bit < kinds[kind].count && !is_value(kind, bit, value))
        bit++;
    if (bit == kinds[kind].count)
        return mm_value_fail(name, verb, kinds[kind].expected, value, error);
    mm_value_describe(value, twice, sizeof twice);
    if (*set & UINT32_C(1) << bit)
        return mm_fail_field(error, MM_BAD_REQUEST, name, "%s has %s twice; name it once", name, twice);
    *set |= UINT32_C(1) << bit;
    return MM_OK;
}

enum mm_status mm_access_read_set(enum mm_access_set kind, const char *name, const char *text,
                                  const struct mm_json_member *member, uint32_t *set,
                                  struct mm_error *error) {
    struct mm_json_reader reader = mm_json_within(member->token);
    const size_t end = member->token.at + member->token.bytes;
    struct mm_json_member element;
    enum mm_status status = MM_OK;
    if (member->value.kind != MM_VALUE_ARRAY || member->value.length == 0)
        return read_one(kind, name, "is", &member->value, set, error);
    while (status == MM_OK && mm_json_step(&reader, text, end, &element))
        status = read_one(kind, name, "has", &element.value, set, error);
    return status;
}

/* Adds the accesses by one pattern: one for each stride of the set, or a single one. */
static void add(struct mm_probe *probe, const uint32_t *sets, enum mm_memory memory, enum mm_pattern pattern,
                unsigned word_bytes, bool padded) {
    const bool strides = pattern == MM_PATTERN_STRIDE;
    for (unsigned stride = strides; stride <= (strides ? MM_STRIDE_MAX : 0); stride++) {
        if (strides && !has(sets, MM_ACCESS_STRIDES, stride - 1))
            continue;
        assert(probe->count < MM_PROBE_ACCESSES_MAX);
        probe->accesses[probe->count++] = (struct mm_access){memory, pattern, stride, word_bytes, padded};
    }
}

enum mm_status mm_access_combine(const uint32_t given[MM_ACCESS_SET_COUNT], struct mm_probe *probe,
                                 struct mm_error *error) {
    uint32_t sets[MM_ACCESS_SET_COUNT];
    for (unsigned set = 0; set < MM_ACCESS_SET_COUNT; set++)
        sets[set] = given[set] != 0 ? given[set] : UINT32_MAX;
    const bool has_stride = has(sets, MM_ACCESS_PATTERNS, MM_PATTERN_STRIDE);
    if (!has_stride && given[MM_ACCESS_STRIDES] != 0)
        return mm_fail_field(
            error, MM_BAD_REQUEST, "strides",
            "strides needs the pattern 'stride', but patterns lacks it; add 'stride', or leave "
            "strides out");
    mm_probe_init(probe);
    for (unsigned word = 0; word < WORD_COUNT; word++)
        for (unsigned padded = 0; padded < 2; padded++)
            for (unsigned pattern = 0; pattern < MM_PATTERN_COUNT; pattern++)
                if (has(sets, MM_ACCESS_WORD_BYTES, word) && has(sets, MM_ACCESS_PADDED, padded) &&
                    has(sets, MM_ACCESS_PATTERNS, pattern))
                    add(probe, sets, MM_MEMORY_SHARED, (enum mm_pattern)pattern, words[word], padded != 0);
    for (unsigned word = 0; word < WORD_COUNT; word++)
        if (has(sets, MM_ACCESS_WORD_BYTES, word) && has_stride)
            add(probe, sets, MM_MEMORY_GLOBAL, MM_PATTERN_STRIDE, words[word], false);
    return MM_OK;
}
