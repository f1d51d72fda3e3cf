/* The raw format: the bytes of A, then of B if the operation has one, row-major and little-endian, with their
 * shapes in the query: whole, or by m, k and n. An operand that the server makes or has stored has no bytes
 * here. The views point into the body, and the reply is the result's own buffer: nothing is copied. */
#include "api/codec.h"
#include "api/operand.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are sent in the byte order of memory");

static const char *const shape_names[MM_OP_COUNT] = {
    [MM_MATMUL] = "a_shape and b_shape", [MM_TRANSPOSE] = "shape"};

static enum mm_status require_dimensions(struct mm_call *call, struct mm_error *error) {
    enum mm_status status = mm_operand_judge_mixture(call, error);
    if (status == MM_OK)
        status = mm_operand_take_stored(call, error);
    const char *missing = mm_call_missing_dimension(call, call->given);
    if (status != MM_OK || missing == NULL)
        return status;
    return mm_fail_field(
        error, MM_BAD_REQUEST, missing,
        "%s is missing in the query, but a raw body needs %s, as in ?%s, or else %s; send .npy files as a "
        "form: %s",
        missing, mm_raw_codec.dimensions[call->op], mm_raw_codec.example[call->op], shape_names[call->op],
        mm_form_codec.example[call->op]);
}

/* op() of a single matrix is rows × cols. */
static struct mm_shape stored_shape(const struct mm_call *call, enum mm_parameter flag, uint64_t rows,
                                    uint64_t cols) {
    const bool transposed = call->numbers[flag] != 0;
    return mm_shape_of_matrix(transposed ? cols : rows, transposed ? rows : cols);
}

/* A product has op(A) m×k and op(B) k×n; a transposition has A m×n, and B is empty. */
static void set_shapes(struct mm_call *call) {
    const uint64_t *numbers = call->numbers;
    const bool is_product = mm_call_operands(call) == 2;
    if (!is_product)
        call->operands[1].shape = mm_shape_of_matrix(0, 0);
    if (mm_call_given_name(call, MM_PARAMETER_A_SHAPE, MM_PARAMETER_SHAPE) != NULL)
        return;
    if (!mm_operand_is_stored(call, 0))
        call->operands[0].shape = stored_shape(call, MM_PARAMETER_TRANSPOSE_A, numbers[MM_PARAMETER_M],
                                               numbers[is_product ? MM_PARAMETER_K : MM_PARAMETER_N]);
    if (is_product && !mm_operand_is_stored(call, 1))
        call->operands[1].shape =
            stored_shape(call, MM_PARAMETER_TRANSPOSE_B, numbers[MM_PARAMETER_K], numbers[MM_PARAMETER_N]);
}

/* Gives a view its leading dimension, if there is one. */
static enum mm_status set_ld(const struct mm_call *call, enum mm_parameter ld, const char *ld_name,
                             struct mm_matrix *view, struct mm_error *error) {
    if (!mm_call_has(call, ld))
        return MM_OK;
    if (!mm_operand_is_inline(call, ld == MM_PARAMETER_LDA ? 0 : 1))
        return mm_fail_field(error, MM_BAD_REQUEST, ld_name,
                             "%s is given, but the operand is made by the server, or stored, without gaps; "
                             "leave it out",
                             ld_name);
    view->ld = call->numbers[ld];
    if (view->ld >= view->cols)
        return MM_OK;
    mm_fail_field(error, MM_BAD_REQUEST, ld_name,
                  "%s is %zu, but must be at least %zu, the number of columns as stored", ld_name, view->ld,
                  view->cols);
    mm_fail_expected(error, "at least %zu", view->cols);
    mm_fail_got(error, "%zu", view->ld);
    return MM_BAD_REQUEST;
}

/* Finds the types, makes the shapes and the views, without data, and gives their bytes. */
static enum mm_status lay_out(struct mm_call *call, const struct mm_limits *limits,
                              size_t bytes[MM_CALL_OPERANDS_MAX], struct mm_error *error) {
    static const struct {
        enum mm_parameter parameter;
        const char *name;
    } strides[MM_CALL_OPERANDS_MAX] = {{MM_PARAMETER_LDA, "lda"}, {MM_PARAMETER_LDB, "ldb"}};
    enum mm_status status = require_dimensions(call, error);
    if (status == MM_OK)
        status = mm_call_resolve(call, error);
    if (status != MM_OK)
        return status;
    set_shapes(call);
    mm_call_view(call);
    for (unsigned index = 0; index < MM_CALL_OPERANDS_MAX && status == MM_OK; index++)
        status =
            set_ld(call, strides[index].parameter, strides[index].name, &call->operands[index].view, error);
    return status == MM_OK ? mm_call_sizes(call, limits, bytes, error) : status;
}

/* A raw body does not tell its type. If the client named none, twice or half the bytes suggest one. */
static const char *guess(const struct mm_call *call, size_t expected, uint64_t body_bytes) {
    if (mm_call_has(call, MM_PARAMETER_DTYPE) || expected == 0)
        return "";
    if (body_bytes / 2 == expected && body_bytes % 2 == 0)
        return "; are they float64? add dtype=float64 to the query";
    return expected / 2 == body_bytes && expected % 2 == 0
               ? "; are they float16? add dtype=float16 to the query"
               : "";
}

static enum mm_status check_length(const struct mm_call *call, const size_t bytes[MM_CALL_OPERANDS_MAX],
                                   uint64_t body_bytes, const struct mm_limits *limits,
                                   struct mm_error *error) {
    const size_t expected = bytes[0] + bytes[1]; /* passed no limit together: no overflow */
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
    char pieces[64] = "";
    if (mm_call_operands(call) == 2)
        snprintf(pieces, sizeof pieces, " (a %zu, then b %zu)", bytes[0], bytes[1]);
    mm_fail(error, MM_BAD_REQUEST, "the body has %" PRIu64 " bytes, but these dimensions make %zu of %s%s%s",
            body_bytes, expected, mm_dtype_name(call->dtype), pieces, guess(call, expected, body_bytes));
    mm_fail_expected(error, "%zu bytes", expected);
    mm_fail_got(error, "%" PRIu64 " bytes", body_bytes);
    return MM_BAD_REQUEST;
}

static enum mm_status plan(struct mm_call *call, uint64_t body_bytes, const struct mm_limits *limits,
                           struct mm_error *error) {
    size_t bytes[MM_CALL_OPERANDS_MAX];
    enum mm_status status = lay_out(call, limits, bytes, error);
    if (status == MM_OK)
        status = check_length(call, bytes, body_bytes, limits, error);
    return status;
}

static void decode(struct mm_call *call, const struct mm_body *body) {
    size_t offset = 0;
    call->views_body = true;
    for (unsigned index = 0; index < mm_call_operands(call); index++) {
        struct mm_matrix *view = &call->operands[index].view;
        if (!mm_operand_is_inline(call, index))
            continue;
        view->data = offset > 0 ? (char *)body->data + offset : body->data;
        offset += mm_matrix_bytes(view);
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
