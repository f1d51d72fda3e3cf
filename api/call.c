/* The parameters of a call: a table of names and kinds, the reading of their values, and what is said
 * of those that are wrong. It does not know what the names in a value stand for. */
#include "api/call.h"

#include "api/operand.h"
#include "api/slice.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define BIT(place, op) (1u << ((place)*MM_OP_COUNT + (op)))

/* Sets of places. */
enum {
    QUERY_OF_PRODUCT = BIT(MM_CALL_QUERY, MM_MATMUL),
    QUERIES = QUERY_OF_PRODUCT | BIT(MM_CALL_QUERY, MM_TRANSPOSE),
    FORM_OF_PRODUCT = BIT(MM_CALL_FORM, MM_MATMUL),
    FORMS = FORM_OF_PRODUCT | BIT(MM_CALL_FORM, MM_TRANSPOSE),
    PRODUCTS = QUERY_OF_PRODUCT | BIT(MM_CALL_BODY, MM_MATMUL) | FORM_OF_PRODUCT,
    TRANSPOSITIONS =
        BIT(MM_CALL_QUERY, MM_TRANSPOSE) | BIT(MM_CALL_BODY, MM_TRANSPOSE) | BIT(MM_CALL_FORM, MM_TRANSPOSE),
    CALLS = PRODUCTS | TRANSPOSITIONS,
    BENCHMARK_OF_PRODUCT = BIT(MM_CALL_BENCHMARK, MM_MATMUL),
    BENCHMARKS = BENCHMARK_OF_PRODUCT | BIT(MM_CALL_BENCHMARK, MM_TRANSPOSE),
    PROBE = BIT(MM_CALL_PROBE, MM_MATMUL),
    OCCUPANCY = BIT(MM_CALL_OCCUPANCY, MM_MATMUL),
    READING = BIT(MM_CALL_READING_QUERY, MM_TRANSPOSE),
    STORED_QUERY = BIT(MM_CALL_STORED_QUERY, MM_TRANSPOSE),
    STORED_BODY = BIT(MM_CALL_STORED_BODY, MM_TRANSPOSE),
    STORED = STORED_QUERY | STORED_BODY | BIT(MM_CALL_STORED_FORM, MM_TRANSPOSE),
};

static const struct {
    const char *name;
    size_t length; /* of the name */
    enum mm_kind kind;
    unsigned places;
} parameters[MM_PARAMETER_COUNT] = {
#define X(constant, wire_name, wire_kind, where)                                                             \
    [constant] = {wire_name, sizeof wire_name - 1, MM_KIND_##wire_kind, where},
    MM_PARAMETER_TABLE(X)
#undef X
};

/* mm_call.names has a place for these alone. */
#define X(constant, wire_name, wire_kind, where)                                                             \
    _Static_assert(MM_KIND_##wire_kind != MM_KIND_NAME || constant <= MM_PARAMETER_RESULT_DTYPE,             \
                   "names come before all others");
MM_PARAMETER_TABLE(X)
#undef X

const char *const mm_call_operand_names[MM_CALL_OPERANDS_MAX] = {"a", "b"};

void mm_call_init(struct mm_call *call, enum mm_op op) {
    *call = (struct mm_call){.op = op, .names = {"auto", "auto", "float32"}};
}

void mm_call_init_stored(struct mm_call *call) {
    mm_call_init(call, MM_TRANSPOSE);
    call->is_stored = true;
}

void mm_call_init_reading(struct mm_call *call) {
    mm_call_init(call, MM_TRANSPOSE);
    call->is_reading = true;
}

const char *mm_call_parameter_name(enum mm_parameter parameter) {
    return parameters[parameter].name;
}

bool mm_call_has(const struct mm_call *call, enum mm_parameter parameter) {
    return (call->given & UINT64_C(1) << parameter) != 0;
}

bool mm_call_takes_list(enum mm_parameter parameter) {
    return parameter != MM_PARAMETER_COUNT &&
           (parameters[parameter].kind == MM_KIND_SHAPE || parameters[parameter].kind == MM_KIND_FIGURES);
}

static bool takes(const struct mm_call *call, enum mm_call_place place, unsigned parameter) {
    if (call->is_stored)
        place += MM_CALL_STORED_QUERY;
    else if (call->is_reading)
        place += MM_CALL_READING_QUERY;
    return (parameters[parameter].places & BIT(place, call->op)) != 0;
}

const char *mm_call_given_name(const struct mm_call *call, enum mm_parameter first, enum mm_parameter last) {
    for (unsigned parameter = first; parameter <= last; parameter++)
        if (mm_call_has(call, parameter))
            return parameters[parameter].name;
    return NULL;
}

const char *mm_call_missing_dimension(const struct mm_call *call, uint64_t given) {
    unsigned first = MM_PARAMETER_M, last = MM_PARAMETER_N;
    for (unsigned parameter = MM_PARAMETER_A_SHAPE; parameter <= MM_PARAMETER_SHAPE; parameter++)
        if ((given & UINT64_C(1) << parameter) != 0) {
            first = MM_PARAMETER_A_SHAPE;
            last = MM_PARAMETER_SHAPE;
        }
    for (unsigned parameter = first; parameter <= last; parameter++)
        if (takes(call, MM_CALL_QUERY, parameter) && (given & UINT64_C(1) << parameter) == 0)
            return parameters[parameter].name;
    return NULL;
}

enum mm_parameter mm_call_find(const struct mm_call *call, enum mm_call_place place, const char *name,
                               size_t length) {
    unsigned index = 0;
    while (index < MM_PARAMETER_COUNT &&
           (parameters[index].length != length || memcmp(parameters[index].name, name, length) != 0 ||
            !takes(call, place, index)))
        index++;
    return (enum mm_parameter)index;
}

/* The names that may stand in one place, and the one among them that a client probably meant. */
struct known {
    char list[256];
    size_t used;
    const char *meant; /* NULL: none is near */
};

static void add_known(struct known *known, struct mm_slice given, const char *name) {
    known->used += (size_t)snprintf(known->list + known->used, sizeof known->list - known->used, "%s%s",
                                    known->used > 0 ? ", " : "", name);
    assert(known->used < sizeof known->list);
    if (mm_slice_is_any_case(given, name))
        known->meant = name;
}

static enum mm_status fail_unknown(const struct mm_call *call, enum mm_call_place place, const char *name,
                                   size_t length, struct mm_error *error) {
    const struct mm_slice given = {name, length};
    const bool has_operands = place == MM_CALL_BODY || place == MM_CALL_FORM || place == MM_CALL_BENCHMARK;
    const unsigned operands = has_operands ? mm_call_operands(call) : 0;
    struct known known = {.used = 0};
    char field[MM_CALL_NAME_MAX + 1], hint[64] = "";
    for (unsigned index = 0; index < operands; index++)
        add_known(&known, given, mm_call_operand_names[index]);
    for (unsigned index = 0; index < MM_PARAMETER_COUNT; index++)
        if (takes(call, place, index))
            add_known(&known, given, parameters[index].name);
    if (known.meant != NULL)
        snprintf(hint, sizeof hint, "; did you mean '%s'?", known.meant);
    snprintf(field, sizeof field, "%.*s", (int)(length < sizeof field ? length : sizeof field), name);
    return mm_fail_field(error, MM_BAD_REQUEST, field, "'%s' is unknown in the %s, which takes: %s%s", field,
                         place == MM_CALL_QUERY ? "query" : "body", known.list, hint);
}

/* Stores a value, unless another one was given before. */
static enum mm_status give(struct mm_call *call, unsigned parameter, const struct mm_parameter_value *value,
                           struct mm_error *error) {
    const char *name = parameters[parameter].name;
    struct mm_operand *operand =
        &call->operands[parameter == MM_PARAMETER_B_SHAPE || parameter == MM_PARAMETER_B_FROM];
    struct mm_shape *shape = &operand->shape;
    const void *given = &value->number;
    void *held = &call->numbers[parameter];
    size_t bytes = sizeof value->number;
    bool is_same = true;
    if (parameters[parameter].kind == MM_KIND_NAME) {
        given = value->name;
        held = call->names[parameter];
        bytes = strlen(value->name) + 1;
    } else if (parameters[parameter].kind == MM_KIND_MATRIX) {
        given = value->name;
        held = call->out;
        bytes = strlen(value->name) + 1;
    } else if (parameters[parameter].kind == MM_KIND_SHAPE) {
        given = value->shape.dims;
        held = shape->dims;
        bytes = sizeof value->shape.dims;
        is_same = shape->rank == value->shape.rank;
    } else if (parameters[parameter].kind == MM_KIND_RANGE) {
        given = &value->range;
        held = parameter == MM_PARAMETER_ROWS ? &call->rows : &call->cols;
        bytes = sizeof value->range;
    } else if (parameters[parameter].kind == MM_KIND_SOURCE) {
        struct mm_source *source = &operand->source;
        given = &value->source.seed;
        held = &source->seed;
        bytes = sizeof source->seed;
        is_same = source->kind == value->source.kind && source->stored == value->source.stored;
        if (!mm_call_has(call, parameter))
            *source = value->source;
    }
    if (mm_call_has(call, parameter) && (!is_same || memcmp(held, given, bytes) != 0))
        return mm_fail_field(error, MM_BAD_REQUEST, name,
                             "%s is given twice with different values; give it once", name);
    memcpy(held, given, bytes);
    if (parameters[parameter].kind == MM_KIND_SHAPE)
        shape->rank = value->shape.rank;
    call->given |= UINT64_C(1) << parameter;
    return MM_OK;
}

static enum mm_status check_dimension(unsigned parameter, uint64_t number, const struct mm_value *given,
                                      bool is_text, const struct mm_limits *limits, struct mm_error *error) {
    const char *name = parameters[parameter].name;
    char got[64];
    if (number <= limits->dimension_max && number < UINT64_MAX)
        return MM_OK;
    mm_kind_describe(given, is_text, got, sizeof got);
    mm_fail_limit(error, name, limits->dimension_max, "%s is %s, but the limit is %zu (--max-dimension)",
                  name, got, limits->dimension_max);
    mm_fail_got(error, "%s", got);
    return MM_TOO_LARGE;
}

enum mm_status mm_call_set_source(struct mm_call *call, enum mm_parameter parameter, const char *written,
                                  const char *text, size_t length, struct mm_error *error) {
    struct mm_parameter_value value = {0};
    const unsigned index = parameter == MM_PARAMETER_B_FROM ? 1 : 0;
    const enum mm_status status =
        mm_operand_read_source(call, index, written, (struct mm_slice){text, length}, &value.source, error);
    return status == MM_OK ? give(call, parameter, &value, error) : status;
}

static enum mm_status set(struct mm_call *call, enum mm_call_place place, const char *name,
                          size_t name_length, const struct mm_value *given, bool is_text,
                          const struct mm_limits *limits, struct mm_error *error) {
    const enum mm_parameter parameter = mm_call_find(call, place, name, name_length);
    if (parameter == MM_PARAMETER_COUNT)
        return fail_unknown(call, place, name, name_length, error);
    const enum mm_kind kind = parameters[parameter].kind;
    call->named |= UINT64_C(1) << parameter;
    struct mm_parameter_value value = {0};
    char got[60], quoted[64];
    if (kind == MM_KIND_SOURCE)
        return mm_call_set_source(call, parameter, parameters[parameter].name, given->text, given->length,
                                  error);
    if (mm_kind_read(kind, place == MM_CALL_BODY, given, is_text, &value)) {
        if (kind == MM_KIND_DIMENSION &&
            check_dimension(parameter, value.number, given, is_text, limits, error) != MM_OK)
            return MM_TOO_LARGE;
        return give(call, parameter, &value, error);
    }
    if (!is_text)
        return mm_value_fail(parameters[parameter].name, "is", mm_kind_form(kind, false), given, error);
    mm_kind_describe(given, is_text, got, sizeof got);
    snprintf(quoted, sizeof quoted, "'%s'", got);
    return mm_fail_form(parameters[parameter].name, "is", mm_kind_form(kind, true), quoted, error);
}

enum mm_status mm_call_set_text(struct mm_call *call, enum mm_call_place place, const char *name,
                                size_t name_length, const char *text, size_t length,
                                const struct mm_limits *limits, struct mm_error *error) {
    const struct mm_value given = {.kind = MM_VALUE_TEXT, .text = text == NULL ? "" : text, .length = length};
    return set(call, place, name, name_length, &given, true, limits, error);
}

enum mm_status mm_call_set_value(struct mm_call *call, enum mm_call_place place, const char *name,
                                 size_t name_length, const struct mm_value *given,
                                 const struct mm_limits *limits, struct mm_error *error) {
    return set(call, place, name, name_length, given, false, limits, error);
}

enum mm_status mm_call_refuse_dimensions(const struct mm_call *call, struct mm_error *error) {
    const char *name = mm_call_given_name(call, MM_PARAMETER_M, MM_PARAMETER_SHAPE);
    if (name == NULL)
        return MM_OK;
    return mm_fail_field(error, MM_BAD_REQUEST, name,
                         "%s is given, but only a raw body (application/octet-stream) or an operand that the "
                         "server makes needs it; leave it out, since JSON and .npy files have their shape",
                         name);
}

enum mm_status mm_call_resolve(struct mm_call *call, struct mm_error *error) {
    enum mm_status status = mm_operand_take_dtype(call, error);
    if (status == MM_OK)
        status = mm_dtype_find("dtype", call->names[MM_PARAMETER_DTYPE], MM_DTYPE_ALL, &call->dtype, error);
    if (status != MM_OK)
        return status;
    call->result_dtype = call->op == MM_MATMUL ? mm_dtype_result(call->dtype) : call->dtype;
    if (mm_call_has(call, MM_PARAMETER_RESULT_DTYPE))
        status = mm_dtype_find("result_dtype", call->names[MM_PARAMETER_RESULT_DTYPE],
                               mm_dtype_results(call->dtype), &call->result_dtype, error);
    return status;
}
