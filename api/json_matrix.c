/* Matrices in JSON: their shape, their elements' exact rounding to float32, and their text.
 *
 * A double that is rounded again to float32 is not always the float32 nearest to the text. So Jansson
 * (strtod) reads with the rounding mode set downward, which gives for a number v the double t = floor(v).
 * Where float32 rounds up or down changes at midpoints of its neighbouring values, and each midpoint is a
 * double. So if t is no midpoint, t and v lie on the same side of every midpoint, and t rounds as v does.
 * The same holds for u = ceil(v), read with the mode set upward. t and u are equal or neighbouring
 * doubles, which are never both midpoints: if both are one, v is exactly it, and ties go to even. */
#include "api/json_matrix.h"

#include "api/float_text.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static enum mm_status fail_matrix(const char *field, struct mm_error *error, const char *got) {
    mm_fail_field(error, MM_BAD_REQUEST, field,
                  "%s must be an array of rows, which are arrays of numbers, like [[1, 2], [3, 4]], but %s",
                  field, got);
    if (error != NULL)
        snprintf(error->expected, sizeof error->expected, "an array of arrays of numbers");
    return MM_BAD_REQUEST;
}

static enum mm_status fail_ragged(const char *field, size_t row, size_t cols, size_t expected,
                                  struct mm_error *error) {
    mm_fail_field(error, MM_BAD_REQUEST, field, "row %zu of %s has %zu element%s, expected %zu like row 0",
                  row, field, cols, cols == 1 ? "" : "s", expected);
    if (error != NULL) {
        snprintf(error->expected, sizeof error->expected, "%zu", expected);
        snprintf(error->got, sizeof error->got, "%zu", cols);
    }
    return MM_BAD_REQUEST;
}

static const char *type_name(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        return "null";
    }
    return "";
}

enum mm_status mm_json_matrix_shape(const json_t *rows, const char *field, struct mm_matrix *view,
                                    struct mm_error *error) {
    char got[64];
    if (rows == NULL)
        return fail_matrix(field, error, "it is missing");
    if (!json_is_array(rows)) {
        snprintf(got, sizeof got, "it is %s", type_name(rows));
        return fail_matrix(field, error, got);
    }
    size_t cols = json_array_size(json_array_get(rows, 0));
    for (size_t row = 0; row < json_array_size(rows); row++) {
        const json_t *elements = json_array_get(rows, row);
        if (!json_is_array(elements)) {
            snprintf(got, sizeof got, "row %zu is %s", row, type_name(elements));
            return fail_matrix(field, error, got);
        }
        if (json_array_size(elements) != cols)
            return fail_ragged(field, row, json_array_size(elements), cols, error);
    }
    *view = mm_matrix_dense(MM_FLOAT32, json_array_size(rows), cols, NULL);
    return MM_OK;
}

/* Whether a float32 would have to break a tie to hold this double. ±2¹²⁸ counts as a neighbour of the
 * largest float32, as in IEEE 754's rule for overflow. */
static bool is_midpoint(double value) {
    enum { PRECISION = 24, ULP_EXPONENT_MIN = -149 };
    int exponent;
    frexp(value, &exponent);
    int ulp_exponent = exponent - PRECISION > ULP_EXPONENT_MIN ? exponent - PRECISION : ULP_EXPONENT_MIN;
    double ulps = fabs(ldexp(value, -ulp_exponent)); /* exact: a power of two, far from all limits */
    return ulps - floor(ulps) == 0.5;
}

/* The strings that stand for what JSON has no numbers for. */
static bool read_special(const json_t *value, float *element) {
    static const struct {
        const char *text;
        float value;
    } specials[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
    for (size_t index = 0; index < sizeof specials / sizeof specials[0]; index++) {
        if (strcmp(json_string_value(value), specials[index].text) == 0) {
            *element = specials[index].value;
            return true;
        }
    }
    return false;
}

static enum mm_status fail_element(const char *field, size_t row, size_t col, const json_t *value,
                                   struct mm_error *error) {
    char got[64];
    if (json_is_string(value))
        snprintf(got, sizeof got, "the string \"%.32s\"", json_string_value(value));
    else
        snprintf(got, sizeof got, "%s", type_name(value));
    mm_fail_field(error, MM_BAD_REQUEST, field,
                  "%s[%zu][%zu] is %s, expected a number, \"NaN\", \"Infinity\" or \"-Infinity\"", field, row,
                  col, got);
    if (error != NULL) {
        snprintf(error->expected, sizeof error->expected, "a number");
        snprintf(error->got, sizeof error->got, "%s", got);
    }
    return MM_BAD_REQUEST;
}

/* A number beyond all doubles was read as the largest one. */
static enum mm_status fail_overflow(const char *field, size_t row, size_t col, double value,
                                    struct mm_error *error) {
    const char *beyond = fabs(value) >= DBL_MAX ? "beyond " : "";
    mm_fail_field(error, MM_BAD_REQUEST, field,
                  "%s[%zu][%zu] is %s%.9g, which float32 cannot hold: its largest number is %.9g", field, row,
                  col, beyond, value, (double)FLT_MAX);
    if (error != NULL) {
        snprintf(error->expected, sizeof error->expected, "at most %.9g", (double)FLT_MAX);
        snprintf(error->got, sizeof error->got, "%s%.9g", beyond, value);
    }
    return MM_BAD_REQUEST;
}

static enum mm_status read_row(const json_t *elements, const char *field, size_t row,
                               enum mm_json_bound bound, size_t cols, float *out, bool *undecided,
                               struct mm_error *error) {
    float unwanted = 0; /* where the element is judged and not kept */
    for (size_t col = 0; col < cols; col++) {
        const json_t *element = json_array_get(elements, col);
        float *at = out == NULL ? &unwanted : &out[col];
        if (json_is_string(element) && read_special(element, at))
            continue;
        if (!json_is_number(element))
            return fail_element(field, row, col, element, error);
        double value = json_number_value(element);
        bool midpoint = is_midpoint(value);
        if (bound == MM_JSON_LOWER || !midpoint)
            *at = (float)value; /* else what the lower bound gave stands */
        if (bound == MM_JSON_LOWER && midpoint)
            *undecided = true;
        else if (isinf(*at))
            return fail_overflow(field, row, col, value, error);
    }
    return MM_OK;
}

enum mm_status mm_json_matrix_read(const json_t *rows, const char *field, enum mm_json_bound bound,
                                   const struct mm_matrix *view, bool *undecided, struct mm_error *error) {
    for (size_t row = 0; row < view->rows && view->cols > 0; row++) {
        float *out = view->data == NULL ? NULL : (float *)view->data + row * view->ld;
        enum mm_status status =
            read_row(json_array_get(rows, row), field, row, bound, view->cols, out, undecided, error);
        if (status != MM_OK)
            return status;
    }
    return MM_OK;
}

bool mm_json_matrix_text_bytes(const struct mm_matrix *matrix, size_t *bytes) {
    enum {
        ELEMENT_BYTES = MM_FLOAT_TEXT_MAX + 1,
        ROW_BYTES = sizeof "[]," - 1,
        MATRIX_BYTES = sizeof "[]" - 1
    };
    size_t row, all;
    return !__builtin_mul_overflow(matrix->cols, ELEMENT_BYTES, &row) && mm_size_add(row, ROW_BYTES, &row) &&
           !__builtin_mul_overflow(matrix->rows, row, &all) && mm_size_add(all, MATRIX_BYTES, bytes);
}

size_t mm_json_matrix_write(const struct mm_matrix *matrix, char *text) {
    assert(matrix->dtype == MM_FLOAT32);
    const float *elements = matrix->data;
    char *end = text;
    *end++ = '[';
    for (size_t row = 0; row < matrix->rows; row++) {
        if (row > 0)
            *end++ = ',';
        *end++ = '[';
        for (size_t col = 0; col < matrix->cols; col++) {
            if (col > 0)
                *end++ = ',';
            end += mm_float_text(elements[row * matrix->ld + col], end);
        }
        *end++ = ']';
    }
    *end++ = ']';
    return (size_t)(end - text);
}
