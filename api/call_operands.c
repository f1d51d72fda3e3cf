/* The operands of a call: their views and sizes, and the product that they make. */
#include "api/call.h"

#include "api/element.h"
#include "api/operand.h"
#include "api/result.h"

#include <stdio.h>

void mm_call_release(struct mm_call *call, struct mm_reservation *memory) {
    mm_reservation_free(memory, &call->storage);
    for (unsigned index = 0; index < MM_CALL_OPERANDS_MAX; index++)
        call->operands[index].view = (struct mm_matrix){0};
}

void mm_call_view(struct mm_call *call) {
    for (unsigned index = 0; index < MM_CALL_OPERANDS_MAX; index++) {
        struct mm_operand *operand = &call->operands[index];
        const bool is_last = index == 1;
        operand->view = mm_shape_view(&operand->shape, is_last, call->dtype);
        operand->source.rows = mm_shape_rows(&operand->shape, is_last);
        if (mm_operand_is_stored(call, index))
            operand->view.data = operand->source.stored->data;
    }
}

struct mm_product mm_call_product(const struct mm_call *call) {
    struct mm_product product = {
        .a = call->operands[0].view,
        .b = call->operands[1].view,
        .transpose_a = call->op == MM_TRANSPOSE || call->numbers[MM_PARAMETER_TRANSPOSE_A] != 0,
        .transpose_b = call->numbers[MM_PARAMETER_TRANSPOSE_B] != 0,
        .allow_vendor = call->numbers[MM_PARAMETER_VENDOR] != 0,
        .allow_tf32 = call->numbers[MM_PARAMETER_ACCURACY] != 0,
        .tile = (unsigned)call->numbers[MM_PARAMETER_TILE],
    };
    product.c.dtype = call->result_dtype;
    return product;
}

struct mm_shape mm_call_result(const struct mm_call *call) {
    struct mm_shape shape;
    (void)mm_shape_result(call->op, &call->operands[0].shape, &call->operands[1].shape,
                          call->op == MM_TRANSPOSE || call->numbers[MM_PARAMETER_TRANSPOSE_A] != 0,
                          call->numbers[MM_PARAMETER_TRANSPOSE_B] != 0, &shape);
    return shape;
}

/* As the view is stored: with a leading dimension, its rows are longer. */
static enum mm_status operand_size(const char *field, const struct mm_operand *operand,
                                   const struct mm_limits *limits, size_t *bytes, struct mm_error *error) {
    const struct mm_matrix *view = &operand->view;
    const struct mm_shape padded = mm_shape_of_matrix(view->rows, view->ld);
    return mm_shape_size(field, view->ld != view->cols ? &padded : &operand->shape, view->dtype, limits,
                         bytes, error);
}

/* Whether the memory of all three matrices is the host's, whatever the backend. */
static bool is_all_in_host_memory(const struct mm_call *call) {
    return mm_operand_all_are_inline(call) && !mm_result_has_part(call) && call->out[0] == '\0' &&
           mm_result_returns_matrix(call);
}

static enum mm_status judge_together(const struct mm_call *call,
                                     const size_t operand_bytes[MM_CALL_OPERANDS_MAX], size_t c_bytes,
                                     const struct mm_limits *limits, struct mm_error *error) {
    char operands[100] = "";
    size_t total = c_bytes, length = 0;
    bool is_past = false;
    for (unsigned index = 0; index < mm_call_operands(call); index++) {
        is_past |= !mm_size_add(total, operand_bytes[index], &total);
        length += (size_t)snprintf(operands + length, sizeof operands - length,
                                   index == 0 ? "%s takes %zu bytes" : ", %s %zu",
                                   mm_call_operand_names[index], operand_bytes[index]);
    }
    if (!is_past && total <= limits->memory_bytes_max)
        return MM_OK;
    return mm_fail_limit(error, "", limits->memory_bytes_max,
                         "%s and the result %zu, but together they may take %zu (fifteen sixteenths of "
                         "--memory-budget)",
                         operands, c_bytes, limits->memory_bytes_max);
}

enum mm_status mm_call_judge_memory(const struct mm_call *call, bool is_host, size_t c_bytes,
                                    const struct mm_limits *limits, struct mm_error *error) {
    size_t bytes[MM_CALL_OPERANDS_MAX];
    if (is_all_in_host_memory(call))
        return MM_OK; /* mm_call_sizes has judged it */
    for (unsigned index = 0; index < MM_CALL_OPERANDS_MAX; index++) {
        const bool is_here = mm_operand_is_inline(call, index) ||
                             (is_host && mm_source_is_elsewhere(mm_operand_source(call, index)));
        bytes[index] = is_here ? mm_matrix_bytes(&call->operands[index].view) : 0;
    }
    return judge_together(call, bytes, c_bytes, limits, error);
}

enum mm_status mm_call_sizes(const struct mm_call *call, const struct mm_limits *limits,
                             size_t bytes[MM_CALL_OPERANDS_MAX], struct mm_error *error) {
    const struct mm_shape c_shape = mm_call_result(call);
    const struct mm_limits elsewhere = {limits->dimension_max, limits->body_bytes_max, SIZE_MAX};
    const bool is_all_here = is_all_in_host_memory(call);
    size_t c_bytes = 0;
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < MM_CALL_OPERANDS_MAX && status == MM_OK; index++)
        status = operand_size(mm_call_operand_names[index], &call->operands[index],
                              mm_operand_is_inline(call, index) ? limits : &elsewhere, &bytes[index], error);
    if (status == MM_OK && !call->is_stored)
        status = mm_shape_size("c", &c_shape, call->result_dtype, is_all_here ? limits : &elsewhere, &c_bytes,
                               error);
    if (status == MM_OK && is_all_here)
        status = judge_together(call, bytes, c_bytes, limits, error);
    for (unsigned index = 0; index < MM_CALL_OPERANDS_MAX && status == MM_OK; index++)
        if (!mm_operand_is_inline(call, index))
            bytes[index] = 0;
    return status;
}

enum mm_status mm_call_fail_bool(unsigned index, struct mm_error *error) {
    return mm_fail_field(error, MM_BAD_REQUEST, mm_call_operand_names[index],
                         "an element of %s is neither 0 nor 1, but dtype is 'bool'; is it uint8?",
                         mm_call_operand_names[index]);
}

enum mm_status mm_call_judge_elements(const struct mm_call *call, struct mm_error *error) {
    for (unsigned index = 0; index < mm_call_operands(call); index++)
        if (mm_operand_is_inline(call, index) && mm_element_is_past_bool(&call->operands[index].view))
            return mm_call_fail_bool(index, error);
    return MM_OK;
}

void mm_call_turn(const struct mm_call *call, struct mm_product *product) {
    struct mm_matrix *const matrices[MM_CALL_OPERANDS_MAX] = {&product->a, &product->b};
    bool *const flags[MM_CALL_OPERANDS_MAX] = {&product->transpose_a, &product->transpose_b};
    for (unsigned index = 0; index < MM_CALL_OPERANDS_MAX; index++) {
        struct mm_matrix *matrix = matrices[index];
        if (!call->operands[index].column_major)
            continue;
        *matrix = mm_matrix_dense(matrix->dtype, matrix->cols, matrix->rows, matrix->data);
        *flags[index] = !*flags[index];
    }
}
