/* What a request for `shared_access` asks: four sets, and the accesses that they come to. It knows no device.
 */
#include "api/access.h"

#include "api/json_fault.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A member's values are bits of a set. Each reader gives the bit of a value, or says that it is none. */
static bool read_pattern(const json_t *value, unsigned *bit) {
    for (*bit = 0; *bit < MM_PATTERN_COUNT; ++*bit)
        if (json_is_string(value) &&
            strcmp(json_string_value(value), mm_pattern_name((enum mm_pattern) * bit)) == 0)
            return true;
    return false;
}

static bool read_stride(const json_t *value, unsigned *bit) {
    const double stride = json_number_value(value);
    if (!(stride >= 1 && stride <= MM_STRIDE_MAX) || floor(stride) != stride)
        return false;
    *bit = (unsigned)stride - 1;
    return true;
}

static bool read_word_bytes(const json_t *value, unsigned *bit) {
    const double bytes = json_number_value(value);
    *bit = bytes == 8;
    return bytes == 4 || bytes == 8;
}

static bool read_padded(const json_t *value, unsigned *bit) {
    *bit = json_is_true(value);
    return json_is_boolean(value);
}

enum member { PATTERNS, STRIDES, WORD_BYTES, PADDED, MEMBER_COUNT };

static const struct {
    const char *name;
    const char *expected;
    bool (*read)(const json_t *value, unsigned *bit);
    uint32_t all;
} members[MEMBER_COUNT] = {
    [PATTERNS] = {"patterns", "any of linear, permuted, stride, same_bank and broadcast", read_pattern,
                  (1u << MM_PATTERN_COUNT) - 1},
    [STRIDES] = {"strides", "whole numbers from 1 to 32", read_stride, UINT32_MAX},
    [WORD_BYTES] = {"word_bytes", "4, 8 or a list of both", read_word_bytes, 3},
    [PADDED] = {"padded", "true, false or a list of both", read_padded, 3},
};

/* The members of every benchmark, which are read elsewhere. */
static const char *const others[] = {"op", "timeout_ms"};
enum { OTHER_COUNT = sizeof others / sizeof others[0] };

static bool is_other(const char *name) {
    unsigned index = 0;
    while (index < OTHER_COUNT && strcmp(others[index], name) != 0)
        index++;
    return index < OTHER_COUNT;
}

static bool has(const uint32_t *sets, enum member member, unsigned bit) {
    return (sets[member] & UINT32_C(1) << bit) != 0;
}

/* The set of a list's values. That none comes twice bounds the list. */
static enum mm_status read_list(enum member member, const json_t *list, uint32_t *set,
                                struct mm_error *error) {
    const char *name = members[member].name;
    size_t index;
    json_t *value;
    *set = 0;
    if (json_array_size(list) == 0)
        return mm_json_fail_form(name, "is", members[member].expected, list, error);
    json_array_foreach(list, index, value) {
        unsigned bit;
        char twice[64];
        if (!members[member].read(value, &bit))
            return mm_json_fail_form(name, "has", members[member].expected, value, error);
        mm_json_describe_value(value, twice, sizeof twice);
        if (*set & UINT32_C(1) << bit)
            return mm_fail_field(error, MM_BAD_REQUEST, name, "%s has %s twice", name, twice);
        *set |= UINT32_C(1) << bit;
    }
    return MM_OK;
}

static enum mm_status read_member(enum member member, const json_t *value, uint32_t *set,
                                  struct mm_error *error) {
    const char *name = members[member].name;
    unsigned bit;
    if (json_is_array(value))
        return read_list(member, value, set, error);
    if (!members[member].read(value, &bit))
        return mm_json_fail_form(name, "is", members[member].expected, value, error);
    *set = UINT32_C(1) << bit;
    return MM_OK;
}

static enum member find(const char *name) {
    unsigned member = 0;
    while (member < MEMBER_COUNT && strcmp(members[member].name, name) != 0)
        member++;
    return (enum member)member;
}

static enum mm_status fail_unknown(const char *name, struct mm_error *error) {
    char field[sizeof error->field];
    char known[96] = "";
    size_t used = 0;
    snprintf(field, sizeof field, "%s", name);
    for (unsigned index = 0; index < OTHER_COUNT; index++)
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", others[index]);
    for (unsigned member = 0; member < MEMBER_COUNT; member++)
        used += (size_t)snprintf(known + used, sizeof known - used, ", %s", members[member].name);
    assert(used < sizeof known);
    return mm_fail_field(error, MM_BAD_REQUEST, field, "'%s' is no parameter here; there are: %s", field,
                         known);
}

static void add(struct mm_probe *probe, enum mm_memory memory, enum mm_pattern pattern, unsigned stride,
                unsigned word_bytes, bool padded) {
    assert(probe->count < MM_PROBE_ACCESSES_MAX);
    probe->accesses[probe->count++] = (struct mm_access){memory, pattern, stride, word_bytes, padded};
}

static void add_strides(struct mm_probe *probe, const uint32_t *sets, enum mm_memory memory,
                        unsigned word_bytes, bool padded) {
    for (unsigned bit = 0; bit < MM_STRIDE_MAX; bit++)
        if (has(sets, STRIDES, bit))
            add(probe, memory, MM_PATTERN_STRIDE, bit + 1, word_bytes, padded);
}

static void add_shared(struct mm_probe *probe, const uint32_t *sets, unsigned word_bytes, bool padded) {
    for (unsigned pattern = 0; pattern < MM_PATTERN_COUNT; pattern++) {
        if (!has(sets, PATTERNS, pattern))
            continue;
        if (pattern == MM_PATTERN_STRIDE)
            add_strides(probe, sets, MM_MEMORY_SHARED, word_bytes, padded);
        else
            add(probe, MM_MEMORY_SHARED, (enum mm_pattern)pattern, 0, word_bytes, padded);
    }
}

static void combine(struct mm_probe *probe, const uint32_t *sets) {
    memset(probe, 0, sizeof *probe);
    for (unsigned word = 0; word < 2; word++)
        for (unsigned padded = 0; padded < 2; padded++)
            if (has(sets, WORD_BYTES, word) && has(sets, PADDED, padded))
                add_shared(probe, sets, word == 0 ? 4 : 8, padded != 0);
    for (unsigned word = 0; word < 2; word++)
        if (has(sets, WORD_BYTES, word) && has(sets, PATTERNS, MM_PATTERN_STRIDE))
            add_strides(probe, sets, MM_MEMORY_GLOBAL, word == 0 ? 4 : 8, false);
}

enum mm_status mm_access_read(json_t *request, struct mm_probe *probe, struct mm_error *error) {
    uint32_t sets[MEMBER_COUNT];
    const char *name;
    json_t *value;
    for (unsigned member = 0; member < MEMBER_COUNT; member++)
        sets[member] = members[member].all;
    json_object_foreach(request, name, value) {
        const enum member member = find(name);
        if (is_other(name))
            continue;
        const enum mm_status status = member == MEMBER_COUNT
                                          ? fail_unknown(name, error)
                                          : read_member(member, value, &sets[member], error);
        if (status != MM_OK)
            return status;
    }
    if (!has(sets, PATTERNS, MM_PATTERN_STRIDE) && json_object_get(request, "strides") != NULL)
        return mm_fail_field(error, MM_BAD_REQUEST, "strides",
                             "strides goes only with the pattern 'stride', which patterns leaves out");
    combine(probe, sets);
    return MM_OK;
}
