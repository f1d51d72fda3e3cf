/* Floating-point numbers from JSON, rounded exactly once.
 *
 * A double that is rounded again to float32 is not always the float32 nearest to the text. So Jansson
 * (strtod) reads with the rounding mode set downward, which gives for a number v the double t = floor(v).
 * Where float32 rounds up or down changes at midpoints of its neighbouring values, and each midpoint is a
 * double. So if t is no midpoint, t and v lie on the same side of every midpoint, and t rounds as v does.
 * The same holds for u = ceil(v), read with the mode set upward. t and u are equal or neighbouring
 * doubles, which are never both midpoints: if both are one, v is exactly it, and ties go to even.
 *
 * A float64 is what strtod gives in the default mode, so that its lower bound decides nothing. */
#include "api/json_row.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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
static bool find_special(const json_t *value, float *element) {
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

static enum mm_status fail_element(const struct mm_json_row *row, size_t col, const json_t *value,
                                   struct mm_error *error) {
    char got[64];
    mm_json_describe(value, got, sizeof got);
    mm_fail_field(error, MM_BAD_REQUEST, row->field,
                  "%s[%zu][%zu] is %s, expected a number, \"NaN\", \"Infinity\" or \"-Infinity\"", row->field,
                  row->index, col, got);
    if (error != NULL) {
        snprintf(error->expected, sizeof error->expected, "a number");
        snprintf(error->got, sizeof error->got, "%s", got);
    }
    return MM_BAD_REQUEST;
}

/* A number beyond all doubles was read as the largest one. */
static enum mm_status fail_overflow(const struct mm_json_row *row, size_t col, double value,
                                    struct mm_error *error) {
    const char *beyond = fabs(value) >= DBL_MAX ? "beyond " : "";
    mm_fail_field(error, MM_BAD_REQUEST, row->field,
                  "%s[%zu][%zu] is %s%.9g, which float32 cannot hold: its largest number is %.9g", row->field,
                  row->index, col, beyond, value, (double)FLT_MAX);
    if (error != NULL) {
        snprintf(error->expected, sizeof error->expected, "at most %.9g", (double)FLT_MAX);
        snprintf(error->got, sizeof error->got, "%s%.9g", beyond, value);
    }
    return MM_BAD_REQUEST;
}

enum mm_status mm_json_read_float32(const struct mm_json_row *row, struct mm_error *error) {
    const bool first = row->bound != MM_JSON_UPPER;
    float *out = row->out;
    float unwanted = 0; /* where the element is judged and not kept */
    for (size_t col = 0; col < row->cols; col++) {
        const json_t *element = json_array_get(row->elements, col);
        float *at = out == NULL ? &unwanted : &out[col];
        if (json_is_string(element) && find_special(element, at))
            continue;
        if (!json_is_number(element))
            return fail_element(row, col, element, error);
        double value = json_number_value(element);
        bool midpoint = is_midpoint(value);
        if (first || !midpoint)
            *at = (float)value; /* else what the lower bound gave stands */
        if (first && midpoint)
            *row->undecided = true;
        else if (isinf(*at))
            return fail_overflow(row, col, value, error);
    }
    return MM_OK;
}

/* What overflows is none of Jansson's numbers: it refuses that itself. */
enum mm_status mm_json_read_float64(const struct mm_json_row *row, struct mm_error *error) {
    double *out = row->out;
    for (size_t col = 0; col < row->cols; col++) {
        const json_t *element = json_array_get(row->elements, col);
        float special = 0;
        bool is_special = json_is_string(element) && find_special(element, &special);
        if (!is_special && !json_is_number(element))
            return fail_element(row, col, element, error);
        if (!is_special && row->bound == MM_JSON_LOWER)
            *row->undecided = true;
        if (out != NULL)
            out[col] = is_special ? (double)special : json_number_value(element);
    }
    return MM_OK;
}
