/* The raw format: the elements of A, B, C and the bias, one after another, row-major and little-endian. The
 * query has the shapes. Operands that are absent, generated or stored have no bytes in the body. Nothing is
 * copied: views point into the body, so C and the bias may be unaligned. The reply is the result's buffer. */
#include "api/codec.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are sent in the byte order of memory");

static const char *const shape_names[MM_OP_COUNT] = {
    [MM_MATMUL] = "a_shape and b_shape", [MM_TRANSPOSE] = "shape"};

static enum mm_status set_shapes(struct mm_operands *into, struct mm_error *error) {
    const enum mm_op op = into->kind->op;
    const char *missing;
    const enum mm_status status = mm_operands_set_shapes_by_query(into, &missing, error);
    if (status != MM_OK || missing == NULL)
        return status;
    return mm_fail_field(
        error, MM_BAD_REQUEST, missing,
        "%s is missing in the query, but a raw body needs %s, as in ?%s, or else %s; send .npy files as a "
        "form: %s",
        missing, mm_raw_codec.dimensions[op], mm_raw_codec.example[op], shape_names[op],
        mm_form_codec.example[op]);
}

static enum mm_status set_ld(const struct mm_operands *into, struct mm_operand *operand,
                             struct mm_error *error) {
    struct mm_matrix *view = &operand->view;
    if (!mm_parameter_is_set(&into->parameters, &operand->ld))
        return MM_OK;
    const char *name = mm_parameter_of(&into->parameters, &operand->ld)->name;
    if (!mm_operand_is_inline(operand))
        return mm_fail_field(error, MM_BAD_REQUEST, name,
                             "%s is given, but the operand is not in the body; leave it out", name);
    if (operand->shape.rank != 2)
        return mm_fail_field(error, MM_BAD_REQUEST, name,
                             "%s is given, but %s is not a single matrix; leave it out", name,
                             operand->role.name);
    view->ld = operand->ld;
    if (view->ld >= view->cols)
        return MM_OK;
    mm_fail_field(error, MM_BAD_REQUEST, name,
                  "%s is %zu, but must be at least %zu, the number of columns as stored", name, view->ld,
                  view->cols);
    mm_fail_expected(error, "at least %zu", view->cols);
    mm_fail_got(error, "%zu", view->ld);
    return MM_BAD_REQUEST;
}

/* Sets the shapes, the type, and views without data. bytes[i] becomes the size of operand i. */
static enum mm_status place_operands(struct mm_operands *into, const struct mm_limits *limits,
                                     size_t bytes[MM_OPERANDS_MAX], struct mm_error *error) {
    enum mm_status status = set_shapes(into, error);
    if (status == MM_OK)
        status = into->kind->resolve(into, error);
    if (status != MM_OK)
        return status;
    mm_operands_view(into);
    for (unsigned index = 0; index < into->count && status == MM_OK; index++)
        status = set_ld(into, &into->of[index], error);
    return status == MM_OK ? into->kind->sizes(into, limits, bytes, error) : status;
}

/* Suggests a type for an error: a raw body does not show its type, so the client may have forgotten dtype.
 * Returns "" unless the body is twice or half as long as expected. */
static const char *guess(const struct mm_operands *into, size_t expected, uint64_t body_bytes) {
    if (mm_parameter_is_set(&into->parameters, into->dtype_name) || expected == 0)
        return "";
    if (body_bytes / 2 == expected && body_bytes % 2 == 0)
        return "; are they float64? add dtype=float64 to the query";
    return expected / 2 == body_bytes && expected % 2 == 0
               ? "; are they float16? add dtype=float16 to the query"
               : "";
}

/* The sum of the sizes cannot overflow, because kind->sizes has checked the limits of all of them
 * together. */
static enum mm_status check_length(const struct mm_operands *into, const size_t bytes[MM_OPERANDS_MAX],
                                   uint64_t body_bytes, const struct mm_limits *limits,
                                   struct mm_error *error) {
    char parts[32 * MM_OPERANDS_MAX] = "";
    size_t expected = 0, length = 0;
    for (unsigned index = 0; index < into->count; index++) {
        expected += bytes[index];
        if (mm_operand_is_absent(&into->of[index]))
            continue;
        length += (size_t)snprintf(parts + length, sizeof parts - length, "%s%s %zu",
                                   index == 0 ? " (" : ", then ", into->of[index].role.name, bytes[index]);
    }
    if (expected > limits->body_bytes_max) {
        mm_fail_limit(error, "", limits->body_bytes_max,
                      "these dimensions make a body of %zu bytes, but the limit is %zu (the smaller of "
                      "--max-body and fifteen sixteenths of --memory-budget)",
                      expected, limits->body_bytes_max);
        mm_fail_got(error, "%zu", expected);
        return MM_TOO_LARGE;
    }
    if (body_bytes == MM_LENGTH_UNKNOWN || body_bytes == expected)
        return MM_OK;
    mm_fail(error, MM_BAD_REQUEST, "the body has %" PRIu64 " bytes, but these dimensions make %zu of %s%s)%s",
            body_bytes, expected, mm_dtype_name(into->dtype), parts, guess(into, expected, body_bytes));
    mm_fail_expected(error, "%zu bytes", expected);
    mm_fail_got(error, "%" PRIu64 " bytes", body_bytes);
    return MM_BAD_REQUEST;
}

static enum mm_status plan(struct mm_operands *into, uint64_t body_bytes, const struct mm_limits *limits,
                           struct mm_error *error) {
    size_t bytes[MM_OPERANDS_MAX];
    enum mm_status status = place_operands(into, limits, bytes, error);
    if (status == MM_OK)
        status = check_length(into, bytes, body_bytes, limits, error);
    return status;
}

static void decode(struct mm_operands *into, const struct mm_body *body) {
    size_t offset = 0;
    into->views_body = true;
    for (unsigned index = 0; index < into->count; index++) {
        struct mm_operand *operand = &into->of[index];
        if (!mm_operand_is_inline(operand))
            continue;
        operand->view.data = offset > 0 ? (char *)body->data + offset : body->data;
        offset += mm_matrix_bytes(&operand->view);
    }
}

static void encode(const struct mm_answer *answer, struct mm_reply_body *body) {
    const struct mm_matrix *c = &answer->matrix;
    assert(c->ld == c->cols);
    assert(c->data == answer->result->data || mm_matrix_bytes(c) == 0);
    body->buffer = *answer->result;
    body->bytes = mm_matrix_bytes(c);
    *answer->result = (struct mm_buffer){0};
}

const struct mm_codec mm_raw_codec = {
    .media_type = "application/octet-stream",
    .reply_type = "application/octet-stream",
    .example = {[MM_MATMUL] = "m=1&k=2&n=1", [MM_TRANSPOSE] = "m=1&n=2"},
    .dimensions = {[MM_MATMUL] = "m, k and n", [MM_TRANSPOSE] = "m and n"},
    .reply_rank_max = MM_RANK_MAX,
    .plan = plan,
    .decode = decode,
    .encode = encode,
};
