/* The parameters of a call: a table of names and kinds, the reading of their values, and what is said
 * of those that are wrong. It knows neither where a value stood nor what the names in it stand for. */
#include "api/call.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum kind { NAME, FLAG, PERMISSION, COUNT, TIME, DIMENSION };

/* Sets of operations: bit o for operation o. */
enum { MATMUL_ALONE = 1u << MM_MATMUL, EVERY_OP = (1u << MM_OP_COUNT) - 1 };

static const struct {
    const char *name;
    enum kind kind;
    unsigned ops;
} parameters[MM_PARAMETER_COUNT] = {
#define X(constant, wire_name, wire_kind, wire_ops) [constant] = {wire_name, wire_kind, wire_ops},
    MM_PARAMETER_TABLE(X)
#undef X
};

/* What each kind takes, in words: as text, and as a JSON value. */
static const struct {
    const char *text;
    const char *value;
} forms[] = {
    [NAME] = {"a name without NUL bytes", "a string without NUL characters"},
    [FLAG] = {"true, false, 1 or 0", "true or false"},
    [PERMISSION] = {"allow or never", "\"allow\" or \"never\""},
    [COUNT] = {"a whole decimal number from 1 to 4294967295", "a whole number from 1 to 4294967295"},
    [TIME] = {"a whole decimal number of at least 1", "a whole number of at least 1"},
    [DIMENSION] = {"a decimal non-negative integer", "left to the query"},
};

/* A value in the one form in which two of them are compared; the kind tells which member counts. */
struct value {
    char name[MM_CALL_NAME_MAX + 1];
    uint64_t number;
};

void mm_call_init(struct mm_call *call, enum mm_op op) {
    *call = (struct mm_call){.op = op, .names = {"auto", "auto", "float32"}};
}

void mm_call_release(struct mm_call *call, struct mm_buffers *buffers) {
    mm_buffers_release(buffers, &call->storage);
    call->a = (struct mm_matrix){0};
    call->b = (struct mm_matrix){0};
}

bool mm_call_has(const struct mm_call *call, enum mm_parameter parameter) {
    return (call->given & UINT32_C(1) << parameter) != 0;
}

bool mm_call_takes(const struct mm_call *call, enum mm_parameter parameter) {
    return (parameters[parameter].ops & 1u << call->op) != 0;
}

/* The operation's parameter of this name among the first `count`; `count` where there is none. */
static unsigned find(const struct mm_call *call, const char *name, size_t length, unsigned count) {
    unsigned index = 0;
    while (index < count &&
           (!mm_call_takes(call, (enum mm_parameter)index) || strlen(parameters[index].name) != length ||
            memcmp(parameters[index].name, name, length) != 0))
        index++;
    return index;
}

static enum mm_status fail_unknown(const struct mm_call *call, const char *name, size_t length,
                                   unsigned count, struct mm_error *error) {
    char field[MM_CALL_NAME_MAX + 1];
    snprintf(field, sizeof field, "%.*s", (int)(length < sizeof field ? length : sizeof field), name);
    char known[128] = "";
    size_t used = 0;
    for (unsigned index = 0; index < count; index++)
        if (mm_call_takes(call, (enum mm_parameter)index))
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "",
                                     parameters[index].name);
    assert(used < sizeof known);
    return mm_fail_field(error, MM_BAD_REQUEST, field, "'%s' is no parameter here; there are: %s", field,
                         known);
}

/* Says that a value is not of its parameter's form. */
static enum mm_status fail_form(unsigned parameter, const char *expected, const char *got,
                                struct mm_error *error) {
    const char *name = parameters[parameter].name;
    mm_fail_field(error, MM_BAD_REQUEST, name, "%s must be %s, but is %s", name, expected, got);
    if (error != NULL) {
        snprintf(error->expected, sizeof error->expected, "%s", expected);
        snprintf(error->got, sizeof error->got, "%s", got);
    }
    return MM_BAD_REQUEST;
}

/* The words of a permission, by its number. */
static const char *const permissions[] = {"never", "allow"};

/* A value in words, that was cut to a number or turned into one. */
static void describe_number(unsigned parameter, uint64_t number, char *out, size_t out_bytes) {
    const enum kind kind = parameters[parameter].kind;
    if (kind == PERMISSION) {
        assert(number < sizeof permissions / sizeof permissions[0]);
        snprintf(out, out_bytes, "%s", permissions[number]);
    } else {
        snprintf(out, out_bytes, "%" PRIu64 "%s", number,
                 kind == TIME && number == MM_CALL_WHOLE_MAX ? " or more" : "");
    }
}

static enum mm_status fail_twice(unsigned parameter, uint64_t held, uint64_t number, struct mm_error *error) {
    const char *name = parameters[parameter].name;
    char first[32];
    char second[32];
    describe_number(parameter, held, first, sizeof first);
    describe_number(parameter, number, second, sizeof second);
    return mm_fail_field(error, MM_BAD_REQUEST, name, "%s is given twice, as %s and as %s", name, first,
                         second);
}

/* Stores a value in its normal form, unless another one was given before. */
static enum mm_status give(struct mm_call *call, unsigned parameter, const struct value *value,
                           struct mm_error *error) {
    const char *name = parameters[parameter].name;
    if (parameters[parameter].kind == NAME) {
        char *held = call->names[parameter];
        if (mm_call_has(call, parameter) && strcmp(held, value->name) != 0)
            return mm_fail_field(error, MM_BAD_REQUEST, name, "%s is given twice, as '%s' and as '%s'", name,
                                 held, value->name);
        memcpy(held, value->name, sizeof value->name);
    } else {
        uint64_t *held = &call->numbers[parameter];
        if (mm_call_has(call, parameter) && *held != value->number)
            return fail_twice(parameter, *held, value->number, error);
        *held = value->number;
    }
    call->given |= UINT32_C(1) << parameter;
    return MM_OK;
}

static bool read_name(const char *text, size_t length, struct value *value) {
    if (memchr(text, '\0', length) != NULL)
        return false;
    size_t kept = length < MM_CALL_NAME_MAX ? length : MM_CALL_NAME_MAX;
    memcpy(value->name, text, kept);
    value->name[kept] = '\0';
    return true;
}

static bool text_is(const char *text, size_t length, const char *word) {
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

static bool read_flag(const char *text, size_t length, struct value *value) {
    value->number = text_is(text, length, "true") || text_is(text, length, "1");
    return value->number == 1 || text_is(text, length, "false") || text_is(text, length, "0");
}

static bool read_permission(const char *text, size_t length, struct value *value) {
    value->number = text_is(text, length, permissions[1]);
    return value->number == 1 || text_is(text, length, permissions[0]);
}

/* Digits alone, as many as there may be: numbers from 2⁶⁴−1 on all come out as 2⁶⁴−1. */
static bool read_decimal(const char *text, size_t length, uint64_t *number) {
    *number = 0;
    for (size_t index = 0; index < length; index++) {
        if (text[index] < '0' || text[index] > '9')
            return false;
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(text[index] - '0'), number))
            *number = UINT64_MAX;
    }
    return length > 0;
}

static enum mm_status fail_text(unsigned parameter, const char *text, size_t length, struct mm_error *error) {
    char got[60];
    bool cut = length > 40;
    snprintf(got, sizeof got, "'%.*s%s'", cut ? 40 : (int)length, text, cut ? "..." : "");
    return fail_form(parameter, forms[parameters[parameter].kind].text, got, error);
}

static enum mm_status check_dimension(unsigned parameter, uint64_t number, const char *text, size_t length,
                                      const struct mm_limits *limits, struct mm_error *error) {
    if (number <= limits->dimension_max && number < UINT64_MAX)
        return MM_OK;
    const char *name = parameters[parameter].name;
    int shown = length > 40 ? 40 : (int)length;
    mm_fail_field(error, MM_TOO_LARGE, name, "%s is %.*s%s, but the limit is %zu", name, shown, text,
                  length > 40 ? "..." : "", limits->dimension_max);
    if (error != NULL) {
        error->limit = limits->dimension_max;
        error->has_limit = true;
        snprintf(error->got, sizeof error->got, "%.*s%s", shown, text, length > 40 ? "..." : "");
    }
    return MM_TOO_LARGE;
}

/* Gives one of the first `count` parameters as text. */
static enum mm_status set_text(struct mm_call *call, unsigned count, const char *name, size_t name_length,
                               const char *text, size_t length, const struct mm_limits *limits,
                               struct mm_error *error) {
    unsigned parameter = find(call, name, name_length, count);
    if (parameter == count)
        return fail_unknown(call, name, name_length, count, error);
    if (text == NULL)
        text = "";
    struct value value = {0};
    bool well_formed = false;
    switch (parameters[parameter].kind) {
    case NAME:
        well_formed = read_name(text, length, &value);
        break;
    case FLAG:
        well_formed = read_flag(text, length, &value);
        break;
    case PERMISSION:
        well_formed = read_permission(text, length, &value);
        break;
    case COUNT:
        well_formed =
            read_decimal(text, length, &value.number) && value.number > 0 && value.number <= UINT32_MAX;
        break;
    case TIME:
        well_formed = read_decimal(text, length, &value.number) && value.number > 0;
        value.number = value.number < MM_CALL_WHOLE_MAX ? value.number : MM_CALL_WHOLE_MAX;
        break;
    case DIMENSION:
        well_formed = read_decimal(text, length, &value.number);
        if (well_formed && check_dimension(parameter, value.number, text, length, limits, error) != MM_OK)
            return MM_TOO_LARGE;
        break;
    }
    if (!well_formed)
        return fail_text(parameter, text, length, error);
    return give(call, parameter, &value, error);
}

enum mm_status mm_call_set_text(struct mm_call *call, const char *name, size_t name_length, const char *text,
                                size_t length, const struct mm_limits *limits, struct mm_error *error) {
    return set_text(call, MM_PARAMETER_COUNT, name, name_length, text, length, limits, error);
}

enum mm_status mm_call_set_field(struct mm_call *call, const char *name, size_t name_length, const char *text,
                                 size_t length, const struct mm_limits *limits, struct mm_error *error) {
    return set_text(call, MM_PARAMETER_M, name, name_length, text, length, limits, error);
}

void mm_call_describe_number(double number, char *out, size_t out_bytes) {
    const bool is_exact = floor(number) == number && fabs(number) < (double)MM_CALL_WHOLE_MAX;
    snprintf(out, out_bytes, "%s%.*g", fabs(number) >= DBL_MAX ? "beyond " : "", is_exact ? 17 : 9, number);
}

/* What came, in words, where a JSON value is not what its parameter takes. */
static void describe_value(enum mm_value_kind kind, const char *text, size_t length, double number, char *out,
                           size_t out_bytes) {
    char digits[32];
    switch (kind) {
    case MM_VALUE_TEXT:
        snprintf(out, out_bytes, "the string '%.*s%s'", length > 32 ? 32 : (int)length, text,
                 length > 32 ? "..." : "");
        return;
    case MM_VALUE_BOOLEAN:
        snprintf(out, out_bytes, "%s", number != 0 ? "true" : "false");
        return;
    case MM_VALUE_NUMBER:
        mm_call_describe_number(number, digits, sizeof digits);
        snprintf(out, out_bytes, "the number %s", digits);
        return;
    case MM_VALUE_OTHER:
        snprintf(out, out_bytes, "null, an array or an object");
        return;
    }
}

/* The largest double stands for every number beyond it (how a reader that rounds down sees 1e999), and
 * is refused with them. */
static bool read_number(double number, struct value *value) {
    if (!(number >= 1 && number < DBL_MAX) || floor(number) != number)
        return false;
    value->number = number < (double)MM_CALL_WHOLE_MAX ? (uint64_t)number : MM_CALL_WHOLE_MAX;
    return true;
}

enum mm_status mm_call_set_value(struct mm_call *call, const char *name, enum mm_value_kind kind,
                                 const char *text, size_t text_length, double number,
                                 struct mm_error *error) {
    unsigned parameter = find(call, name, strlen(name), MM_PARAMETER_M);
    if (parameter == MM_PARAMETER_M)
        return fail_unknown(call, name, strlen(name), MM_PARAMETER_M, error);
    struct value value = {0};
    bool well_formed = false;
    switch (parameters[parameter].kind) {
    case NAME:
        well_formed = kind == MM_VALUE_TEXT && read_name(text, text_length, &value);
        break;
    case FLAG:
        well_formed = kind == MM_VALUE_BOOLEAN;
        value.number = number != 0;
        break;
    case PERMISSION:
        well_formed = kind == MM_VALUE_TEXT && read_permission(text, text_length, &value);
        break;
    case COUNT:
        well_formed = kind == MM_VALUE_NUMBER && read_number(number, &value) && value.number <= UINT32_MAX;
        break;
    case TIME:
        well_formed = kind == MM_VALUE_NUMBER && read_number(number, &value);
        break;
    case DIMENSION: /* stands behind MM_PARAMETER_M, where find did not look */
        break;
    }
    if (!well_formed) {
        char got[64];
        describe_value(kind, text, text_length, number, got, sizeof got);
        return fail_form(parameter, forms[parameters[parameter].kind].value, got, error);
    }
    return give(call, parameter, &value, error);
}

enum mm_status mm_call_refuse_dimensions(const struct mm_call *call, struct mm_error *error) {
    for (unsigned parameter = MM_PARAMETER_M; parameter < MM_PARAMETER_COUNT; parameter++) {
        const char *name = parameters[parameter].name;
        if (mm_call_has(call, (enum mm_parameter)parameter))
            return mm_fail_field(error, MM_BAD_REQUEST, name,
                                 "%s goes only with a raw body (application/octet-stream): other bodies "
                                 "tell their shapes themselves",
                                 name);
    }
    return MM_OK;
}

enum mm_status mm_call_resolve(struct mm_call *call, struct mm_error *error) {
    return mm_dtype_find(call->names[MM_PARAMETER_DTYPE], mm_op_dtypes(call->op), &call->dtype, error);
}

static enum mm_status fail_together(const struct mm_call *call, size_t a_bytes, size_t b_bytes,
                                    size_t c_bytes, const struct mm_limits *limits, struct mm_error *error) {
    char b[40] = "";
    if (mm_call_operands(call) == 2)
        snprintf(b, sizeof b, ", b %zu", b_bytes);
    mm_fail(error, MM_TOO_LARGE, "a takes %zu bytes%s and the result %zu, but together they may take %zu",
            a_bytes, b, c_bytes, limits->memory_bytes_max);
    if (error != NULL) {
        error->limit = limits->memory_bytes_max;
        error->has_limit = true;
    }
    return MM_TOO_LARGE;
}

bool mm_call_transposes_a(const struct mm_call *call) {
    return call->op == MM_TRANSPOSE || call->numbers[MM_PARAMETER_TRANSPOSE_A] != 0;
}

void mm_call_result_shape(const struct mm_call *call, size_t *rows, size_t *cols) {
    *rows = mm_call_transposes_a(call) ? call->a.cols : call->a.rows;
    if (call->op == MM_TRANSPOSE)
        *cols = call->a.rows;
    else
        *cols = call->numbers[MM_PARAMETER_TRANSPOSE_B] != 0 ? call->b.rows : call->b.cols;
}

enum mm_status mm_call_sizes(const struct mm_call *call, const struct mm_limits *limits, size_t *a_bytes,
                             size_t *b_bytes, struct mm_error *error) {
    const struct mm_matrix *a = &call->a;
    const struct mm_matrix *b = &call->b;
    size_t m, n;
    mm_call_result_shape(call, &m, &n);
    size_t a_size, b_size, c_size, total;
    enum mm_status status = mm_matrix_size("a", a->dtype, a->rows, a->cols, a->ld, limits, &a_size, error);
    if (status == MM_OK)
        status = mm_matrix_size("b", b->dtype, b->rows, b->cols, b->ld, limits, &b_size, error);
    if (status == MM_OK)
        status = mm_matrix_size("c", a->dtype, m, n, n, limits, &c_size, error);
    if (status != MM_OK)
        return status;
    if (!mm_size_add(a_size, b_size, &total) || !mm_size_add(total, c_size, &total) ||
        total > limits->memory_bytes_max)
        return fail_together(call, a_size, b_size, c_size, limits, error);
    *a_bytes = a_size;
    *b_bytes = b_size;
    return MM_OK;
}

static void turn(struct mm_matrix *matrix, bool *transpose) {
    *matrix = mm_matrix_dense(matrix->dtype, matrix->cols, matrix->rows, matrix->data);
    *transpose = !*transpose;
}

void mm_call_turn(const struct mm_call *call, struct mm_product *product) {
    if (call->a_column_major)
        turn(&product->a, &product->transpose_a);
    if (call->b_column_major)
        turn(&product->b, &product->transpose_b);
}
