/* Reads the sources of operands, and sets their element types. */
#include "api/operand.h"

#include "api/element.h"
#include "gpu/clock.h"

#include <stdio.h>
#include <string.h>

static const struct {
    unsigned count;
    struct mm_operand_role roles[MM_OPERANDS_MAX];
} operands_of[MM_OP_COUNT] = {
    [MM_MATMUL] = {4,
                   {[MM_OPERAND_A] = {"a", MM_DIMENSION_M, MM_DIMENSION_K, false, false},
                    [MM_OPERAND_B] = {"b", MM_DIMENSION_K, MM_DIMENSION_N, true, false},
                    [MM_OPERAND_ADDEND] = {.name = "c", .is_optional = true},
                    [MM_OPERAND_BIAS] = {.name = "bias", .is_optional = true}}},
    [MM_TRANSPOSE] = {1, {{"a", MM_DIMENSION_M, MM_DIMENSION_N, false, false}}},
};

void mm_operands_init(struct mm_operands *operands, const struct mm_operands_kind *kind) {
    memset(operands, 0, kind->bytes);
    operands->parameters.table = &kind->table;
    operands->kind = kind;
    operands->count = operands_of[kind->op].count;
    strcpy(operands->dtype_name, mm_dtype_name(MM_FLOAT32));
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        operands->of[index].role = operands_of[kind->op].roles[index];
        operands->of[index].role.is_optional |= index >= operands->count;
        if (operands->of[index].role.is_optional)
            operands->of[index].shape = mm_shape_of_matrix(0, 0);
    }
}

void mm_operands_release(struct mm_operands *operands, struct mm_reservation *memory) {
    mm_reservation_free(memory, &operands->storage);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        operands->of[index].view = (struct mm_matrix){0};
}

/* Finds the text between `head`, such as "uniform(", and ")". False if `text` does not match. */
static bool is_between(struct mm_slice text, const char *head, struct mm_slice *inner) {
    const size_t length = strlen(head);
    if (text.length <= length || memcmp(text.start, head, length) != 0 || text.start[text.length - 1] != ')')
        return false;
    *inner = (struct mm_slice){text.start + length, text.length - length - 1};
    return true;
}

/* Returns the stored matrix if the request already has a reference to it, or NULL. */
static struct mm_stored *find_reference(const struct mm_references *references, const char *matrix) {
    for (unsigned index = 0; index < references->count; index++)
        if (strcmp(references->values[index]->name, matrix) == 0)
            return references->values[index];
    return NULL;
}

/* Adds a reference to a stored matrix. If the operand had another source before, all places may be taken.
 * *stored is then NULL, because mm_parameter_set will reject the second source. */
static enum mm_status acquire_stored(struct mm_references *references, const char *written,
                                     const char *matrix, struct mm_stored **stored, struct mm_error *error) {
    if (references == NULL || references->store == NULL)
        return mm_fail_field(error, MM_UNSUPPORTED, written,
                             "%s is '%s', but this server stores no matrices (--store-memory 0); give "
                             "uniform(SEED) or identity()",
                             written, matrix);
    *stored = find_reference(references, matrix);
    if (*stored != NULL || references->count == MM_OPERANDS_MAX)
        return MM_OK;
    *stored = mm_store_acquire(references->store, references->space, matrix, true, mm_clock_ns());
    if (*stored == NULL)
        return mm_store_fail_missing(written, matrix, error);
    references->values[references->count++] = *stored;
    return MM_OK;
}

void mm_references_release(struct mm_references *references) {
    while (references->count > 0)
        mm_store_release(references->store, references->values[--references->count]);
}

static enum mm_status read_source(struct mm_references *references, const char *written, struct mm_slice text,
                                  struct mm_source *source, struct mm_error *error) {
    struct mm_slice inner;
    char matrix[MM_STORE_NAME_MAX + 1] = "";
    bool is_above;
    if (is_between(text, "uniform(", &inner) && mm_slice_whole(inner, &source->seed, &is_above) &&
        !is_above) {
        source->kind = MM_SOURCE_UNIFORM;
        return MM_OK;
    }
    source->seed = 0;
    source->kind = MM_SOURCE_IDENTITY;
    if (mm_slice_is(text, "identity()"))
        return MM_OK;
    source->kind = MM_SOURCE_STORED;
    if (text.length <= MM_STORE_NAME_MAX)
        memcpy(matrix, text.start, text.length);
    if (mm_store_is_name(matrix) && strlen(matrix) == text.length)
        return acquire_stored(references, written, matrix, &source->stored, error);
    return mm_fail_field(error, MM_UNSUPPORTED, written,
                         "%s is '%.*s', but must be the name of a stored matrix, uniform(SEED), with SEED "
                         "from 0 to 2^64-1, or identity()",
                         written, text.length > 40 ? 40 : (int)text.length, text.start);
}

enum mm_status mm_operand_set_source(struct mm_operands *operands, struct mm_operand *operand,
                                     const char *written, struct mm_slice text, struct mm_error *error) {
    const struct mm_parameter *row = mm_parameter_of(&operands->parameters, &operand->source);
    union mm_parameter_value value;
    if (row == NULL)
        return mm_fail_field(error, MM_BAD_REQUEST, written,
                             "%s is '%.*s', but PUT takes the elements themselves; to store what the server "
                             "has or generates, give out to a product or a transpose",
                             written, text.length > 40 ? 40 : (int)text.length, text.start);
    memset(&value, 0, sizeof value);
    const enum mm_status status = read_source(operands->references, written, text, &value.source, error);
    /* mm_parameter_set rejects a second source, even if no such matrix exists. */
    const bool is_second =
        (operands->parameters.given & mm_parameter_bit(&operands->parameters, &operand->source)) != 0;
    if (status == MM_OK || (status == MM_NO_SUCH_MATRIX && is_second))
        return mm_parameter_set(&operands->parameters, row, &value, error);
    return status;
}

enum mm_status mm_operand_read_source(struct mm_parameters *values, const struct mm_parameter *row,
                                      const struct mm_value *given, struct mm_error *error) {
    struct mm_operands *operands = (struct mm_operands *)values;
    return mm_operand_set_source(operands, &operands->of[mm_operand_index(row)], row->name,
                                 (struct mm_slice){given->text, given->length}, error);
}

enum mm_status mm_operand_read_place(struct mm_parameters *values, const struct mm_parameter *row,
                                     const struct mm_value *given, struct mm_error *error) {
    struct mm_operands *operands = (struct mm_operands *)values;
    char got[64];
    mm_value_describe(given, got, sizeof got);
    if (given->kind != MM_VALUE_TEXT || !mm_slice_is((struct mm_slice){given->text, given->length}, "body"))
        return mm_fail_form(row->name, "is", "body in the query, which says that the raw body has it", got,
                            error);
    operands->of[mm_operand_index(row)].in_body = true;
    return MM_OK;
}

bool mm_operands_have_inline(const struct mm_operands *operands) {
    for (unsigned index = 0; index < operands->count; index++)
        if (mm_operand_is_inline(&operands->of[index]))
            return true;
    return false;
}

bool mm_operands_are_inline(const struct mm_operands *operands) {
    for (unsigned index = 0; index < operands->count; index++)
        if (operands->of[index].source.kind != MM_SOURCE_HOST)
            return false;
    return true;
}

static enum mm_status set_stored_type(struct mm_operands *operands, const struct mm_operand *operand,
                                      struct mm_error *error) {
    struct mm_parameters *parameters = &operands->parameters;
    const struct mm_stored *value = operand->source.stored;
    const char *type = mm_dtype_name(value->dtype), *name = operand->role.name;
    if (mm_parameter_is_set(parameters, operands->dtype_name) && strcmp(operands->dtype_name, type) != 0)
        return mm_fail_field(error, MM_BAD_REQUEST, name,
                             "%s is the stored matrix '%s', whose elements are %s, but they should be %s; "
                             "both operands have one type, which dtype need not name",
                             name, value->name, type, operands->dtype_name);
    strcpy(operands->dtype_name, type);
    parameters->derived |= mm_parameter_bit(parameters, operands->dtype_name);
    return MM_OK;
}

enum mm_status mm_operands_resolve(struct mm_operands *operands, struct mm_error *error) {
    operands->dtype = MM_FLOAT32;
    for (unsigned index = 0; index < operands->count; index++)
        if (mm_operand_is_stored(&operands->of[index]) && !operands->of[index].role.is_optional &&
            set_stored_type(operands, &operands->of[index], error) != MM_OK)
            return MM_BAD_REQUEST;
    return mm_dtype_find("dtype", operands->dtype_name, MM_DTYPE_ALL, &operands->dtype, error);
}

enum mm_status mm_operand_check_type(const struct mm_operands *operands, const struct mm_operand *operand,
                                     enum mm_dtype dtype, struct mm_error *error) {
    if (dtype == operands->result_dtype)
        return MM_OK;
    return mm_fail_field(error, MM_UNSUPPORTED, operand->role.name,
                         "the elements of %s are %s, but the result is %s; both must have one type",
                         operand->role.name, mm_dtype_name(dtype), mm_dtype_name(operands->result_dtype));
}

enum mm_status mm_operand_fail_bool(const struct mm_operand *operand, struct mm_error *error) {
    const char *name = operand->role.name;
    return mm_fail_field(error, MM_BAD_REQUEST, name,
                         "an element of %s is neither 0 nor 1, but dtype is 'bool'; is it uint8?", name);
}

enum mm_status mm_operands_check_elements(const struct mm_operands *operands, struct mm_error *error) {
    for (unsigned index = 0; index < operands->count; index++) {
        const struct mm_operand *operand = &operands->of[index];
        if (mm_operand_is_inline(operand) && mm_element_is_past_bool(&operand->view))
            return mm_operand_fail_bool(operand, error);
    }
    return MM_OK;
}
