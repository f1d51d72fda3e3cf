/* Defines the parameters of products and transpositions, and checks the sizes of matrices. */
#include "api/call.h"

#include <stdio.h>
#include <string.h>

#define ROW(name, kind, places, member) MM_PARAMETER(name, kind, places, struct mm_call, member)
#define PLACE(name, index)                                                                                   \
    MM_PARAMETER_READ(name, OPERAND, MM_IN_ANY, struct mm_call, operands.of[index], mm_operand_read_place)
#define FROM(name, index)                                                                                    \
    MM_PARAMETER_READ(name, SOURCE, MM_IN_QUERY | MM_IN_FORM, struct mm_call, operands.of[index].source,     \
                      mm_operand_read_source)

static const struct mm_parameter product_rows[] = {
    ROW("a", OPERAND, MM_IN_JSON | MM_IN_FORM, operands.of[0]),
    ROW("b", OPERAND, MM_IN_JSON | MM_IN_FORM, operands.of[1]),
    ROW("variant", NAME, MM_IN_ANY, variant),
    ROW("backend", NAME, MM_IN_ANY, backend),
    ROW("dtype", NAME, MM_IN_ANY, operands.dtype_name),
    ROW("result_dtype", NAME, MM_IN_ANY, result_dtype_name),
    ROW("transpose_a", FLAG, MM_IN_ANY, operands.of[0].is_transposed),
    ROW("transpose_b", FLAG, MM_IN_ANY, operands.of[1].is_transposed),
    ROW("timeout_ms", TIME, MM_IN_ANY, timeout_ms),
    ROW("tile", COUNT, MM_IN_ANY, tile),
    ROW("devices", DEVICES, MM_IN_ANY, devices),
    ROW("vendor", PERMISSION, MM_IN_ANY, allow_vendor),
    ROW("accuracy", ACCURACY, MM_IN_ANY, allow_tf32),
    ROW("verify", FLAG, MM_IN_ANY, verify),
    ROW("reply", REPLY, MM_IN_ANY, selection.reply),
    ROW("rows", RANGE, MM_IN_ANY, selection.rows),
    ROW("cols", RANGE, MM_IN_ANY, selection.cols),
    ROW("reduce", FIGURES, MM_IN_ANY, selection.figures),
    FROM("a_from", 0),
    FROM("b_from", 1),
    ROW("out", MATRIX, MM_IN_ANY, out),
    ROW("ttl_s", SECONDS, MM_IN_ANY, ttl_s),
    ROW("m", DIMENSION, MM_IN_ANY, operands.dimensions[MM_DIMENSION_M]),
    ROW("k", DIMENSION, MM_IN_ANY, operands.dimensions[MM_DIMENSION_K]),
    ROW("n", DIMENSION, MM_IN_ANY, operands.dimensions[MM_DIMENSION_N]),
    ROW("lda", DIMENSION, MM_IN_QUERY, operands.of[0].ld),
    ROW("ldb", DIMENSION, MM_IN_QUERY, operands.of[1].ld),
    ROW("a_shape", SHAPE, MM_IN_ANY, operands.of[0].shape),
    ROW("b_shape", SHAPE, MM_IN_ANY, operands.of[1].shape),
    PLACE("c", MM_OPERAND_ADDEND),
    PLACE("bias", MM_OPERAND_BIAS),
    FROM("c_from", MM_OPERAND_ADDEND),
    FROM("bias_from", MM_OPERAND_BIAS),
    ROW("c_shape", SHAPE, MM_IN_ANY, operands.of[MM_OPERAND_ADDEND].shape),
    ROW("ldc", DIMENSION, MM_IN_QUERY, operands.of[MM_OPERAND_ADDEND].ld),
    ROW("alpha", FACTOR, MM_IN_ANY, alpha),
    ROW("beta", FACTOR, MM_IN_ANY, beta),
    ROW("activation", ACTIVATION, MM_IN_ANY, activation),
};

static const struct mm_parameter transposition_rows[] = {
    ROW("a", OPERAND, MM_IN_JSON | MM_IN_FORM, operands.of[0]),
    ROW("variant", NAME, MM_IN_ANY, variant),
    ROW("backend", NAME, MM_IN_ANY, backend),
    ROW("dtype", NAME, MM_IN_ANY, operands.dtype_name),
    ROW("timeout_ms", TIME, MM_IN_ANY, timeout_ms),
    ROW("reply", REPLY, MM_IN_ANY, selection.reply),
    ROW("rows", RANGE, MM_IN_ANY, selection.rows),
    ROW("cols", RANGE, MM_IN_ANY, selection.cols),
    ROW("reduce", FIGURES, MM_IN_ANY, selection.figures),
    FROM("a_from", 0),
    ROW("out", MATRIX, MM_IN_ANY, out),
    ROW("ttl_s", SECONDS, MM_IN_ANY, ttl_s),
    ROW("m", DIMENSION, MM_IN_ANY, operands.dimensions[MM_DIMENSION_M]),
    ROW("n", DIMENSION, MM_IN_ANY, operands.dimensions[MM_DIMENSION_N]),
    ROW("lda", DIMENSION, MM_IN_QUERY, operands.of[0].ld),
    ROW("shape", SHAPE, MM_IN_ANY, operands.of[0].shape),
};

static const struct mm_operands_kind kinds[MM_OP_COUNT] = {
    [MM_MATMUL] = MM_CALL_KIND(MM_MATMUL, product_rows, struct mm_call),
    [MM_TRANSPOSE] = MM_CALL_KIND(MM_TRANSPOSE, transposition_rows, struct mm_call),
};

void mm_call_init(struct mm_call *call, enum mm_op op) {
    mm_call_init_kind(call, &kinds[op]);
}

void mm_call_init_kind(struct mm_call *call, const struct mm_operands_kind *kind) {
    mm_operands_init(&call->operands, kind);
    strcpy(call->variant, "auto");
    strcpy(call->backend, "auto");
    call->devices = 1;
}

static enum mm_status resolve_result(struct mm_call *call, struct mm_error *error) {
    struct mm_operands *operands = &call->operands;
    const enum mm_dtype dtype = operands->dtype;
    operands->result_dtype = operands->kind->op == MM_MATMUL ? mm_dtype_result(dtype) : dtype;
    if (!mm_parameter_is_set(&operands->parameters, call->result_dtype_name))
        return MM_OK;
    return mm_dtype_find("result_dtype", call->result_dtype_name, mm_dtype_results(dtype),
                         &operands->result_dtype, error);
}

/* Checks that a stored c or bias has the result's type. */
static enum mm_status check_stored_types(const struct mm_operands *operands, struct mm_error *error) {
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < operands->count && status == MM_OK; index++)
        if (operands->of[index].role.is_optional && mm_operand_is_stored(&operands->of[index]))
            status = mm_operand_check_type(operands, &operands->of[index],
                                           operands->of[index].source.stored->dtype, error);
    return status;
}

enum mm_status mm_call_resolve(struct mm_operands *operands, struct mm_error *error) {
    struct mm_call *call = (struct mm_call *)operands;
    enum mm_status status = mm_operands_resolve(operands, error);
    if (status == MM_OK)
        status = resolve_result(call, error);
    if (status == MM_OK)
        status = check_stored_types(operands, error);
    if (status != MM_OK)
        operands->dtype = operands->result_dtype = MM_FLOAT32;
    return status;
}

/* Whether all matrices are in host memory on every backend. */
static bool is_all_in_host_memory(const struct mm_call *call) {
    return mm_operands_are_inline(&call->operands) && !mm_selection_is_part(&call->selection) &&
           call->out[0] == '\0' && mm_selection_has_matrix(&call->selection);
}

static enum mm_status check_together(const struct mm_call *call, const size_t operand_bytes[MM_OPERANDS_MAX],
                                     size_t c_bytes, const struct mm_limits *limits, struct mm_error *error) {
    char operands[128] = "";
    size_t total = c_bytes, length = 0;
    bool is_past = false;
    for (unsigned index = 0; index < call->operands.count; index++) {
        if (mm_operand_is_absent(&call->operands.of[index]))
            continue;
        is_past |= !mm_size_add(total, operand_bytes[index], &total);
        length += (size_t)snprintf(operands + length, sizeof operands - length,
                                   index == 0 ? "%s takes %zu bytes" : ", %s %zu",
                                   call->operands.of[index].role.name, operand_bytes[index]);
    }
    if (!is_past && total <= limits->memory_bytes_max)
        return MM_OK;
    return mm_fail_limit(error, "", limits->memory_bytes_max,
                         "%s and the result %zu, but together they may take %zu (fifteen sixteenths of "
                         "--memory-budget)",
                         operands, c_bytes, limits->memory_bytes_max);
}

enum mm_status mm_call_sizes(const struct mm_operands *operands, const struct mm_limits *limits,
                             size_t bytes[MM_OPERANDS_MAX], struct mm_error *error) {
    const struct mm_call *call = (const struct mm_call *)operands;
    const struct mm_shape c_shape = mm_operands_result(operands);
    const struct mm_limits elsewhere = {limits->dimension_max, limits->body_bytes_max, SIZE_MAX};
    const bool is_all_here = is_all_in_host_memory(call);
    size_t c_bytes = 0;
    enum mm_status status = mm_operands_sizes(operands, limits, bytes, error);
    if (status == MM_OK)
        status = mm_shape_size("c", &c_shape, operands->result_dtype, is_all_here ? limits : &elsewhere,
                               &c_bytes, error);
    return status == MM_OK && is_all_here ? check_together(call, bytes, c_bytes, limits, error) : status;
}

enum mm_status mm_call_check_memory(const struct mm_call *call, const struct mm_product *product,
                                    bool is_host, size_t c_bytes, const struct mm_limits *limits,
                                    struct mm_error *error) {
    size_t bytes[MM_OPERANDS_MAX];
    if (is_all_in_host_memory(call))
        return MM_OK; /* mm_call_sizes has checked the bytes */
    for (unsigned index = 0; index < call->operands.count; index++) {
        const struct mm_operand *operand = &call->operands.of[index];
        bytes[index] = 0;
        if (mm_operand_is_inline(operand))
            bytes[index] = mm_matrix_bytes(&operand->view);
        else if (is_host && mm_source_is_off_host(&operand->source))
            bytes[index] = mm_matrix_bytes(mm_product_operand(product, index));
    }
    return check_together(call, bytes, c_bytes, limits, error);
}

struct mm_product mm_call_product(const struct mm_call *call) {
    const struct mm_operand *of = call->operands.of, *a = &of[MM_OPERAND_A], *b = &of[MM_OPERAND_B];
    struct mm_product product = {
        .a = a->view,
        .b = b->view,
        .addend = of[MM_OPERAND_ADDEND].view,
        .bias = of[MM_OPERAND_BIAS].view,
        .transpose_a = call->operands.kind->op == MM_TRANSPOSE || a->is_transposed,
        .transpose_b = b->is_transposed,
        .allow_vendor = call->allow_vendor,
        .allow_tf32 = call->allow_tf32,
        .tile = (unsigned)call->tile,
    };
    product.c.dtype = call->operands.result_dtype;
    return product;
}

static bool is_set(const struct mm_call *call, const void *value) {
    return mm_parameter_is_set(&call->operands.parameters, value);
}

static bool has(const struct mm_call *call, enum mm_operand_index index) {
    return !mm_operand_is_absent(&call->operands.of[index]);
}

/* Sets alpha or beta of the epilogue. If the client gave no factor, the factor is `number`. */
static enum mm_status set_factor(const struct mm_call *call, const struct mm_factor *factor, int number,
                                 union mm_scale *scale, struct mm_error *error) {
    const enum mm_dtype sum = mm_dtype_sum(call->operands.dtype);
    *scale = is_set(call, factor) ? factor->of[sum] : mm_scale_of(sum, number);
    if (!is_set(call, factor) || (factor->types & MM_DTYPE_BIT(sum)) != 0)
        return MM_OK;
    const char *name = mm_parameter_of(&call->operands.parameters, factor)->name;
    return mm_fail_field(error, MM_BAD_REQUEST, name, "%s is %.9g, but must be a %s number of type %s", name,
                         factor->of[MM_FLOAT64].of_double, mm_dtype_is_float(sum) ? "finite" : "whole",
                         mm_dtype_name(sum));
}

static enum mm_status check_activation(const struct mm_call *call, struct mm_error *error) {
    const enum mm_dtype dtype = call->operands.result_dtype;
    const char *name = mm_activation_name(call->activation);
    if (!mm_dtype_is_float(dtype) && call->activation > MM_ACTIVATION_RELU)
        return mm_fail_field(error, MM_UNSUPPORTED, "activation",
                             "activation is '%s', but the result is %s, which takes only none and relu", name,
                             mm_dtype_name(dtype));
    if (call->verify && call->activation != MM_ACTIVATION_NONE)
        return mm_fail_field(error, MM_UNSUPPORTED, "activation",
                             "activation is '%s', but verify checks only products without one; leave one out",
                             name);
    return MM_OK;
}

enum mm_status mm_call_epilogue(const struct mm_call *call, struct mm_product *product,
                                struct mm_error *error) {
    const bool has_addend = has(call, MM_OPERAND_ADDEND);
    struct mm_epilogue *epilogue = &product->epilogue;
    const enum mm_dtype sum = mm_dtype_sum(call->operands.dtype);
    if (call->operands.kind->op == MM_TRANSPOSE)
        return MM_OK;
    epilogue->activation = call->activation;
    enum mm_status status = set_factor(call, &call->alpha, 1, &epilogue->alpha, error);
    if (status == MM_OK)
        status = set_factor(call, &call->beta, has_addend, &epilogue->beta, error);
    if (status == MM_OK && !has_addend && !mm_scale_is(sum, &epilogue->beta, 0))
        return mm_fail_field(error, MM_BAD_REQUEST, "beta",
                             "beta is given, but there is no c; give c, or leave beta out");
    epilogue->is_set = is_set(call, &call->alpha) || has_addend || has(call, MM_OPERAND_BIAS) ||
                       call->activation != MM_ACTIVATION_NONE;
    return status == MM_OK ? check_activation(call, error) : status;
}

void mm_call_epilogue_text(const struct mm_call *call, char text[MM_EPILOGUE_TEXT_MAX]) {
    const struct {
        bool is_given;
        const char *name;
    } terms[] = {{is_set(call, &call->alpha), "alpha"},
                 {is_set(call, &call->beta) || has(call, MM_OPERAND_ADDEND), "beta"},
                 {has(call, MM_OPERAND_BIAS), "bias"},
                 {call->activation != MM_ACTIVATION_NONE, mm_activation_name(call->activation)}};
    text[0] = '\0';
    for (size_t index = 0; index < sizeof terms / sizeof terms[0]; index++)
        if (terms[index].is_given)
            strcat(strcat(text, text[0] == '\0' ? "" : ","), terms[index].name);
}

const char *mm_call_reproducible(const struct mm_call *call, const struct mm_variant *ran) {
    return ran->is_row_by_row && strcmp(call->variant, "auto") != 0 ? "rows" : NULL;
}

static void turn(const struct mm_operand *operand, struct mm_matrix *matrix, bool *is_transposed) {
    if (!operand->column_major)
        return;
    *matrix = mm_matrix_dense(matrix->dtype, matrix->cols, matrix->rows, matrix->data);
    *is_transposed = !*is_transposed;
}

void mm_call_apply_layout(const struct mm_call *call, struct mm_product *product) {
    turn(&call->operands.of[MM_OPERAND_A], &product->a, &product->transpose_a);
    turn(&call->operands.of[MM_OPERAND_B], &product->b, &product->transpose_b);
    turn(&call->operands.of[MM_OPERAND_ADDEND], &product->addend, &product->transpose_addend);
}
