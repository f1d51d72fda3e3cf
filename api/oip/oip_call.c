/* The parameters of infer requests, and the names of models and types. */
#include "api/oip/oip.h"

#include "api/number/digits.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const char *const datatypes[MM_DTYPE_COUNT] = {
    [MM_FLOAT32] = "FP32",  [MM_FLOAT64] = "FP64", [MM_FLOAT16] = "FP16",
    [MM_BFLOAT16] = "BF16", [MM_INT8] = "INT8",    [MM_UINT8] = "UINT8",
    [MM_BOOL] = "BOOL",     [MM_INT32] = "INT32",  [MM_INT64] = "INT64",
};

const char *const mm_oip_inputs[MM_OPERANDS_MAX] = {
    [MM_OPERAND_A] = "A", [MM_OPERAND_B] = "B", [MM_OPERAND_ADDEND] = "ADDEND", [MM_OPERAND_BIAS] = "BIAS"};

const char *mm_oip_datatype(enum mm_dtype dtype) {
    return datatypes[dtype];
}

bool mm_oip_find_datatype(struct mm_slice name, enum mm_dtype *dtype) {
    for (*dtype = 0; *dtype < MM_DTYPE_COUNT; ++*dtype)
        if (datatypes[*dtype] != NULL && mm_slice_is(name, datatypes[*dtype]))
            return true;
    return false;
}

char *mm_oip_put_model(char *end, const struct mm_oip_model *model) {
    end = mm_put_text(end, "matmul");
    if (strcmp(model->variant, "auto") != 0)
        end = mm_put_text(mm_put_text(end, "."), model->variant);
    return model->is_typed ? mm_put_text(mm_put_text(end, "."), datatypes[model->dtype]) : end;
}

bool mm_oip_model_read(struct mm_slice name, struct mm_oip_model *model) {
    static const char root[] = "matmul";
    const size_t root_bytes = sizeof root - 1;
    *model = (struct mm_oip_model){.variant = "auto"};
    if (name.length < root_bytes || memcmp(name.start, root, root_bytes) != 0)
        return false;
    const char *const rest = name.start + root_bytes, *end = name.start + name.length;
    const char *dot = memrchr(rest, '.', (size_t)(end - rest));
    model->is_typed = dot != NULL && mm_oip_find_datatype((struct mm_slice){dot + 1, (size_t)(end - dot - 1)},
                                                          &model->dtype);
    if (model->is_typed)
        end = dot;
    else
        model->dtype = MM_FLOAT32;
    if (end == rest)
        return true;
    const size_t length = (size_t)(end - rest - 1);
    if (*rest != '.' || length == 0 || length > MM_PARAMETER_NAME_MAX)
        return false;
    memcpy(model->variant, rest + 1, length);
    model->variant[length] = '\0';
    return strcmp(model->variant, "auto") != 0;
}

/* Reads a timeout in microseconds, and rounds it up to milliseconds. 0 means no timeout. */
static enum mm_status read_timeout(struct mm_parameters *values, const struct mm_parameter *row,
                                   const struct mm_value *given, struct mm_error *error) {
    const double us = given->number;
    if (given->kind != MM_VALUE_NUMBER || us < 0 || floor(us) != us)
        return mm_value_fail(row->name, "is", "a whole number of microseconds", given, error);
    ((struct mm_oip_call *)values)->call.timeout_ms =
        (uint64_t)ceil(fmin(us, (double)MM_PARAMETER_WHOLE_MAX) / 1000);
    return MM_OK;
}

#define ROW(name, kind, member) MM_PARAMETER(name, kind, MM_IN_OBJECT, struct mm_oip_call, member)
#define OPERAND_ROWS(name, index)                                                                            \
    MM_PARAMETER(name " in parameters.from", SOURCE, 0, struct mm_oip_call, call.operands.of[index].source), \
        MM_PARAMETER("the shape of " name, SHAPE, 0, struct mm_oip_call, call.operands.of[index].shape)

/* Clients cannot name rows without a place. Functions of api/operand.h use these rows. */
static const struct mm_parameter rows[] = {
    ROW("variant", NAME, call.variant),
    ROW("backend", NAME, call.backend),
    ROW("result_dtype", NAME, call.result_dtype_name),
    ROW("transpose_a", FLAG, call.operands.of[MM_OPERAND_A].is_transposed),
    ROW("transpose_b", FLAG, call.operands.of[MM_OPERAND_B].is_transposed),
    ROW("tile", COUNT, call.tile),
    ROW("devices", DEVICES, call.devices),
    ROW("vendor", PERMISSION, call.allow_vendor),
    ROW("accuracy", ACCURACY, call.allow_tf32),
    ROW("verify", FLAG, call.verify),
    ROW("alpha", FACTOR, call.alpha),
    ROW("beta", FACTOR, call.beta),
    ROW("activation", ACTIVATION, call.activation),
    ROW("binary_data_output", FLAG, binary_default),
    ROW("priority", OWN, id), /* ignored */
    MM_PARAMETER_READ("timeout", TIME, MM_IN_OBJECT, struct mm_oip_call, call.timeout_ms, read_timeout),
    MM_PARAMETER("the datatype", NAME, 0, struct mm_oip_call, call.operands.dtype_name),
    OPERAND_ROWS("A", MM_OPERAND_A),
    OPERAND_ROWS("B", MM_OPERAND_B),
    OPERAND_ROWS("ADDEND", MM_OPERAND_ADDEND),
    OPERAND_ROWS("BIAS", MM_OPERAND_BIAS),
};

static const struct mm_operands_kind kind = MM_CALL_KIND(MM_MATMUL, rows, struct mm_oip_call);

void mm_oip_call_init(struct mm_oip_call *call, const struct mm_oip_model *model) {
    struct mm_parameters *parameters = &call->call.operands.parameters;
    mm_call_init_kind(&call->call, &kind);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        call->call.operands.of[index].role.name = mm_oip_inputs[index];
    call->model = *model;
    call->json_bytes = SIZE_MAX;
    if (strcmp(model->variant, "auto") == 0)
        return;
    strcpy(call->call.variant, model->variant);
    parameters->given |= mm_parameter_bit(parameters, call->call.variant);
}
