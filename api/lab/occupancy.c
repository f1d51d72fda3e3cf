/* Reads the lists of an `occupancy` request. */
#include "api/lab/occupancy.h"

#include "api/json/json_text.h"
#include "api/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define EXAMPLE "{\"op\": \"occupancy\", \"threads_per_block\": 256, \"registers_per_thread\": 40}"

/* The range of each list's numbers. Compute capabilities are names such as "9.0", so they have no range. */
static const struct {
    unsigned least, most;
    const char *expected;
} forms[MM_OCCUPANCY_LIST_COUNT] = {
    [MM_OCCUPANCY_CAPABILITY] = {0, 0, "a string like \"9.0\", or a list of such"},
    [MM_OCCUPANCY_THREADS] = {1, MM_BLOCK_THREADS_MAX, "whole numbers from 1 to 1024"},
    [MM_OCCUPANCY_REGISTERS] = {1, MM_THREAD_REGISTERS_MAX, "whole numbers from 1 to 255"},
    [MM_OCCUPANCY_SHARED] = {0, MM_OCCUPANCY_SHARED_BYTES_MAX, "whole numbers from 0 to 1048576"},
};
_Static_assert(MM_BLOCK_THREADS_MAX == 1024 && MM_THREAD_REGISTERS_MAX == 255 &&
                   MM_OCCUPANCY_SHARED_BYTES_MAX == 1048576,
               "the forms say so");

static enum mm_status read_capability(const char *name, const char *text, unsigned *value,
                                      struct mm_error *error) {
    char known[64] = "";
    for (size_t index = 0; mm_occupancy_capability(index) != 0; index++) {
        char one[16];
        *value = mm_occupancy_capability(index);
        snprintf(one, sizeof one, "%u.%u", *value / 10, *value % 10);
        if (strcmp(one, text) == 0)
            return MM_OK;
        mm_list_add(known, sizeof known, one);
    }
    return mm_fail_field(error, MM_UNSUPPORTED, name, "%s is '%.64s', but must be one of: %s", name, text,
                         known);
}

static enum mm_status read_one(enum mm_occupancy_list list, const char *name, const char *verb,
                               const struct mm_value *value, unsigned *out, struct mm_error *error) {
    uint64_t number;
    if (list == MM_OCCUPANCY_CAPABILITY && value->kind == MM_VALUE_TEXT)
        return read_capability(name, value->text, out, error);
    if (list == MM_OCCUPANCY_CAPABILITY ||
        !mm_value_whole(value, forms[list].least, forms[list].most, &number))
        return mm_value_fail(name, verb, forms[list].expected, value, error);
    *out = (unsigned)number;
    return MM_OK;
}

static enum mm_status read_list(struct mm_parameters *values, const struct mm_parameter *row,
                                const struct mm_value *given, struct mm_error *error) {
    struct mm_occupancy_request *request = (struct mm_occupancy_request *)values;
    const size_t offset = row->offset - offsetof(struct mm_occupancy_request, counts);
    const enum mm_occupancy_list list = (enum mm_occupancy_list)(offset / sizeof(unsigned));
    const char *name = row->name;
    struct mm_json_reader reader = mm_json_within(given);
    struct mm_json_member element;
    unsigned *count = &request->counts[list];
    enum mm_status status = MM_OK;
    if (given->kind != MM_VALUE_ARRAY || given->length == 0) {
        *count = 1;
        return read_one(list, name, "is", given, request->values[list], error);
    }
    while (status == MM_OK && mm_json_step(&reader, given->text, given->length, &element)) {
        if (*count == MM_OCCUPANCY_ROWS_MAX)
            return mm_fail_limit(error, name, MM_OCCUPANCY_ROWS_MAX,
                                 "%s has more than %d values, but a table has at most so many rows; send "
                                 "several requests",
                                 name, MM_OCCUPANCY_ROWS_MAX);
        status = read_one(list, name, "has", &element.value, &request->values[list][*count], error);
        ++*count;
    }
    return status;
}

#define LIST(name, list)                                                                                     \
    MM_PARAMETER_READ(name, OWN, MM_IN_JSON, struct mm_occupancy_request, counts[list], read_list)

static const struct mm_parameter parameters[] = {
    MM_PARAMETER("op", OWN, MM_IN_JSON, struct mm_occupancy_request, parameters),
    LIST("compute_capability", MM_OCCUPANCY_CAPABILITY),
    LIST("threads_per_block", MM_OCCUPANCY_THREADS),
    LIST("registers_per_thread", MM_OCCUPANCY_REGISTERS),
    LIST("shared_bytes", MM_OCCUPANCY_SHARED),
};

static const struct mm_parameter_table table = MM_PARAMETER_TABLE(parameters);

void mm_occupancy_init(struct mm_occupancy_request *request) {
    *request = (struct mm_occupancy_request){.parameters.table = &table};
}

enum mm_status mm_occupancy_complete(struct mm_occupancy_request *request, struct mm_error *error) {
    const bool has_threads = request->counts[MM_OCCUPANCY_THREADS] > 0;
    const char *missing = has_threads ? "registers_per_thread" : "threads_per_block";
    size_t rows = 1;
    if (!has_threads || request->counts[MM_OCCUPANCY_REGISTERS] == 0)
        return mm_fail_field(error, MM_BAD_REQUEST, missing,
                             "%s is missing; send a whole number, or a list of some, as in " EXAMPLE,
                             missing);
    if (request->counts[MM_OCCUPANCY_SHARED] == 0)
        request->counts[MM_OCCUPANCY_SHARED] = 1; /* one value: 0 bytes */
    for (unsigned list = 0; list < MM_OCCUPANCY_LIST_COUNT; list++)
        rows *= request->counts[list] > 0 ? request->counts[list] : 1;
    if (rows <= MM_OCCUPANCY_ROWS_MAX)
        return MM_OK;
    return mm_fail_limit(error, "", MM_OCCUPANCY_ROWS_MAX,
                         "the lists make %zu rows, but the limit is %d; send several requests", rows,
                         MM_OCCUPANCY_ROWS_MAX);
}
