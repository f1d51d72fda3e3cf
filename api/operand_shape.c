/* Sets the shapes of operands from the body, parameters or stored matrices, and checks the sizes. */
#include "api/operand.h"

#include <string.h>

static bool is_set(const struct mm_operands *operands, const void *value) {
    return mm_parameter_is_set(&operands->parameters, value);
}

static const char *name_of(const struct mm_operands *operands, const void *value) {
    return mm_parameter_of(&operands->parameters, value)->name;
}

bool mm_operands_name_shapes(const struct mm_operands *operands) {
    const struct mm_parameters *parameters = &operands->parameters;
    uint64_t named = parameters->named, dimensions = 0, shapes = 0;
    for (unsigned dimension = 0; dimension < MM_DIMENSION_COUNT; dimension++)
        dimensions |= mm_parameter_bit(parameters, &operands->dimensions[dimension]);
    for (unsigned index = 0; index < operands->count; index++) {
        const struct mm_operand *operand = &operands->of[index];
        if (operand->role.is_optional)
            continue;
        shapes |= mm_parameter_bit(parameters, &operand->shape);
        if (mm_operand_is_stored(operand))
            named |= mm_parameter_bit(parameters, &operands->dimensions[operand->role.rows]) |
                     mm_parameter_bit(parameters, &operands->dimensions[operand->role.cols]);
    }
    return !mm_operands_have_inline(operands) || (named & dimensions) == dimensions ||
           (named & shapes) == shapes;
}

/* Returns the name of the first parameter of this kind that has a value, or NULL. Leading dimensions are of
 * kind MM_KIND_DIMENSION too. Skips c_shape, because a client may give it together with m, k and n. */
static const char *find_set(const struct mm_operands *operands, enum mm_kind kind) {
    const struct mm_parameters *parameters = &operands->parameters;
    const uint64_t own = mm_parameter_bit(parameters, &operands->of[MM_OPERAND_ADDEND].shape);
    for (unsigned index = 0; index < parameters->table->count; index++) {
        const struct mm_parameter *row = &parameters->table->rows[index];
        if (row->kind == kind && (((parameters->given | parameters->derived) & ~own) >> index & 1) != 0)
            return row->name;
    }
    return NULL;
}

const char *mm_operands_missing_dimension(const struct mm_operands *operands) {
    const bool by_shapes = find_set(operands, MM_KIND_SHAPE) != NULL;
    const unsigned count = by_shapes ? operands->count : MM_DIMENSION_COUNT;
    for (unsigned index = 0; index < count; index++) {
        const void *value =
            by_shapes ? (const void *)&operands->of[index].shape : &operands->dimensions[index];
        const struct mm_parameter *row = mm_parameter_of(&operands->parameters, value);
        if (row != NULL && !(by_shapes && operands->of[index].role.is_optional) && !is_set(operands, value))
            return row->name;
    }
    return NULL;
}

enum mm_status mm_operands_refuse_dimensions(const struct mm_operands *operands, struct mm_error *error) {
    const char *name = find_set(operands, MM_KIND_DIMENSION);
    if (name == NULL)
        name = find_set(operands, MM_KIND_SHAPE);
    if (name == NULL)
        return MM_OK;
    return mm_fail_field(
        error, MM_BAD_REQUEST, name,
        "%s is given, but only a raw body (application/octet-stream) or an operand that the "
        "server generates needs it; leave it out, since JSON and .npy files have their shape",
        name);
}

static enum mm_status refuse_mixture(const struct mm_operands *operands, struct mm_error *error) {
    const char *shape = find_set(operands, MM_KIND_SHAPE), *number = find_set(operands, MM_KIND_DIMENSION);
    if (shape == NULL || number == NULL)
        return MM_OK;
    return mm_fail_field(error, MM_BAD_REQUEST, number,
                         "%s and %s are both given, but shapes are given by %s, without leading dimensions, "
                         "or else by %s; leave one out",
                         shape, number, operands->count > 1 ? "a_shape and b_shape" : "shape",
                         operands->count > 1 ? "m, k and n" : "m and n");
}

static enum mm_status refuse_lds(const struct mm_operands *operands, struct mm_error *error) {
    for (unsigned index = 0; index < operands->count; index++)
        if (is_set(operands, &operands->of[index].ld)) {
            const char *name = name_of(operands, &operands->of[index].ld);
            return mm_fail_field(error, MM_BAD_REQUEST, name,
                                 "%s is given, but only a raw body (application/octet-stream) has a leading "
                                 "dimension; leave it out",
                                 name);
        }
    return MM_OK;
}

/* Sets a dimension from an operand. Fails with MM_BAD_SHAPE if the client gave another value. If two operands
 * have different values, the check of the whole product fails later. */
static enum mm_status derive_dimension(struct mm_operands *operands, const struct mm_operand *operand,
                                       enum mm_dimension dimension, size_t length, struct mm_error *error) {
    struct mm_parameters *parameters = &operands->parameters;
    uint64_t *value = &operands->dimensions[dimension];
    const uint64_t bit = mm_parameter_bit(parameters, value);
    if (((parameters->given | parameters->derived) & bit) == 0)
        *value = length;
    if ((parameters->given & bit) == 0 || *value == length) {
        parameters->derived |= bit;
        return MM_OK;
    }
    const char *name = name_of(operands, value);
    return mm_fail_field(error, MM_BAD_SHAPE, name,
                         "%s is %zu, but %s has %zu there; leave %s out, because %s sets it", name,
                         (size_t)*value, operand->role.name, length, name, operand->role.name);
}

/* Sets the two dimensions that belong to an operand. If the operand is a vector, one of them is 1. */
static enum mm_status set_dimensions(struct mm_operands *operands, const struct mm_operand *operand,
                                     struct mm_error *error) {
    const struct mm_shape *shape = &operand->shape;
    const bool is_turned = operand->is_transposed && shape->rank > 1;
    const size_t rows = mm_shape_rows(shape, operand->role.is_column);
    const size_t cols = mm_shape_cols(shape, operand->role.is_column);
    const enum mm_status status =
        derive_dimension(operands, operand, operand->role.rows, is_turned ? cols : rows, error);
    return status == MM_OK
               ? derive_dimension(operands, operand, operand->role.cols, is_turned ? rows : cols, error)
               : status;
}

/* Sets an operand's shape. Fails with MM_BAD_SHAPE if the shape parameter has another value. */
static enum mm_status set_shape(const struct mm_operands *operands, struct mm_operand *operand,
                                const struct mm_shape *shape, struct mm_error *error) {
    struct mm_shape *own = &operand->shape;
    char given_text[MM_SHAPE_TEXT_MAX], text[MM_SHAPE_TEXT_MAX];
    if (is_set(operands, own) && (own->rank != shape->rank ||
                                  memcmp(own->dims, shape->dims, shape->rank * sizeof own->dims[0]) != 0)) {
        const char *name = name_of(operands, own);
        mm_shape_text(own, given_text);
        mm_shape_text(shape, text);
        return mm_fail_field(error, MM_BAD_SHAPE, name, "%s is %s, but %s is %s", name, given_text,
                             operand->role.name, text);
    }
    *own = *shape;
    return MM_OK;
}

enum mm_status mm_operand_complete_shape(struct mm_operands *operands, struct mm_operand *operand,
                                         struct mm_shape *shape, struct mm_error *error) {
    const struct mm_shape *parameter = &operand->shape;
    const bool is_cut = shape->rank > 0 && shape->dims[shape->rank - 1] == 0;
    if (is_cut && parameter->rank >= shape->rank &&
        memcmp(parameter->dims, shape->dims, shape->rank * sizeof shape->dims[0]) == 0)
        *shape = *parameter;
    const enum mm_status status = set_shape(operands, operand, shape, error);
    operands->parameters.given &= ~mm_parameter_bit(&operands->parameters, &operand->shape);
    return status;
}

static enum mm_status set_stored_shapes(struct mm_operands *operands, struct mm_error *error) {
    struct mm_parameters *parameters = &operands->parameters;
    const bool by_shapes = find_set(operands, MM_KIND_SHAPE) != NULL;
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < operands->count && status == MM_OK; index++) {
        struct mm_operand *operand = &operands->of[index];
        if (!mm_operand_is_stored(operand))
            continue;
        status = set_shape(operands, operand, &operand->source.stored->shape, error);
        if (operand->role.is_optional)
            continue;
        if (by_shapes)
            parameters->derived |= mm_parameter_bit(parameters, &operand->shape);
        else if (status == MM_OK)
            status = set_dimensions(operands, operand, error);
    }
    return status;
}

static struct mm_shape shape_by_dimensions(const struct mm_operands *operands,
                                           const struct mm_operand *operand) {
    const uint64_t rows = operands->dimensions[operand->role.rows];
    const uint64_t cols = operands->dimensions[operand->role.cols];
    return operand->is_transposed ? mm_shape_of_matrix(cols, rows) : mm_shape_of_matrix(rows, cols);
}

struct mm_shape mm_operands_result(const struct mm_operands *operands) {
    const struct mm_operand *a = &operands->of[MM_OPERAND_A], *b = &operands->of[MM_OPERAND_B];
    const enum mm_op op = operands->kind->op;
    struct mm_shape shape;
    (void)mm_shape_result(op, &a->shape, &b->shape, op == MM_TRANSPOSE || a->is_transposed, b->is_transposed,
                          &shape);
    return shape;
}

static bool is_empty(const struct mm_shape *shape) {
    bool has_zero = false;
    for (unsigned dim = 0; dim < shape->rank; dim++)
        has_zero = has_zero || shape->dims[dim] == 0;
    return has_zero;
}

void mm_operands_reshape_addend(struct mm_operands *operands) {
    struct mm_shape *shape = &operands->of[MM_OPERAND_ADDEND].shape;
    const struct mm_shape result = mm_operands_result(operands);
    const size_t rows = mm_shape_rows(shape, false), cols = mm_shape_cols(shape, false);
    const bool is_line = (rows == 1 || cols == 1) && rows * cols == result.dims[0];
    if ((is_empty(shape) && is_empty(&result)) || (result.rank == 1 && is_line))
        *shape = result;
}

/* Returns the default shape of c or the bias. If b is a vector, a later check rejects every bias. */
static struct mm_shape default_shape(const struct mm_operands *operands, const struct mm_operand *operand) {
    const struct mm_shape result = mm_operands_result(operands);
    if (operand == &operands->of[MM_OPERAND_ADDEND])
        return result;
    return (struct mm_shape){.rank = 1, .dims = {mm_shape_cols(&result, false)}};
}

/* Fails if an operand is both in the body and elsewhere, or if an absent operand has a shape parameter. */
static enum mm_status check_places(const struct mm_operands *operands, struct mm_error *error) {
    for (unsigned index = 0; index < operands->count; index++) {
        const struct mm_operand *operand = &operands->of[index];
        const char *name = operand->role.name;
        if (operand->in_body && operand->source.kind != MM_SOURCE_HOST)
            return mm_fail_field(error, MM_BAD_REQUEST, name,
                                 "%s is in the body, and %s_from says that the server has it; leave one out",
                                 name, name);
        if (mm_operand_is_absent(operand) && is_set(operands, &operand->shape))
            return mm_fail_field(error, MM_BAD_REQUEST, name_of(operands, &operand->shape),
                                 "%s is given, but %s is not; give %s, or leave %s out",
                                 name_of(operands, &operand->shape), name, name,
                                 name_of(operands, &operand->shape));
    }
    return MM_OK;
}

enum mm_status mm_operands_set_shapes_by_query(struct mm_operands *operands, const char **missing,
                                               struct mm_error *error) {
    enum mm_status status = refuse_mixture(operands, error);
    if (status == MM_OK)
        status = check_places(operands, error);
    if (status == MM_OK)
        status = set_stored_shapes(operands, error);
    *missing = mm_operands_missing_dimension(operands);
    for (unsigned index = 0; index < operands->count && status == MM_OK; index++) {
        struct mm_operand *operand = &operands->of[index];
        if (is_set(operands, &operand->shape) || mm_operand_is_stored(operand) ||
            mm_operand_is_absent(operand))
            continue;
        operand->shape = operand->role.is_optional ? default_shape(operands, operand)
                                                   : shape_by_dimensions(operands, operand);
    }
    return status;
}

/* Sets a generated operand's shape from the dimensions, unless the client gave the whole shape. */
static enum mm_status set_generated_shape(struct mm_operands *operands, struct mm_operand *operand,
                                          struct mm_error *error) {
    const uint64_t *rows = &operands->dimensions[operand->role.rows];
    const uint64_t *cols = &operands->dimensions[operand->role.cols];
    const uint64_t *missing = !is_set(operands, rows) ? rows : cols;
    if (is_set(operands, &operand->shape))
        return MM_OK;
    if (operand->role.is_optional) {
        operand->shape = default_shape(operands, operand);
        return MM_OK;
    }
    if (!is_set(operands, missing)) {
        const char *name = name_of(operands, missing), *whole = name_of(operands, &operand->shape);
        return mm_fail_field(error, MM_BAD_REQUEST, name,
                             "%s is missing, but the server generates %s: give %s, or the whole shape by %s",
                             name, operand->role.name, name, whole);
    }
    operand->shape = shape_by_dimensions(operands, operand);
    return MM_OK;
}

enum mm_status mm_operands_set_shapes(struct mm_operands *operands,
                                      const struct mm_shape *const shapes[MM_OPERANDS_MAX],
                                      struct mm_error *error) {
    bool are_inline = true; /* all operands that are not optional */
    struct mm_operand *const end = operands->of + operands->count;
    for (unsigned index = 0; index < operands->count; index++) {
        struct mm_operand *operand = &operands->of[index];
        operand->in_body |= shapes[index] != NULL;
        are_inline = are_inline && (operand->role.is_optional || mm_operand_is_inline(operand));
    }
    enum mm_status status = check_places(operands, error);
    if (status == MM_OK)
        status =
            are_inline ? mm_operands_refuse_dimensions(operands, error) : refuse_mixture(operands, error);
    if (status == MM_OK)
        status = refuse_lds(operands, error);
    for (struct mm_operand *operand = operands->of; operand < end && status == MM_OK; operand++) {
        const struct mm_shape *shape =
            mm_operand_is_stored(operand) ? &operand->source.stored->shape : shapes[operand - operands->of];
        if (shape == NULL)
            continue;
        status = set_shape(operands, operand, shape, error);
        /* If all operands are inline, the check of the product compares their dimensions later. */
        if (status == MM_OK && !are_inline && !operand->role.is_optional)
            status = set_dimensions(operands, operand, error);
    }
    for (struct mm_operand *operand = operands->of; operand < end && status == MM_OK; operand++)
        if (mm_operand_is_generated(operand))
            status = set_generated_shape(operands, operand, error);
    return status;
}

/* Returns the rows of each matrix of an operand. The result and c lack a dimension if a or b is a vector. */
static size_t matrix_rows(const struct mm_operands *operands, const struct mm_operand *operand) {
    const struct mm_shape *shape = &operand->shape;
    if (operand == &operands->of[MM_OPERAND_ADDEND] && operands->of[MM_OPERAND_B].shape.rank == 1)
        return mm_shape_cols(shape, false);
    if (operand == &operands->of[MM_OPERAND_ADDEND] && operands->of[MM_OPERAND_A].shape.rank == 1)
        return 1;
    return mm_shape_rows(shape, operand->role.is_column);
}

void mm_operands_view(struct mm_operands *operands) {
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        struct mm_operand *operand = &operands->of[index];
        operand->view =
            mm_shape_view(&operand->shape, operand->role.is_column, mm_operand_dtype(operands, operand));
        operand->source.rows = matrix_rows(operands, operand);
        if (mm_operand_is_stored(operand))
            operand->view.data = operand->source.stored->data;
    }
}

/* Computes the bytes of a view in memory, with the gaps between rows that a leading dimension causes. */
static enum mm_status operand_size(const struct mm_operand *operand, const struct mm_limits *limits,
                                   size_t *bytes, struct mm_error *error) {
    const struct mm_matrix *view = &operand->view;
    const struct mm_shape padded = mm_shape_of_matrix(view->rows, view->ld);
    return mm_shape_size(operand->role.name, view->ld != view->cols ? &padded : &operand->shape, view->dtype,
                         limits, bytes, error);
}

enum mm_status mm_operands_sizes(const struct mm_operands *operands, const struct mm_limits *limits,
                                 size_t bytes[MM_OPERANDS_MAX], struct mm_error *error) {
    const struct mm_limits elsewhere = {limits->dimension_max, limits->body_bytes_max, SIZE_MAX};
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        bytes[index] = 0;
    for (unsigned index = 0; index < operands->count && status == MM_OK; index++) {
        const struct mm_operand *operand = &operands->of[index];
        const bool is_inline = mm_operand_is_inline(operand);
        size_t size;
        status = operand_size(operand, is_inline ? limits : &elsewhere, &size, error);
        bytes[index] = status == MM_OK && is_inline ? size : 0;
    }
    return status;
}
