/* What a request for `shared_access` asks: four sets, and the accesses they make. It knows no device. */
#include "api/lab/access.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Each reader gives the bit of a value in its set, or says that it is none. */
static bool read_pattern(const struct mm_value *value, unsigned *bit) {
    for (*bit = 0; *bit < MM_PATTERN_COUNT; ++*bit)
        if (value->kind == MM_VALUE_TEXT &&
            strcmp(value->text, mm_pattern_name((enum mm_pattern) * bit)) == 0)
            return true;
    return false;
}

static bool read_stride(const struct mm_value *value, unsigned *bit) {
    const double stride = value->number; /* 0 if it is no number */
    if (!(stride >= 1 && stride <= MM_STRIDE_MAX) || floor(stride) != stride)
        return false;
    *bit = (unsigned)stride - 1;
    return true;
}

/* Of word_bytes: bit 0 is the first of them. */
static const unsigned words[] = {4, 8};
enum { WORD_COUNT = sizeof words / sizeof words[0] };

static bool read_word_bytes(const struct mm_value *value, unsigned *bit) {
    for (*bit = 0; *bit < WORD_COUNT; ++*bit)
        if (value->number == (double)words[*bit])
            return true;
    return false;
}

static bool read_padded(const struct mm_value *value, unsigned *bit) {
    *bit = value->kind == MM_VALUE_TRUE;
    return mm_value_is_flag(value);
}

static const struct {
    const char *expected;
    bool (*read)(const struct mm_value *value, unsigned *bit);
    uint32_t all;
} kinds[MM_ACCESS_SET_COUNT] = {
    [MM_ACCESS_PATTERNS] = {"any of linear, permuted, stride, same_bank and broadcast", read_pattern,
                            (1u << MM_PATTERN_COUNT) - 1},
    [MM_ACCESS_STRIDES] = {"whole numbers from 1 to 32", read_stride, UINT32_MAX},
    [MM_ACCESS_WORD_BYTES] = {"4, 8 or a list of both", read_word_bytes, (1u << WORD_COUNT) - 1},
    [MM_ACCESS_PADDED] = {"true, false or a list of both", read_padded, 3},
};

static bool has(const uint32_t *sets, enum mm_access_set set, unsigned bit) {
    return (sets[set] & UINT32_C(1) << bit) != 0;
}

/* That no value comes twice bounds a list. */
static enum mm_status read_one(enum mm_access_set kind, const char *name, const char *verb,
                               const struct mm_value *value, uint32_t *set, struct mm_error *error) {
    unsigned bit;
    char twice[64];
    if (!kinds[kind].read(value, &bit))
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
    struct mm_json_reader reader = mm_json_elements(member->token);
    const size_t end = member->token.at + member->token.bytes;
    struct mm_json_member element;
    enum mm_status status = MM_OK;
    if (member->value.kind != MM_VALUE_ARRAY || member->value.length == 0)
        return read_one(kind, name, "is", &member->value, set, error);
    while (status == MM_OK && mm_json_step(&reader, text, end, &element))
        status = read_one(kind, name, "has", &element.value, set, error);
    return status;
}

static void add(struct mm_probe *probe, enum mm_memory memory, enum mm_pattern pattern, unsigned stride,
                unsigned word_bytes, bool padded) {
    assert(probe->count < MM_PROBE_ACCESSES_MAX);
    probe->accesses[probe->count++] = (struct mm_access){memory, pattern, stride, word_bytes, padded};
}

static void add_strides(struct mm_probe *probe, const uint32_t *sets, enum mm_memory memory,
                        unsigned word_bytes, bool padded) {
    for (unsigned bit = 0; bit < MM_STRIDE_MAX; bit++)
        if (has(sets, MM_ACCESS_STRIDES, bit))
            add(probe, memory, MM_PATTERN_STRIDE, bit + 1, word_bytes, padded);
}

static void add_shared(struct mm_probe *probe, const uint32_t *sets, unsigned word_bytes, bool padded) {
    for (unsigned pattern = 0; pattern < MM_PATTERN_COUNT; pattern++) {
        if (!has(sets, MM_ACCESS_PATTERNS, pattern))
            continue;
        if (pattern == MM_PATTERN_STRIDE)
            add_strides(probe, sets, MM_MEMORY_SHARED, word_bytes, padded);
        else
            add(probe, MM_MEMORY_SHARED, (enum mm_pattern)pattern, 0, word_bytes, padded);
    }
}

enum mm_status mm_access_combine(const uint32_t given[MM_ACCESS_SET_COUNT], struct mm_probe *probe,
                                 struct mm_error *error) {
    uint32_t sets[MM_ACCESS_SET_COUNT];
    for (unsigned set = 0; set < MM_ACCESS_SET_COUNT; set++)
        sets[set] = given[set] != 0 ? given[set] : kinds[set].all;
    const bool has_stride = has(sets, MM_ACCESS_PATTERNS, MM_PATTERN_STRIDE);
    if (!has_stride && given[MM_ACCESS_STRIDES] != 0)
        return mm_fail_field(
            error, MM_BAD_REQUEST, "strides",
            "strides needs the pattern 'stride', but patterns lacks it; add 'stride', or leave "
            "strides out");
    memset(probe, 0, sizeof *probe);
    for (unsigned word = 0; word < WORD_COUNT; word++)
        for (unsigned padded = 0; padded < 2; padded++)
            if (has(sets, MM_ACCESS_WORD_BYTES, word) && has(sets, MM_ACCESS_PADDED, padded))
                add_shared(probe, sets, words[word], padded != 0);
    for (unsigned word = 0; word < WORD_COUNT; word++)
        if (has(sets, MM_ACCESS_WORD_BYTES, word) && has_stride)
            add_strides(probe, sets, MM_MEMORY_GLOBAL, words[word], false);
    return MM_OK;
}
