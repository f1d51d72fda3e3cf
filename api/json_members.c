/* A JSON text of a request: parsed by Jansson, and its members given to the call as parameters. */
#include "api/json_members.h"

#include "api/json_value.h"

#include "api/json_fault.h"

#include <assert.h>
#include <fenv.h>
#include <string.h>

const char *const mm_json_operands[2] = {"a", "b"};

/* How numbers are read so that they become these bounds. */
static const struct {
    int rounding;
    size_t flags;
} readings[] = {
    [MM_JSON_LOWER] = {FE_DOWNWARD, JSON_DECODE_INT_AS_REAL},
    [MM_JSON_UPPER] = {FE_UPWARD, JSON_DECODE_INT_AS_REAL},
    [MM_JSON_NEAREST] = {FE_TONEAREST, JSON_DECODE_INT_AS_REAL},
    [MM_JSON_WHOLE] = {FE_UPWARD, 0},
};

/* The rounding mode is the thread's own, and the parser's for as long as it runs. */
static json_t *load(const struct mm_body *body, enum mm_json_bound bound, json_error_t *fault) {
    assert(fegetround() == FE_TONEAREST);
    fesetround(readings[bound].rounding);
    json_t *value =
        mm_json_load(body->data, body->bytes, JSON_REJECT_DUPLICATES | readings[bound].flags, fault);
    fesetround(FE_TONEAREST);
    return value;
}

/* An integer past 64 bits is refused where integers are read as such. It is a parameter's then, since an
 * element would not have passed the reading before, which has also taken the parameter's value: so a 1 is put
 * in its place. False where the fault is another one. */
static bool replace_integer(const struct mm_body *body, const json_error_t *fault) {
    char *text = body->data;
    const size_t end = fault->position > 0 ? (size_t)fault->position : 0;
    if (json_error_code(fault) != json_error_numeric_overflow || end > body->bytes)
        return false;
    size_t start = end;
    while (start > 0 && text[start - 1] >= '0' && text[start - 1] <= '9')
        start--;
    if (start == end)
        return false;
    memset(text + start, ' ', end - start - 1);
    text[end - 1] = '1';
    return true;
}

/* A number below all doubles has no lower bound, which Jansson refuses; but the nearest float64 can be the
 * least there is. So where the operation takes that type, the body is read to nearest instead. */
enum mm_status mm_json_parse(const struct mm_call *call, const struct mm_body *body,
                             enum mm_json_bound *bound, json_t **root, struct mm_error *error) {
    const char *expected = mm_call_operands(call) == 2 ? "a and b" : "a";
    if (body->bytes == 0)
        return mm_fail(error, MM_BAD_REQUEST, "the body is empty, expected a JSON object with %s", expected);
    enum mm_status status = mm_json_refuse_zero(body->data, body->bytes, error);
    if (status != MM_OK)
        return status;
    json_error_t fault;
    json_t *value = load(body, *bound, &fault);
    if (value == NULL && *bound == MM_JSON_LOWER && json_error_code(&fault) == json_error_numeric_overflow &&
        (mm_op_dtypes(call->op) & MM_DTYPE_BIT(MM_FLOAT64)) != 0) {
        *bound = MM_JSON_NEAREST;
        value = load(body, *bound, &fault);
    }
    if (value == NULL && *bound == MM_JSON_WHOLE && replace_integer(body, &fault))
        value = load(body, *bound, &fault);
    if (value == NULL)
        return mm_json_fail_syntax(&fault, error);
    if (!json_is_object(value)) {
        json_decref(value);
        return mm_fail(error, MM_BAD_REQUEST, "the body is a JSON array, expected an object with %s",
                       expected);
    }
    *root = value;
    return MM_OK;
}

static enum mm_status set_parameter(struct mm_call *call, const char *name, const json_t *value,
                                    struct mm_error *error) {
    if (json_is_string(value))
        return mm_call_set_value(call, name, MM_VALUE_TEXT, json_string_value(value),
                                 json_string_length(value), 0, error);
    if (json_is_boolean(value))
        return mm_call_set_value(call, name, MM_VALUE_BOOLEAN, NULL, 0, json_is_true(value), error);
    if (json_is_number(value))
        return mm_call_set_value(call, name, MM_VALUE_NUMBER, NULL, 0, json_number_value(value), error);
    return mm_call_set_value(call, name, MM_VALUE_OTHER, NULL, 0, 0, error);
}

static bool is_operand(const struct mm_call *call, const char *name) {
    for (unsigned index = 0; index < mm_call_operands(call); index++)
        if (strcmp(name, mm_json_operands[index]) == 0)
            return true;
    return false;
}

enum mm_status mm_json_set_parameters(struct mm_call *call, json_t *root, struct mm_error *error) {
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value) {
        enum mm_status status = is_operand(call, name) ? MM_OK : set_parameter(call, name, value, error);
        if (status != MM_OK)
            return status;
    }
    if (mm_call_resolve(call, NULL) != MM_OK)
        call->dtype = MM_FLOAT32;
    call->b = mm_matrix_dense(call->dtype, 0, 0, NULL);
    return MM_OK;
}
