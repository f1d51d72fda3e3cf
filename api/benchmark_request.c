/* A benchmark's request: a table of members, and how their values are read. What the names in it stand for is
 * not known here. */
#include "api/access.h"
#include "api/benchmark.h"
#include "api/call.h"
#include "api/json_fault.h"
#include "api/json_value.h"

#include <assert.h>
#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Sets of operations: bit o for operation o. */
enum { MATMUL_ALONE = 1u << MM_MATMUL, EVERY_OP = (1u << MM_OP_COUNT) - 1 };

struct member;
typedef enum mm_status read_function(struct mm_benchmark_call *call, const struct member *member,
                                     const json_t *value, const struct mm_limits *limits,
                                     struct mm_error *error);
static read_function read_dimension, read_dtype, read_flag, read_rows, read_repeats, read_timeout;

/* One row a member, in the order in which they are told. */
static const struct member {
    const char *name;
    read_function *read; /* NULL: it is read before all others */
    bool required;
    unsigned ops;
    size_t offset; /* of a dimension or a flag, in the request */
} members[] = {
    {"op", NULL, false, EVERY_OP, 0},
    {"m", read_dimension, true, EVERY_OP, offsetof(struct mm_benchmark_request, m)},
    {"k", read_dimension, true, MATMUL_ALONE, offsetof(struct mm_benchmark_request, k)},
    {"n", read_dimension, true, EVERY_OP, offsetof(struct mm_benchmark_request, n)},
    {"dtype", read_dtype, false, EVERY_OP, 0},
    {"transpose_a", read_flag, false, MATMUL_ALONE, offsetof(struct mm_benchmark_request, transpose_a)},
    {"transpose_b", read_flag, false, MATMUL_ALONE, offsetof(struct mm_benchmark_request, transpose_b)},
    {"variants", read_rows, false, EVERY_OP, 0},
    {"repeats", read_repeats, false, EVERY_OP, 0},
    {"timeout_ms", read_timeout, false, EVERY_OP, 0},
};

enum { MEMBER_COUNT = sizeof members / sizeof members[0] };

static const char count_form[] = "a whole number of at least 1";

static enum mm_status fail_limit(uint64_t limit, struct mm_error *error) {
    if (error != NULL) {
        error->limit = limit;
        error->has_limit = true;
    }
    return MM_TOO_LARGE;
}

/* A count as a double, which holds every number of any length that can be within a limit. */
static enum mm_status read_count(const struct member *member, const json_t *value, double *count,
                                 struct mm_error *error) {
    *count = json_number_value(value); /* 0 where it is no number */
    return *count >= 1.0 && floor(*count) == *count
               ? MM_OK
               : mm_json_fail_form(member->name, "is", count_form, value, error);
}

static uint64_t cut(double count, uint64_t most) {
    return count < (double)most ? (uint64_t)count : most;
}

static enum mm_status read_dimension(struct mm_benchmark_call *call, const struct member *member,
                                     const json_t *value, const struct mm_limits *limits,
                                     struct mm_error *error) {
    double count;
    enum mm_status status = read_count(member, value, &count, error);
    if (status != MM_OK)
        return status;
    if (count > (double)limits->dimension_max) {
        char number[32];
        mm_call_describe_number(count, number, sizeof number);
        mm_fail_field(error, MM_TOO_LARGE, member->name, "%s is %s, but the limit is %zu", member->name,
                      number, limits->dimension_max);
        return fail_limit(limits->dimension_max, error);
    }
    *(size_t *)(void *)((char *)&call->request + member->offset) = (size_t)count;
    return MM_OK;
}

static enum mm_status read_flag(struct mm_benchmark_call *call, const struct member *member,
                                const json_t *value, const struct mm_limits *limits, struct mm_error *error) {
    (void)limits;
    if (!json_is_boolean(value))
        return mm_json_fail_form(member->name, "is", "true or false", value, error);
    *(bool *)(void *)((char *)&call->request + member->offset) = json_is_true(value);
    return MM_OK;
}

static enum mm_status read_repeats(struct mm_benchmark_call *call, const struct member *member,
                                   const json_t *value, const struct mm_limits *limits,
                                   struct mm_error *error) {
    double count;
    (void)limits;
    enum mm_status status = read_count(member, value, &count, error);
    if (status == MM_OK)
        call->request.repeats = cut(count, MM_BENCHMARK_REPEATS_CUT);
    return status;
}

static enum mm_status read_timeout(struct mm_benchmark_call *call, const struct member *member,
                                   const json_t *value, const struct mm_limits *limits,
                                   struct mm_error *error) {
    double count;
    (void)limits;
    enum mm_status status = read_count(member, value, &count, error);
    if (status == MM_OK)
        call->timeout_ms = cut(count, MM_CALL_WHOLE_MAX);
    return status;
}

static enum mm_status read_dtype(struct mm_benchmark_call *call, const struct member *member,
                                 const json_t *value, const struct mm_limits *limits,
                                 struct mm_error *error) {
    (void)limits;
    if (!json_is_string(value))
        return mm_json_fail_form(member->name, "is", "a string", value, error);
    return mm_dtype_find(json_string_value(value), mm_op_dtypes(call->request.op), &call->request.dtype,
                         error);
}

/* Reads [BACKEND:]VARIANT[/TILE]; false where a part is missing, or the tile is no whole number from 1 on. */
static bool read_name(const char *text, struct mm_benchmark_name *name) {
    const char *colon = strchr(text, ':');
    const char *variant = colon == NULL ? text : colon + 1;
    const size_t variant_length = strcspn(variant, "/");
    const char *slash = variant[variant_length] == '/' ? variant + variant_length : NULL;
    if (variant_length == 0 || colon == text)
        return false;
    snprintf(name->backend, sizeof name->backend, "%.*s", colon == NULL ? 4 : (int)(colon - text),
             colon == NULL ? "auto" : text);
    snprintf(name->variant, sizeof name->variant, "%.*s", (int)variant_length, variant);
    name->tile = 0;
    if (slash == NULL)
        return true;
    const size_t digits = strspn(slash + 1, "0123456789");
    if (digits < 1 || digits > 9 || slash[1 + digits] != '\0')
        return false;
    for (size_t index = 1; index <= digits; index++)
        name->tile = name->tile * 10 + (unsigned)(slash[index] - '0');
    return name->tile > 0;
}

static enum mm_status read_rows(struct mm_benchmark_call *call, const struct member *member,
                                const json_t *value, const struct mm_limits *limits, struct mm_error *error) {
    static const char form[] = "a list of names, as \"naive\", \"cpu:naive\" or \"tiled_dynamic/64\"";
    const size_t count = json_array_size(value); /* 0 where it is no array */
    (void)limits;
    if (count == 0)
        return mm_json_fail_form(member->name, "is", form, value, error);
    for (size_t index = 0; index < count; index++) {
        const json_t *text = json_array_get(value, index);
        struct mm_benchmark_name unwanted; /* where there are too many to keep */
        if (!json_is_string(text) ||
            !read_name(json_string_value(text),
                       index < MM_BENCHMARK_ROWS_MAX ? &call->names[index] : &unwanted)) {
            char element[32];
            snprintf(element, sizeof element, "variants[%zu]", index);
            mm_json_fail_form(element, "is", "a name, as \"naive\", \"cpu:naive\" or \"tiled_dynamic/64\"",
                              text, error);
            if (error != NULL)
                snprintf(error->field, sizeof error->field, "%s", member->name);
            return MM_BAD_REQUEST;
        }
    }
    if (count > MM_BENCHMARK_ROWS_MAX) {
        mm_fail_field(error, MM_TOO_LARGE, member->name, "variants are %zu, but the limit is %d", count,
                      MM_BENCHMARK_ROWS_MAX);
        return fail_limit(MM_BENCHMARK_ROWS_MAX, error);
    }
    call->name_count = count;
    return MM_OK;
}

/* The operation, on which depends what members there are. */
static enum mm_status read_op(struct mm_benchmark_call *call, const json_t *value, struct mm_error *error) {
    char known[64] = "";
    size_t length = 0;
    size_t count;
    const struct mm_benchmark_op *ops = mm_benchmark_ops(&count);
    call->op = &ops[0];
    if (value == NULL)
        return MM_OK;
    if (!json_is_string(value))
        return mm_json_fail_form("op", "is", "a string", value, error);
    for (size_t index = 0; index < count; index++) {
        if (strcmp(json_string_value(value), ops[index].name) == 0) {
            call->op = &ops[index];
            call->request.op = ops[index].op;
            return MM_OK;
        }
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", length > 0 ? ", " : "",
                                   ops[index].name);
        assert(length < sizeof known);
    }
    return mm_fail_field(error, MM_UNSUPPORTED, "op", "op is '%.64s', but there is only: %s",
                         json_string_value(value), known);
}

static const struct member *find_member(const struct mm_benchmark_call *call, const char *name) {
    for (size_t index = 0; index < MEMBER_COUNT; index++)
        if ((members[index].ops & 1u << call->request.op) != 0 && strcmp(members[index].name, name) == 0)
            return &members[index];
    return NULL;
}

static enum mm_status fail_unknown(const struct mm_benchmark_call *call, const char *name,
                                   struct mm_error *error) {
    char known[128] = "";
    size_t length = 0;
    for (size_t index = 0; index < MEMBER_COUNT; index++)
        if ((members[index].ops & 1u << call->request.op) != 0)
            length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", length > 0 ? ", " : "",
                                       members[index].name);
    assert(length < sizeof known);
    char field[MM_BENCHMARK_NAME_MAX + 1];
    snprintf(field, sizeof field, "%s", name);
    return mm_fail_field(error, MM_BAD_REQUEST, field, "'%s' is no member here; there are: %s", field, known);
}

/* Keeps the failure that the contract judges first: what is malformed, then what passes a limit, then what is
 * not to be had. */
static void keep_first(struct mm_error *kept, const struct mm_error *other) {
    static const enum mm_status order[] = {MM_UNSUPPORTED, MM_TOO_LARGE, MM_BAD_REQUEST};
    int rank_kept = -1;
    int rank_other = -1;
    for (int rank = 0; rank < 3; rank++) {
        rank_kept = kept->status == order[rank] ? rank : rank_kept;
        rank_other = other->status == order[rank] ? rank : rank_other;
    }
    if (rank_other > rank_kept)
        *kept = *other;
}

static enum mm_status read_members(struct mm_benchmark_call *call, json_t *root,
                                   const struct mm_limits *limits, struct mm_error *error) {
    const char *name;
    json_t *value;
    struct mm_error first = {.status = MM_OK};
    json_object_foreach(root, name, value) {
        struct mm_error one = {.status = MM_OK};
        const struct member *member = find_member(call, name);
        if (member == NULL)
            fail_unknown(call, name, &one);
        else if (member->read != NULL)
            member->read(call, member, value, limits, &one);
        keep_first(&first, &one);
    }
    for (size_t index = 0; index < MEMBER_COUNT; index++) {
        struct mm_error one = {.status = MM_OK};
        if (members[index].required && find_member(call, members[index].name) != NULL &&
            json_object_get(root, members[index].name) == NULL)
            mm_fail_field(&one, MM_BAD_REQUEST, members[index].name, "%s is missing, expected %s",
                          members[index].name, count_form);
        keep_first(&first, &one);
    }
    if (first.status != MM_OK && error != NULL)
        *error = first;
    return first.status;
}

/* All members of a request for an operation without variants: those of its own, and the deadline. */
static enum mm_status read_probe(struct mm_benchmark_call *call, json_t *root, const struct mm_limits *limits,
                                 struct mm_error *error) {
    static const struct member deadline = {.name = "timeout_ms"};
    const json_t *timeout_ms = json_object_get(root, deadline.name);
    enum mm_status status = MM_OK;
    if (timeout_ms != NULL)
        status = read_timeout(call, &deadline, timeout_ms, limits, error);
    return status == MM_OK ? mm_access_read(root, &call->probe, error) : status;
}

/* The rounding toward zero, by which the parser reads numbers, makes those beyond all doubles the largest
 * one: a dimension of a thousand digits is too large, and not malformed. */
static enum mm_status parse(const void *body, size_t bytes, json_t **root, struct mm_error *error) {
    json_error_t fault;
    if (bytes == 0)
        return mm_fail(error, MM_BAD_REQUEST, "the body is empty, expected a JSON object with m and n");
    enum mm_status status = mm_json_refuse_zero(body, bytes, error);
    if (status != MM_OK)
        return status;
    fesetround(FE_TOWARDZERO);
    json_t *value = mm_json_load(body, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &fault);
    fesetround(FE_TONEAREST);
    if (value == NULL)
        return mm_json_fail_syntax(&fault, error);
    if (!json_is_object(value)) {
        json_decref(value);
        return mm_fail(error, MM_BAD_REQUEST, "the body is a JSON array, expected an object with m and n");
    }
    *root = value;
    return MM_OK;
}

enum mm_status mm_benchmark_decode(const void *body, size_t bytes, const struct mm_limits *limits,
                                   struct mm_benchmark_call *call, struct mm_error *error) {
    json_t *root = NULL;
    *call = (struct mm_benchmark_call){
        .request = {.op = MM_MATMUL, .dtype = MM_FLOAT32, .repeats = MM_BENCHMARK_REPEATS}};
    enum mm_status status = parse(body, bytes, &root, error);
    if (status == MM_OK)
        status = read_op(call, json_object_get(root, "op"), error);
    if (status == MM_OK)
        status = call->op->has_variants ? read_members(call, root, limits, error)
                                        : read_probe(call, root, limits, error);
    json_decref(root);
    return status;
}
