/* How a made operand is written, and how it gets its shape. */
#include "api/operand.h"

#include "gpu/clock.h"

#include <stdio.h>
#include <string.h>

/* What stands between the words, such as "uniform(" and ")"; false if they are not there. */
static bool is_between(struct mm_slice text, const char *head, struct mm_slice *inner) {
    const size_t length = strlen(head);
    if (text.length <= length || memcmp(text.start, head, length) != 0 || text.start[text.length - 1] != ')')
        return false;
    *inner = (struct mm_slice){text.start + length, text.length - length - 1};
    return true;
}

/* A decimal below 2⁶⁴. */
static bool read_seed(struct mm_slice digits, uint64_t *seed) {
    *seed = 0;
    for (size_t index = 0; index < digits.length; index++)
        if (!mm_is_digit(digits.start[index]) || __builtin_mul_overflow(*seed, 10, seed) ||
            __builtin_add_overflow(*seed, (uint64_t)(digits.start[index] - '0'), seed))
            return false;
    return digits.length > 0;
}

/* A name keeps the value that it had first, for both operands: all of a request sees the same. */
static enum mm_status hold(struct mm_held *held, unsigned index, const char *name, const char *matrix,
                           struct mm_source *source, struct mm_error *error) {
    if (held == NULL || held->store == NULL)
        return mm_fail_field(error, MM_UNSUPPORTED, name,
                             "%s is '%s', but this server stores no matrices (--store-memory 0); give "
                             "uniform(SEED) or identity()",
                             name, matrix);
    struct mm_stored **value = &held->values[index], *other = held->values[1 - index];
    if (*value == NULL && other != NULL && strcmp(other->name, matrix) == 0)
        *value = other;
    if (*value == NULL)
        *value = mm_store_hold(held->store, held->space, matrix, true, mm_clock_ns());
    if (*value == NULL)
        return mm_store_fail_missing(name, matrix, error);
    *source = (struct mm_source){.kind = MM_SOURCE_STORED};
    source->stored = strcmp((*value)->name, matrix) == 0 ? *value : NULL; /* NULL: another was given before */
    return MM_OK;
}

/* Both operands share a reference if they are one value by one name. */
void mm_operand_release(struct mm_held *held) {
    if (held->values[1] == held->values[0])
        held->values[1] = NULL;
    for (unsigned index = 0; index < MM_CALL_OPERANDS_MAX; index++) {
        if (held->values[index] != NULL)
            mm_store_release(held->store, held->values[index]);
        held->values[index] = NULL;
    }
}

enum mm_status mm_operand_read_source(const struct mm_call *call, unsigned index, const char *name,
                                      struct mm_slice text, struct mm_source *source,
                                      struct mm_error *error) {
    struct mm_slice inner;
    char matrix[MM_STORE_NAME_MAX + 1] = "";
    if (call->is_stored)
        return mm_fail_field(error, MM_BAD_REQUEST, name,
                             "%s is '%.*s', but PUT takes the elements themselves; to store what the server "
                             "has or makes, give out to a product or a transpose",
                             name, text.length > 40 ? 40 : (int)text.length, text.start);
    *source = (struct mm_source){.kind = MM_SOURCE_UNIFORM};
    if (is_between(text, "uniform(", &inner) && read_seed(inner, &source->seed))
        return MM_OK;
    *source = (struct mm_source){.kind = MM_SOURCE_IDENTITY};
    if (mm_slice_is(text, "identity()"))
        return MM_OK;
    *source = (struct mm_source){.kind = MM_SOURCE_HOST};
    if (text.length <= MM_STORE_NAME_MAX)
        memcpy(matrix, text.start, text.length);
    if (mm_store_is_name(matrix) && strlen(matrix) == text.length)
        return hold(call->held, index, name, matrix, source, error);
    return mm_fail_field(error, MM_UNSUPPORTED, name,
                         "%s is '%.*s', but must be the name of a stored matrix, uniform(SEED), with SEED "
                         "from 0 to 2^64-1, or identity()",
                         name, text.length > 40 ? 40 : (int)text.length, text.start);
}

bool mm_operand_all_are_inline(const struct mm_call *call) {
    return mm_operand_is_inline(call, 0) && mm_operand_is_inline(call, 1);
}

bool mm_operand_none_is_inline(const struct mm_call *call) {
    return !mm_operand_is_inline(call, 0) && (mm_call_operands(call) == 1 || !mm_operand_is_inline(call, 1));
}

enum mm_status mm_operand_take_dtype(struct mm_call *call, struct mm_error *error) {
    char *dtype = call->names[MM_PARAMETER_DTYPE];
    for (unsigned index = 0; index < mm_call_operands(call); index++) {
        if (!mm_operand_is_stored(call, index))
            continue;
        const struct mm_stored *value = mm_operand_source(call, index)->stored;
        const char *name = mm_dtype_name(value->dtype);
        if (mm_call_has(call, MM_PARAMETER_DTYPE) && strcmp(dtype, name) != 0)
            return mm_fail_field(
                error, MM_BAD_REQUEST, mm_call_operand_names[index],
                "%s is the stored matrix '%s', whose elements are %s, but they should be %s; "
                "both operands have one type, which dtype need not name",
                mm_call_operand_names[index], value->name, name, dtype);
        strcpy(dtype, name);
        call->given |= UINT64_C(1) << MM_PARAMETER_DTYPE;
    }
    return MM_OK;
}

enum mm_status mm_operand_judge_mixture(const struct mm_call *call, struct mm_error *error) {
    const char *shape = mm_call_given_name(call, MM_PARAMETER_A_SHAPE, MM_PARAMETER_SHAPE);
    const char *number = mm_call_given_name(call, MM_PARAMETER_M, MM_PARAMETER_LDB);
    if (shape == NULL || number == NULL)
        return MM_OK;
    return mm_fail_field(error, MM_BAD_REQUEST, number,
                         "%s and %s are both given, but shapes are given by %s, without leading dimensions, "
                         "or else by %s; leave one out",
                         shape, number, call->op == MM_MATMUL ? "a_shape and b_shape" : "shape",
                         call->op == MM_MATMUL ? "m, k and n" : "m and n");
}

/* --- shapes */

enum mm_parameter mm_operand_shape_parameter(const struct mm_call *call, unsigned index) {
    if (call->op == MM_TRANSPOSE)
        return MM_PARAMETER_SHAPE;
    return index == 0 ? MM_PARAMETER_A_SHAPE : MM_PARAMETER_B_SHAPE;
}

/* The dimensions of op(A) and op(B), rows first. */
static enum mm_parameter rows_parameter(unsigned index) {
    return index == 0 ? MM_PARAMETER_M : MM_PARAMETER_K;
}

static enum mm_parameter cols_parameter(const struct mm_call *call, unsigned index) {
    return index == 0 && call->op == MM_MATMUL ? MM_PARAMETER_K : MM_PARAMETER_N;
}

static bool is_turned(const struct mm_call *call, unsigned index) {
    return call->numbers[index == 0 ? MM_PARAMETER_TRANSPOSE_A : MM_PARAMETER_TRANSPOSE_B] != 0;
}

/* An operand tells a dimension: the same as the client gave. If the other one told another, that is judged
 * with all else about the product. */
static enum mm_status tell(struct mm_call *call, unsigned index, uint64_t by_client,
                           enum mm_parameter parameter, size_t length, struct mm_error *error) {
    const uint64_t given = call->numbers[parameter];
    const char *name = mm_call_parameter_name(parameter), *operand = mm_call_operand_names[index];
    if (!mm_call_has(call, parameter)) {
        call->numbers[parameter] = length;
        call->given |= UINT64_C(1) << parameter;
        return MM_OK;
    }
    if (given == length || (by_client >> parameter & 1) == 0)
        return MM_OK;
    return mm_fail_field(error, MM_BAD_SHAPE, name,
                         "%s is %zu, but %s has %zu there; leave %s out, since %s tells it", name,
                         (size_t)given, operand, length, name, operand);
}

/* Takes the shape of an operand that has one: what was given for it, if anything was. */
static enum mm_status take_shape(struct mm_call *call, unsigned index, const struct mm_shape *shape,
                                 struct mm_error *error) {
    struct mm_shape *own = &call->operands[index].shape;
    const enum mm_parameter whole = mm_operand_shape_parameter(call, index);
    char given_text[MM_SHAPE_TEXT_MAX], text[MM_SHAPE_TEXT_MAX];
    if (mm_call_has(call, whole) &&
        (own->rank != shape->rank ||
         memcmp(own->dims, shape->dims, shape->rank * sizeof own->dims[0]) != 0)) {
        mm_shape_text(own, given_text);
        mm_shape_text(shape, text);
        return mm_fail_field(error, MM_BAD_SHAPE, mm_call_parameter_name(whole), "%s is %s, but %s is %s",
                             mm_call_parameter_name(whole), given_text, mm_call_operand_names[index], text);
    }
    *own = *shape;
    return MM_OK;
}

enum mm_status mm_operand_complete_shape(struct mm_call *call, unsigned index, struct mm_shape *shape,
                                         struct mm_error *error) {
    const struct mm_shape *told = &call->operands[index].shape;
    const bool is_cut = shape->dims[shape->rank - 1] == 0;
    if (is_cut && told->rank >= shape->rank &&
        memcmp(told->dims, shape->dims, shape->rank * sizeof shape->dims[0]) == 0)
        *shape = *told;
    const enum mm_status status = take_shape(call, index, shape, error);
    call->given &= ~(UINT64_C(1) << mm_operand_shape_parameter(call, index));
    return status;
}

/* It tells dimensions; a vector has 1 where it lacks one. by_client: bits as in call->given, of what the
 * client gave. */
static enum mm_status tell_dimensions(struct mm_call *call, unsigned index, uint64_t by_client,
                                      struct mm_error *error) {
    const struct mm_shape *shape = &call->operands[index].shape;
    const bool turned = is_turned(call, index) && shape->rank > 1;
    const size_t rows = mm_shape_rows(shape, index == 1), cols = mm_shape_cols(shape, index == 1);
    const enum mm_status status =
        tell(call, index, by_client, rows_parameter(index), turned ? cols : rows, error);
    return status != MM_OK
               ? status
               : tell(call, index, by_client, cols_parameter(call, index), turned ? rows : cols, error);
}

enum mm_status mm_operand_take_stored(struct mm_call *call, struct mm_error *error) {
    const uint64_t by_client = call->given;
    const bool by_shapes = mm_call_given_name(call, MM_PARAMETER_A_SHAPE, MM_PARAMETER_SHAPE) != NULL;
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < mm_call_operands(call) && status == MM_OK; index++) {
        if (!mm_operand_is_stored(call, index))
            continue;
        status = take_shape(call, index, &mm_operand_source(call, index)->stored->shape, error);
        if (by_shapes)
            call->given |= UINT64_C(1) << mm_operand_shape_parameter(call, index);
        else if (status == MM_OK)
            status = tell_dimensions(call, index, by_client, error);
    }
    return status;
}

/* Makes the shape of a made operand, unless all of it was given. */
static enum mm_status make_shape(struct mm_call *call, unsigned index, struct mm_error *error) {
    const enum mm_parameter rows = rows_parameter(index), cols = cols_parameter(call, index);
    const enum mm_parameter whole = mm_operand_shape_parameter(call, index);
    const enum mm_parameter missing = !mm_call_has(call, rows) ? rows : cols;
    if (mm_call_has(call, whole))
        return MM_OK;
    if (!mm_call_has(call, missing))
        return mm_fail_field(error, MM_BAD_REQUEST, mm_call_parameter_name(missing),
                             "%s is missing, but %s is made by the server: give %s, or the whole shape by %s",
                             mm_call_parameter_name(missing), mm_call_operand_names[index],
                             mm_call_parameter_name(missing), mm_call_parameter_name(whole));
    const bool turned = is_turned(call, index);
    call->operands[index].shape =
        mm_shape_of_matrix(call->numbers[turned ? cols : rows], call->numbers[turned ? rows : cols]);
    return MM_OK;
}

static enum mm_status fail_both(const char *operand, struct mm_error *error) {
    return mm_fail_field(error, MM_BAD_REQUEST, operand,
                         "%s is in the body, and %s_from says that the server has it; leave one out", operand,
                         operand);
}

static enum mm_status refuse_strides(const struct mm_call *call, struct mm_error *error) {
    const char *name = mm_call_given_name(call, MM_PARAMETER_LDA, MM_PARAMETER_LDB);
    if (name == NULL)
        return MM_OK;
    return mm_fail_field(error, MM_BAD_REQUEST, name,
                         "%s is given, but only a raw body (application/octet-stream) has a leading "
                         "dimension; leave it out",
                         name);
}

enum mm_status mm_operand_shapes(struct mm_call *call,
                                 const struct mm_shape *const shapes[MM_CALL_OPERANDS_MAX],
                                 struct mm_error *error) {
    const unsigned count = mm_call_operands(call);
    const uint64_t by_client = call->given;
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < count; index++)
        if (shapes[index] != NULL && !mm_operand_is_inline(call, index))
            return fail_both(mm_call_operand_names[index], error);
    if (mm_operand_all_are_inline(call))
        status = mm_call_refuse_dimensions(call, error);
    else
        status = mm_operand_judge_mixture(call, error);
    if (status == MM_OK)
        status = refuse_strides(call, error);
    for (unsigned index = 0; index < count && status == MM_OK; index++) {
        const struct mm_shape *shape = shapes[index];
        if (mm_operand_is_stored(call, index))
            shape = &mm_operand_source(call, index)->stored->shape;
        if (shape == NULL)
            continue;
        status = take_shape(call, index, shape, error);
        if (status == MM_OK && !mm_operand_all_are_inline(call)) /* else the product is judged as a whole */
            status = tell_dimensions(call, index, by_client, error);
    }
    for (unsigned index = 0; index < count && status == MM_OK; index++)
        if (mm_operand_is_made(call, index))
            status = make_shape(call, index, error);
    if (status == MM_OK && count == 1)
        call->operands[1].shape = mm_shape_of_matrix(0, 0);
    return status;
}
