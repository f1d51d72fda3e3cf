/* Reads the request of `shared_access`, and makes one access for each combination of its values. */
#include "api/lab/access.h"

#include "api/json/json_text.h"

#include <assert.h>
#include <string.h>

static const unsigned words[] = {4, 8};
enum { WORD_COUNT = sizeof words / sizeof words[0] };

static const char *const access_names[] = {"read", "write"};

/* The values that each set may have. */
static const struct {
    const char *expected;
    unsigned count;
    bool is_single; /* the member is one value, not a list */
} kinds[MM_ACCESS_SET_COUNT] = {
    [MM_ACCESS_PATTERNS] = {"any of linear, permuted, stride, same_bank and broadcast", MM_PATTERN_OFFSETS,
                            false},
    [MM_ACCESS_STRIDES] = {"whole numbers from 1 to 32", MM_STRIDE_MAX, false},
    [MM_ACCESS_WORD_BYTES] = {"4, 8 or a list of both", WORD_COUNT, false},
    [MM_ACCESS_PADDED] = {"true, false or a list of both", 2, false},
    [MM_ACCESS_BANK_BYTES] = {"4 or 8", WORD_COUNT, true},
    [MM_ACCESS_KIND] = {"read or write", 2, true},
};

static bool is_value(enum mm_access_set kind, unsigned bit, const struct mm_value *value) {
    switch (kind) {
    case MM_ACCESS_PATTERNS:
        return value->kind == MM_VALUE_TEXT &&
               strcmp(value->text, mm_pattern_name((enum mm_pattern)bit)) == 0;
    case MM_ACCESS_STRIDES:
        return value->kind == MM_VALUE_NUMBER && value->number == (double)(bit + 1);
    case MM_ACCESS_WORD_BYTES:
    case MM_ACCESS_BANK_BYTES:
        return value->kind == MM_VALUE_NUMBER && value->number == (double)words[bit];
    case MM_ACCESS_KIND:
        return value->kind == MM_VALUE_TEXT && strcmp(value->text, access_names[bit]) == 0;
    case MM_ACCESS_PADDED:
    case MM_ACCESS_SET_COUNT:
        break;
    }
    return value->kind == (bit != 0 ? MM_VALUE_TRUE : MM_VALUE_FALSE);
}

static bool has(const uint32_t *sets, enum mm_access_set set, unsigned bit) {
    return (sets[set] & UINT32_C(1) << bit) != 0;
}

/* Adds one value to a set. Fails if the value is in the set already, so no list can be long. */
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

static enum mm_status read_set(struct mm_parameters *values, const struct mm_parameter *row,
                               const struct mm_value *given, struct mm_error *error) {
    const size_t offset = row->offset - offsetof(struct mm_access_request, sets);
    const enum mm_access_set kind = (enum mm_access_set)(offset / sizeof(uint32_t));
    uint32_t *set = &((struct mm_access_request *)values)->sets[kind];
    struct mm_json_reader reader = mm_json_within(given);
    struct mm_json_member element;
    enum mm_status status = MM_OK;
    if (given->kind != MM_VALUE_ARRAY || given->length == 0 || kinds[kind].is_single)
        return read_one(kind, row->name, "is", given, set, error);
    while (status == MM_OK && mm_json_step(&reader, given->text, given->length, &element))
        status = read_one(kind, row->name, "has", &element.value, set, error);
    return status;
}

static enum mm_status read_offsets(struct mm_parameters *values, const struct mm_parameter *row,
                                   const struct mm_value *given, struct mm_error *error) {
    static const char entries[] = "whole numbers from 0 to 2047, or null";
    static const char form[] = "a list of 1 to 32 numbers or nulls, not all of them null";
    _Static_assert(MM_OFFSET_MAX == 2047 && MM_WARP_LANES == 32, "the forms say so");
    struct mm_access_request *request = (struct mm_access_request *)values;
    struct mm_json_reader reader = mm_json_within(given);
    struct mm_json_member entry;
    unsigned count = 0;
    bool has_number = false;
    if (given->kind != MM_VALUE_ARRAY)
        return mm_value_fail(row->name, "is", form, given, error);
    for (; mm_json_step(&reader, given->text, given->length, &entry); count++) {
        uint64_t number = MM_LANE_INACTIVE;
        if (count == MM_WARP_LANES)
            return mm_fail_form(row->name, "has", form, "more than 32 entries", error);
        if (entry.value.kind != MM_VALUE_NULL && !mm_value_whole(&entry.value, 0, MM_OFFSET_MAX, &number))
            return mm_value_fail(row->name, "has", entries, &entry.value, error);
        request->words[count] = (uint32_t)number;
        has_number = has_number || entry.value.kind == MM_VALUE_NUMBER;
    }
    for (; count < MM_WARP_LANES; count++)
        request->words[count] = MM_LANE_INACTIVE;
    request->has_offsets = true;
    return has_number ? MM_OK : mm_fail_form(row->name, "has", form, "no number", error);
}

static enum mm_status read_shift(struct mm_parameters *values, const struct mm_parameter *row,
                                 const struct mm_value *given, struct mm_error *error) {
    _Static_assert(MM_SHIFT_MAX == 31, "the form says so");
    uint64_t number;
    if (!mm_value_whole(given, 0, MM_SHIFT_MAX, &number))
        return mm_value_fail(row->name, "is", "a whole number from 0 to 31", given, error);
    ((struct mm_access_request *)values)->shift = (unsigned)number;
    return MM_OK;
}

#define ROW(name, kind, member) MM_PARAMETER(name, kind, MM_IN_JSON, struct mm_access_request, member)
#define SET(name, set) READ(name, sets[set], read_set)
#define READ(name, member, read)                                                                             \
    MM_PARAMETER_READ(name, OWN, MM_IN_JSON, struct mm_access_request, member, read)

static const struct mm_parameter parameters[] = {
    ROW("backend", NAME, backend),     ROW("timeout_ms", WHOLE, timeout_ms),
    ROW("op", OWN, parameters),        SET("patterns", MM_ACCESS_PATTERNS),
    SET("strides", MM_ACCESS_STRIDES), SET("word_bytes", MM_ACCESS_WORD_BYTES),
    SET("padded", MM_ACCESS_PADDED),   SET("bank_bytes", MM_ACCESS_BANK_BYTES),
    SET("access", MM_ACCESS_KIND),     READ("offsets", words, read_offsets),
    READ("offset", shift, read_shift),
};

static const struct mm_parameter_table table = MM_PARAMETER_TABLE(parameters);

void mm_access_init(struct mm_access_request *request) {
    *request = (struct mm_access_request){.parameters.table = &table, .backend = "auto"};
}

/* Adds the accesses of a pattern: one for each stride if the pattern has strides, otherwise one. */
static void add(struct mm_probe *probe, const uint32_t *sets, struct mm_access access) {
    const bool strides = access.pattern == MM_PATTERN_STRIDE;
    for (access.stride = strides; access.stride <= (strides ? MM_STRIDE_MAX : 0); access.stride++) {
        if (strides && !has(sets, MM_ACCESS_STRIDES, access.stride - 1))
            continue;
        assert(probe->count < MM_PROBE_ACCESSES_MAX);
        probe->accesses[probe->count++] = access;
    }
}

static enum mm_status check_patterns(const struct mm_access_request *request, struct mm_error *error) {
    const uint32_t patterns = request->sets[MM_ACCESS_PATTERNS];
    const uint32_t strides = request->sets[MM_ACCESS_STRIDES];
    if (request->has_offsets && (patterns | strides | request->shift) != 0)
        return mm_fail_field(error, MM_BAD_REQUEST, "offsets",
                             "offsets and %s both choose the words of the lanes; leave one of them out",
                             patterns != 0  ? "patterns"
                             : strides != 0 ? "strides"
                                            : "offset");
    if (patterns != 0 && strides != 0 && !has(request->sets, MM_ACCESS_PATTERNS, MM_PATTERN_STRIDE))
        return mm_fail_field(
            error, MM_BAD_REQUEST, "strides",
            "strides needs the pattern 'stride', but patterns lacks it; add 'stride', or leave "
            "strides out");
    return MM_OK;
}

enum mm_status mm_access_combine(const struct mm_access_request *request, struct mm_probe *probe,
                                 struct mm_error *error) {
    uint32_t sets[MM_ACCESS_SET_COUNT];
    if (check_patterns(request, error) != MM_OK)
        return MM_BAD_REQUEST;
    for (unsigned set = 0; set < MM_ACCESS_SET_COUNT; set++)
        sets[set] = request->sets[set] != 0 ? request->sets[set] : UINT32_MAX;
    sets[MM_ACCESS_PATTERNS] &= ~(UINT32_C(1) << MM_PATTERN_OFFSETS);
    if (request->has_offsets)
        sets[MM_ACCESS_PATTERNS] = UINT32_C(1) << MM_PATTERN_OFFSETS;
    *probe = (struct mm_probe){.count = 0};
    probe->writes = has(request->sets, MM_ACCESS_KIND, 1);
    for (unsigned bit = 0; bit < WORD_COUNT; bit++)
        if (has(request->sets, MM_ACCESS_BANK_BYTES, bit))
            probe->bank_bytes = words[bit];
    for (unsigned word = 0; word < WORD_COUNT; word++)
        for (unsigned padded = 0; padded < 2; padded++)
            for (unsigned pattern = 0; pattern < MM_PATTERN_COUNT; pattern++) {
                struct mm_access access = {
                    MM_MEMORY_SHARED, (enum mm_pattern)pattern, 0, words[word], padded != 0, {0},
                    request->shift};
                memcpy(access.words, request->words, sizeof access.words);
                if (has(sets, MM_ACCESS_WORD_BYTES, word) && has(sets, MM_ACCESS_PADDED, padded) &&
                    has(sets, MM_ACCESS_PATTERNS, pattern))
                    add(probe, sets, access);
            }
    for (unsigned word = 0; word < WORD_COUNT; word++)
        if (has(sets, MM_ACCESS_WORD_BYTES, word) && has(sets, MM_ACCESS_PATTERNS, MM_PATTERN_STRIDE))
            add(probe, sets,
                (struct mm_access){
                    MM_MEMORY_GLOBAL, MM_PATTERN_STRIDE, 0, words[word], false, {0}, request->shift});
    return MM_OK;
}

size_t mm_access_shared_count(const struct mm_probe *probe) {
    size_t count = 0;
    while (count < probe->count && probe->accesses[count].memory == MM_MEMORY_SHARED)
        count++;
    return count;
}
