/* Fuzzes the raw format. The first line of the input is a query string, and the other lines are the body. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static enum mm_status set_query(struct mm_call *call, enum mm_op op, struct slice query) {
    struct mm_error error = {0};
    enum mm_status status = MM_OK;
    mm_call_init(call, op);
    while (status == MM_OK && query.bytes > 0) {
        struct slice value = fuzz_split(&query, '&');
        struct slice name = fuzz_split(&value, '=');
        char *name_copy = fuzz_copy_bytes(name);
        char *value_copy = fuzz_copy_bytes(value);
        status =
            mm_parameter_set_text(&call->operands.parameters, MM_IN_QUERY, name_copy == NULL ? "" : name_copy,
                                  name.bytes, value_copy, value.bytes, &fuzz_limits, &error);
        free(name_copy);
        free(value_copy);
    }
    REQUIRE(status == MM_OK || status == MM_BAD_REQUEST || status == MM_TOO_LARGE ||
            status == MM_UNSUPPORTED);
    if (status != MM_OK)
        fuzz_require_error(status, &error);
    return status;
}

static bool has_known_dtypes(const struct mm_call *call) {
    struct mm_call copy = *call;
    return mm_call_resolve(&copy.operands, NULL) == MM_OK;
}

static enum mm_status plan(struct mm_call *call, uint64_t bytes) {
    struct mm_error error = {0};
    enum mm_status status =
        fuzz_codec("application/octet-stream")->plan(&call->operands, bytes, &fuzz_limits, &error);
    REQUIRE(status == MM_BAD_REQUEST || (status == MM_UNSUPPORTED) == !has_known_dtypes(call));
    REQUIRE(status == MM_OK || status == MM_BAD_REQUEST || status == MM_TOO_LARGE ||
            status == MM_UNSUPPORTED);
    if (status != MM_OK)
        fuzz_require_error(status, &error);
    return status;
}

static void require_shapes(const struct mm_call *call) {
    const struct mm_operands *operands = &call->operands;
    const struct mm_operand *a = &operands->of[0], *b = &operands->of[1];
    const uint64_t *numbers = operands->dimensions;
    if (!mm_parameter_is_set(&operands->parameters, &numbers[MM_DIMENSION_M])) {
        REQUIRE(mm_parameter_is_set(&operands->parameters, &a->shape));
        REQUIRE(operands->kind->op == MM_TRANSPOSE || mm_parameter_is_set(&operands->parameters, &b->shape));
        return;
    }
    if (operands->kind->op == MM_TRANSPOSE) {
        REQUIRE(a->view.rows == numbers[MM_DIMENSION_M] && a->view.cols == numbers[MM_DIMENSION_N]);
        return;
    }
    REQUIRE((a->is_transposed ? a->view.cols : a->view.rows) == numbers[MM_DIMENSION_M]);
    REQUIRE((a->is_transposed ? a->view.rows : a->view.cols) == numbers[MM_DIMENSION_K]);
    REQUIRE((b->is_transposed ? b->view.cols : b->view.rows) == numbers[MM_DIMENSION_K]);
    REQUIRE((b->is_transposed ? b->view.rows : b->view.cols) == numbers[MM_DIMENSION_N]);
}

static size_t bytes_of(const struct mm_operand *operand) {
    return mm_operand_is_inline(operand) ? mm_matrix_bytes(&operand->view) : 0;
}

static void require_views(const struct mm_call *call, const struct mm_body *body) {
    size_t offset = 0;
    require_shapes(call);
    for (unsigned index = 0; index < call->operands.count; index++) {
        const struct mm_operand *operand = &call->operands.of[index];
        const char *data = operand->view.data;
        if (!mm_operand_is_inline(operand))
            REQUIRE(data == NULL);
        else if (offset > 0)
            REQUIRE(data == (const char *)body->data + offset);
        offset += bytes_of(operand);
    }
    REQUIRE(offset == body->bytes);
}

static void decode(const struct mm_call *call, struct slice text) {
    struct decoding decoding = {.call = *call};
    fuzz_decode(&decoding, fuzz_codec("application/octet-stream"), NULL, text);
    REQUIRE(decoding.status == MM_OK);
    require_views(&decoding.call, &decoding.body);
    fuzz_release(&decoding);
}

static void decode_fitting(struct mm_call *call) {
    size_t bytes = 0;
    for (unsigned index = 0; index < call->operands.count; index++)
        bytes += bytes_of(&call->operands.of[index]);
    char *zeros = calloc(1, bytes + 1);
    REQUIRE(zeros != NULL);
    REQUIRE(plan(call, bytes + 1) == MM_BAD_REQUEST && plan(call, bytes) == MM_OK);
    decode(call, (struct slice){zeros, bytes});
    free(zeros);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct slice rest = {(const char *)data, bytes};
    struct slice query = fuzz_split(&rest, '\n');
    FUZZ_EACH_OP(op) {
        struct mm_call call;
        if (set_query(&call, op, query) != MM_OK)
            continue;
        if (plan(&call, rest.bytes) == MM_OK)
            decode(&call, rest);
        if (plan(&call, MM_LENGTH_UNKNOWN) == MM_OK)
            decode_fitting(&call);
    }
    return 0;
}
